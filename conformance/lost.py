"""Blocks whose scale is 0 while their codes still say something: numbers too small for the scale were lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import impl
from impl.scales import F16, F32, FIELDS, IQ1_M, UE4M3, ScaleField
from impl.types import TensorType
from impl.validation import scale_records

# The bits of 1 in each form that can be 0.
_ONE = {F16: 0x3C00, F32: 0x3F800000, UE4M3: 0x38}
_SPREAD = np.array([0x0000, 0x0000, 0xC000, 0x3000], "<u2")
_AT_A_TIME = 4096


def lost_blocks(kind: TensorType, raw: memoryview, zero: npt.NDArray[np.bool_]) -> int:
    """Count, among the blocks of ``raw`` that ``zero`` marks, those whose values would differ if their scale were 1.

    Codes of zeros are all alike, in whatever way they are written. 0 where the reference does not dequantize the type.
    """
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, kind.nbytes)
    marked = np.flatnonzero(zero)
    pieces = (marked[start : start + _AT_A_TIME] for start in range(0, len(marked), _AT_A_TIME))
    return sum(_differing(kind, blocks[piece]) for piece in pieces)


def _differing(kind: TensorType, blocks: npt.NDArray[np.uint8]) -> int:
    records = scale_records(kind, blocks)
    _set_to_one(FIELDS[kind.name][0], records)
    try:
        values = impl.dequantize(kind.name, records.view(np.uint8), (len(blocks), kind.block))
    except impl.UnsupportedError:
        return 0
    return int(np.count_nonzero((values != values[:, :1]).any(axis=1)))


def _set_to_one(field: ScaleField, records: npt.NDArray[Any]) -> None:
    """Write 1 as the first scale; minima stay 0."""
    if field.form is IQ1_M:
        records[field.name] &= 0x0FFF
        records[field.name] |= _SPREAD
    else:
        records[field.name] = _ONE[field.form]
