"""A place in the header that moves forward field by field and never past the end."""

from __future__ import annotations

import mmap
import struct

from impl.errors import GgufError

Buffer = bytes | mmap.mmap

# What the C reader allows, gguf.cpp: GGUF_MAX_STRING_LENGTH and GGUF_MAX_ARRAY_ELEMENTS.
MAX_STRING_LENGTH = 2**30
MAX_ARRAY_ELEMENTS = 2**30

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
_U64 = struct.Struct("<Q")
_I64 = struct.Struct("<q")


class Cursor:
    """Reads little-endian fields of ``buffer`` in order; ``field`` names each, so that a fault can be blamed on it."""

    __slots__ = ("buffer", "end", "pos")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.pos = 0
        self.end = len(buffer)

    @property
    def remaining(self) -> int:
        """Bytes between here and the end."""
        return self.end - self.pos

    def skip(self, size: int, field: str) -> int:
        """Move over ``size`` bytes and give the offset where they start.

        Raises:
            GgufError: ``truncated``, fewer bytes are left.

        """
        start = self.pos
        if size > self.end - start:
            problem = f"takes {size} bytes, but the file ends {self.end - start} bytes on, at {self.end}"
            raise GgufError("truncated", problem, field=field, at=start)
        self.pos = start + size
        return start

    def u32(self, field: str) -> int:
        """Read an unsigned 32-bit integer."""
        return int(_U32.unpack_from(self.buffer, self.skip(4, field))[0])

    def i32(self, field: str) -> int:
        """Read a signed 32-bit integer."""
        return int(_I32.unpack_from(self.buffer, self.skip(4, field))[0])

    def u64(self, field: str) -> int:
        """Read an unsigned 64-bit integer."""
        return int(_U64.unpack_from(self.buffer, self.skip(8, field))[0])

    def i64(self, field: str) -> int:
        """Read a signed 64-bit integer."""
        return int(_I64.unpack_from(self.buffer, self.skip(8, field))[0])

    def string(self, field: str) -> bytes:
        """Read a string: its length in bytes as u64, then the bytes, which may be any.

        Raises:
            GgufError: ``truncated`` in the length; ``bad-length`` where it passes 2^30 or the end of the file.

        """
        at = self.pos
        length = self.u64(f"{field}.length")
        check_string_length(length, field=f"{field}.length", at=at, end=self.end)
        start = self.skip(length, field)
        return self.buffer[start : self.pos]


def check_string_length(length: int, *, field: str, at: int, end: int) -> None:
    """Refuse a string length, read at offset ``at``, that is over the limit or runs past ``end``."""
    remaining = end - at - 8
    if length > MAX_STRING_LENGTH:
        problem = f"string length {length} is over the limit of {MAX_STRING_LENGTH}"
    elif length > remaining:
        problem = f"string length {length}, but only {remaining} bytes are left (the file ends at {end})"
    else:
        return
    raise GgufError("bad-length", problem, field=field, at=at)


def show(raw: bytes) -> str:
    """Show a key or a name in a message: quoted, and cut where it is long."""
    text = repr(raw[:80])[1:]
    return text if len(raw) <= 80 else f"{text}... ({len(raw)} bytes)"
