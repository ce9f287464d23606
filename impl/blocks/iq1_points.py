"""From the split of an IQ1 sub-block to points of the grid.

Source: ``iq1_find_best_neighbour2`` and the second part of ``quantize_row_iq1_s_impl`` and ``quantize_row_iq1_m_impl``,
ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Bytes, Floats
from impl.blocks.iq1_splits import DELTA
from impl.blocks.iq_grids import codes
from impl.blocks.iq_neighbours import neighbours
from impl.blocks.kernel import inner, kernel

# What makes a sub-block impossible; the numbers that the loops give.
NO_POINT, NO_SCALE, BEYOND = 1, 2, 3

_TOGETHER = 32  # how many points are measured at a time: no list is cut into a part that is vectorised and a rest
_LIST = 2048 + _TOGETHER
_ZERO, _ONE = np.float32(0), np.float32(1)
_GREATEST = np.finfo(np.float32).max


Integers = npt.NDArray[np.uint16]


class Points(NamedTuple):
    """The grid, and room for a search in it.

    ``codes``, uint8 of shape (2048, 8), 0 to 2; ``kmap`` and ``lists`` as in ``iq_neighbours.Neighbours``; ``places``, uint16: for
    each number in ``lists`` the place of that point, its codes side by side. ``weight``, float32: of all elements of the
    sub-blocks that are worked on. ``terms`` and ``distances``: what a code adds, and the distances of a list's points.
    """

    codes: Bytes
    kmap: npt.NDArray[np.int32]
    lists: Integers
    places: Integers
    weight: Floats
    terms: Floats
    distances: Floats


@cache
def _grid() -> tuple[Bytes, npt.NDArray[np.int32], Integers, Integers]:
    points, near = codes("IQ1_S"), neighbours("IQ1_S")
    place = (points.astype(np.uint16) << np.arange(0, 16, 2, dtype=np.uint16)).sum(axis=1, dtype=np.uint16)
    return points, near.kmap, near.lists, np.append(place[near.lists], np.zeros(_TOGETHER, np.uint16))


def points(elements: int) -> Points:
    """Give the grid of IQ1_S and IQ1_M, with room for sub-blocks of so many elements in all."""
    return Points(*_grid(), np.zeros(elements, np.float32), np.empty(24, np.float32), np.empty(_LIST + 8, np.float32))


@kernel
def value(code: int, minus: int) -> np.float32:
    """Give what a code stands for, moved up or down."""
    return np.float32(np.float32(code) - _ONE) + (-DELTA if minus else DELTA)


@inner
def find_point(x: Floats, at: int, own: int, scale: np.float32, minus: int, start: int, grid: Points) -> int:
    """Give the index of the near point of least weighted distance to 8 numbers of ``x``, the first of equals.

    The numbers stand from ``at + own`` on, their weights in ``grid.weight`` from ``own`` on; the near points are in
    ``grid.lists`` from ``start`` on. Gives ``-NO_POINT`` where no distance is below the largest float32, and ``-BEYOND`` where ggml
    reads what stands behind ``x``.
    """
    for i in range(8):
        for code in range(3):
            apart = scale * value(code, minus) - x[at + own + i]
            grid.terms[3 * i + code] = grid.weight[own + i] * apart * apart
    count = int(np.int32(grid.lists[start - 1]))
    _measure(grid.places, start, count, grid.terms, grid.distances)
    nearest = _first_least(grid.distances, count)
    return int(grid.lists[start + nearest]) if nearest >= 0 else _find_anywhere(x, at, own, scale, minus, grid)


@inner
def _pick(place: np.int32, i: int, terms: tuple[np.float32, np.float32, np.float32]) -> np.float32:
    """Give element i's term for its code in ``place``."""
    low_or_middle = terms[1] if place & 1 << 2 * i else terms[0]
    return terms[2] if place & 2 << 2 * i else low_or_middle


@inner
def _measure(places: Integers, start: int, count: int, terms: Floats, distances: Floats) -> None:
    """Write the weighted distance to each of ``count`` points and to some that follow, added up from element 0 on.

    ``terms``: three for each element, taken out of their array so that they stay in registers.
    """
    t = terms
    t0, t1, t2, t3 = (t[0], t[1], t[2]), (t[3], t[4], t[5]), (t[6], t[7], t[8]), (t[9], t[10], t[11])
    t4, t5, t6, t7 = (t[12], t[13], t[14]), (t[15], t[16], t[17]), (t[18], t[19], t[20]), (t[21], t[22], t[23])
    for j in range(-(-count // _TOGETHER) * _TOGETHER):
        place = np.int32(places[start + j])
        first = _pick(place, 0, t0) + _pick(place, 1, t1) + _pick(place, 2, t2) + _pick(place, 3, t3)
        distances[j] = first + _pick(place, 4, t4) + _pick(place, 5, t5) + _pick(place, 6, t6) + _pick(place, 7, t7)


@inner
def _first_least(distances: Floats, count: int) -> int:
    """Give the place of the first of the least of ``count`` distances; -1 where none is below the largest float32.

    Writes to the eight after them. NaN is no distance.
    """
    least = distances[_LIST:]
    for i in range(8):
        distances[count + i] = least[i] = _GREATEST
    for first in range(0, count, 8):
        for i in range(8):
            least[i] = distances[first + i] if distances[first + i] < least[i] else least[i]
    best = _GREATEST
    for i in range(8):
        best = min(best, least[i])
    if best == _GREATEST:
        return -1
    j = 0
    while distances[j] != best:
        j += 1
    return j


@inner
def _find_anywhere(x: Floats, at: int, own: int, scale: np.float32, minus: int, grid: Points) -> int:
    """Look through the whole grid, as ggml does: with the number at a point's index in place of the element's."""
    best, index = _GREATEST, -NO_POINT
    for point in range(len(grid.codes)):
        if at + own + point >= len(x):
            return -BEYOND
        distance = _ZERO
        for i in range(8):
            apart = scale * value(grid.codes[point, i], minus) - x[at + own + point]
            distance += grid.weight[own + i] * apart * apart
        if distance < best:
            best, index = distance, point
    return index
