#!/bin/sh
# Builds the adapter and shows with candle alone what docs/candle.md says of it; needs gguf-conformance on PATH.
set -eu
gguf-conformance build candle
for confirm in "${GGUF_CONFORMANCE_CACHE:-$HOME/.cache/gguf-conformance}"/adapters/candle-*/release/confirm; do
    exec "$confirm" "$(gguf-conformance fetch -s models/smollm2/q4_1)"
done
