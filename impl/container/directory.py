"""The tensor directory: one entry a tensor, checked field by field as llama.cpp checks it."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from impl.container.cursor import Cursor, show
from impl.errors import GgufError
from impl.types import TensorType

if TYPE_CHECKING:
    from impl.container.rules import Rules

MAX_NAME_BYTES = 63  # GGML_MAX_NAME counts the ending NUL
MAX_DIMS = 4
INT64_MAX = 2**63 - 1
SIZE_MAX = 2**64 - 1


class TensorInfo(NamedTuple):
    """One entry. ``ne`` are the dimensions as written, fastest first; ``offset`` counts from the data section's start.

    ``nbytes`` is the exact size of the data without padding. ``dims_at``, ``type_at`` and ``offset_at`` are where the fields stand.
    """

    name: bytes
    type: TensorType
    ne: tuple[int, ...]
    offset: int
    nbytes: int
    dims_at: int
    type_at: int
    offset_at: int


# All behind the number of dimensions, for up to four of them.
_REST = tuple(struct.Struct(f"<{n_dims}QiQ") for n_dims in range(MAX_DIMS + 1))
_U64 = struct.Struct("<Q").unpack_from
_U32 = struct.Struct("<I").unpack_from
_LONGEST = 8 + MAX_NAME_BYTES + 4 + _REST[-1].size
_ORDINARY_ELEMENTS = 2**40


def read_entry(cursor: Cursor, index: int, seen: set[bytes], rules: Rules) -> TensorInfo:
    """Read entry number ``index``; ``seen`` are the names before it.

    Raises:
        GgufError: ``truncated``, ``bad-length``, ``bad-name``, ``duplicate-tensor``, ``bad-dims``, ``bad-tensor-type``,
            ``bad-block`` or ``bad-size``.

    """
    if cursor.plain and cursor.remaining >= _LONGEST and (ordinary := _read_ordinary(cursor, seen, rules)):
        return ordinary
    field = f"tensors[{index}]"
    name = _read_name(cursor, field, seen, rules)
    ne, dims_at = _read_dims(cursor, field, rules)
    type_at = cursor.pos
    kind = known_type(cursor.i32(f"{field}.type"), rules.types, field=f"{field}.type", at=type_at)
    _check_row(kind, ne, field=field, dims_at=dims_at, type_at=type_at)
    nbytes = _size(kind, ne, field=f"{field}.type", at=type_at)
    offset_at = cursor.pos
    offset = cursor.u64(f"{field}.offset")
    return TensorInfo(name, kind, ne, offset, nbytes, dims_at, type_at, offset_at)


def _read_ordinary(cursor: Cursor, seen: set[bytes], rules: Rules) -> TensorInfo | None:
    """Read an entry as nearly all are, which every profile takes, in a third of the time; give None for any other, and stay.

    A model has hundreds of them. What is out of the ordinary is read field by field, and taken or refused there.
    """
    buffer, at = cursor.buffer, cursor.pos
    (length,) = _U64(buffer, at)
    if length > MAX_NAME_BYTES:
        return None
    dims_at = at + 8 + length + 4
    (n_dims,) = _U32(buffer, dims_at - 4)
    if not 1 <= n_dims <= MAX_DIMS:
        return None
    *dims, number, offset = _REST[n_dims].unpack_from(buffer, dims_at)
    name, elements = bytes(buffer[at + 8 : dims_at - 4]), math.prod(dims)
    if name in seen or rules.name_problem(name) or not 0 <= number < len(rules.types):
        return None
    kind = rules.types[number]
    if kind.removed or dims[0] % kind.block or not 0 < elements < _ORDINARY_ELEMENTS:
        return None
    type_at = dims_at + 8 * n_dims
    cursor.pos = type_at + 12
    return TensorInfo(name, kind, tuple(dims), offset, kind.row_bytes(elements), dims_at, type_at, type_at + 4)


def _read_name(cursor: Cursor, field: str, seen: set[bytes], rules: Rules) -> bytes:
    name = cursor.string(f"{field}.name")
    at = cursor.pos - len(name)
    if problem := rules.name_problem(name):
        raise GgufError("bad-name", problem, field=f"{field}.name", at=at)
    if name in seen:
        raise GgufError("duplicate-tensor", f"an earlier tensor is named {show(name)} too", field=f"{field}.name", at=at)
    return name


def _read_dims(cursor: Cursor, field: str, rules: Rules) -> tuple[tuple[int, ...], int]:
    at = cursor.pos
    n_dims = cursor.u32(f"{field}.n_dims")
    if n_dims > rules.max_dims:
        problem = f"{n_dims} dimensions: {rules.who} allows {rules.max_dims}"
        raise GgufError("bad-dims", problem, field=f"{field}.n_dims", at=at)
    ne: list[int] = []
    dims_at = cursor.pos
    for j in range(n_dims):
        dim = cursor.word(f"{field}.dims[{j}]")
        if dim > rules.max_dim:
            problem = f"dimension {dim} is over {rules.max_dim}, or {dim - 2**64} as {rules.who} reads it"
            raise GgufError("bad-dims", problem, field=f"{field}.dims[{j}]", at=dims_at + cursor.width * j)
        ne.append(dim)
    if rules.max_elements is not None:
        _check_elements(ne, rules.max_elements, field=field, dims_at=dims_at, width=cursor.width)
    return tuple(ne), dims_at


def _check_elements(ne: list[int], limit: int, *, field: str, dims_at: int, width: int) -> None:
    """Refuse an element count over the limit. A dimension of 0 hides what stands after it, as in gguf.cpp."""
    elements = 1
    for j, dim in enumerate(ne):
        if elements * dim > limit:
            problem = f"dimensions {ne} are more than {limit} elements"
            raise GgufError("bad-dims", problem, field=f"{field}.dims[{j}]", at=dims_at + width * j)
        elements *= dim


def known_type(number: int, types: Sequence[TensorType], *, field: str, at: int) -> TensorType:
    """Give the type with this number. Raises GgufError, ``bad-tensor-type``."""
    if not 0 <= number < len(types):
        problem = f"unknown ggml type {number}: the known ones are 0 to {len(types) - 1}"
        raise GgufError("bad-tensor-type", problem, field=field, at=at)
    return types[number]


def _check_row(kind: TensorType, ne: tuple[int, ...], *, field: str, dims_at: int, type_at: int) -> None:
    if kind.removed:
        problem = f"ggml type {kind.id} ({kind.name}) has been removed and has no block size"
        raise GgufError("bad-tensor-type", problem, field=f"{field}.type", at=type_at)
    row = ne[0] if ne else 1
    if row % kind.block:
        problem = f"a row of {row} elements is no multiple of the {kind.block} elements of a {kind.name} block"
        blamed, at = (f"{field}.dims[0]", dims_at) if ne else (f"{field}.n_dims", dims_at - 4)
        raise GgufError("bad-block", problem, field=blamed, at=at)


def _size(kind: TensorType, ne: tuple[int, ...], *, field: str, at: int) -> int:
    """Give the exact size in bytes.

    ``ggml_nbytes`` multiplies a row of blocks out, ``ne[0] * bytes``, before it divides by the block. Where that product wraps,
    llama.cpp takes the file with a wrong size; here it is refused.
    """
    elements = math.prod(ne)
    nbytes = kind.row_bytes(elements)
    row_product = ne[0] * kind.nbytes if ne and elements and kind.block > 1 else 0
    if nbytes > SIZE_MAX:
        problem = f"dimensions {list(ne)} of type {kind.name} are {nbytes} bytes, which does not fit in 64 bits"
    elif row_product > SIZE_MAX:
        problem = f"a row of {ne[0]} elements times {kind.nbytes} bytes is {row_product}, which wraps in ggml's 64 bits"
    else:
        return nbytes
    raise GgufError("bad-size", problem, field=field, at=at)


def check_strides(info: TensorInfo, index: int) -> None:
    """Refuse dimensions whose product, zeros left out, is 2^63-1 or more.

    Such a tensor has no elements, but ggml's strides for it wrap: ``ggml_new_tensor`` aborts on it.

    Raises:
        GgufError: ``bad-dims``.

    """
    product = info.ne[0] if info.ne else 1
    for j, dim in enumerate(info.ne[1:], start=1):
        if dim > 1:
            if INT64_MAX // dim <= product:
                problem = f"dimensions {list(info.ne)}: no elements, but their strides pass {INT64_MAX}"
                raise GgufError("bad-dims", problem, field=f"tensors[{index}].dims[{j}]", at=info.dims_at + 8 * j)
            product *= dim
