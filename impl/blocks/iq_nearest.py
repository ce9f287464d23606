"""The grid point next to some elements, among the neighbours of what they round to.

The weighted distance of a neighbour is a sum over its elements, and what an element adds depends on its code alone. So this is
worked out once for each code, at all scales side by side; a distance is then a few look-ups, added in ggml's order.

Source: ``iq2_find_best_neighbour`` and ``iq3_find_best_neighbour`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Floats
from impl.blocks.iq_grids import codes
from impl.blocks.iq_neighbours import neighbours
from impl.blocks.kernel import inner

LANES = 32  # room for the scales tried at a time

_ONE = np.float32(1)
_TWO = np.float32(2)
_ZERO = np.float32(0)
_NONE = np.uint64(0)
_EIGHT = np.uint64(8)
_FOUR = np.uint64(4)
_FIRST = np.uint64(1)  # numba keeps an index free of the test for negative ones only where all of it is unsigned
_STEP = np.uint64(LANES)
_SHIFT = np.uint64(32)
_PLACE = np.uint64(0xFFFFFFFF)
_TOO_FAR = np.uint64(0x7F7FFFFF << 32)  # the largest float32, as a key

Indices = npt.NDArray[np.uint16]
Unsigned = np.uint64 | int


class Grid(NamedTuple):
    """A grid as the search uses it, flat.

    ``points``: magnitudes, odd numbers. ``kmap`` and ``lists``: see ``iq_neighbours``. ``offsets``: for each element of each point
    where in the terms those for its code start.
    """

    points: Floats
    kmap: npt.NDArray[np.int32]
    lists: Indices
    offsets: Indices


@cache
def searched(name: str) -> Grid:
    """Give the grid of type ``name``."""
    of = codes(name)
    rows = (3 if of.shape[1] == 8 else 8) * np.arange(of.shape[1]) + of
    offsets = (LANES * rows).astype(np.uint16)
    return Grid((2 * of + 1).astype(np.float32).reshape(-1), *neighbours(name), offsets.reshape(-1))


@inner
def fill_terms(  # noqa: PLR0913, PLR0917 - arrays in a tuple are counted up and down at each call
    x: Floats, root: Floats, first: int, tried: Floats, block: int, lanes: int, size: int, terms: Floats
) -> None:
    """Work out what each of ``size`` elements from ``first`` on adds to a distance if it has a code.

    ``terms``: LANES for each code of each element. ``tried``: (sub-blocks, 2, LANES), of which the second ones are the scales.
    """
    to, row = np.uint64(0), np.uint64(block)
    for i in range(first, first + size):
        magnitude, weight = x[np.uint64(i)], root[np.uint64(i)]
        q = _ONE
        for _ in range(3 if size == 8 else 8):
            for lane in range(np.uint64(lanes)):
                apart = tried[row, 1, lane] * q - magnitude
                terms[to + lane] = weight * apart * apart
            q += _TWO
            to += _STEP


@inner
def _key(distance: np.float32, at: Unsigned) -> Unsigned:
    """Give a number that orders by distance, then by place. No distance is negative, so its bits order as it does, NaN last."""
    return np.uint64(np.float32(distance).view(np.uint32)) << _SHIFT | at


@inner
def _best_of_8(start: Unsigned, lane: Unsigned, lists: Indices, offsets: Indices, terms: Floats) -> Unsigned:
    best: Unsigned = _TOO_FAR
    for at in range(start, start + np.uint64(lists[start - _FIRST])):
        row = _EIGHT * np.uint64(lists[at])
        distance = _ZERO  # 0 + -0 is 0: an importance of -0 gives terms of -0
        for i in range(_NONE, _EIGHT):
            distance += terms[offsets[row + i] + lane]
        best = min(best, _key(distance, at))
    return best


@inner
def _best_of_4(start: Unsigned, lane: Unsigned, lists: Indices, offsets: Indices, terms: Floats) -> Unsigned:
    best: Unsigned = _TOO_FAR
    for at in range(start, start + np.uint64(lists[start - _FIRST])):
        row = _FOUR * np.uint64(lists[at])
        distance = _ZERO  # 0 + -0 is 0: an importance of -0 gives terms of -0
        for i in range(_NONE, _FOUR):
            distance += terms[offsets[row + i] + lane]
        best = min(best, _key(distance, at))
    return best


@inner
def best_neighbour(kmap_entry: int, lane: Unsigned, size: int, lists: Indices, offsets: Indices, terms: Floats) -> int:
    """Give the nearest neighbour at one scale, of equally near ones the first; -1 where none is within the range of float32.

    ``kmap_entry``: the negative number that leads to the list.
    """
    start = np.uint64(-kmap_entry)
    best = _best_of_8(start, lane, lists, offsets, terms) if size == 8 else _best_of_4(start, lane, lists, offsets, terms)
    return -1 if best == _TOO_FAR else int(lists[best & _PLACE])
