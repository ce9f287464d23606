"""Q4_0, Q4_1, Q5_0 and Q5_1 with an imatrix: the scale, or scale and minimum, of each block is searched, as the K types' are.

An element's weight is its column's importance times ``sqrt(mean square of the row + x * x)``.

Source: ``quantize_row_q4_0_impl`` and its siblings in ggml/src/ggml-quants.c. See ``k_lanes`` for the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_affine import BASE, BEST_SCALE, Search, fit_affine
from impl.blocks.k_lanes import LANES, STATE_ROWS
from impl.blocks.k_symmetric import SCALE, fit_symmetric
from impl.blocks.kernel import inner, kernel

_BLOCK = 32


class _Lanes(NamedTuple):
    """Room for 64 blocks and what is found of them."""

    x: Floats
    w: Floats
    levels: Bytes
    state: Floats


def search_symmetric(x: Floats, imatrix: Floats, half: int) -> tuple[Floats, Bytes]:
    """Give scales (blocks,) and codes 0 to ``2 * half - 1`` (blocks, 32) of rows ``x`` (rows, cols); ``imatrix`` is (cols,)."""
    blocks = x.reshape(-1, _BLOCK)
    d, codes = np.empty(len(blocks), np.float32), np.empty(blocks.shape, np.uint8)
    _search_symmetric(blocks, imatrix, _powers(x), np.int32(half), _lanes(), d, codes)
    return d, codes


def search_affine(x: Floats, imatrix: Floats, top: int) -> tuple[Floats, Floats, Bytes]:
    """Give scales and minima (blocks,) and codes 0 to ``top`` (blocks, 32) of rows ``x`` (rows, cols); ``imatrix`` is (cols,)."""
    plan = Search(np.int32(top), np.float32(-0.9), np.float32(0.05), 36, False)
    blocks = x.reshape(-1, _BLOCK)
    d, minima, codes = np.empty(len(blocks), np.float32), np.empty(len(blocks), np.float32), np.empty(blocks.shape, np.uint8)
    _search_affine(blocks, imatrix, _powers(x), plan, _lanes(), d, minima, codes)
    return d, minima, codes


def _lanes() -> _Lanes:
    x, w = np.zeros((2, _BLOCK, LANES), np.float32)
    return _Lanes(x, w, np.zeros((_BLOCK, LANES), np.uint8), np.zeros((STATE_ROWS, LANES), np.float32))


@kernel
def _search_symmetric(
    blocks: Floats, imatrix: Floats, powers: Floats, half: np.int32, lanes: _Lanes, d: Floats, codes: Bytes
) -> None:
    """Search 64 blocks at a time."""
    for first in range(0, len(blocks), LANES):
        count = _gather(blocks, imatrix, powers, first, lanes.x, lanes.w)
        fit_symmetric(lanes.x, lanes.w, lanes.levels, lanes.state, half)
        _take(lanes.state, SCALE, d[first : first + count])
        _take_codes(lanes.levels, codes[first : first + count])


@kernel
def _search_affine(  # noqa: PLR0913, PLR0917 - three results, and what they are found from
    blocks: Floats, imatrix: Floats, powers: Floats, plan: Search, lanes: _Lanes, d: Floats, minima: Floats, codes: Bytes
) -> None:
    """Search 64 blocks at a time."""
    for first in range(0, len(blocks), LANES):
        count = _gather(blocks, imatrix, powers, first, lanes.x, lanes.w)
        fit_affine(lanes.x, lanes.w, lanes.levels, lanes.state, plan)
        _take(lanes.state, BEST_SCALE, d[first : first + count])
        _take(lanes.state, BASE, minima[first : first + count])
        _take_codes(lanes.levels, codes[first : first + count])


@kernel
def _take(state: Floats, row: int, out: Floats) -> None:
    for lane in range(len(out)):
        out[lane] = state[row, lane]


@inner
def _take_codes(levels: Bytes, codes: Bytes) -> None:
    for lane in range(len(codes)):
        for i in range(codes.shape[1]):
            codes[lane, i] = levels[i, lane]


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


@inner
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
