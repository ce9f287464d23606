"""What one reader costs the system on one file, counted in a process of its own: system calls, and memory that it came to hold.

``python -m conformance.bench.child READER FILE`` opens the file once, between two calls that a trace is searched for, and prints
by how many bytes the process's peak grew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

READERS = ("impl", "llama.cpp", "gguf-py")
BEGIN, END = "/gguf-conformance-begin", "/gguf-conformance-end"
NO_STRACE = "strace is not installed; on Debian: apt-get install strace"


class Cost(NamedTuple):
    """``calls`` and ``peak`` (bytes); a text in their place says why they could not be counted."""

    calls: int | str
    peak: int | str


def cost(reader: str, path: Path) -> Cost:
    """Open ``path`` with one of READERS, once for its memory and once for its calls."""
    return Cost(count_calls(reader, path), peak_growth(reader, path))


def count_calls(reader: str, path: Path) -> int | str:
    """Count the system calls of one opening: the first in its process, with all modules loaded."""
    strace = shutil.which("strace")
    if strace is None:
        return NO_STRACE
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        done = _child(reader, path, (strace, "-f", "-o", str(trace)))
        if done.returncode:
            return f"strace could not trace: {_last_line(done.stderr)}"
        return between_marks(trace.read_text("utf-8", "replace").splitlines())


def between_marks(lines: Iterable[str]) -> int | str:
    """Count the calls between the two that mark the opening; a call that another one interrupts stands in two lines."""
    count = None
    for line in lines:
        if BEGIN in line:
            count = 0
        elif END in line:
            return count if count is not None else "the trace has an end and no beginning"
        elif count is not None and "resumed>" not in line and "---" not in line:
            count += 1
    return "the trace has no end"


def peak_growth(reader: str, path: Path) -> int | str:
    """Give by how much opening the file raised the memory that a process held at most, in bytes; mapped pages count."""
    done = _child(reader, path, ())
    if done.returncode:
        return f"it could not be measured: {_last_line(done.stderr)}"
    return int(done.stdout)


def _child(reader: str, path: Path, before: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "conformance.bench.child", reader, str(path)]
    packages = str(Path(__file__).parents[2])
    merged = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH", "")]))}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=merged)


def _last_line(text: str) -> str:
    return "".join(text.strip().splitlines()[-1:]) or "it said nothing"


def opener(reader: str) -> Callable[[Path], object]:
    """Give what opens a file, with all that it needs loaded. What it gives is to be kept until the end."""
    if reader == "llama.cpp":
        from conformance.bench.header import open_by_c  # noqa: PLC0415 - a child loads one of them

        return open_by_c
    if reader == "gguf-py":
        from gguf.gguf_reader import GGUFReader  # noqa: PLC0415 - the same

        return GGUFReader
    from impl.container.file import open_file  # noqa: PLC0415 - the same

    return open_file


def _high_water() -> int:
    """Give the most memory that this process has held since the mark was reset, in bytes. Linux only; else OSError."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def _mark(path: str) -> None:
    os.access(path, os.F_OK)


def main(reader: str, path: Path) -> None:
    """Open the file and print by how many bytes the peak grew."""
    read = opener(reader)
    _mark("/warm")
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak starts anew, from what is held now
    before = _high_water()
    _mark(BEGIN)
    kept = read(path)
    _mark(END)
    grown = _high_water() - before
    del kept
    print(grown)  # noqa: T201 - the child's answer


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
