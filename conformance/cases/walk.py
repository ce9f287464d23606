"""Reads a little-endian GGUF file back, by its layout alone: what it says, as a header, and where each field stands.

It holds a file to no rule: keys may come twice, names be of any length, arrays lie in arrays. What is read so is what a writer
is asked to write, and what a difference between two written files is located in.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from conformance.cases.fieldmap import Field, FieldMap, Run, Single, Span, TextRun
from conformance.cases.plan import WIDTHS
from conformance.ggml_types import BY_ID
from conformance.values import (
    VALUE_TYPES,
    Boxed,
    Element,
    Header,
    Pair,
    TensorInfo,
    Value,
    element_from_bytes,
    text_from_bytes,
)

_CODES = {
    "u8": "B",
    "i8": "b",
    "u16": "H",
    "i16": "h",
    "u32": "I",
    "i32": "i",
    "f32": "I",
    "bool": "B",
    "u64": "Q",
    "i64": "q",
    "f64": "Q",
}
_ALIGNMENT = "general.alignment"


class Walked(NamedTuple):
    """What a file says, and its fields; ``problem`` tells why it ends early, in words that follow the file's name."""

    header: Header
    fields: FieldMap
    problem: str = ""


class _EndError(ValueError):
    """The bytes are no file, from here on."""


def walk(data: bytes | mmap.mmap) -> Walked:
    """Read ``data`` as far as it is a file; the rest is one field, ``rest``."""
    walker = _Walker(data)
    problem = ""
    try:
        walker.file()
    except (_EndError, RecursionError) as error:
        problem = str(error)
    walker.rest()
    return Walked(walker.header(), FieldMap(walker.spans), problem)


def fields_of(data: bytes) -> FieldMap:
    """Give the fields alone, as far as ``data`` is a file: nothing is made of long arrays, whoever wrote them."""
    walker = _Walker(data, with_arrays=False)
    with suppress(_EndError, RecursionError):
        walker.file()
    walker.rest()
    return FieldMap(walker.spans)


