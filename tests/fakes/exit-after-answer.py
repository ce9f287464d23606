"""Answers well, then exits although more requests may come."""

import os

from fake import run, say


def misbehave(answer):
    say(answer)
    os._exit(0)


run(misbehave)
