"""The header in the adapter protocol's words: tagged strings, never JSON numbers for values."""

from __future__ import annotations

import struct
from typing import Any

from impl.container.directory import TensorInfo
from impl.container.reader import Header, Pair
from impl.container.values import Number, Numbers, String, Strings, Value, ValueType, type_name

Json = dict[str, Any]

_FLOAT_BITS = {"f32": ("I", "0x%08x"), "f64": ("Q", "0x%016x")}


def describe(header: Header) -> Json:
    """Give the header as the protocol's ``Header`` object, ready for ``json``."""
    return {
        "version": header.version,
        "alignment": header.alignment,
        "data_offset": header.data_offset,
        "kv": [_pair(pair) for pair in header.pairs],
        "tensors": [_tensor(info) for info in header.tensors],
    }


def _pair(pair: Pair) -> Json:
    said: Json = {"key": _text(pair.key), "type": type_name(pair.value), "value": _value(pair.value)}
    if isinstance(pair.value, (Numbers, Strings)):
        said["items"] = pair.value.items.name
    return said


def _tensor(info: TensorInfo) -> Json:
    return {
        "name": _text(info.name),
        "type": info.type.id,
        "dims": [str(dim) for dim in info.ne],
        "offset": str(info.offset),
        "nbytes": str(info.nbytes),
    }


def _value(value: Value) -> str | Json | list[str | Json]:
    match value:
        case Number(kind, raw):
            return _numbers(kind, 1, raw)[0]
        case String(raw):
            return _text(raw)
        case Numbers():
            return list(_numbers(value.items, value.length, value.raw))
        case Strings():
            return _texts(value.raw())


def _numbers(kind: ValueType, count: int, raw: bytes) -> list[str]:
    """Integers in decimal, bools as words, floats as the hex of their bits, which keeps a NaN's payload."""
    if kind.name in _FLOAT_BITS:
        code, shape = _FLOAT_BITS[kind.name]
        return [shape % bits for bits in struct.unpack(f"<{count}{code}", raw)]
    numbers = struct.unpack(f"<{count}{kind.code}", raw)
    if kind.name == "bool":
        return ["true" if number else "false" for number in numbers]
    return list(map(str, numbers))


def _text(raw: bytes) -> str | Json:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": raw.hex()}


def _texts(strings: list[bytes]) -> list[str | Json]:
    try:
        return [raw.decode("utf-8") for raw in strings]  # one try around all: nearly every file's strings are UTF-8
    except UnicodeDecodeError:
        return [_text(raw) for raw in strings]
