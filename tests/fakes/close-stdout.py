"""Closes its stdout and lives on."""

import os
import time

from fake import run


def misbehave(_answer):
    os.close(1)
    time.sleep(3600)


run(misbehave)
