"""Q4_0, Q4_1, Q5_0 and Q5_1 with an imatrix: the scale, or scale and minimum, of each block is searched, as the K types' are.

An element's weight is its column's importance times ``sqrt(mean square of the row + x * x)``.

Source: ``quantize_row_q4_0_impl`` and its siblings in ggml/src/ggml-quants.c. See ``k_lanes`` for the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_affine import BASE, BEST_SCALE, Search, fit_affine
from impl.blocks.k_lanes import LANES, STATE_ROWS
from impl.blocks.k_symmetric import SCALE, fit_symmetric
from impl.blocks.kernel import kernel

_BLOCK = 32


class _Lanes(NamedTuple):
    """Room for 64 blocks and what is found of them."""

    x: Floats
    w: Floats
    levels: Bytes
    state: Floats


def search_symmetric(x: Floats, imatrix: Floats, half: int) -> tuple[Floats, Bytes]:
    """Give scales (blocks,) and codes 0 to ``2 * half - 1`` (blocks, 32) of rows ``x`` (rows, cols); ``imatrix`` is (cols,)."""

    def search(lanes: _Lanes) -> None:
        fit_symmetric(lanes.x, lanes.w, lanes.levels, lanes.state, np.int32(half))

    (d,), codes = _search(x, imatrix, search, [SCALE])
    return d, codes


def search_affine(x: Floats, imatrix: Floats, top: int) -> tuple[Floats, Floats, Bytes]:
    """Give scales and minima (blocks,) and codes 0 to ``top`` (blocks, 32) of rows ``x`` (rows, cols); ``imatrix`` is (cols,)."""
    plan = Search(np.int32(top), np.float32(-0.9), np.float32(0.05), 36, False)

    def search(lanes: _Lanes) -> None:
        fit_affine(lanes.x, lanes.w, lanes.levels, lanes.state, plan)

    (d, minima), codes = _search(x, imatrix, search, [BEST_SCALE, BASE])
    return d, minima, codes


def _search(x: Floats, imatrix: Floats, search: Callable[[_Lanes], None], found: list[int]) -> tuple[Floats, Bytes]:
    """Search 64 blocks at a time; give the ``found`` rows of their states, (len(found), blocks), and their codes, (blocks, 32)."""
    blocks, powers = x.reshape(-1, _BLOCK), _powers(x)
    numbers, codes = np.empty((len(found), len(blocks)), np.float32), np.empty(blocks.shape, np.uint8)
    shape = (_BLOCK, LANES)
    lanes = _Lanes(
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.uint8),
        np.zeros((STATE_ROWS, LANES), np.float32),
    )
    for first in range(0, len(blocks), LANES):
        count = _gather(blocks, imatrix, powers, first, lanes.x, lanes.w)
        search(lanes)
        numbers[:, first : first + count] = lanes.state[found, :count]
        codes[first : first + count] = lanes.levels.T[:count]
    return numbers, codes


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
