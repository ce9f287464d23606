"""Long commands of others: their output goes to a log, and a line tells now and then how far they are."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.printable import lines_of
from conformance.subjects.guard import GUARD

PROGRESS_SECONDS = 10.0
POLL_SECONDS = 0.2
TAIL_LINES = 15
_TAIL_BYTES = 100_000
# Characters of one line of a log: compilers print long ones.
_SHOWN = 2000

Say = Callable[[str], None]


def run_logged(
    command: Sequence[str],
    log: Path,
    say: Say,
    *,
    step: Callable[[bytes], str],
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> int:
    """Run ``command`` in ``folder``, its output added to ``log``; gives its exit status.

    ``say`` gets a line each ten seconds, with what ``step`` makes of the log's end. The command's stdin is empty: what would ask a
    question there fails, and does not wait. When it ends, and on any exception, an interruption among them, what is left of it and
    of its process group is killed; so it is when this process is killed itself.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, cwd=folder, start_new_session=True
        )
    try:
        GUARD.add(process.pid)
        _wait(process, say, lambda: step(end_of(log)))
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing is left, or (macOS) only who has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        GUARD.remove(process.pid)
    return process.returncode


def end_of(log: Path) -> bytes:
    """Give the last bytes of a log."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read()


def last_lines(log: Path) -> str:
    """Give the last lines of a log as a hint shows them."""
    return "\n  ".join(["the log ends:", *lines_of(end_of(log).decode("utf-8", "replace").strip(), _SHOWN)[-TAIL_LINES:]])


def _wait(process: subprocess.Popen[bytes], say: Say, step: Callable[[], str]) -> None:
    start = time.monotonic()
    due = PROGRESS_SECONDS
    while process.poll() is None:
        time.sleep(POLL_SECONDS)
        elapsed = time.monotonic() - start
        if elapsed >= due:
            due += PROGRESS_SECONDS
            say(f"  {elapsed:4.0f} s  {step()}")
