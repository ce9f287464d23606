"""The scales of sub-blocks coded by their super-block's, without an imatrix. See ``k_lanes`` for the arrays.

Source: ``quantize_row_q*_K_ref`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_lanes import LANES
from impl.blocks.kernel import inner, kernel
from impl.blocks.nearest import nearest

_ZERO = np.float32(0)
_ONE = np.float32(1)
_ALL_ZERO = np.float32(1e-15)
_Q3_STEPS = np.float32(-32)
_Q6_STEPS = np.float32(-128)


@kernel
def code_by_largest(values: Floats, codes: Bytes, d: Floats, top: np.float32, cap: np.uint8) -> None:
    """Code each lane's scales or minima over its largest one. A negative one wraps as a byte before it is capped."""
    for lane in range(LANES):
        largest = _ZERO
        for j in range(len(values)):
            largest = values[j, lane] if values[j, lane] > largest else largest
        inverse = top / largest if largest > _ZERO else _ZERO
        for j in range(len(values)):
            codes[j, lane] = min(np.uint8(nearest(inverse * values[j, lane])), cap)
        d[lane] = largest / top


@inner
def _extreme(values: Floats, lane: int) -> np.float32:
    """Give the first of the greatest magnitude, 0 where all are zeros or NaN."""
    found = _ZERO
    for j in range(len(values)):
        found = values[j, lane] if abs(values[j, lane]) > abs(found) else found
    return np.float32(found)


@kernel
def code_signed(scales: Floats, codes: Bytes, d: Floats) -> None:
    """Code a Q3_K's scales, 0 to 63, over the one of greatest magnitude. One beyond a byte wraps before it is bounded."""
    for lane in range(LANES):
        largest = _extreme(scales, lane)
        inverse = _Q3_STEPS / largest
        for j in range(len(scales)):
            code = int(np.int8(nearest(inverse * scales[j, lane])))
            codes[j, lane] = 0 if largest == _ZERO else min(max(code, -32), 31) + 32
        d[lane] = _ZERO if largest == _ZERO else _ONE / inverse


@kernel
def code_signed_bytes(scales: Floats, levels: Bytes, codes: Bytes, d: Floats) -> None:
    """Code a Q6_K's scales, -128 to 127 as bytes. A super-block without a scale becomes all zeros, its levels, too."""
    for lane in range(LANES):
        largest = _extreme(scales, lane)
        empty = abs(largest) < _ALL_ZERO
        inverse = _Q6_STEPS / largest
        for j in range(len(scales)):
            codes[j, lane] = np.uint8(0 if empty else min(nearest(inverse * scales[j, lane]), np.int32(127)))
            if empty:
                levels[j, :, lane] = 0
        d[lane] = _ZERO if empty else _ONE / inverse
