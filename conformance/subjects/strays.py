"""Finds processes that left their subject: a daemon forks twice and takes a session of its own, so no tree or group has it.

Each subject starts with a mark in its environment, which its descendants inherit. Linux shows it in /proc; elsewhere nothing is
found.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

VARIABLE = "GGUF_CONFORMANCE_SUBJECT"
# What the marks of all subjects of this process begin with.
TOKEN = f"{os.getpid()}-{secrets.token_hex(8)}"
_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
_PATIENCE = 2.0  # seconds
_NUMBERS = itertools.count(1)


def next_mark() -> str:
    """Give the mark of one more subject; the dot at its end keeps mark 1 from being found in mark 12."""
    return f"{TOKEN}-{next(_NUMBERS)}."


def kill_marked(mark: str) -> None:
    """Kill what carries ``mark``, until nothing is found: a process may fork while it is looked for."""
    sign = f"{VARIABLE}={mark}".encode()
    _kill_while(lambda: [pid for pid, environment in _environments() if sign in environment])


def children() -> set[int]:
    """Give the processes whose parent is this one."""
    return {process.pid for process in psutil.Process().children()}


def kill_children(spared: set[int]) -> None:
    """Kill all children of this process but ``spared``, and, where it has adopted orphans, theirs."""
    _kill_while(lambda: sorted(children() - spared))


def _kill_while(find: Callable[[], list[int]]) -> None:
    """Kill what is found, again and again; a process inside a system call that cannot be interrupted is waited for no longer."""
    until = time.monotonic() + _PATIENCE
    while (found := find()) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # it has another parent, who takes note of its end
                os.waitpid(pid, os.WNOHANG)


def adopt_orphans() -> None:
    """Make this process, not init, the parent of what its descendants leave behind, so that it can be found with no mark too.

    The standard library has no call for it. Where the system has none either, orphans are found by their mark alone.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _environments() -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").glob("[0-9]*"):
        # Ended, or another user's. What has been killed and not reaped yet has an empty one.
        with contextlib.suppress(OSError):
            yield int(folder.name), (folder / "environ").read_bytes()
