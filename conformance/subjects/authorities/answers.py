"""What both authorities' adapters do alike: read an input file, check its size, know whether a file is still the same."""

from __future__ import annotations

import time
from pathlib import Path

from conformance.adapter import Reject

# A file that changed less than this ago may change again within one tick of its file system's clock.
SETTLED_NS = 100_000_000

FileKey = tuple[str, int, int, int]


def file_key(path: str) -> FileKey | None:
    """Give what identifies the content of a file (path, inode, mtime in ns, size), or None if it is too young to tell."""
    status = Path(path).stat()
    if time.time_ns() - status.st_mtime_ns < SETTLED_NS:
        return None
    return path, status.st_ino, status.st_mtime_ns, status.st_size


def read_exactly(path: str, expected: int, what: str) -> bytes:
    """Read a file of bulk numbers. Raises Reject (``bad-input``) if it does not hold ``expected`` bytes."""
    data = Path(path).read_bytes()
    if len(data) != expected:
        raise Reject("bad-input", f"{what}: {len(data)} bytes in {path}, expected {expected}")
    return data


def require_shape(rows: int, cols: int, block: int) -> None:
    """Raise Reject (``bad-input``) unless there are rows and each is a positive multiple of the block."""
    if rows < 1 or cols <= 0 or cols % block:
        raise Reject("bad-input", f"{rows} rows of {cols} elements; it takes a row or more, each a multiple of the block, {block}")
