"""The grid point next to some elements, among the neighbours of what they round to.

The weighted distance of a neighbour is a sum over its elements, and what an element adds depends on its code alone. So this is
worked out once for each code, at all scales side by side; a distance is then a few look-ups, added in ggml's order. Elements mostly
round to the same point at some scales in a row, which have one list of neighbours: it is gone through for all of them at once.

Source: ``iq2_find_best_neighbour`` and ``iq3_find_best_neighbour`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir  # type: ignore[attr-defined]  # the llvmlite that numba itself works with
from numba.extending import intrinsic

from impl.blocks.codec import Floats
from impl.blocks.iq_grids import codes
from impl.blocks.iq_neighbours import neighbours
from impl.blocks.kernel import inner

LANES = 32  # room for the scales tried at a time
WIDTH = 8  # of these, for how many neighbours are looked at together
TERMS = 32 * LANES + WIDTH  # room for the terms; the last ones are read together with what is behind them

_ONE = np.float32(1)
_TWO = np.float32(2)
_STEP = np.uint64(LANES)

Indices = npt.NDArray[np.uint16]


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


def _nearest_of(size: int) -> Any:
    """Make the loop over a list of neighbours of ``size`` elements: vector instructions, which numba would not find in a loop."""

    def nearest(_context: Any, lists: Any, start: Any, offsets: Any, terms: Any, lane: Any, best: Any) -> Any:
        return types.void(lists, start, offsets, terms, lane, best), partial(_generate, size)

    return intrinsic(nearest)


def _generate(size: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Keep for each lane the smallest distance and its point, the first of equals; a NaN is never smaller."""
    lists, offsets, terms, best = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2, 3, 5))
    start, lane = arguments[1], arguments[4]
    floats, ints, long = ir.VectorType(ir.FloatType(), WIDTH), ir.VectorType(ir.IntType(32), WIDTH), ir.IntType(64)

    def read(table: Any, place: Any) -> Any:
        return builder.zext(builder.load(builder.gep(table, [place])), long)

    room: Any = cgutils.alloca_once_value
    smallest = room(builder, ir.Constant(floats, [float(np.finfo(np.float32).max)] * WIDTH))
    nearest = room(builder, ir.Constant(ints, [-1] * WIDTH))
    with cgutils.for_range(builder, read(lists, builder.sub(start, long(1)))) as loop:
        point = read(lists, builder.add(start, loop.index))
        distance = ir.Constant(floats, [0.0] * WIDTH)  # 0 + -0 is 0: an importance of -0 gives terms of -0
        for i in range(size):
            term = builder.add(read(offsets, builder.add(builder.mul(point, long(size)), long(i))), lane)
            row = builder.bitcast(builder.gep(terms, [term]), floats.as_pointer())
            distance = builder.fadd(distance, builder.load(row, align=4))
        closer = builder.fcmp_ordered("<", distance, builder.load(smallest))
        one = builder.insert_element(ir.Constant(ints, ir.Undefined), builder.trunc(point, ir.IntType(32)), ir.IntType(32)(0))
        points = builder.shuffle_vector(one, ir.Constant(ints, ir.Undefined), ir.Constant(ints, [0] * WIDTH))
        builder.store(builder.select(closer, distance, builder.load(smallest)), smallest)
        builder.store(builder.select(closer, points, builder.load(nearest)), nearest)
    builder.store(builder.load(nearest), builder.bitcast(best, ints.as_pointer()), align=4)
    return context.get_dummy_value()


_nearest_of_8, _nearest_of_4 = _nearest_of(8), _nearest_of(4)


@inner
def best_neighbours(
    kmap_entry: int, lane: int, size: int, lists: Indices, offsets: Indices, terms: Floats, best: npt.NDArray[np.int32]
) -> None:
    """Give the nearest neighbours at WIDTH scales from ``lane`` on, of equally near ones the first.

    ``kmap_entry``: the negative number that leads to the list. ``best``: int32 (WIDTH,), points; -1 where none is within the range
    of float32. The loop takes places of 64 bits alone.
    """
    if size == 8:
        _nearest_of_8(lists, np.int64(-kmap_entry), offsets, terms, np.int64(lane), best)
    else:
        _nearest_of_4(lists, np.int64(-kmap_entry), offsets, terms, np.int64(lane), best)
