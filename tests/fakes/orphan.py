"""Forks a child that holds stdout open, and exits with status 3."""

import os
import time

from fake import run


def misbehave(_answer):
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(3)


run(misbehave)
