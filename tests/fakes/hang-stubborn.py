"""Hangs, and ignores SIGTERM, SIGINT, SIGHUP and the end of its stdin."""

import signal
import time

from fake import run


def misbehave(_answer):
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3600)


run(misbehave)
