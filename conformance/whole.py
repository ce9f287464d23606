"""Files that are there whole or not at all: a command that is ended while it writes one leaves the one that was there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` in the place of the file ``path``, in one step; of a link, in the place of what it leads to.

    Raises OSError, and leaves what was there.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(text.encode("utf-8"))
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
