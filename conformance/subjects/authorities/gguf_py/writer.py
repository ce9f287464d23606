"""``write``: a file made with ``GGUFWriter`` (gguf/gguf_writer.py of gguf 0.19.0), as its converters make one.

Pairs go through ``add_key_value``, which takes a type for a value and for an array's elements; ``add_string`` and ``add_array``
would drop what is empty, and infer the elements' type. The alignment goes through ``add_custom_alignment``.
"""

from __future__ import annotations

import struct
from math import prod
from typing import Any

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType
from gguf.gguf_writer import GGUFWriter

from conformance.adapter import Header, Reject, Unsupported
from conformance.subjects.authorities.described import elements, raw_text, read_description, tensor_bytes
from conformance.subjects.protocol import WriteRequest
from conformance.values import VALUE_TYPES, Boxed, Element, Pair, TensorInfo, Text, Value

ARCHITECTURE = "general.architecture"
ALIGNMENT = "general.alignment"
VERSION = 3

# Types that numpy has; data of the others is given as bytes.
_DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
# What the type of an array within an array is inferred as.
_INFERRED = ("i32", "f32", "str", "bool")
# What GGUFWriter says when it refuses, from the start -> class.
_REFUSALS = (
    ("Invalid alignment", "bad-alignment"),
    ("Duplicated tensor name", "duplicate-tensor"),
    ("Quantized tensor ", "bad-block"),
)


def write(request: WriteRequest) -> None:
    """Answer the op ``write``."""
    header = read_description(request)
    first, *others = _require_architecture(header)
    writer = GGUFWriter(request.out, raw_text(first.value).decode())
    try:
        for pair in others:
            _add_pair(writer, pair)
        for tensor, data in zip(header.tensors, tensor_bytes(header, request), strict=True):
            _add_tensor(writer, tensor, data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    except ValueError as error:
        raise _refusal(error) from None
    finally:
        writer.close()


def _require_architecture(header: Header) -> list[Pair]:
    """Refuse what a writer that begins with general.architecture, in version 3, cannot say. Raises Unsupported."""
    if header.version != VERSION:
        raise Unsupported(f"GGUFWriter writes version {VERSION}, not {header.version}")
    first = header.kv[0] if header.kv else None
    text = raw_text(first.value) if first and first.key == ARCHITECTURE and first.type == "str" else b""
    if not text or not _is_text(text):
        raise Unsupported(
            f"GGUFWriter writes {ARCHITECTURE}, a text, before all other pairs; the description does not begin with one"
        )
    return header.kv


def _refusal(error: ValueError) -> Reject:
    message = str(error)
    if "Empty array" in message:
        raise Unsupported(f"GGUFWriter: {message}") from None
    found = (name for start, name in _REFUSALS if message.startswith(start))
    return Reject(next(found, "other"), f"GGUFWriter: {message}")


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _add_pair(writer: GGUFWriter, pair: Pair) -> None:
    key = _name(pair.key, "a key")
    kind = GGUFValueType(VALUE_TYPES.index(pair.type))
    if pair.type == "array":
        items = pair.items or "u8"
        content = [_value(element, items) for element in elements(pair)]
        writer.add_key_value(key, content, kind, GGUFValueType(VALUE_TYPES.index(items)))
    elif key == ALIGNMENT and pair.type == "u32":
        writer.add_custom_alignment(_value(pair.value, "u32"))
    else:
        writer.add_key_value(key, _value(pair.value, pair.type), kind)


def _value(value: Value | Element, kind: str) -> Any:
    """Give a value as the writer takes it: text as bytes, floats through Python's own."""
    if kind == "str":
        return raw_text(value)
    if kind == "array":
        return _inner(value)
    assert isinstance(value, str)  # noqa: S101 - the harness sends well-formed headers
    if kind == "bool":
        return value == "true"
    if kind in {"f32", "f64"}:
        code, width = ("<f", 4) if kind == "f32" else ("<d", 8)
        return struct.unpack(code, int(value, 16).to_bytes(width, "little"))[0]
    return int(value)


def _inner(value: Value | Element) -> list[Any]:
    assert isinstance(value, Boxed)  # noqa: S101 - the same
    items = value.items or ""
    if items not in _INFERRED:
        raise Unsupported(f"GGUFWriter infers the type of an array within an array: it has {', '.join(_INFERRED)}, not {items}")
    inner = [_value(element, items) for element in value.value or []]
    return [one.decode() if isinstance(one, bytes) else one for one in inner]


def _name(text: Text, what: str) -> str:
    if not isinstance(text, str):
        raise Unsupported(f"{what} that is no UTF-8, {text.hex[:40]}: GGUFWriter takes str")
    return text


def _add_tensor(writer: GGUFWriter, tensor: TensorInfo, data: bytes) -> None:
    try:
        kind = GGMLQuantizationType(tensor.type)
    except ValueError:
        raise Unsupported(f"GGUFWriter takes a GGMLQuantizationType, of which there is no {tensor.type}") from None
    name, shape = _name(tensor.name, "a tensor's name"), tuple(int(dim) for dim in reversed(tensor.dims))
    if kind.name in _DTYPES:
        writer.add_tensor(name, np.frombuffer(data, _DTYPES[kind.name]).reshape(shape))
        return
    block, nbytes = GGML_QUANT_SIZES[kind]
    row = shape[-1] // block * nbytes if shape and shape[-1] % block == 0 else len(data) // max(1, prod(shape[:-1]))
    writer.add_tensor(name, np.frombuffer(data, np.uint8), raw_shape=(*shape[:-1], row), raw_dtype=kind)
