"""Reads a header, versions 2 and 3, in llama.cpp's order, so that the first fault is the one that llama.cpp stops at.

Source: ``gguf_init_from_reader`` in ggml/src/gguf.cpp. Where that function aborts or takes a size that wrapped, a file
is refused here instead (``bad-dims``, ``bad-size`` or ``missing-data``).
"""

from __future__ import annotations

from typing import NamedTuple

from impl.container.cursor import Buffer, Cursor, show
from impl.container.directory import SIZE_MAX, TensorInfo, check_strides, read_entry
from impl.container.scan import read_value
from impl.container.values import Number, Value, type_name
from impl.errors import GgufError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
ALIGNMENT_KEY = b"general.alignment"
# llama.cpp's limits follow from the sizes of its own structs: 344 bytes a tensor, 88 a pair.
MAX_TENSORS = SIZE_MAX // 344
MAX_PAIRS = SIZE_MAX // 88
# ggml_tensor_overhead(): what a full load adds, a tensor and once more, to the data in one size that must not wrap.
TENSOR_OVERHEAD = 368


class Pair(NamedTuple):
    """One key-value pair; ``type_at`` and ``value_at`` are where its type and its value stand."""

    key: bytes
    value: Value
    type_at: int
    value_at: int


class Header(NamedTuple):
    """All that a file says before its data. ``data_size`` is the data section's, all padding included."""

    version: int
    alignment: int
    data_offset: int
    data_size: int
    pairs: list[Pair]
    tensors: list[TensorInfo]


def read_header(buffer: Buffer) -> Header:
    """Read everything before the data. The data itself may be missing, in part or whole.

    Raises:
        GgufError: the first fault.

    """
    cursor = Cursor(buffer)
    version = _read_version(cursor)
    n_tensors = _read_count(cursor, "n_tensors", MAX_TENSORS)
    n_pairs = _read_count(cursor, "n_kv", MAX_PAIRS)
    pairs = _read_pairs(cursor, n_pairs)
    alignment = _alignment(pairs)
    tensors = _read_tensors(cursor, n_tensors)
    data_offset = _data_offset(cursor, n_tensors, alignment)
    data_size = _check_offsets(tensors, alignment)
    return Header(version, alignment, data_offset, data_size, pairs, tensors)


def check_load(header: Header, file_size: int) -> None:
    """Check what a full load needs beyond the header: all data, the last tensor's padding included.

    Raises:
        GgufError: ``bad-size``, ``missing-data`` or ``bad-dims``.

    """
    if header.data_size + (len(header.tensors) + 1) * TENSOR_OVERHEAD > SIZE_MAX:
        problem = f"{header.data_size} bytes of tensors, and what ggml needs to hold them, do not fit in 64 bits"
        raise GgufError("bad-size", problem, field="data", at=header.data_offset)
    present = file_size - header.data_offset
    if header.data_size > present:
        problem = f"tensors and padding take {header.data_size} bytes, but the file ends {present} bytes on, at {file_size}"
        raise GgufError("missing-data", problem, field="data", at=header.data_offset)
    for index, info in enumerate(header.tensors):
        check_strides(info, index)


def _read_version(cursor: Cursor) -> int:
    magic_at = cursor.skip(4, "magic")
    magic = cursor.buffer[magic_at : cursor.pos]
    if magic != MAGIC:
        raise GgufError("bad-magic", f"the file starts with {show(magic)}, not with 'GGUF'", field="magic", at=magic_at)
    at = cursor.pos
    version = cursor.u32("version")
    if version in VERSIONS:
        return version
    if version and version & 0xFFFF == 0:
        problem = f"version {version} (0x{version:08x}) reads as a small number in the other byte order"
        raise GgufError("byte-order", problem, field="version", at=at)
    raise GgufError("bad-version", f"version {version}: llama.cpp reads 2 and 3", field="version", at=at)


