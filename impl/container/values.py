"""Metadata values: where they stand in the file, made into Python objects only when asked for."""

from __future__ import annotations

import struct
from array import array
from itertools import chain, pairwise
from typing import NamedTuple

from impl.container.cursor import Buffer


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
STRING = VALUE_TYPES[8]
ARRAY = VALUE_TYPES[9]

PythonScalar = bool | int | float | str
PythonValue = PythonScalar | list[PythonScalar]


def text(raw: bytes) -> str:
    """Decode a string; bytes that are not UTF-8 become lone surrogates, so that none is lost."""
    return raw.decode("utf-8", "surrogateescape")


class Number(NamedTuple):
    """A single number or bool, as its bytes in the file. A bool is true for any byte but 0."""

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
    """An array of ``length`` numbers or bools that starts at ``start``."""

    items: ValueType
    length: int
    buffer: Buffer
    start: int

    @property
    def raw(self) -> bytes:
        """The elements' bytes as they stand in the file."""
        return self.buffer[self.start : self.start + self.length * self.items.size]

    def get(self) -> list[PythonScalar]:
        """Give the elements as Python numbers or bools."""
        return list(struct.unpack(f"<{self.length}{self.items.code}", self.raw))


class Strings(NamedTuple):
    """An array of strings: the first length field stands at ``start``, and string i ends at ``ends[i]``."""

    buffer: Buffer
    start: int
    ends: array[int]

    @property
    def items(self) -> ValueType:
        """The elements' type."""
        return STRING

    def raw(self) -> list[bytes]:
        """Give the elements' bytes."""
        return [self.buffer[before + 8 : end] for before, end in pairwise(chain((self.start,), self.ends))]

    def get(self) -> list[PythonScalar]:
        """Give the elements as text."""
        return [text(raw) for raw in self.raw()]


Value = Number | String | Numbers | Strings


def type_name(value: Value) -> str:
    """Name the value's type as the file's type field says it."""
    match value:
        case Number():
            return value.type.name
        case String():
            return STRING.name
        case _:
            return ARRAY.name
