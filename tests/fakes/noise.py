"""Writes 10 MB to stderr, without a newline, and then answers well."""

import sys

from fake import run, say


def misbehave(answer):
    for _ in range(160):
        sys.stderr.write("~" * 65536)
    sys.stderr.flush()
    say(answer)


run(misbehave)
