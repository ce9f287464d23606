"""The folder for temporary files: that it can be written to is the harness's matter, never a subject's fault."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.errors import ConfigurationError

_HINT = "make room there, or set TMPDIR to a folder with room"


# Files of memory, where Linux keeps a place for them; containers may have made it small.
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
_MEMORY_NEEDED = 2**30


@contextmanager
def scratch_folder(*, in_memory: bool = False) -> Iterator[Path]:
    """Make a folder that is removed in the end. Raises ConfigurationError where there is no place for one.

    ``in_memory`` is for files that are written again thousands of times a second, which a disk would have to be told of: it takes
    memory where there is room for them, unless TMPDIR says otherwise.
    """
    try:
        place = _MEMORY if in_memory and _has_memory() else None
        folder = tempfile.TemporaryDirectory(prefix="gguf-conformance-", dir=place, ignore_cleanup_errors=True)
    except OSError as problem:
        raise ConfigurationError(f"no place for temporary files: {problem.strerror or problem}", hint=_HINT) from problem
    with folder as name:
        yield Path(name)


def _has_memory() -> bool:
    if os.environ.get("TMPDIR") or not os.access(_MEMORY, os.W_OK):
        return False
    status = os.statvfs(_MEMORY)
    return status.f_bavail * status.f_frsize >= _MEMORY_NEEDED


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Turn a write that fails into a ConfigurationError that names the file and says what to do."""
    try:
        yield
    except OSError as problem:
        where = str(problem.filename or folder)
        raise ConfigurationError(f"temporary files: {problem.strerror or problem}", where=where, hint=_HINT) from problem


def require_room(folder: Path, nbytes: int) -> None:
    """Make sure that a subject can write ``nbytes`` bytes into ``folder``. Raises ConfigurationError where it cannot."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if free < nbytes:
        raise ConfigurationError(
            f"temporary files: {nbytes} bytes are to be written, {free} are free", where=str(folder), hint=_HINT
        )
