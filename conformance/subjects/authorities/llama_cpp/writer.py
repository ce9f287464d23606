"""``write``: a file made with ggml's own functions, ``gguf_set_val_*``, ``gguf_add_tensor`` and ``gguf_write_to_file``.

Source: ggml/src/gguf.cpp. An empty context there is always of version 3 and alignment 32, and no function changes either: what
``gguf_set_val_u32`` sets as general.alignment does not move the data. Both are as described only in a context that was read, so
the one that is filled here is read from an empty file of that version and alignment.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from conformance.adapter import Header, Unsupported
from conformance.subjects.authorities.described import elements, raw_text, read_description, tensor_bytes
from conformance.subjects.authorities.llama_cpp.library import ContextParams, InitParams, libraries
from conformance.subjects.authorities.llama_cpp.reader import FORMATS
from conformance.subjects.protocol import WriteRequest
from conformance.values import VALUE_TYPES, Pair, TensorInfo, Value, text_to_bytes

ALIGNMENT = b"general.alignment"
VERSIONS = (2, 3)
U32 = 4  # GGUF_TYPE_UINT32
TENSOR_BYTES = 512  # more than ggml_tensor_overhead() gives

_C_TYPES = {
    "u8": ctypes.c_uint8,
    "i8": ctypes.c_int8,
    "u16": ctypes.c_uint16,
    "i16": ctypes.c_int16,
    "u32": ctypes.c_uint32,
    "i32": ctypes.c_int32,
    "f32": ctypes.c_float,
    "bool": ctypes.c_bool,
    "u64": ctypes.c_uint64,
    "i64": ctypes.c_int64,
    "f64": ctypes.c_double,
}


def write(request: WriteRequest) -> None:
    """Answer the op ``write``. What ggml asserts ends the process: that is its answer."""
    header = read_description(request)
    with _context(header) as gguf, _tensors(len(header.tensors)) as context:
        for pair in header.kv:
            _set(gguf, pair)
        kept = [_add(gguf, context, *both) for both in zip(header.tensors, tensor_bytes(header, request), strict=True)]
        if not libraries().base.gguf_write_to_file(gguf, os.fsencode(request.out), False):
            raise OSError(f"gguf_write_to_file could not write {request.out}")
        del kept  # the library has only their addresses until it has written them


@contextmanager
def _context(header: Header) -> Iterator[int]:
    """Give a ``gguf_context`` of the described version and alignment, without pairs. Raises Unsupported."""
    if header.version not in VERSIONS:
        raise Unsupported(f"the library has no context of version {header.version}, only of 2 and 3")
    alignment = _alignment(header)
    pair = struct.pack("<Q", len(ALIGNMENT)) + ALIGNMENT + struct.pack("<II", U32, alignment)
    empty = b"GGUF" + struct.pack("<IQQ", header.version, 0, 1) + pair
    base = libraries().base
    gguf = base.gguf_init_from_buffer(empty, len(empty), InitParams(True, None))
    try:
        base.gguf_remove_key(gguf, ALIGNMENT)
        yield gguf
    finally:
        base.gguf_free(gguf)


def _alignment(header: Header) -> int:
    """Give the described alignment where it is one; what is none is left to ``gguf_set_val_u32``, which asserts that it is."""
    values = [pair.value for pair in header.kv if text_to_bytes(pair.key) == ALIGNMENT and pair.type == "u32"]
    alignment = int(values[-1]) if values and isinstance(values[-1], str) else 32
    return alignment if alignment and not alignment & (alignment - 1) else 32


@contextmanager
def _tensors(count: int) -> Iterator[int]:
    """Give a ``ggml_context`` for ``count`` tensors without data."""
    base = libraries().base
    context = base.ggml_init(ContextParams((count + 1) * TENSOR_BYTES, None, True))
    try:
        yield context
    finally:
        base.ggml_free(context)


def _set(gguf: int, pair: Pair) -> None:
    base, key = libraries().base, _c_string(text_to_bytes(pair.key), "a key")
    if pair.type == "str":
        base.gguf_set_val_str(gguf, key, _c_string(raw_text(pair.value), "a value"))
    elif pair.type != "array":
        number = _C_TYPES[pair.type].from_buffer_copy(_number(pair.type, pair.value))
        _setter(pair.type)(gguf, key, number)
    elif pair.items == "str":
        texts = [_c_string(raw_text(element), "an element") for element in elements(pair)]
        base.gguf_set_arr_str(gguf, key, (ctypes.c_char_p * len(texts))(*texts), len(texts))
    elif pair.items in FORMATS:
        raw = b"".join(_number(pair.items, element) for element in elements(pair))
        base.gguf_set_arr_data(gguf, key, VALUE_TYPES.index(pair.items), raw, len(elements(pair)))
    else:
        raise Unsupported("the library has no function that sets an array of arrays")


def _setter(kind: str) -> Callable[[int, bytes, object], None]:
    """Give ``gguf_set_val_<kind>``."""
    setter: Callable[[int, bytes, object], None] = getattr(libraries().base, f"gguf_set_val_{kind}")
    return setter


def _number(kind: str, value: Value) -> bytes:
    assert isinstance(value, str)  # noqa: S101 - the harness sends well-formed headers
    number = value == "true" if kind == "bool" else int(value, 16 if kind in {"f32", "f64"} else 10)
    return struct.pack(f"={FORMATS[kind]}", number)


def _c_string(raw: bytes, what: str) -> bytes:
    """Refuse what the library's C strings cannot hold. Raises Unsupported."""
    if b"\0" in raw:
        raise Unsupported(f"{what} with a NUL in it, {raw[:40]!r}: the library takes C strings")
    return raw


def _add(gguf: int, context: int, tensor: TensorInfo, data: bytes) -> ctypes.Array[ctypes.c_char]:
    """Add a tensor; give the memory that its data must stay in. Raises ValueError where the library takes it for larger."""
    base = libraries().base
    dims = [int(dim) for dim in tensor.dims]
    made = base.ggml_new_tensor(context, tensor.type, len(dims), (ctypes.c_int64 * len(dims))(*dims))
    name = _c_string(text_to_bytes(tensor.name), "a name")
    base.ggml_set_name(made, name)
    if base.ggml_nbytes(made) != len(data):
        raise ValueError(f"tensor {name!r} has {base.ggml_nbytes(made)} bytes to the library, {len(data)} are given")
    base.gguf_add_tensor(gguf, made)
    memory = ctypes.create_string_buffer(data, max(1, len(data)))
    base.gguf_set_tensor_data(gguf, base.ggml_get_name(made), memory)
    return memory
