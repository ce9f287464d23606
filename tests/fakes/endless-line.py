"""Writes a line that never ends."""

import sys

from fake import run


def misbehave(_answer):
    while True:
        sys.stdout.buffer.write(b"a" * 65536)


run(misbehave)
