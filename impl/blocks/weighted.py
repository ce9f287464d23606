"""Q4_0, Q4_1, Q5_0 and Q5_1 with an imatrix: the scale, or scale and minimum, of each block is searched, as the K types' are.

An element's weight is its column's importance times ``sqrt(mean square of the row + x * x)``.

Source: ``quantize_row_q4_0_impl`` and its siblings in ggml/src/ggml-quants.c. See ``k_lanes`` for the arrays.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_affine import BASE, BEST_SCALE, Search, fit_affine
from impl.blocks.k_lanes import LANES, STATE_ROWS
from impl.blocks.k_symmetric import SCALE, fit_symmetric
from impl.blocks.kernel import kernel

_BLOCK = 32


def search_symmetric(x: Floats, imatrix: Floats, half: int) -> tuple[Floats, Bytes]:
    """Give scales (blocks,) and codes 0 to ``2 * half - 1`` (blocks, 32) of rows ``x`` (rows, cols); ``imatrix`` is (cols,)."""
    blocks = x.reshape(-1, _BLOCK)
    d, codes = np.empty(len(blocks), np.float32), np.empty(blocks.shape, np.uint8)
    _search_symmetric(blocks, imatrix, _powers(x), np.int32(half), d, codes)
    return d, codes


def search_affine(x: Floats, imatrix: Floats, top: int) -> tuple[Floats, Floats, Bytes]:
    """Give scales and minima (blocks,) and codes 0 to ``top`` (blocks, 32) of rows ``x`` (rows, cols); ``imatrix`` is (cols,)."""
    blocks = x.reshape(-1, _BLOCK)
    d, minima, codes = np.empty(len(blocks), np.float32), np.empty(len(blocks), np.float32), np.empty(blocks.shape, np.uint8)
    search = Search(np.int32(top), np.float32(-0.9), np.float32(0.05), 36, False)
    _search_affine(blocks, imatrix, _powers(x), search, d, minima, codes)
    return d, minima, codes


@kernel
def _powers(x: Floats) -> Floats:
    """Give the mean square of each row, its squares added from left to right."""
    powers = np.empty(len(x), np.float32)
    for row in range(len(x)):
        total = np.float32(0)
        for v in x[row]:
            total += v * v
        powers[row] = total / np.float32(x.shape[1])
    return powers


@kernel
def _gather(blocks: Floats, imatrix: Floats, powers: Floats, first: int, x: Floats, w: Floats) -> int:
    """Put up to 64 blocks from ``first`` on and the weights of their elements in lanes (32, LANES); give how many. Others stay."""
    per_row = len(imatrix) // _BLOCK
    count = min(LANES, len(blocks) - first)
    for lane in range(count):
        row, place = divmod(first + lane, per_row)
        block, importance = blocks[first + lane], imatrix[_BLOCK * place :]
        for i in range(_BLOCK):
            x[i, lane] = block[i]
            w[i, lane] = importance[i] * np.sqrt(powers[row] + block[i] * block[i])
    return count


@kernel
def _search_symmetric(blocks: Floats, imatrix: Floats, powers: Floats, half: np.int32, d: Floats, codes: Bytes) -> None:
    x, w, levels = np.zeros((_BLOCK, LANES), np.float32), np.zeros((_BLOCK, LANES), np.float32), np.zeros((_BLOCK, LANES), np.uint8)
    state = np.zeros((STATE_ROWS, LANES), np.float32)
    for first in range(0, len(blocks), LANES):
        count = _gather(blocks, imatrix, powers, first, x, w)
        fit_symmetric(x, w, levels, state, half)
        for lane in range(count):
            d[first + lane] = state[SCALE, lane]
            codes[first + lane] = levels[:, lane]


@kernel
def _search_affine(
    blocks: Floats, imatrix: Floats, powers: Floats, search: Search, d: Floats, minima: Floats, codes: Bytes
) -> None:
    x, w, levels = np.zeros((_BLOCK, LANES), np.float32), np.zeros((_BLOCK, LANES), np.float32), np.zeros((_BLOCK, LANES), np.uint8)
    state = np.zeros((STATE_ROWS, LANES), np.float32)
    for first in range(0, len(blocks), LANES):
        count = _gather(blocks, imatrix, powers, first, x, w)
        fit_affine(x, w, levels, state, search)
        for lane in range(count):
            d[first + lane] = state[BEST_SCALE, lane]
            minima[first + lane] = state[BASE, lane]
            codes[first + lane] = levels[:, lane]
