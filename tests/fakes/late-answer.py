"""Answers well, but two seconds after its time limit."""

import time

from fake import run, say


def misbehave(answer):
    time.sleep(4)
    say(answer)


run(misbehave)
