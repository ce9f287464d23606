"""Metadata values: where they stand in the file, made into Python objects only when asked for."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

from impl.container.cursor import Buffer, ByteOrder


class ValueType(NamedTuple):
    """One value type: its number in a file, its name, bytes a value (0 where they vary) and its struct code."""

    id: int
    name: str
    size: int
    code: str


VALUE_TYPES: tuple[ValueType, ...] = (
    ValueType(0, "u8", 1, "B"),
    ValueType(1, "i8", 1, "b"),
    ValueType(2, "u16", 2, "H"),
    ValueType(3, "i16", 2, "h"),
    ValueType(4, "u32", 4, "I"),
    ValueType(5, "i32", 4, "i"),
    ValueType(6, "f32", 4, "f"),
    ValueType(7, "bool", 1, "?"),
    ValueType(8, "str", 0, ""),
    ValueType(9, "array", 0, ""),
    ValueType(10, "u64", 8, "Q"),
    ValueType(11, "i64", 8, "q"),
    ValueType(12, "f64", 8, "d"),
)
BOOL = VALUE_TYPES[7]
STRING = VALUE_TYPES[8]
ARRAY = VALUE_TYPES[9]

Ends: TypeAlias = "array[int] | memoryview"
"""Where strings end, eight bytes each: of an array, or of a memoryview of int64."""

PythonScalar = bool | int | float | str
PythonValue = PythonScalar | list["PythonValue"]


def text(raw: bytes) -> str:
    """Decode a string; bytes that are not UTF-8 become lone surrogates, so that none is lost."""
    return raw.decode("utf-8", "surrogateescape")


class Number(NamedTuple):
    """A single number or bool, as its little-endian bytes. A bool is true for any byte but 0."""

    type: ValueType
    raw: bytes

    def get(self) -> PythonScalar:
        """Give it as a Python number or bool."""
        value: PythonScalar = struct.unpack(f"<{self.type.code}", self.raw)[0]
        return value


class String(NamedTuple):
    """A single string, as its bytes."""

    raw: bytes

    def get(self) -> str:
        """Give it as text."""
        return text(self.raw)


class Numbers(NamedTuple):
    """An array of ``length`` numbers or bools that starts at ``start``, in the byte order ``order``."""

    items: ValueType
    length: int
    buffer: Buffer
    start: int
    order: ByteOrder = "little"

    @property
    def raw(self) -> bytes:
        """The elements' bytes, little-endian."""
        raw = bytes(self.buffer[self.start : self.start + self.length * self.items.size])
        return raw if self.order == "little" else turned(raw, self.items.size)

    def get(self) -> list[PythonValue]:
        """Give the elements as Python numbers or bools."""
        return list(struct.unpack(f"<{self.length}{self.items.code}", self.raw))


class Strings(NamedTuple):
    """An array of strings: the first length field, of ``width`` bytes, stands at ``start``, and string i ends at ``ends[i]``."""

    buffer: Buffer
    start: int
    ends: Ends
    width: int = 8

    @property
    def items(self) -> ValueType:
        """The elements' type."""
        return STRING

    def spans(self) -> Iterator[tuple[int, int]]:
        """Give where each element starts and ends."""
        return ((before + self.width, end) for before, end in pairwise(chain((self.start,), self.ends)))

    def raw(self) -> list[bytes]:
        """Give the elements' bytes."""
        width, buffer = self.width, self.buffer
        return [bytes(buffer[before + width : end]) for before, end in pairwise(chain((self.start,), self.ends))]

    def get(self) -> list[PythonValue]:
        """Give the elements as text."""
        return [text(raw) for raw in self.raw()]


class Nested(NamedTuple):
    """Arrays within an array, each with its own type of elements, in file order.

    ``counts`` are the lengths of the arrays of arrays, outermost first, with -1 in the place of each array of something else;
    those are ``leaves``. A file may hold a million levels, so nothing here calls itself.
    """

    counts: array[int]
    leaves: list[Numbers | Strings]

    @property
    def items(self) -> ValueType:
        """The elements' type."""
        return ARRAY

    def get(self) -> list[PythonValue]:
        """Give the elements as lists within a list."""
        outermost: list[PythonValue] = []
        open_lists = [(outermost, 1)]
        leaves = iter(self.leaves)
        for count in self.counts:
            while len(open_lists[-1][0]) == open_lists[-1][1]:
                open_lists.pop()
            inner = next(leaves).get() if count < 0 else []
            open_lists[-1][0].append(inner)
            if count > 0:
                open_lists.append((inner, count))
        return outermost[0] if isinstance(outermost[0], list) else outermost


Value = Number | String | Numbers | Strings | Nested


def turned(raw: bytes, width: int) -> bytes:
    """Give numbers of ``width`` bytes in the other byte order."""
    swapped = bytearray(len(raw))
    for place in range(width):
        swapped[place::width] = raw[width - 1 - place :: width]
    return bytes(swapped)


def type_name(value: Value) -> str:
    """Name the value's type as the file's type field says it."""
    match value:
        case Number():
            return value.type.name
        case String():
            return STRING.name
        case _:
            return ARRAY.name
