"""Replaces a file as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from impl.errors import InputError

# Of a long name this much goes into the temporary file's, so that that one is not too long.
_KEPT_OF_NAME = 64


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a new file to write, which takes the place of ``path`` once the block has ended and its bytes are on the disk.

    Until then, and whatever is raised, ``path`` stays as it was and the new file, which lies beside it, is removed. A link is
    followed. The permissions of what is replaced are kept.

    Raises:
        InputError: something stands at ``path`` that is no regular file.
        OSError: no file can be made or written beside it.

    """
    target = Path(os.path.realpath(path))
    mode = _permissions(target)
    part = target.with_name(f".{target.name[:_KEPT_OF_NAME]}.{secrets.token_hex(8)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor has no Path
            if mode is not None:
                os.fchmod(handle, mode)
            yield file
            file.flush()
            os.fsync(handle)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _permissions(target: Path) -> int | None:
    """Give the permissions of what is to be replaced, None where there is nothing. Raises InputError."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise InputError(f"{target} is no regular file, and cannot be replaced by one: give the path of a file")
    return stat.S_IMODE(mode)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk too, where the file system can: the file is in its place by now, whatever it answers."""
    with suppress(OSError):
        _sync(folder)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
