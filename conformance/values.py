"""The values that a header carries, as the protocol writes them: tagged strings, never JSON numbers.

Integers are decimal strings, floats hex bit patterns (``"0x7fc00000"``; an f64 has 16 digits), bools
``"true"``/``"false"``. A string is text or, where its bytes are not UTF-8, ``{"hex": "fffe"}``.
"""

from __future__ import annotations

import msgspec

# The 13 value types by their number in the file.
VALUE_TYPES: tuple[str, ...] = (
    "u8",
    "i8",
    "u16",
    "i16",
    "u32",
    "i32",
    "f32",
    "bool",
    "str",
    "array",
    "u64",
    "i64",
    "f64",
)


class HexText(msgspec.Struct, frozen=True):
    """A string whose bytes are not UTF-8."""

    hex: str


Text = str | HexText


class Boxed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that is no plain string: ``hex`` of bytes that are not UTF-8; ``items`` and ``value`` of an array in an array."""

    hex: str | None = None
    items: str | None = None
    value: list[Element] | None = None


Element = str | Boxed
Value = str | Boxed | list[Element]


class Pair(msgspec.Struct, frozen=True, omit_defaults=True):
    """One key-value pair, in file order.

    For ``type: "array"``, ``value`` is a list and ``items`` its elements' type; ``items`` is left out where the subject
    cannot tell it (an empty array in some readers) and then is not compared.
    """

    key: Text
    type: str
    value: Value
    items: str | None = None


class TensorInfo(msgspec.Struct, frozen=True):
    """One entry of the tensor directory.

    ``dims`` stand as written in the file (fastest first), ``offset`` is relative to the data section, ``nbytes`` is the
    size of the data without padding; a reader that does not know sizes leaves it out, and is not judged on it.
    """

    name: Text
    type: int
    dims: list[str]
    offset: str
    nbytes: str | None = None


class Header(msgspec.Struct, frozen=True):
    """All that a file says before its data; ``data_offset`` counts from the file's start."""

    version: int
    alignment: int
    data_offset: int
    kv: list[Pair]
    tensors: list[TensorInfo]


def text_from_bytes(raw: bytes) -> Text:
    """Give the protocol's form of a key's or name's bytes."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return HexText(raw.hex())


def element_from_bytes(raw: bytes) -> Element:
    """Give the protocol's form of a string value's bytes."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return Boxed(hex=raw.hex())


def text_to_bytes(text: Text | Boxed) -> bytes:
    """Give the bytes that a protocol string stands for (lone surrogates pass through)."""
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    return bytes.fromhex(text.hex or "")
