"""The search for the scale of each block of 32 of IQ4_NL and IQ4_XS.

For every scale that is tried, the numbers are rounded to levels and the weighted least squares scale for these levels is found; the
best of all counts. Each block's sums run over its elements in order, in float32. 64 blocks stand side by side, the same element
of each next to the other, so that one instruction serves several blocks.

Source: the first half of ``quantize_row_iq4_nl_impl``, ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Floats
from impl.blocks.iq4_levels import nearest_level
from impl.blocks.kernel import kernel

_LANES = 64  # a multiple of 8, the blocks of an IQ4_XS record
NOTHING = np.float32(1e-15)  # a block whose numbers are all below has scale 0
_FIRST = np.float32(-127)  # the level of code 0
_ZERO = np.float32(0)


@kernel
def find_scales(x: Floats, imatrix: Floats, record: int, tries: int, out: Floats) -> None:
    """Write the scale of each block of ``x``.

    Shapes: ``x`` (blocks, 32), ``out`` (blocks,); ``imatrix`` (blocks of a row, 32), or (0, 32) for none. ``record``: how many
    blocks make a record, whose mean square the importances are put together with. ``tries``: how many scales to try on
    either side of the one that takes the largest number to level -127; with 0 it is taken to 127 instead, and no more is tried.
    """
    turned, weight = np.zeros((32, _LANES), np.float32), np.zeros((32, _LANES), np.float32)
    work = np.empty((7, _LANES), np.float32)
    for start in range(0, len(x), _LANES):
        end = min(start + _LANES, len(x))
        _turn(x[start:end], turned)
        if len(imatrix):
            _weigh(x[start:end], imatrix, start, record, weight)
        else:
            weight[:] = turned * turned
        _search(turned, weight, tries, work)
        out[start:end] = work[0, : end - start]


@kernel
def _turn(x: Floats, turned: Floats) -> None:
    for block in range(len(x)):
        for i in range(32):
            turned[i, block] = x[block, i]


@kernel
def _weigh(x: Floats, imatrix: Floats, start: int, record: int, weight: Floats) -> None:
    """Write the weights of the blocks from number ``start``: importance times the root of a number's and the record's square."""
    for first in range(0, len(x), record):
        square = _ZERO
        for block in range(first, first + record):
            for i in range(32):
                square += x[block, i] * x[block, i]
        square *= np.float32(2 / (32 * record))
        for block in range(first, first + record):
            importance = imatrix[(start + block) % len(imatrix)]
            for i in range(32):
                weight[i, block] = importance[i] * np.sqrt(square + x[block, i] * x[block, i])


@kernel
def _search(x: Floats, weight: Floats, tries: int, work: Floats) -> None:
    """Write the scales of the blocks of ``x`` to ``work[0]``; shapes: ``x`` and ``weight`` (32, lanes), ``work`` (7, lanes)."""
    scale, magnitude, extreme, inverse, products, squares, best = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    _find_extremes(x, magnitude, extreme)
    for lane in range(_LANES):
        inverse[lane] = np.float32(1) / (extreme[lane] / (-_FIRST if tries else _FIRST))
    _add_up(x, weight, inverse, products, squares)
    for lane in range(_LANES):
        scale[lane] = products[lane] / squares[lane] if squares[lane] > _ZERO else _ZERO
        best[lane] = scale[lane] * products[lane]
    for step in range(-tries, tries + 1 if tries else 0):
        for lane in range(_LANES):
            inverse[lane] = (np.float32(step) + _FIRST) / extreme[lane]
        _add_up(x, weight, inverse, products, squares)
        _keep_better(products, squares, scale, best)
    for lane in range(_LANES):
        scale[lane] = _ZERO if magnitude[lane] < NOTHING else scale[lane]


@kernel
def _find_extremes(x: Floats, magnitude: Floats, extreme: Floats) -> None:
    """Write the largest magnitude of each block, and the first number that has it. NaN does not count."""
    magnitude[:] = _ZERO
    extreme[:] = _ZERO
    for i in range(32):
        for lane in range(_LANES):
            larger = np.abs(x[i, lane]) > magnitude[lane]
            extreme[lane] = x[i, lane] if larger else extreme[lane]
            magnitude[lane] = np.abs(x[i, lane]) if larger else magnitude[lane]


@kernel
def _add_up(x: Floats, weight: Floats, inverse: Floats, products: Floats, squares: Floats) -> None:
    """Write the weighted sums, over a block's elements in order, of level times number and of squared level."""
    products[:] = _ZERO
    squares[:] = _ZERO
    for i in range(32):
        for lane in range(_LANES):
            level = nearest_level(inverse[lane] * x[i, lane])
            weighted = weight[i, lane] * level
            products[lane] += weighted * x[i, lane]
            squares[lane] += weighted * level


@kernel
def _keep_better(products: Floats, squares: Floats, scale: Floats, best: Floats) -> None:
    """Take the new least squares scale where it is better. The score to beat is the one kept, not the first one."""
    for lane in range(_LANES):
        better = squares[lane] > _ZERO and products[lane] * products[lane] > best[lane] * squares[lane]
        found = products[lane] / squares[lane]
        scale[lane] = found if better else scale[lane]
        best[lane] = found * products[lane] if better else best[lane]
