"""A stream as the source of a header: it is read as far as is needed, from where it stands, and never asked where that is."""

from __future__ import annotations

from typing import Protocol

from impl.container.cursor import Cursor
from impl.errors import InputError

# Bytes asked for in one go: what a header claims is set aside only as it comes.
PIECE = 1 << 20


class Readable(Protocol):
    """What gives bytes: a pipe, a socket's file, an answer of HTTP, an open file."""

    def read(self, size: int, /) -> bytes | None:
        """Give up to ``size`` bytes, none at the end."""


class Stream:
    """Fills a cursor's buffer from a stream."""

    def __init__(self, source: Readable, cursor: Cursor) -> None:
        self.source = source
        self.cursor = cursor

    def fill(self, end: int) -> None:
        """Read until the buffer holds ``end`` bytes or the stream ends; then the cursor is told that it is complete.

        Raises:
            InputError: the stream gives something else than bytes, or nothing without being at its end.

        """
        buffer = self.cursor.buffer
        assert isinstance(buffer, bytearray)  # noqa: S101 - what a stream is made with
        while len(buffer) < end:
            piece = self.source.read(min(end - len(buffer), PIECE))
            if not isinstance(piece, bytes | bytearray | memoryview):
                wanted = "open it in binary mode" if isinstance(piece, str) else "set it to wait for its bytes"
                raise InputError(f"the stream gave {type(piece).__name__} in place of bytes: {wanted}")
            if not len(piece):
                self.cursor.complete = True
                break
            buffer += piece
        self.cursor.end = len(buffer)
