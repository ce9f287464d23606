"""stdout and stderr, whatever the shell made of them: a pipe that nobody reads on, a full disk, a closed stream."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from conformance.errors import ConfigurationError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    """A standard stream's file. From the first write that fails on, what is written is dropped.

    So a command whose reader has seen enough (``| head``) does all else that it is to do, and ends with the exit code that it
    would have had. A write that fails for another reason raises ConfigurationError, once, if the stream is ``vital``.
    """

    def __init__(self, stream: TextIO, *, vital: bool) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self._called = stream.name.strip("<>")
        self._vital = vital
        self._lost = False

    def write(self, data: ReadableBuffer, /) -> int | None:  # type: ignore[override] # None is what a full non-blocking pipe gives
        if not self._lost:
            try:
                return super().write(data)
            except BrokenPipeError:
                self._lost = True
            except OSError as problem:
                self._lost = True
                if self._vital:
                    raise ConfigurationError(
                        f"cannot write to {self._called}: {problem.strerror}", hint="send it to a place with room"
                    ) from None
        return memoryview(data).nbytes


@contextmanager
def sound_streams() -> Iterator[None]:
    """Let the process write to its standard streams without a traceback.

    Raises ConfigurationError, also at the end, where stdout cannot take what is written, or is closed.
    """
    out: TextIO | None = sys.stdout
    err: TextIO | None = sys.stderr
    _occupy_closed()
    if err is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - it stays as long as the process
    else:
        sys.stderr = _guarded(err, sys.__stderr__, vital=False)
    if out is None:
        raise ConfigurationError("stdout is closed", hint="leave it open; where nothing is to be shown, send it away: >/dev/null")
    sys.stdout = _guarded(out, sys.__stdout__, vital=True)
    try:
        yield
    finally:
        ours, sys.stdout = sys.stdout, out
        ours.flush()


def _guarded(stream: TextIO, own: TextIO | None, *, vital: bool) -> TextIO:
    """Put a guard before the process's own stream; one that somebody put in its place (a test) stays as it is."""
    if stream is not own:
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream, vital=vital)),
        encoding=stream.encoding,
        errors="backslashreplace",  # a sign that the encoding has not (ASCII, Latin-1, a lone surrogate) shows its escape
        line_buffering=stream.isatty() or not vital,
    )


def _occupy_closed() -> None:
    """Give the numbers of closed standard streams to the null device, or the next file that is opened would get them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
