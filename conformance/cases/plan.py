"""What a file recipe asks for, parsed and checked but not yet laid out; a plan of a huge file is small."""

from __future__ import annotations

from typing import Literal

import msgspec

from conformance.cases.entry import Entry

# Width in bytes of each value type that has a fixed one.
WIDTHS: dict[str, int] = {
    "u8": 1,
    "i8": 1,
    "u16": 2,
    "i16": 2,
    "u32": 4,
    "i32": 4,
    "f32": 4,
    "bool": 1,
    "u64": 8,
    "i64": 8,
    "f64": 8,
}

# No built file, and no single thing in it, is larger: it is made in memory.
MAX_BYTES = 2**30


class Text(msgspec.Struct, frozen=True):
    """``count`` times the bytes of ``unit``."""

    unit: bytes
    count: int = 1

    @property
    def raw(self) -> bytes:
        """The bytes written out."""
        return self.unit * self.count


class Scalar(msgspec.Struct, frozen=True):
    """A value of a fixed width, as its bits."""

    kind: str
    bits: int


class NumberArray(msgspec.Struct, frozen=True):
    """Elements of ``kind``: the ``bits``, ``times`` over."""

    kind: str
    bits: tuple[int, ...]
    times: int = 1

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self.bits) * self.times


class TextArray(msgspec.Struct, frozen=True):
    """Strings: the ``texts``, ``times`` over."""

    texts: tuple[Text, ...]
    times: int = 1


class ArrayArray(msgspec.Struct, frozen=True):
    """An array of arrays."""

    items: tuple[NumberArray | TextArray | ArrayArray, ...]


Array = NumberArray | TextArray | ArrayArray


class Nested(msgspec.Struct, frozen=True):
    """``levels`` arrays of length one, within each other, around ``inner``."""

    levels: int
    inner: Array


class Raw(msgspec.Struct, frozen=True):
    """A value type's number and whatever bytes follow it."""

    type: int
    data: bytes


Value = Scalar | Text | NumberArray | TextArray | ArrayArray | Nested | Raw


class Pair(msgspec.Struct, frozen=True):
    """One key-value pair."""

    key: Text
    value: Value


class Data(msgspec.Struct, frozen=True):
    """A tensor's bytes.

    ``kind``: "pattern" (the default, of the tensor's own size), "none", "bytes" (``unit`` ``count`` times), "fill" (``unit``, one
    byte, over the tensor's own size), "numbers" (``array``) or "random" (draws from ``seed`` over the tensor's own size).
    """

    kind: Literal["pattern", "none", "bytes", "fill", "numbers", "random"]
    unit: bytes = b""
    count: int = 1
    array: NumberArray | None = None
    seed: int = 0


class Tensor(msgspec.Struct, frozen=True):
    """One entry of the directory, with its data. ``dims`` may hold more or larger numbers than any reader takes."""

    name: Text
    type: int
    dims: tuple[int, ...]
    offset: int | None
    data: Data
    entry: Entry


class Patch(msgspec.Struct, frozen=True):
    """A field's path and what to write over it; the field's kind decides how it is read."""

    path: str
    value: Entry


class FilePlan(msgspec.Struct, frozen=True):
    """A whole file. ``raw`` is set for a recipe of plain bytes; then nothing else counts."""

    entry: Entry
    version: int
    order: Literal["little", "big"]
    magic: bytes
    n_tensors: int | None
    n_kv: int | None
    pairs: tuple[Pair, ...]
    tensors: tuple[Tensor, ...]
    align: int | None
    pad_header: bool | None
    pad_last: bool
    with_data: bool
    patches: tuple[Patch, ...]
    cut: int | None
    append: Text
    raw: bytes | None
