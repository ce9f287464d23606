"""How the numbers of an IQ1 sub-block are best split in three: those that become -1, those that become 0, those that become 1.

The numbers being sorted, a split is two places. All are tried, with every choice of shifts, by running sums of weighted numbers and
of weights: the split of the greatest ``products ** 2 / squares`` wins, the first of equals. 16 sub-blocks stand side by side, and
what is compared is chosen without a branch, so that one instruction serves several.

In the arrays of the loops, which are flat, LANES numbers make a row. ``sums`` has 2 (IQ1_S) or 4 rows (IQ1_M) a place, from the
empty sum on. ``kept`` is room. ``found`` has two rows, the best score and its scale. ``split``, int32 of one row, is how many
numbers become -1, plus 256 times the place from which they become 1, plus 65536 times a bit for each 8 elements that are moved
down; -1 where nothing was found.

Source: the searches within ``quantize_row_iq1_s_impl`` and ``quantize_row_iq1_m_impl``, ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Floats
from impl.blocks.kernel import inner

LANES = 16
DELTA = np.float32(0.125)

_ZERO, _ONE = np.float32(0), np.float32(1)
_LOWEST = np.float32(-np.finfo(np.float32).max)
# What -1 and 1 stand for where they are moved up, and where they are moved down.
_UP_LOW, _UP_HIGH = DELTA - _ONE, DELTA + _ONE
_DOWN_LOW, _DOWN_HIGH = -DELTA - _ONE, _ONE - DELTA
# What the squares of a number change by where it goes from 0 to -1, and from 1 to 0.
_UP_FIRST, _UP_SECOND = np.float32(0.75), np.float32(-1.25)
_DOWN_FIRST, _DOWN_SECOND = np.float32(1.25), np.float32(-0.75)


@inner
def _start(found: Floats, split: npt.NDArray[np.int32]) -> None:
    for lane in range(LANES):
        found[lane] = _LOWEST
        split[lane] = -1


@inner
def _beats(products: np.float32, squares: np.float32, score: np.float32) -> bool:
    return bool((squares > _ZERO) & (products * products > score * squares))


@inner
def search_whole(sums: Floats, kept: Floats, found: Floats, split: npt.NDArray[np.int32]) -> None:
    """Try splits where all 32 elements have one shift. Rows of ``sums``: of weighted numbers, of weights. ``kept``: 138 rows."""
    _start(found, split)
    _weigh_high(sums, kept)
    for low in range(33):
        _weigh_low(sums, low, kept)
        for high in range(low, 33):
            at, ones, minus_ones = 2 * LANES * high, 4 * LANES * high, 132 * LANES
            up, down = np.int32(low | high << 8), np.int32(low | high << 8 | 15 << 16)
            for lane in range(LANES):
                score, scale, where = found[lane], found[LANES + lane], split[lane]
                middle = (sums[at + lane] - kept[minus_ones + 4 * LANES + lane]) * DELTA
                square = (sums[at + LANES + lane] - kept[minus_ones + 5 * LANES + lane]) * DELTA * DELTA
                products = kept[minus_ones + lane] + middle + kept[ones + lane]
                squares = kept[minus_ones + 2 * LANES + lane] + square + kept[ones + 2 * LANES + lane]
                wins = _beats(products, squares, score)
                fitted = products / squares
                scale, score, where = fitted if wins else scale, fitted * products if wins else score, up if wins else where
                products = kept[minus_ones + LANES + lane] - middle + kept[ones + LANES + lane]
                squares = kept[minus_ones + 3 * LANES + lane] + square + kept[ones + 3 * LANES + lane]
                wins = _beats(products, squares, score)
                fitted = products / squares
                scale, score, where = fitted if wins else scale, fitted * products if wins else score, down if wins else where
                found[lane], found[LANES + lane], split[lane] = score, scale, where


@inner
def _weigh_high(sums: Floats, kept: Floats) -> None:
    for high in range(33):
        at, to = 2 * LANES * high, 4 * LANES * high
        for lane in range(LANES):
            products = sums[64 * LANES + lane] - sums[at + lane]
            squares = sums[65 * LANES + lane] - sums[at + LANES + lane]
            kept[to + lane] = products * _UP_HIGH
            kept[to + LANES + lane] = products * _DOWN_HIGH
            kept[to + 2 * LANES + lane] = squares * _UP_HIGH * _UP_HIGH
            kept[to + 3 * LANES + lane] = squares * _DOWN_HIGH * _DOWN_HIGH


@inner
def _weigh_low(sums: Floats, low: int, kept: Floats) -> None:
    at, to = 2 * LANES * low, 132 * LANES
    for lane in range(LANES):
        products, squares = sums[at + lane], sums[at + LANES + lane]
        kept[to + lane] = products * _UP_LOW
        kept[to + LANES + lane] = products * _DOWN_LOW
        kept[to + 2 * LANES + lane] = squares * _UP_LOW * _UP_LOW
        kept[to + 3 * LANES + lane] = squares * _DOWN_LOW * _DOWN_LOW
        kept[to + 4 * LANES + lane] = products
        kept[to + 5 * LANES + lane] = squares


@inner
def search_halves(sums: Floats, kept: Floats, found: Floats, split: npt.NDArray[np.int32]) -> None:
    """Try splits where each half of 8 elements has its own shift.

    Rows of ``sums``: of the first half's weighted numbers, the second's, and of their weights. ``kept``: 10 rows.
    """
    _start(found, split)
    for low in range(17):
        _weigh_halves(sums, 4 * LANES * low, kept)
        for high in range(low, 17):
            at = 4 * LANES * high
            for lane in range(LANES):
                score, scale, where = found[lane], found[LANES + lane], split[lane]
                first, second = kept[8 * LANES + lane] + sums[at + lane], kept[9 * LANES + lane] + sums[at + LANES + lane]
                up, down = kept[lane] - first, kept[LANES + lane] - first
                up_2, down_2 = kept[4 * LANES + lane] - second, kept[5 * LANES + lane] - second
                square, square_2 = sums[at + 2 * LANES + lane], sums[at + 3 * LANES + lane]
                ups, downs = kept[2 * LANES + lane] + square * _UP_SECOND, kept[3 * LANES + lane] + square * _DOWN_SECOND
                ups_2, downs_2 = kept[6 * LANES + lane] + square_2 * _UP_SECOND, kept[7 * LANES + lane] + square_2 * _DOWN_SECOND
                for choice in range(4):
                    products = (down if choice & 2 else up) + (down_2 if choice & 1 else up_2)
                    squares = (downs if choice & 2 else ups) + (downs_2 if choice & 1 else ups_2)
                    wins = _beats(products, squares, score)
                    fitted = products / squares
                    scale, score = fitted if wins else scale, fitted * products if wins else score
                    where = np.int32(low | high << 8 | (choice >> 1 | (choice & 1) << 1) << 16) if wins else where
                found[lane], found[LANES + lane], split[lane] = score, scale, where


@inner
def _weigh_halves(sums: Floats, at: int, kept: Floats) -> None:
    """Keep for each half four rows of what does not depend on the second place, and the weighted numbers at the first."""
    for half in range(2):
        to = 4 * LANES * half
        for lane in range(LANES):
            products = sums[(64 + half) * LANES + lane]
            squares = sums[(66 + half) * LANES + lane]
            moved = sums[at + (2 + half) * LANES + lane]
            kept[to + lane] = products * _UP_HIGH
            kept[to + LANES + lane] = products * _DOWN_HIGH
            kept[to + 2 * LANES + lane] = squares * _UP_HIGH * _UP_HIGH + moved * _UP_FIRST
            kept[to + 3 * LANES + lane] = squares * _DOWN_HIGH * _DOWN_HIGH + moved * _DOWN_FIRST
            kept[(8 + half) * LANES + lane] = sums[at + half * LANES + lane]
