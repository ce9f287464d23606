"""Leaves a daemon: forks twice, takes a session of its own, closes all pipes, and answers as if nothing were."""

import os
import time

from fake import run, say


def misbehave(answer):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(3):
                os.close(number)
            time.sleep(3600)
        os._exit(0)
    os.wait()
    say(answer)


run(misbehave)
