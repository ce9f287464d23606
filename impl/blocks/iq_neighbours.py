"""For each point that is not in a grid, the grid points near it: where the IQ quantizers look when rounding leaves the grid.

Source: ``iq2xs_init_impl`` and ``iq3xs_init_impl`` in ggml/src/ggml-quants.c, which sort the whole grid for each point. Here
the distances to all grid points are sums of two table entries, and only the nearest few shells are picked out.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.iq_grids import codes
from impl.blocks.kernel import inner, kernel

# How many different distances count as near: ggml's ``nwant``.
_SHELLS = {"IQ2_XXS": 2, "IQ2_XS": 2, "IQ2_S": 1, "IQ1_S": 3, "IQ3_XXS": 2, "IQ3_S": 3}

_NOT_A_POINT = np.int32(-(2**31))
_FAR = 255


class Neighbours(NamedTuple):
    """Where a point is in its grid, or which grid points are near.

    A point's place is its codes side by side, 2 bits each for 8 elements, 3 bits each for 4, element 0 lowest. ``kmap``, int32:
    at a point's place its index in the grid, or, for a point not in the grid, ``-1 - start`` of its list. ``lists``, uint16: at
    ``start`` the length of a list, then the indices of the grid points, by distance and at one distance by index. Places with
    a code that no quantizer makes (3, of 2 bits) hold -2**31.
    """

    kmap: npt.NDArray[np.int32]
    lists: npt.NDArray[np.uint16]


@cache
def neighbours(name: str) -> Neighbours:
    """Give the neighbours in the grid of type ``name``, one of ``iq_grids.grid``'s. Made once in a process."""
    points = codes(name)
    size = points.shape[1]
    levels, bits = (3, 2) if size == 8 else (8, 3)
    kmap = np.full(1 << bits * size, _NOT_A_POINT, np.int32)
    kmap[_side_by_side(points, bits)] = np.arange(len(points))
    places = _side_by_side(_every_point(levels, size), bits)
    low, high = _distances(points[:, : size // 2], levels), _distances(points[:, size // 2 :], levels)
    lists = _fill(low, high, places, kmap, _SHELLS[name])
    kmap.setflags(write=False)
    lists.setflags(write=False)
    return Neighbours(kmap, lists)


def _every_point(levels: int, size: int) -> npt.NDArray[np.uint8]:
    """Give the codes of all points, element 0 running fastest: shape (levels ** size, size)."""
    numbers = np.arange(levels**size)[:, np.newaxis]
    return (numbers // levels ** np.arange(size) % levels).astype(np.uint8)


def _side_by_side(points: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.int32]:
    places: npt.NDArray[np.int32] = (points.astype(np.int32) << bits * np.arange(points.shape[1], dtype=np.int32)).sum(
        axis=1, dtype=np.int32
    )
    return places


def _distances(half: npt.NDArray[np.uint8], levels: int) -> npt.NDArray[np.uint8]:
    """Give the squared distance, in codes, of every half of a point to that half of each grid point: (halves, points).

    Two halves' sum is at most 4 * 49, which fits 8 bits.
    """
    halves = _every_point(levels, half.shape[1]).astype(np.int16)
    apart = halves[:, np.newaxis, :] - half.astype(np.int16)
    squared: npt.NDArray[np.uint8] = (apart * apart).sum(axis=2).astype(np.uint8)
    return squared


@inner
def _nearest(distance: npt.NDArray[np.uint8], shells: int, out: npt.NDArray[np.uint16]) -> int:
    """Write the indices at the ``shells`` smallest different distances, by distance, then by index; give their number."""
    found = 0
    shell = np.uint8(_FAR)
    for j in range(len(distance)):
        shell = distance[j] if distance[j] < shell else shell
    for _ in range(shells):
        beyond = np.uint8(_FAR)
        for j in range(len(distance)):
            if distance[j] == shell:
                out[found] = j
                found += 1
            elif distance[j] > shell:
                beyond = distance[j] if distance[j] < beyond else beyond
        if beyond == _FAR:
            break
        shell = beyond
    return found


@kernel
def _fill(
    low: npt.NDArray[np.uint8],
    high: npt.NDArray[np.uint8],
    places: npt.NDArray[np.int32],
    kmap: npt.NDArray[np.int32],
    shells: int,
) -> npt.NDArray[np.uint16]:
    """Give the lists, and write the places that are not in the grid into ``kmap``."""
    points = low.shape[1]
    distance = np.empty(points, np.uint8)
    lists = np.empty(1 << 16, np.uint16)
    end = 0
    for i in range(len(places)):
        if kmap[places[i]] >= 0:
            continue
        first, second = low[i % len(low)], high[i // len(low)]
        for j in range(points):
            distance[j] = first[j] + second[j]
        if end + points >= len(lists):
            longer = np.empty(2 * len(lists), np.uint16)
            for j in range(end):  # a slice set from another takes seconds to compile
                longer[j] = lists[j]
            lists = longer
        kmap[places[i]] = -1 - end
        length = _nearest(distance, shells, lists[end + 1 :])
        lists[end] = length
        end += 1 + length
    return lists[:end].copy()
