"""The header in the adapter protocol's words: tagged strings, never JSON numbers for values."""

from __future__ import annotations

import struct
from typing import Any

from impl.container.directory import TensorInfo
from impl.container.rules import Header, Pair
from impl.container.values import VALUE_TYPES, Nested, Number, Numbers, String, Strings, Value, ValueType, type_name

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
    if items := _items(pair.value):
        said["items"] = items
    return said


def _items(value: Value) -> str:
    """Name the type of an array's elements; of arrays within an array, of the first innermost ones, as gguf-py does.

    Where it flattens numbers of different types there is no name for them all, and none is given.
    """
    if isinstance(value, Nested):
        first = value.leaves[0] if value.leaves else None
        if first is None or not _length(first):
            return ""
        name: str = first.items.name
        return name if name == "str" or len({_number_type(leaf) for leaf in value.leaves if _length(leaf)}) == 1 else ""
    return value.items.name if isinstance(value, (Numbers, Strings)) else ""


def _number_type(leaf: Numbers | Strings) -> str:
    return leaf.items.name if isinstance(leaf, Numbers) else VALUE_TYPES[0].name


def _length(leaf: Numbers | Strings) -> int:
    return leaf.length if isinstance(leaf, Numbers) else len(leaf.ends)


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
        case Nested():
            as_text = _items(value) == "str"
            return [element for leaf in value.leaves for element in _flat(leaf, as_text=as_text)]


def _flat(leaf: Numbers | Strings, *, as_text: bool) -> list[str | Json]:
    """Give the elements of an innermost array as gguf-py does: all as text, or all as numbers, a string's bytes among them."""
    if isinstance(leaf, Strings):
        return _texts(leaf.raw()) if as_text else list(_numbers(VALUE_TYPES[0], sum(map(len, leaf.raw())), b"".join(leaf.raw())))
    if not as_text:
        return list(_numbers(leaf.items, leaf.length, leaf.raw))
    return [_text(leaf.raw[at : at + leaf.items.size]) for at in range(0, len(leaf.raw), leaf.items.size)]


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
