"""The quantizers of IQ1_S and IQ1_M: sub-blocks of 32 or 16 are split and put on the grid, then super-blocks get their scale.

Source: ``quantize_row_iq1_s_impl`` and ``quantize_row_iq1_m_impl``, ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Bytes, Floats
from impl.blocks.half import f32_to_f16_bits
from impl.blocks.iq1_points import BEYOND, NO_POINT, NO_SCALE, Points, find_point, points, value
from impl.blocks.iq1_splits import LANES, search_halves, search_whole
from impl.blocks.kernel import inner, kernel
from impl.blocks.nearest import nearest
from impl.errors import InputError

_NOTHING_S, _NOTHING_M = np.float32(1e-12), np.float32(1e-7)  # a sub-block whose numbers are all below has scale 0
_STORED_S, _STORED_M = np.float32(1.125), np.float32(1.1125)  # the stored scale over the one found
_ZERO, _ONE, _HALF, _TWO = np.float32(0), np.float32(1), np.float32(0.5), np.float32(2)
_FIFTEEN = np.float32(15)
_SUPER = np.float32(256)
_NO_IMATRIX = np.empty(0, np.float32)

_WHY = {
    NO_POINT: "no point of the grid is at a finite distance from them: ggml aborts",
    NO_SCALE: "their scale is no number: ggml aborts",
    BEYOND: "no near point of the grid is at a finite distance from them: ggml then reads on beyond its input",
}

Integers = npt.NDArray[np.int32]


class Work(NamedTuple):
    """Sub-blocks side by side; ``size``, 32 or 16, is that of a sub-block.

    ``order``, of shape (LANES, size): the elements as sorted. ``sums``, ``kept``, ``found`` and ``split``: what the search of
    ``iq1_splits`` takes and gives. For each sub-block: ``scale``, and ``minus``, bits for the eights that are moved down. For each
    8 elements: ``place``, their codes side by side, and ``point``, the index of the grid's. Integers are int32.
    """

    order: Integers
    sums: Floats
    kept: Floats
    found: Floats
    split: Integers
    scale: Floats
    minus: Integers
    place: Integers
    point: Integers


def quantize_iq1_s(x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    """Quantize rows ``x``, shape (rows, cols), to ``raw``, uint8 of shape (super-blocks, 50). Raises InputError."""
    _quantize(x, imatrix, raw, 32)


def quantize_iq1_m(x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    """Quantize rows ``x``, shape (rows, cols), to ``raw``, uint8 of shape (super-blocks, 56). Raises InputError."""
    _quantize(x, imatrix, raw, 16)


def _quantize(x: Floats, imatrix: Floats | None, raw: Bytes, size: int) -> None:
    columns = (_NO_IMATRIX if imatrix is None else imatrix).view()
    columns.flags.writeable = False  # as ``x`` is: one kind of array, compiled for once
    loop = _quantize_whole if size == 32 else _quantize_halves
    at, why = loop(x.reshape(-1), columns, points(size * LANES), _room(size), raw)
    if why:
        row, col = divmod(at, x.shape[1])
        raise InputError(
            f"row {row}, block {col // 256}, elements {col % 256} to {col % 256 + size - 1}: {_WHY[why]};"
            f" the greatest is {np.abs(x.reshape(-1)[at : at + size]).max():g}: scale the rows or the imatrix down"
        )


def _room(size: int) -> Work:
    rows, eights = 64 // size * (size + 1), size // 8 * LANES

    def integers(*shape: int) -> Integers:
        return np.zeros(shape, np.int32)

    def floats(*shape: int) -> Floats:
        return np.zeros(shape, np.float32)

    return Work(
        order=integers(LANES, size),
        sums=floats(rows * LANES),
        kept=floats(138 * LANES),
        found=floats(2 * LANES),
        split=integers(LANES),
        scale=floats(LANES),
        minus=integers(LANES),
        place=integers(eights),
        point=integers(eights),
    )


@inner
def _weigh(x: Floats, imatrix: Floats, at: int, lanes: int, size: int, weight: Floats) -> None:
    """Give the weights of ``lanes`` sub-blocks: squares, or importances times the root of the square and twice the mean square."""
    square = _ZERO
    for own in range(0, lanes * size, size):
        first = at + own
        if len(imatrix) and first % 256 == 0:
            square = _twice_the_mean_square(x, first)
        column = first % len(imatrix) if len(imatrix) else 0
        for i in range(size):
            number = x[first + i] * x[first + i]
            weight[own + i] = imatrix[column + i] * np.sqrt(square + number) if len(imatrix) else number


@inner
def _twice_the_mean_square(x: Floats, first: int) -> np.float32:
    total = _ZERO
    for i in range(first, first + 256):
        total += x[i] * x[i]
    return _TWO * total / _SUPER


@inner
def _sort(x: Floats, at: int, lanes: int, order: Integers) -> None:
    """Sort the elements of each sub-block by number; equal ones stay as they stand."""
    size = order.shape[1]
    for lane in range(lanes):
        first = at + size * lane
        for i in range(size):
            place, number = i, x[first + i]
            while place > 0 and x[first + order[lane, place - 1]] > number:
                order[lane, place] = order[lane, place - 1]
                place -= 1
            order[lane, place] = i


@inner
def _add_up_whole(x: Floats, at: int, lanes: int, order: Integers, weight: Floats, sums: Floats) -> None:
    for lane in range(lanes):
        products, weights = _ZERO, _ZERO
        for place in range(32):
            own, to = 32 * lane + order[lane, place], 2 * LANES * (place + 1) + lane
            products += weight[own] * x[at + own]
            weights += weight[own]
            sums[to], sums[to + LANES] = products, weights


@inner
def _add_up_halves(x: Floats, at: int, order: Integers, weight: Floats, sums: Floats) -> None:
    for lane in range(LANES):
        for place in range(16):
            i, to = order[lane, place], 4 * LANES * (place + 1) + lane
            for row in range(4):
                sums[to + row * LANES] = sums[to + (row - 4) * LANES]
            half, own = i >> 3, 16 * lane + i
            sums[to + half * LANES] += weight[own] * x[at + own]
            sums[to + (2 + half) * LANES] += weight[own]


@inner
def _take_splits(x: Floats, at: int, lanes: int, least: np.float32, work: Work) -> None:
    """Give each element its code; a negative scale is turned, and with it codes and shifts."""
    size = work.order.shape[1]
    for lane in range(lanes):
        greatest = _ZERO
        for i in range(size):
            magnitude = np.abs(x[at + size * lane + i])
            greatest = greatest if greatest > magnitude else magnitude
        split = -1 if greatest < least else work.split[lane]
        scale = work.found[LANES + lane]
        turn = scale < _ZERO
        work.split[lane] = split
        work.scale[lane] = _ZERO if split < 0 else -scale if turn else scale
        work.minus[lane] = 0 if split < 0 else split >> 16 ^ ((1 << (size >> 3)) - 1 if turn else 0)
        for eight in range(size * lane >> 3, size * (lane + 1) >> 3):
            work.place[eight] = work.point[eight] = 0
        for place in range(size):
            i = work.order[lane, place]
            code = (place >= split & 255) + (place >= split >> 8 & 255)
            work.place[size * lane + i >> 3] |= (2 - code if turn else code) << 2 * (i & 7)


@inner
def _find_points(x: Floats, at: int, lanes: int, grid: Points, work: Work) -> tuple[int, int]:
    """Find the point for each 8 codes, and the scale that fits them where any was off the grid.

    Gives the place of a sub-block for which that is impossible, and why, or 0.
    """
    size = work.order.shape[1]
    for lane in range(lanes):
        if work.split[lane] < 0:
            continue
        scale, off_grid = work.scale[lane], False
        for own in range(size * lane, size * (lane + 1), 8):
            found = int(grid.kmap[work.place[own >> 3]])
            if found < 0:
                off_grid = True
                minus = work.minus[lane] >> (own - size * lane >> 3) & 1
                found = find_point(x, at, own, scale, minus, -found, grid)
                if found < 0:
                    return at + size * lane, -found
            work.point[own >> 3] = found
        if off_grid:
            work.scale[lane] = _fit(x, at, lane, grid, work)
        if not work.scale[lane] >= _ZERO:
            return at + size * lane, NO_SCALE
    return 0, 0


@inner
def _fit(x: Floats, at: int, lane: int, grid: Points, work: Work) -> np.float32:
    """Give the scale of least squares for the points found, or the old one where that is not positive."""
    size = work.order.shape[1]
    products, squares = _ZERO, _ZERO
    for own in range(size * lane, size * (lane + 1)):
        level = value(grid.codes[work.point[own >> 3], own & 7], work.minus[lane] >> (own - size * lane >> 3) & 1)
        weighted = grid.weight[own] * level
        products += weighted * x[at + own]
        squares += weighted * level
    return products / squares if products > _ZERO and squares > _ZERO else work.scale[lane]


@inner
def _greatest(scale: Floats, first: int, count: int) -> np.float32:
    greatest = _ZERO
    for lane in range(first, first + count):
        greatest = greatest if greatest > scale[lane] else scale[lane]
    return greatest


@inner
def _code(scale: np.float32, inverse: np.float32) -> int:
    return max(0, min(7, int(nearest(_HALF * (inverse * scale - _ONE)))))


@kernel
def _quantize_whole(x: Floats, imatrix: Floats, grid: Points, work: Work, raw: Bytes) -> tuple[int, int]:
    """Quantize all of ``x`` for IQ1_S; give the place of a sub-block that cannot be, and why, or 0."""
    for at in range(0, len(x), 32 * LANES):
        lanes = min(LANES, (len(x) - at) // 32)
        _weigh(x, imatrix, at, lanes, 32, grid.weight)
        _sort(x, at, lanes, work.order)
        _add_up_whole(x, at, lanes, work.order, grid.weight, work.sums)
        search_whole(work.sums, work.kept, work.found, work.split)
        _take_splits(x, at, lanes, _NOTHING_S, work)
        place, why = _find_points(x, at, lanes, grid, work)
        if why:
            return place, why
        for first in range(0, lanes, 8):
            _store_iq1_s(work, first, raw, at // 256 + first // 8)
    return 0, 0


@inner
def _store_iq1_s(work: Work, first: int, raw: Bytes, record: int) -> None:
    """Write one super-block; without a scale its shifts are not written, either."""
    greatest = _greatest(work.scale, first, 8)
    d = greatest / _FIFTEEN
    half = f32_to_f16_bits(d * _STORED_S) if greatest != _ZERO else np.uint16(0)
    raw[record, 0], raw[record, 1] = half & 255, half >> 8
    inverse = _ONE / d
    for block in range(8):
        word = 0
        for group in range(4):
            point = work.point[4 * (first + block) + group]
            raw[record, 2 + 4 * block + group] = point & 255
            word |= (point >> 8) << 3 * group
        if greatest != _ZERO:
            word |= _code(work.scale[first + block], inverse) << 12 | (0x8000 if work.minus[first + block] else 0)
        raw[record, 34 + 2 * block], raw[record, 35 + 2 * block] = word & 255, word >> 8


@kernel
def _quantize_halves(x: Floats, imatrix: Floats, grid: Points, work: Work, raw: Bytes) -> tuple[int, int]:
    """Quantize all of ``x`` for IQ1_M; give the place of a sub-block that cannot be, and why, or 0."""
    for at in range(0, len(x), 16 * LANES):
        _weigh(x, imatrix, at, LANES, 16, grid.weight)
        _sort(x, at, LANES, work.order)
        _add_up_halves(x, at, work.order, grid.weight, work.sums)
        search_halves(work.sums, work.kept, work.found, work.split)
        _take_splits(x, at, LANES, _NOTHING_M, work)
        place, why = _find_points(x, at, LANES, grid, work)
        if why:
            return place, why
        _store_iq1_m(x, at, grid, work, raw)
    return 0, 0


@inner
def _store_iq1_m(x: Floats, at: int, grid: Points, work: Work, raw: Bytes) -> None:
    """Write one super-block. Its scale is fitted once more, to all codes; without one neither these nor shifts are written."""
    record, greatest = at // 256, _greatest(work.scale, 0, 16)
    d = greatest / _FIFTEEN
    inverse = _ONE / d
    for i in range(48, 56):
        raw[record, i] = 0
    products, squares = _ZERO, _ZERO
    for block in range(16):
        minus = work.minus[block] if greatest != _ZERO else 0
        code = _code(work.scale[block], inverse) if greatest != _ZERO else 0
        word = 48 + block // 4 * 2
        raw[record, word] |= code << 3 * (block % 4) & 255
        raw[record, word + 1] |= code << 3 * (block % 4) >> 8
        first, second = work.point[2 * block], work.point[2 * block + 1]
        raw[record, 2 * block], raw[record, 2 * block + 1] = first & 255, second & 255
        raw[record, 32 + block] = first >> 8 | (minus & 1) << 3 | second >> 8 << 4 | (minus >> 1) << 7
        for own in range(16 * block, 16 * block + 16):
            code_of = grid.codes[work.point[own >> 3], own & 7]
            level = value(code_of, minus >> (own >> 3 & 1) & 1) * np.float32(2 * code + 1)
            weighted = grid.weight[own] * level
            products += weighted * x[at + own]
            squares += weighted * level
    d = products / squares if squares > _ZERO else d
    half = f32_to_f16_bits(d * _STORED_M) if greatest != _ZERO else np.uint16(0)
    for i in range(4):
        raw[record, 49 + 2 * i] |= (half >> 4 * i & 15) << 4
