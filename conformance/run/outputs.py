"""What a process wrote to its output file, taken into memory: from then on the process can no longer change it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from conformance.judge.output import Bytes
from conformance.outcomes import Protocol

# A file that a case describes has at most 1 GiB, so that written twice as large it is wrong.
MOST_BYTES = 2**31


def take_output(path: Path, nbytes: int | None, into: Bytes | None = None) -> Bytes | Protocol:
    """Read the file that an op with ``out`` has to write, uint8 of shape (``nbytes``,); Protocol where it is not just that.

    ``nbytes`` None takes a file of any size up to ``MOST_BYTES``. ``into`` is memory of at least ``nbytes`` bytes to read it to:
    who takes many outputs then need not have new memory for each.

    It is read, not mapped: its writer still lives, and a mapping of a file that it cuts short would kill this process.
    """
    try:
        # Without waiting: nothing keeps a subject from putting a pipe there.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Protocol(f"ok, but the file to write does not exist: {path}")
    except OSError as problem:
        return Protocol(f"ok, but the file written cannot be read: {problem.strerror}: {path}")
    try:
        return _read(file, path, nbytes, into)
    finally:
        os.close(file)


def _read(file: int, path: Path, nbytes: int | None, into: Bytes | None) -> Bytes | Protocol:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        return Protocol(f"ok, but what stands where the file is due is no regular file: {path}")
    if nbytes is None:
        nbytes = min(status.st_size, MOST_BYTES)
    if status.st_size != nbytes:
        return Protocol(f"ok, but the file written has {status.st_size} bytes, expected {nbytes}: {path}")
    data = np.empty(nbytes, np.uint8) if into is None else into[:nbytes]
    done = 0
    while done < nbytes:
        got = os.preadv(file, [data.data[done:]], done)
        if got == 0:
            return Protocol(f"ok, but the file written was cut to {done} bytes after the answer, expected {nbytes}: {path}")
        done += got
    return data
