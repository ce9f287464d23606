"""Goes on reading its stdin and never answers."""

import sys

from fake import run


def misbehave(_answer):
    for _ in sys.stdin.buffer:
        pass


run(misbehave)
