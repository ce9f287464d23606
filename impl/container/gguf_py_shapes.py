"""A tensor as ``GGUFReader`` makes it: an array of numpy, which the file's bytes have to fill.

Source: ``_build_tensors`` in gguf/gguf_reader.py, and what numpy's ``reshape`` refuses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from impl.container.cursor import show
from impl.container.directory import INT64_MAX, SIZE_MAX, TensorInfo, known_type
from impl.errors import GgufError, RejectClass
from impl.types import TensorType

# In the place of a type or an offset that the file ends before.
MISSING = -1

_MAX_DIMS = 64
# Those that it gives as numbers; all others, BF16 among them, are bytes to it.
_ITEM_BYTES = {"F16": 2, "F32": 4, "F64": 8, "I8": 1, "I16": 2, "I32": 4, "I64": 8}


def settled(info: TensorInfo, index: int, types: Sequence[TensorType], data_offset: int, file_size: int | None) -> TensorInfo:
    """Give an entry with its type and size. ``file_size`` is None where it is not known: data is then not looked for.

    Raises:
        GgufError: ``truncated``, ``bad-tensor-type``, ``bad-block``, ``bad-dims`` or ``missing-data``.

    """
    field = f"tensors[{index}]"
    _require(info.type.id, f"{field}.type", info.type_at)
    kind = known_type(info.type.id, types, field=f"{field}.type", at=info.type_at)
    if kind.removed:
        problem = f"ggml type {kind.id} ({kind.name}) has been removed and is not in gguf-py's table"
        raise GgufError("bad-tensor-type", problem, field=f"{field}.type", at=info.type_at)
    _require(info.offset, f"{field}.offset", info.offset_at)
    item = _ITEM_BYTES.get(kind.name, 1)
    shape = info.ne[::-1] if kind.name in _ITEM_BYTES else _shape_in_bytes(info, kind, field)
    # Multiplied out by numpy, in 64 bits.
    nbytes = math.prod(info.ne) % 2**64 * kind.nbytes // kind.block
    start = data_offset + info.offset
    present = nbytes if file_size is None else min(max(0, file_size - start), nbytes)
    if present % item == 0 and (problem := _unfit(shape, item)):
        raise _refusal("bad-dims", problem, info, field)
    wanted = math.prod(shape) * item
    if present != wanted or _overflows(shape):
        problem = f"tensor {show(info.name)} of shape {shape} takes {wanted} bytes from {start} on, but {present} are there"
        raise GgufError("missing-data", problem, field=f"{field}.data", at=start)
    return info._replace(type=kind, nbytes=nbytes)


def _require(number: int, field: str, at: int) -> None:
    if number == MISSING:
        raise GgufError("truncated", "the file ends before it", field=field, at=at)


def _refusal(reject_class: RejectClass, problem: str, info: TensorInfo, field: str) -> GgufError:
    return GgufError(reject_class, problem, field=f"{field}.dims[0]", at=info.dims_at)


def _shape_in_bytes(info: TensorInfo, kind: TensorType, field: str) -> tuple[int, ...]:
    row = info.ne[0] if info.ne else 1
    if not info.ne or row % kind.block:
        problem = f"a row of {row} elements, {len(info.ne)} dimensions, is no row of {kind.name} blocks of {kind.block} elements"
        raise _refusal("bad-block", problem, info, field)
    return (*info.ne[:0:-1], kind.row_bytes(row))


def _unfit(shape: tuple[int, ...], item: int) -> str:
    """Say why numpy has no such array, however many bytes there are."""
    if len(shape) > _MAX_DIMS:
        return f"{len(shape)} dimensions: numpy has up to {_MAX_DIMS}"
    if any(dim > INT64_MAX for dim in shape) or math.prod(shape) > SIZE_MAX:
        return f"shape {shape}: its dimensions or their product do not fit in 64 bits"
    if 0 in shape and not _overflows(shape) and math.prod(dim for dim in shape if dim) * item > INT64_MAX:
        return f"shape {shape}: no elements, but its strides pass {INT64_MAX}"
    return ""


def _overflows(shape: tuple[int, ...]) -> bool:
    """Tell whether the product passes 63 bits on the way, as numpy multiplies it."""
    product = 1
    for dim in shape:
        product *= dim
        if product > INT64_MAX:
            return True
    return False
