"""Makes metadata values out of Python's: of a type that is named, or that is plain from the value itself."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Any

from impl.container.values import STRING, VALUE_TYPES, Nested, Number, Numbers, String, Strings, Value, ValueType
from impl.errors import InputError

TYPES = {kind.name: kind for kind in VALUE_TYPES if kind.name != "array"}
# numpy's names of what has one type in a file.
_NUMPY = {
    "uint8": "u8",
    "int8": "i8",
    "uint16": "u16",
    "int16": "i16",
    "uint32": "u32",
    "int32": "i32",
    "float32": "f32",
    "bool": "bool",
    "uint64": "u64",
    "int64": "i64",
    "float64": "f64",
}


def value(type: str, content: object) -> Value:  # noqa: A002 - the format's word
    """Make a metadata value: ``value("u32", 7)``, ``value("str", "llama")``; of a list or an array of one dimension, an array.

    ``type`` is u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, bool or str, of an array its elements'. Text is str (lone
    surrogates stand for bytes that are not UTF-8) or bytes. A number of numpy in an array of the same type keeps its bits.

    Raises:
        InputError: no such type; or something that it does not hold: a number out of range, a fraction as an integer.

    """
    kind = TYPES.get(type)
    if kind is None:
        raise InputError(
            f"unknown value type {type!r}: the known ones are {', '.join(TYPES)}; of an array, give the elements' type"
        )
    if hasattr(content, "dtype") and hasattr(content, "mask"):
        raise InputError("a masked array, whose mask would be lost: give what stands there with .filled(value)")
    if _NUMPY.get(str(getattr(content, "dtype", ""))) == type:
        return _of_numpy(kind, content)
    elements = _elements(content)
    if kind is STRING:
        if elements is None:
            return String(encoded(content, "a value"))
        return strings([encoded(one, "an element") for one in elements])
    if elements is None:
        return Number(kind, _pack(kind, content))
    return Numbers(kind, len(elements), b"".join(_pack(kind, one) for one in elements), 0)


def strings(raw: Sequence[bytes]) -> Strings:
    """Make an array of strings out of their bytes."""
    ends, pos = array("q"), 0
    for one in raw:
        pos += 8 + len(one)
        ends.append(pos)
    return Strings(b"".join(struct.pack("<Q", len(one)) + one for one in raw), 0, ends)


def plain(content: object) -> Value:
    """Make a value whose type is plain: text, a bool, a list of these, a number or an array of numpy; or a value as it is.

    Raises:
        InputError: an int, a float or an empty list, which may be of several types.

    """
    if isinstance(content, Number | String | Numbers | Strings | Nested):
        return content
    named = _NUMPY.get(str(getattr(content, "dtype", "")))
    elements = None if named else _elements(content)
    if named or elements is None or len(elements) == 0:
        return value(named or _plain_type(content), content)
    first = _plain_type(elements[0])
    if any(_plain_type(one) != first for one in elements):
        raise InputError(f"a list of several types, {_shown(content)}: an array has one; give it with impl.value(TYPE, ...)")
    return value(first, content)


def encoded(text: object, what: str) -> bytes:
    """Give the bytes of a text. Raises InputError."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, as str or bytes, not {type(text).__name__}: {_shown(text)}")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(f"{what} holds U+{ord(text[error.start]):04X}, which UTF-8 cannot: give its bytes") from None


def _elements(content: object) -> list[Any] | None:
    """Give the elements of a list, a tuple or an array of one dimension; None for what is one value."""
    if isinstance(content, list | tuple):
        return list(content)
    dims = getattr(content, "ndim", 0)
    if dims == 0:
        return None
    if dims > 1:
        raise InputError(f"an array of {dims} dimensions: ggml reads no arrays of arrays; give one of one dimension")
    elements: list[Any] = content.tolist()  # type: ignore[attr-defined] # what has dimensions is an array of numpy
    return elements


def _of_numpy(kind: ValueType, content: Any) -> Value:
    """Take numbers of numpy bit by bit: Python's own float would make another NaN of some."""
    if content.ndim > 1:
        _elements(content)
    raw: bytes = content.astype(content.dtype.newbyteorder("<"), copy=False).tobytes()
    return Numbers(kind, content.size, raw, 0) if content.ndim else Number(kind, raw)


def _plain_type(content: object) -> str:
    if isinstance(content, bool):
        return "bool"
    if isinstance(content, str | bytes):
        return "str"
    named = _NUMPY.get(str(getattr(content, "dtype", "")))
    if named:
        return named
    problem = f"{_shown(content)} ({type(content).__name__}) could be of several types"
    raise InputError(f"{problem}: name one, impl.value('u32', 7) or impl.value('f32', [])")


def _pack(kind: ValueType, content: Any) -> bytes:
    if kind.name == "bool":
        if type(content).__name__ not in {"bool", "bool_"}:
            raise InputError(f"{_shown(content)} is no bool: give True or False")
        return b"\1" if content else b"\0"
    try:
        return struct.pack(f"<{kind.code}", content)
    except (struct.error, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"{_shown(content)} is no {kind.name}, which holds {_range(kind)}") from error


def _range(kind: ValueType) -> str:
    if kind.name in {"f32", "f64"}:
        return f"numbers of {kind.size} bytes, NaN and infinity included"
    bits = 8 * kind.size
    low, high = (0, 2**bits - 1) if kind.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return f"whole numbers from {low} to {high}"


def _shown(content: object) -> str:
    text = repr(content)
    return text if len(text) <= 60 else f"{text[:57]}..."