class _Walker:
    def __init__(self, data: bytes | mmap.mmap, *, with_arrays: bool = True) -> None:
        self.data = data
        self.with_arrays = with_arrays
        self.at = 0
        self.start = 0
        self.version = 0
        self.kv: list[Pair] = []
        self.tensors: list[TensorInfo] = []
        self.spans: list[Span] = []

    def file(self) -> None:
        """Read all, from the magic to the last tensor's padding."""
        if self._raw("magic", 4, "bytes") != b"GGUF":
            raise _EndError("does not start with GGUF")
        self.version = self._number("version", "u32")
        if not 1 < self.version < 1 << 16:
            raise _EndError(f"has version {self.version}, or is big-endian: only 2 and later, little-endian, are read here")
        n_tensors, n_kv = self._number("n_tensors", "u64"), self._number("n_kv", "u64")
        for index in range(n_kv):
            self._pair(f"kv[{index}]")
        for index in range(n_tensors):
            self._tensor(f"tensors[{index}]")
        self._section()

    def header(self) -> Header:
        """Give what was read; a tensor's size is up to the next one's start where its type and shape have none."""
        starts = sorted({int(tensor.offset) for tensor in self.tensors} | {max(0, len(self.data) - self.start)})
        sized = [_sized(tensor, starts) for tensor in self.tensors]
        return Header(self.version, self.alignment, self.start, self.kv, sized)

    @property
    def alignment(self) -> int:
        """What general.alignment says where it is a u32 other than 0, else 32."""
        values = [pair.value for pair in self.kv if pair.key == _ALIGNMENT and pair.type == "u32"]
        return int(values[0]) if values and isinstance(values[0], str) and values[0] != "0" else 32

    def rest(self) -> None:
        """Make a field of what is left."""
        if self.at < len(self.data):
            self._skip("rest", len(self.data) - self.at, "bytes")

    def _section(self) -> None:
        alignment = self.alignment
        self.start = self.at + (-self.at % alignment if self.tensors else 0)
        end = min(self.start, len(self.data)) if self.tensors else min(self.at + -self.at % alignment, len(self.data))
        self._skip("padding", end - self.at, "padding")
        for index, tensor in enumerate(self.header().tensors):
            start = self.start + int(tensor.offset)
            if start != self.at or start + int(tensor.nbytes or 0) > len(self.data):
                return
            self._skip(f"data[{index}]", int(tensor.nbytes or 0), "data")
            padding = min(-self.at % alignment, len(self.data) - self.at)
            self._skip(f"data[{index}].padding", padding, "padding")

    def _pair(self, path: str) -> None:
        key = text_from_bytes(self._text(f"{path}.key"))
        kind = self._kind(f"{path}.type")
        if kind == "array":
            items, value = self._array(f"{path}.value")
            self.kv.append(Pair(key, kind, value, items))
        else:
            self.kv.append(Pair(key, kind, self._single(f"{path}.value", kind)))

    def _single(self, path: str, kind: str) -> Value:
        if kind == "str":
            return element_from_bytes(self._text(path))
        return next(_shown(kind, self._raw(path, WIDTHS[kind], kind)))

    def _array(self, path: str) -> tuple[str, list[Element]]:
        items, count = self._kind(f"{path}.items"), self._number(f"{path}.length", "u64")
        if items == "array":
            return items, [self._boxed(f"{path}[{index}]") for index in range(count)]
        if items == "str":
            return items, self._texts(path, count)
        start = self.at
        self._require(path, count * WIDTHS[items])
        self.at += count * WIDTHS[items]
        self.spans.append(Run(path, start, count, WIDTHS[items], items))
        return items, list(_shown(items, self.data[start : self.at])) if self.with_arrays else []

    def _boxed(self, path: str) -> Boxed:
        items, value = self._array(path)
        return Boxed(items=items, value=value)

    def _texts(self, path: str, count: int) -> list[Element]:
        starts, texts = [self.at], []
        for index in range(count):
            self._require(f"{path}[{index}].length", 8)
            length = int.from_bytes(self.data[self.at : self.at + 8], "little")
            self.at += 8
            self._require(f"{path}[{index}]", length)
            if self.with_arrays:
                texts.append(element_from_bytes(self.data[self.at : self.at + length]))
            self.at += length
            starts.append(self.at)
        self.spans.append(TextRun(path, np.array(starts, np.int64), 8))
        return texts

    def _tensor(self, path: str) -> None:
        name = text_from_bytes(self._text(f"{path}.name"))
        dims = [str(self._number(f"{path}.dims[{index}]", "u64")) for index in range(self._number(f"{path}.n_dims", "u32"))]
        number, offset = self._number(f"{path}.type", "u32"), self._number(f"{path}.offset", "u64")
        self.tensors.append(TensorInfo(name, number, dims, str(offset)))

    def _kind(self, path: str) -> str:
        number = self._number(path, "u32")
        if number >= len(VALUE_TYPES):
            raise _EndError(f"has the value type {number} at {path}, of which nothing is known")
        return VALUE_TYPES[number]

    def _text(self, path: str) -> bytes:
        return self._raw(path, self._number(f"{path}.length", "u64"), "text")

    def _number(self, path: str, kind: str) -> int:
        return int.from_bytes(self._raw(path, WIDTHS[kind], kind), "little")

    def _raw(self, path: str, length: int, kind: str) -> bytes:
        start = self.at
        self._require(path, length)
        self._skip(path, length, kind)
        return self.data[start : self.at]

    def _require(self, path: str, length: int) -> None:
        if length > len(self.data) - self.at:
            raise _EndError(f"ends at {len(self.data)}, within {path}, which takes {length} bytes from {self.at} on")

    def _skip(self, path: str, length: int, kind: str) -> None:
        if length or kind not in {"data", "padding"}:
            self.spans.append(Single(Field(path, self.at, length, kind)))
        self.at += length


def _shown(kind: str, raw: bytes) -> Iterator[str]:
    """Give numbers as the protocol writes them: floats by their bits, any bool but 0 as true."""
    for (number,) in struct.iter_unpack(f"<{_CODES[kind]}", raw):
        if kind in {"f32", "f64"}:
            yield f"0x{number:0{2 * WIDTHS[kind]}x}"
        elif kind == "bool":
            yield "true" if number else "false"
        else:
            yield str(number)


def _sized(tensor: TensorInfo, starts: list[int]) -> TensorInfo:
    kind, dims = BY_ID.get(tensor.type), [int(dim) for dim in tensor.dims]
    row = dims[0] if dims else 1
    if kind is not None and not kind.removed and row % kind.block == 0:
        size = kind.row_bytes(row)
        for dim in dims[1:]:
            size *= dim
    else:
        offset = int(tensor.offset)
        size = next((start for start in starts if start > offset), offset) - offset
    return TensorInfo(tensor.name, tensor.type, tensor.dims, tensor.offset, str(size))
