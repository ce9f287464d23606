"""A place in the header that moves forward field by field and never past the end."""

from __future__ import annotations

import mmap
import struct
from typing import Literal

from impl.errors import GgufError

Buffer = bytes | bytearray | mmap.mmap
ByteOrder = Literal["little", "big"]

# What the C reader allows, gguf.cpp: GGUF_MAX_STRING_LENGTH and GGUF_MAX_ARRAY_ELEMENTS.
MAX_STRING_LENGTH = 2**30
MAX_ARRAY_ELEMENTS = 2**30


class MoreNeededError(Exception):
    """Not a fault: ``buffer`` holds only the start of a file so far, and the next field reaches to ``end`` at least."""

    def __init__(self, end: int) -> None:
        super().__init__(f"the first {end} bytes are needed")
        self.end = end


class Cursor:
    """Reads fields of ``buffer`` in order; ``field`` names each, so that a fault can be blamed on it.

    ``complete`` is False while more of the file may come: what lies past the end is then not missing, but needed. ``max_string``
    is the longest string. With ``cuts`` a string that passes the end of the file ends there. ``width`` is that of counts,
    lengths and dimensions in bytes: 8, or 4 in version 1.
    """

    __slots__ = ("_i32", "_u32", "_u64", "_word", "buffer", "complete", "cuts", "end", "max_string", "order", "pos", "width")

    def __init__(self, buffer: Buffer, *, complete: bool = True, max_string: int = MAX_STRING_LENGTH, cuts: bool = False) -> None:
        self.buffer = buffer
        self.pos = 0
        self.end = len(buffer)
        self.complete = complete
        self.max_string = max_string
        self.cuts = cuts
        self.set_layout("little", 8)

    def set_layout(self, order: ByteOrder, width: int) -> None:
        """Read all that follows in this byte order, with words of this width."""
        sign = "<" if order == "little" else ">"
        self.order: ByteOrder = order
        self.width = width
        self._u32 = struct.Struct(f"{sign}I").unpack_from
        self._i32 = struct.Struct(f"{sign}i").unpack_from
        self._u64 = struct.Struct(f"{sign}Q").unpack_from
        self._word = self._u64 if width == 8 else self._u32

    @property
    def plain(self) -> bool:
        """Whether lengths are little-endian and of 64 bits, as they are in nearly all files."""
        return self.order == "little" and self.width == 8

    @property
    def remaining(self) -> int:
        """Bytes between here and the end."""
        return self.end - self.pos

    def lacks(self, size: int) -> bool:
        """Tell whether the file has fewer than ``size`` bytes from here on. Raises MoreNeededError where that is not known yet."""
        if size <= self.end - self.pos:
            return False
        if not self.complete:
            raise MoreNeededError(self.pos + size)
        return True

    def skip(self, size: int, field: str) -> int:
        """Move over ``size`` bytes and give the offset where they start.

        Raises:
            GgufError: ``truncated``, fewer bytes are left.

        """
        start = self.pos
        if size > self.end - start and self.lacks(size):
            problem = f"takes {size} bytes, but the file ends {self.end - start} bytes on, at {self.end}"
            raise GgufError("truncated", problem, field=field, at=start)
        self.pos = start + size
        return start

    def take(self, size: int, field: str) -> bytes:
        """Read ``size`` bytes. Raises what ``skip`` raises."""
        start = self.skip(size, field)
        return bytes(self.buffer[start : self.pos])

    def u32(self, field: str) -> int:
        """Read an unsigned 32-bit integer."""
        return int(self._u32(self.buffer, self.skip(4, field))[0])

    def i32(self, field: str) -> int:
        """Read a signed 32-bit integer."""
        return int(self._i32(self.buffer, self.skip(4, field))[0])

    def u64(self, field: str) -> int:
        """Read an unsigned 64-bit integer."""
        return int(self._u64(self.buffer, self.skip(8, field))[0])

    def word(self, field: str) -> int:
        """Read a count, a length or a dimension: unsigned, of 64 bits, or of 32 in version 1."""
        return int(self._word(self.buffer, self.skip(self.width, field))[0])

    def string(self, field: str) -> bytes:
        """Read a string: its length in bytes, then the bytes, which may be any.

        Raises:
            GgufError: ``truncated`` in the length; ``bad-length`` where it passes the limit or the end of the file.

        """
        at = self.pos
        length = self.word(f"{field}.length")
        start = self.pos
        if length > self.max_string or length > self.end - start:
            length = self._fitting(length, f"{field}.length", at)
        self.pos = start + length
        return bytes(self.buffer[start : self.pos])

    def _fitting(self, length: int, field: str, at: int) -> int:
        """Give what is to be read of a string of this length. Raises GgufError, ``bad-length``."""
        if length > self.max_string:
            problem = f"string length {length} is over the limit of {self.max_string}"
            raise GgufError("bad-length", problem, field=field, at=at)
        self.lacks(length)  # it does, unless more may come
        if not self.cuts:
            problem = f"string length {length}, but only {self.remaining} bytes are left (the file ends at {self.end})"
            raise GgufError("bad-length", problem, field=field, at=at)
        return self.remaining


def show(raw: bytes) -> str:
    """Show a key or a name in a message: quoted, and cut where it is long."""
    text = repr(raw[:80])[1:]
    return text if len(raw) <= 80 else f"{text}... ({len(raw)} bytes)"
