#!/bin/sh
# Builds the adapter and shows with candle alone what docs/candle.md says of it; needs gguf-conformance on PATH.
set -eu
gguf-conformance build candle
# The folder is told on stderr; nothing is built again.
built=$(gguf-conformance build candle 2>&1 | sed -n 's/^building candle into //p')
exec "$built/release/confirm" "$(gguf-conformance fetch -s models/smollm2/q4_1)"
