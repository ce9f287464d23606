"""Keeps one file open, since a model's tensors are asked for one by one."""

from __future__ import annotations

import time
from pathlib import Path

from impl.container.file import File, open_file

# A file younger than this may change again within one tick of the file system's clock, and not show it.
SETTLED_NS = 100_000_000


class LastFile:
    """The file that was opened last, and what tells that it is still the same."""

    def __init__(self, profile: str = "llama.cpp") -> None:
        self._profile = profile
        self._identity: tuple[str, int, int, int] | None = None
        self._file: File | None = None

    def reread(self, path: str) -> File:
        """Open the file anew. Raises what ``open_file`` raises."""
        self._identity = self._file = None
        identity = _identity(path)
        self._file = open_file(path, profile=self._profile)
        self._identity = identity
        return self._file

    def get(self, path: str) -> File:
        """Give the open file if it is this one and has not changed, else open it. Raises what ``open_file`` raises."""
        if self._file is not None and self._identity is not None and self._identity == _identity(path):
            return self._file
        return self.reread(path)


def _identity(path: str) -> tuple[str, int, int, int] | None:
    status = Path(path).stat()
    if time.time_ns() - status.st_mtime_ns < SETTLED_NS:
        return None
    return path, status.st_ino, status.st_mtime_ns, status.st_size
