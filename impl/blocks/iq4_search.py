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
from impl.blocks.kernel import inner, kernel

_LANES = 64  # a multiple of 8, the blocks of an IQ4_XS record
NOTHING = np.float32(1e-15)  # a block whose numbers are all below has scale 0
_FIRST = np.float32(-127)  # the level of code 0
_ZERO = np.float32(0)


def find_scales(x: Floats, imatrix: Floats, record: int, tries: int, out: Floats) -> None:
    """Write the scale of each block of ``x``.

    Shapes: ``x`` (blocks, 32), ``out`` (blocks,); ``imatrix`` (blocks of a row, 32), or (0, 32) for none. ``record``: how many
    blocks make a record, whose mean square the importances are put together with. ``tries``: how many scales to try on
    either side of the one that takes the largest number to level -127; with 0 it is taken to 127 instead, and no more is tried.
    """
    _find_scales(x, imatrix, record, tries, np.zeros((71, _LANES), np.float32), out)


@kernel
def _find_scales(x: Floats, imatrix: Floats, record: int, tries: int, work: Floats, out: Floats) -> None:
    turned, weight, sums = work[:32], work[32:64], work[64:]
    for start in range(0, len(x), _LANES):
        lanes = min(_LANES, len(x) - start)
        _turn(x, start, lanes, turned)
        if len(imatrix):
            _weigh(x, imatrix, record, start, lanes, weight)
        else:
            _square(turned, weight)
        _search(turned, weight, tries, sums)
        for lane in range(lanes):
            out[start + lane] = sums[0, lane]


@inner
def _turn(x: Floats, start: int, lanes: int, turned: Floats) -> None:
    for lane in range(lanes):
        for i in range(32):
            turned[i, lane] = x[start + lane, i]


@inner
def _square(turned: Floats, weight: Floats) -> None:
    for i in range(32):
        for lane in range(turned.shape[1]):
            weight[i, lane] = turned[i, lane] * turned[i, lane]


@inner
def _weigh(x: Floats, imatrix: Floats, record: int, start: int, lanes: int, weight: Floats) -> None:
    """Write the weights of the blocks from number ``start``: importance times the root of a number's and the record's square."""
    half = np.float32(16 * record)
    for first in range(start, start + lanes, record):
        square = _ZERO
        for block in range(first, first + record):
            for i in range(32):
                square += x[block, i] * x[block, i]
        square /= half  # a power of 2: twice the mean square
        for block in range(first, first + record):
            row = block % len(imatrix)
            for i in range(32):
                weight[i, block - start] = imatrix[row, i] * np.sqrt(square + x[block, i] * x[block, i])


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


@inner
def _find_extremes(x: Floats, magnitude: Floats, extreme: Floats) -> None:
    """Write the largest magnitude of each block, and the first number that has it. NaN does not count."""
    for lane in range(len(extreme)):
        magnitude[lane] = extreme[lane] = _ZERO
    for i in range(32):
        for lane in range(_LANES):
            larger = np.abs(x[i, lane]) > magnitude[lane]
            extreme[lane] = x[i, lane] if larger else extreme[lane]
            magnitude[lane] = np.abs(x[i, lane]) if larger else magnitude[lane]


@inner
def _add_up(x: Floats, weight: Floats, inverse: Floats, products: Floats, squares: Floats) -> None:
    """Write the weighted sums, over a block's elements in order, of level times number and of squared level."""
    for lane in range(len(squares)):
        products[lane] = squares[lane] = _ZERO
    for i in range(32):
        for lane in range(_LANES):
            level = nearest_level(inverse[lane] * x[i, lane])
            weighted = weight[i, lane] * level
            products[lane] += weighted * x[i, lane]
            squares[lane] += weighted * level


@inner
def _keep_better(products: Floats, squares: Floats, scale: Floats, best: Floats) -> None:
    """Take the new least squares scale where it is better. The score to beat is the one kept, not the first one."""
    for lane in range(_LANES):
        better = squares[lane] > _ZERO and products[lane] * products[lane] > best[lane] * squares[lane]
        found = products[lane] / squares[lane]
        scale[lane] = found if better else scale[lane]
        best[lane] = found * products[lane] if better else best[lane]
