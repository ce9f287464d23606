"""Where everything of a file to be written stands, checked before a byte of it is written.

Source of the layout: ``gguf_write_out`` and ``gguf_add_tensor``, ggml/src/gguf.cpp. What ggml's reader would refuse is refused.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from impl.container.cursor import MAX_ARRAY_ELEMENTS, MAX_STRING_LENGTH, show
from impl.container.directory import INT64_MAX, MAX_DIMS, MAX_NAME_BYTES, SIZE_MAX
from impl.container.reader import ALIGNMENT_KEY, DEFAULT_ALIGNMENT, MAGIC, VERSIONS
from impl.container.values import ARRAY, STRING, Nested, Number, Numbers, String, Strings, Value, type_name
from impl.errors import DescriptionError, RejectClass
from impl.types import TensorType

ByteOrder = Literal["little", "big"]


class Described(NamedTuple):
    """A tensor to be written: ``ne`` fastest first, ``type`` none that ggml has removed."""

    name: bytes
    type: TensorType
    ne: tuple[int, ...]


class Entry(NamedTuple):
    """A tensor's place: ``offset`` counts from the data section's start, ``nbytes`` is without the padding after it."""

    name: bytes
    type: TensorType
    ne: tuple[int, ...]
    offset: int
    nbytes: int


class Layout(NamedTuple):
    """``head`` is all before the padding that brings the data to ``data_offset``."""

    head: bytes
    alignment: int
    data_offset: int
    entries: list[Entry]


def lay_out(
    pairs: Sequence[tuple[bytes, Value]],
    tensors: Iterable[Described],
    *,
    version: int = 3,
    byteorder: ByteOrder = "little",
    pad_empty: bool = True,
) -> Layout:
    """Lay a file out as ggml does: the metadata padded to the alignment, and the data of every tensor, the last one's too.

    ``pad_empty`` False leaves out the padding of a file without tensors, as other writers do.

    Raises:
        DescriptionError: the first thing that ggml's reader would refuse, or that the format cannot hold.

    """
    if not isinstance(version, int) or version not in VERSIONS:
        raise _error("bad-version", f"version {version!r}", field="version", hint="write version 3, or 2")
    _check_keys(pairs)
    alignment = _alignment(pairs)
    entries = _place(tensors, alignment)
    encode = _Encoder(byteorder)
    head = encode.head(version, pairs, entries)
    data_offset = _padded(len(head), alignment) if entries or pad_empty else len(head)
    return Layout(head, alignment, data_offset, entries)


def _error(reject_class: RejectClass, problem: str, *, field: str, hint: str) -> DescriptionError:
    return DescriptionError(reject_class, problem, field=field, hint=hint)


def _check_keys(pairs: Sequence[tuple[bytes, Value]]) -> None:
    seen: dict[bytes, int] = {}
    for index, (key, content) in enumerate(pairs):
        field = f"kv[{index}].key"
        if not key:
            raise _error("bad-key", "the key is empty", field=field, hint="give it a name")
        if key in seen:
            problem = f"the key {show(key)} is kv[{seen[key]}]'s too"
            raise _error("duplicate-key", problem, field=field, hint="a key may be there once: leave one of them out")
        seen[key] = index
        _check_length(key, field)
        _check_value(content, f"kv[{index}].value")


def _check_value(content: Value, field: str) -> None:
    if isinstance(content, String):
        _check_length(content.raw, field)
    elif isinstance(content, Nested):
        raise _error(
            "bad-value-type", "an array of arrays", field=field, hint="ggml reads none: give one array, and its shape apart"
        )
    elif isinstance(content, Numbers | Strings):
        count = content.length if isinstance(content, Numbers) else len(content.ends)
        if count > MAX_ARRAY_ELEMENTS:
            problem = f"an array of {count} elements"
            raise _error("bad-length", problem, field=field, hint=f"ggml reads {MAX_ARRAY_ELEMENTS} at most")
        if isinstance(content, Strings) and count and content.ends[-1] > MAX_STRING_LENGTH:  # else none of them can be too long
            for index, raw in enumerate(content.raw()):
                _check_length(raw, f"{field}[{index}]")


def _check_length(raw: bytes, field: str) -> None:
    if len(raw) > MAX_STRING_LENGTH:
        raise _error("bad-length", f"a text of {len(raw)} bytes", field=field, hint=f"ggml reads {MAX_STRING_LENGTH} bytes at most")


def _alignment(pairs: Sequence[tuple[bytes, Value]]) -> int:
    """Give the alignment, which the first key says that reads as general.alignment to ggml, up to a NUL in it."""
    for index, (key, content) in enumerate(pairs):
        if key.partition(b"\0")[0] != ALIGNMENT_KEY:
            continue
        if not isinstance(content, Number) or content.type.name != "u32":
            problem = f"general.alignment is of type {type_name(content)}"
            raise _error("bad-alignment", problem, field=f"kv[{index}].type", hint="give it as impl.value('u32', 32)")
        alignment = int(content.get())
        if alignment == 0 or alignment & (alignment - 1):
            problem = f"general.alignment is {alignment}"
            raise _error("bad-alignment", problem, field=f"kv[{index}].value", hint="it must be a power of two, such as 32")
        return alignment
    return DEFAULT_ALIGNMENT


def _place(tensors: Iterable[Described], alignment: int) -> list[Entry]:
    entries: list[Entry] = []
    seen: dict[bytes, int] = {}
    offset = 0
    for index, tensor in enumerate(tensors):
        field = f"tensors[{index}]"
        _check_name(tensor.name, f"{field}.name", seen)
        seen[tensor.name] = index
        nbytes = _check_shape(tensor, field)
        entries.append(Entry(tensor.name, tensor.type, written_dims(tensor.ne), offset, nbytes))
        offset += _padded(nbytes, alignment)
        if offset > SIZE_MAX:
            problem = f"the data up to here takes {offset} bytes"
            raise _error("bad-size", problem, field=f"{field}.dims", hint="it must be less than 2^64: split the file")
    return entries


def _check_name(name: bytes, field: str, seen: dict[bytes, int]) -> None:
    if len(name) > MAX_NAME_BYTES:
        problem = f"the name {show(name)} has {len(name)} bytes"
        raise _error("bad-name", problem, field=field, hint=f"ggml reads names of {MAX_NAME_BYTES} bytes at most: shorten it")
    if name in seen:
        problem = f"the name {show(name)} is tensors[{seen[name]}]'s too"
        raise _error("duplicate-tensor", problem, field=field, hint="give each tensor a name of its own")


def _check_shape(tensor: Described, field: str) -> int:
    """Give the size of a tensor in bytes."""
    name, kind, ne = tensor
    if len(ne) > MAX_DIMS:
        problem = f"{show(name)} has {len(ne)} dimensions, {list(ne)}"
        raise _error("bad-dims", problem, field=f"{field}.n_dims", hint=f"ggml reads {MAX_DIMS} at most: join some")
    # A dimension of 0 hides what stands after it from a product, not from ggml's strides.
    if not all(0 <= dim <= INT64_MAX for dim in ne) or math.prod(max(dim, 1) for dim in ne) > INT64_MAX:
        hint = f"each must be 0 or more, and their product at most {INT64_MAX}"
        raise _error("bad-dims", f"the dimensions of {show(name)} are {list(ne)}", field=f"{field}.dims", hint=hint)
    row = ne[0] if ne else 1
    if row % kind.block:
        problem = f"a row of {row} elements is no multiple of the {kind.block} elements of a {kind.name} block"
        raise _error("bad-block", problem, field=f"{field}.dims[0]", hint="pad the rows, or give them in F32 or F16")
    nbytes = kind.row_bytes(math.prod(ne))
    if max(nbytes, row * kind.nbytes) > SIZE_MAX:
        raise _error("bad-size", f"{show(name)} takes {nbytes} bytes", field=f"{field}.dims", hint="ggml counts them in 64 bits")
    return nbytes


def written_dims(ne: tuple[int, ...]) -> tuple[int, ...]:
    """Give the dimensions that are written: without ones at the end, at least one (``ggml_n_dims``, ggml/src/ggml.c).

    ggml also leaves out zeros at the end, and its own reader refuses the file: here they stay.
    """
    while len(ne) > 1 and ne[-1] == 1:
        ne = ne[:-1]
    return ne or (1,)


def _padded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


class _Encoder:
    """Puts a header's fields into bytes."""

    def __init__(self, byteorder: ByteOrder) -> None:
        self._order: ByteOrder = byteorder

    def head(self, version: int, pairs: Sequence[tuple[bytes, Value]], entries: Sequence[Entry]) -> bytes:
        parts = [MAGIC, self._number(version, 4), self._number(len(entries), 8), self._number(len(pairs), 8)]
        for key, content in pairs:
            parts += (self._text(key), self._value(content))
        for entry in entries:
            parts += (self._text(entry.name), self._number(len(entry.ne), 4))
            parts += (self._number(dim, 8) for dim in entry.ne)
            parts += (self._number(entry.type.id, 4), self._number(entry.offset, 8))
        return b"".join(parts)

    def _value(self, content: Value) -> bytes:
        match content:
            case Number(kind, raw):
                return self._number(kind.id, 4) + self._numbers(kind.name, kind.size, raw)
            case String(raw):
                return self._number(STRING.id, 4) + self._text(raw)
            case Numbers(items=items, length=length):
                head = (self._number(ARRAY.id, 4), self._number(items.id, 4), self._number(length, 8))
                return b"".join(head) + self._numbers(items.name, items.size, content.raw)
            case Strings(ends=ends):
                head = (self._number(ARRAY.id, 4), self._number(STRING.id, 4), self._number(len(ends), 8))
                return b"".join((*head, self._texts(content.raw())))
            case Nested():
                raise AssertionError("refused before anything is laid out")

    def _numbers(self, name: str, size: int, raw: bytes) -> bytes:
        if name == "bool":
            return bytes(map(bool, raw))  # any other byte than 0 reads as true, and is written as 1
        if self._order == "little" or size == 1:
            return raw
        swapped = bytearray(raw)
        for byte in range(size):
            swapped[byte::size] = raw[size - 1 - byte :: size]
        return bytes(swapped)

    def _texts(self, raw: list[bytes]) -> bytes:
        """Give many texts: a vocabulary has hundreds of thousands."""
        pack = struct.Struct("<Q" if self._order == "little" else ">Q").pack
        return b"".join([part for one in raw for part in (pack(len(one)), one)])

    def _text(self, raw: bytes) -> bytes:
        return self._number(len(raw), 8) + raw

    def _number(self, number: int, size: int) -> bytes:
        return number.to_bytes(size, self._order)
