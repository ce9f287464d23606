"""``header`` and ``load``: what ggml's reader makes of a file (ggml/src/gguf.cpp)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from conformance.adapter import Header
from conformance.subjects.authorities.llama_cpp.library import InitParams, libraries
from conformance.subjects.authorities.llama_cpp.log import logged_errors
from conformance.subjects.authorities.llama_cpp.rejects import refusal
from conformance.values import VALUE_TYPES, Element, Pair, TensorInfo, element_from_bytes, text_from_bytes

# Value type -> format of one value as stored (bools are int8 with value 0 or 1); floats are taken as their bits.
FORMATS = {
    "u8": "B",
    "i8": "b",
    "u16": "H",
    "i16": "h",
    "u32": "I",
    "i32": "i",
    "f32": "I",
    "bool": "b",
    "u64": "Q",
    "i64": "q",
    "f64": "Q",
}


def read_header(path: str) -> Header:
    """Read everything before the data section, as ``gguf_init_from_file`` does without a ggml context.

    With a context but no allocation, which is how llama.cpp loads models, some files that pass here abort.
    """
    with opened(path, None) as gguf:
        return describe(gguf)


@contextmanager
def opened(path: str, context: ctypes.c_void_p | None) -> Iterator[int]:
    """Give the address of the ``gguf_context``; with ``context``, the data are read too and it is set to the ggml context.

    Raises Reject if the library refuses the file, OSError if it cannot be opened.
    """
    params = InitParams(False, None if context is None else ctypes.addressof(context))
    with logged_errors() as errors:
        gguf = libraries().base.gguf_init_from_file(os.fsencode(path), params)
        if not gguf:
            raise refusal(path, errors)
    try:
        yield gguf
    finally:
        libraries().base.gguf_free(gguf)


def describe(gguf: int) -> Header:
    """Give all that the library's functions say of a file."""
    base = libraries().base
    return Header(
        version=base.gguf_get_version(gguf),
        alignment=base.gguf_get_alignment(gguf),
        data_offset=base.gguf_get_data_offset(gguf),
        kv=[_pair(gguf, number) for number in range(base.gguf_get_n_kv(gguf))],
        tensors=[_tensor(gguf, number) for number in range(base.gguf_get_n_tensors(gguf))],
    )


def _pair(gguf: int, number: int) -> Pair:
    base = libraries().base
    key = text_from_bytes(base.gguf_get_key(gguf, number))
    value_type = VALUE_TYPES[base.gguf_get_kv_type(gguf, number)]
    if value_type == "array":
        items = VALUE_TYPES[base.gguf_get_arr_type(gguf, number)]
        return Pair(key, value_type, _array(gguf, number, items), items)
    if value_type == "str":
        return Pair(key, value_type, element_from_bytes(base.gguf_get_val_str(gguf, number)))
    return Pair(key, value_type, _numbers(base.gguf_get_val_data(gguf, number), 1, value_type)[0])


def _array(gguf: int, number: int, items: str) -> list[Element]:
    base = libraries().base
    count = base.gguf_get_arr_n(gguf, number)
    if items == "str":
        return [element_from_bytes(base.gguf_get_arr_str(gguf, number, index)) for index in range(count)]
    return list(_numbers(base.gguf_get_arr_data(gguf, number), count, items)) if count else []


def _numbers(address: int, count: int, value_type: str) -> list[str]:
    """Take ``count`` values from memory, not through the typed getters: those would pass a NaN through a register."""
    form = f"<{count}{FORMATS[value_type]}"
    values = struct.unpack(form, ctypes.string_at(address, struct.calcsize(form)))
    match value_type:
        case "f32":
            return [f"0x{bits:08x}" for bits in values]
        case "f64":
            return [f"0x{bits:016x}" for bits in values]
        case "bool":
            return ["true" if value else "false" for value in values]
    return [str(value) for value in values]


def _tensor(gguf: int, number: int) -> TensorInfo:
    base = libraries().base
    return TensorInfo(
        name=text_from_bytes(base.gguf_get_tensor_name(gguf, number)),
        type=base.gguf_get_tensor_type(gguf, number),
        dims=_dims(base.gguf_get_tensor_ne(gguf, number)[:4]),
        offset=str(base.gguf_get_tensor_offset(gguf, number)),
        nbytes=str(base.gguf_get_tensor_size(gguf, number)),
    )


def _dims(ne: list[int]) -> list[str]:
    """Leave out the trailing ones: the library keeps four numbers and forgets how many stood in the file."""
    while ne and ne[-1] == 1:
        ne = ne[:-1]
    return [str(n) for n in ne]
