"""Dies by SIGABRT, as a failed assertion does, with a last word on stderr."""

import os
import sys

from fake import run


def misbehave(_answer):
    sys.stderr.write("assertion failed: ne > 0\n")
    sys.stderr.flush()
    os.abort()


run(misbehave)