def _read_count(cursor: Cursor, field: str, limit: int) -> int:
    at = cursor.pos
    count = cursor.i64(field)
    if not 0 <= count <= limit:
        shown = f"{count % 2**64}, or {count} as llama.cpp reads it," if count < 0 else str(count)
        raise GgufError("bad-count", f"count {shown} is out of the range 0 to {limit}", field=field, at=at)
    return count


def _read_pairs(cursor: Cursor, count: int) -> list[Pair]:
    pairs: list[Pair] = []
    seen: set[bytes] = set()
    while len(pairs) < count:
        pairs.append(_read_pair(cursor, f"kv[{len(pairs)}]", seen))
    return pairs


def _read_pair(cursor: Cursor, field: str, seen: set[bytes]) -> Pair:
    key = cursor.string(f"{field}.key")
    at = cursor.pos - len(key)
    if not key:
        raise GgufError("bad-key", "the key is empty", field=f"{field}.key", at=at)
    if key in seen:
        raise GgufError("duplicate-key", f"an earlier pair has the key {show(key)} too", field=f"{field}.key", at=at)
    seen.add(key)
    type_at = cursor.pos
    value = read_value(cursor, field)
    return Pair(key, value, type_at, type_at + 4)


def _alignment(pairs: list[Pair]) -> int:
    """Give the alignment. llama.cpp looks the key up as a C string, so what follows a NUL in a key does not count."""
    for index, pair in enumerate(pairs):
        if pair.key.partition(b"\0")[0] == ALIGNMENT_KEY:
            return _checked_alignment(pair, index)
    return DEFAULT_ALIGNMENT


def _checked_alignment(pair: Pair, index: int) -> int:
    name = type_name(pair.value)
    if not isinstance(pair.value, Number) or name != "u32":
        problem = f"general.alignment is of type {name}, it must be u32"
        raise GgufError("bad-alignment", problem, field=f"kv[{index}].type", at=pair.type_at)
    alignment = int(pair.value.get())
    if alignment == 0 or alignment & (alignment - 1):
        problem = f"general.alignment is {alignment}, it must be a power of two"
        raise GgufError("bad-alignment", problem, field=f"kv[{index}].value", at=pair.value_at)
    return alignment


def _read_tensors(cursor: Cursor, count: int) -> list[TensorInfo]:
    tensors: list[TensorInfo] = []
    seen: set[bytes] = set()
    while len(tensors) < count:
        tensors.append(read_entry(cursor, len(tensors), seen))
    return tensors


def _data_offset(cursor: Cursor, n_tensors: int, alignment: int) -> int:
    """Give where the data starts: the next multiple of the alignment, or right here where there are no tensors."""
    if n_tensors == 0:
        return cursor.pos
    start = _padded(cursor.pos, alignment)
    if start > cursor.end:
        problem = f"the data should start at {start} (alignment {alignment}), but the file ends at {cursor.end}"
        raise GgufError("truncated", problem, field="data", at=start)
    return start


def _check_offsets(tensors: list[TensorInfo], alignment: int) -> int:
    """Check that each tensor starts where the one before it ends, padding included; give the sum of all."""
    total = 0
    for index, info in enumerate(tensors):
        if info.offset != total:
            problem = f"offset {info.offset} of tensor {show(info.name)}: llama.cpp expects {total}, with no gap or overlap"
            raise GgufError("bad-offset", problem, field=f"tensors[{index}].offset", at=info.offset_at)
        padded = _padded(info.nbytes, alignment)
        if total + padded > SIZE_MAX:
            problem = f"tensor {show(info.name)} takes {info.nbytes} bytes, after {total}: the sum does not fit in 64 bits"
            raise GgufError("bad-size", problem, field=f"tensors[{index}].type", at=info.type_at)
        total += padded
    return total


def _padded(size: int, alignment: int) -> int:
    return (size + alignment - 1) // alignment * alignment
