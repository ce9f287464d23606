"""The weights of the elements in the searches for the K types' scales. See ``k_lanes`` for the arrays.

Source: ``quantize_row_q*_K_ref`` and ``quantize_row_q*_K_impl`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Floats
from impl.blocks.k_lanes import LANES, SUPER_BLOCK
from impl.blocks.kernel import kernel

_ZERO = np.float32(0)
_SUB_BLOCK = np.float32(32)
_ELEMENTS = np.float32(256)


@kernel
def weigh_by_magnitude(x: Floats, w: Floats) -> None:
    """Weigh by ``|x|``."""
    for j in range(len(x)):
        for i in range(x.shape[1]):
            for lane in range(LANES):
                w[j, i, lane] = abs(x[j, i, lane])


@kernel
def weigh_by_square(x: Floats, w: Floats) -> None:
    """Weigh by ``x * x``."""
    for j in range(len(x)):
        for i in range(x.shape[1]):
            for lane in range(LANES):
                w[j, i, lane] = x[j, i, lane] * x[j, i, lane]


@kernel
def weigh_by_mean_and_magnitude(x: Floats, w: Floats) -> None:
    """Weigh by ``sqrt(mean square of the sub-block of 32) + |x|``."""
    mean = np.empty(LANES, np.float32)
    for j in range(len(x)):
        mean[:] = _ZERO
        for i in range(x.shape[1]):
            for lane in range(LANES):
                mean[lane] += x[j, i, lane] * x[j, i, lane]
        for lane in range(LANES):
            mean[lane] = np.sqrt(mean[lane] / _SUB_BLOCK)
        for i in range(x.shape[1]):
            for lane in range(LANES):
                w[j, i, lane] = mean[lane] + abs(x[j, i, lane])


@kernel
def weigh_by_imatrix(imatrix: Floats, first: int, w: Floats) -> None:
    """Weigh by the importances (cols,) of the columns; lane 0 is super-block ``first``, counted through all rows."""
    flat, per_row = w.reshape(SUPER_BLOCK, LANES), len(imatrix) // SUPER_BLOCK
    for lane in range(LANES):
        start = (first + lane) % per_row * SUPER_BLOCK
        part = imatrix[start : start + SUPER_BLOCK]
        for i in range(SUPER_BLOCK):
            flat[i, lane] = part[i]


@kernel
def multiply_by_power(x: Floats, factor: np.float32, w: Floats) -> None:
    """Multiply the weights by ``sqrt(factor * mean square of the super-block + x * x)``."""
    power = np.zeros(LANES, np.float32)
    for j in range(len(x)):
        for i in range(x.shape[1]):
            for lane in range(LANES):
                power[lane] += x[j, i, lane] * x[j, i, lane]
    for lane in range(LANES):
        power[lane] = factor * power[lane] / _ELEMENTS
    for j in range(len(x)):
        for i in range(x.shape[1]):
            for lane in range(LANES):
                w[j, i, lane] *= np.sqrt(power[lane] + x[j, i, lane] * x[j, i, lane])
