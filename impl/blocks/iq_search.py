"""The search of the IQ2 and IQ3 quantizers: for each sub-block a scale, and for each few elements the grid point next to them.

A sub-block's magnitudes are rounded at up to 31 scales around its greatest one's. What falls off the grid goes to the best of
its neighbours. The scale that explains the weighted magnitudes best is taken, its points are looked up once more, and it is
fitted to them. The scales tried stand side by side in arrays, a lane each, so that each sum is added in ggml's order, all of
them at once. Each step goes through a whole block.

Source: ``quantize_row_iq2_xxs_impl``, ``_iq2_xs_impl``, ``_iq2_s_impl``, ``_iq3_xxs_impl`` and ``_iq3_s_impl`` in
ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Bytes, Floats
from impl.blocks.iq_nearest import LANES, TERMS, WIDTH, Grid, best_neighbours, fill_terms
from impl.blocks.iq_parts import Parts
from impl.blocks.iq_start import fitted_scale
from impl.blocks.kernel import inner, kernel
from impl.blocks.nearest import nearest

_QUARTER = np.float32(0.25)
_HALF = np.float32(0.5)
_ONE = np.float32(1)
_THREE = np.float32(3)
_MEAN = np.float32(256)
_LARGEST_CODE = np.float32(31)  # a sub-block's code c stands for 2 * c + 1
_LOWEST = np.int32(0)
_FINE = -1


class Plan(NamedTuple):
    """In what a type's search differs from the others'.

    ``size``: elements of a grid point; ``sub_block``: elements with one scale. ``top``: the grid's greatest magnitude over its
    smallest. ``tries``: that many scales on either side, ``step`` apart; ``lanes``: what is computed, at least all of them.
    ``least``: below it a sub-block is zeros. ``spread``: of the mean square in the weights; ``variance``: whether without an
    imatrix they have a share of it. ``free``: 8 signs are kept for 8 elements, not 7. ``fitted``: the scales tried are around
    a fitted one. ``again``: points on the grid are looked up again, too. ``stored``: the stored scale over the one found.
    ``closes_up``: what comes after a sub-block of zeros is stored in its place.
    """

    size: int
    sub_block: int
    top: np.float32
    tries: int
    lanes: int
    step: np.float32
    least: np.float32
    spread: np.float32
    variance: bool
    free: bool
    fitted: bool
    again: bool
    stored: np.float32
    closes_up: bool


class Work(NamedTuple):
    """One block, in 256 elements, its sub-blocks and its points.

    ``x``: magnitudes; ``weight``; ``root``: the weights' roots, by which distances are weighed.
    ``scales``; ``zeros``: whether a sub-block is taken for zeros; ``tried``: scales to be tried, inverse and plain, and ``sums``,
    of w * x * q and of w * q * q, both of shape (sub-blocks, 2, LANES).
    Flat, LANES for each element or point: ``q``, odd magnitudes; ``place``, rounded codes side by side; ``snapped``, the grid's
    points. ``terms``: see ``fill_terms``. ``chosen``: the points taken; ``held``: which are not looked up again.
    """

    x: Floats
    weight: Floats
    root: Floats
    scales: Floats
    zeros: npt.NDArray[np.bool_]
    tried: Floats
    sums: Floats
    q: Floats
    place: npt.NDArray[np.int32]
    snapped: npt.NDArray[np.int32]
    terms: Floats
    chosen: npt.NDArray[np.int32]
    held: npt.NDArray[np.bool_]


@inner
def _work(plan: Plan) -> Work:
    sub_blocks, points = 256 // plan.sub_block, 256 // plan.size
    return Work(
        np.empty(256, np.float32),
        np.empty(256, np.float32),
        np.empty(256, np.float32),
        np.empty(sub_blocks, np.float32),
        np.empty(sub_blocks, np.bool_),
        np.empty((sub_blocks, 2, LANES), np.float32),
        np.empty((sub_blocks, 2, LANES), np.float32),
        np.empty(256 * LANES, np.float32),
        np.empty(points * LANES, np.int32),
        np.empty(points * LANES, np.int32),
        np.zeros(TERMS, np.float32),
        np.empty(points, np.int32),
        np.empty(points, np.bool_),
    )


@inner
def _weigh(x: Floats, importance: Floats, plan: Plan, work: Work) -> None:
    weight, root = work.weight, work.root
    squares = np.float32(0)
    for i in range(256):
        squares += x[i] * x[i]
    variance = plan.spread * squares / _MEAN
    for i in range(256):
        square = x[i] * x[i]
        if len(importance):
            weight[i] = importance[i] * np.sqrt(variance + square)
        elif plan.variance:
            weight[i] = _QUARTER * variance + square
        else:
            weight[i] = square
    for i in range(256):
        root[i] = np.sqrt(weight[i])


@inner
def _fold(x: Floats, free: bool, work: Work, signs: Bytes) -> None:
    """Take the signs off. Where 7 signs are kept for 8 elements, an odd one out is given to the element that matters least."""
    magnitude, weight = work.x, work.weight
    for group in range(32):
        minus, count, first = 0, 0, 8 * group
        for i in range(8):
            negative = not x[first + i] >= 0
            magnitude[first + i] = -x[first + i] if negative else x[first + i]
            minus |= negative << i
            count += negative
        if count % 2 and not free:
            least, smallest = 0, weight[first] * x[first] * x[first]
            for i in range(1, 8):
                matter = weight[first + i] * x[first + i] * x[first + i]
                if matter < smallest:
                    least, smallest = i, matter
            magnitude[first + least] = -magnitude[first + least]
            minus ^= 1 << least
        signs[group] = minus if free else minus & 127


@inner
def _start(plan: Plan, work: Work) -> None:
    """Fill in each sub-block's first scale and those to be tried."""
    n = plan.sub_block
    for block in range(len(work.scales)):
        x = work.x[n * block : n * block + n]
        greatest = x[0]
        for i in range(1, n):
            greatest = greatest if greatest > x[i] else x[i]  # a NaN gives way to what comes after it
        zeros = greatest < plan.least
        scale = greatest / plan.top
        if plan.fitted and not zeros:
            scale = fitted_scale(x, work.weight[n * block : n * block + n])
            greatest = scale * _THREE
            zeros = greatest <= 0
        work.scales[block] = scale
        work.zeros[block] = zeros
        for lane in range(plan.lanes):
            work.tried[block, 0, lane] = (plan.top + np.float32(lane - plan.tries) * plan.step) / greatest
            work.tried[block, 1, lane] = _ONE / work.tried[block, 0, lane]


@inner
def _code(x: np.float32, inverse: np.float32, most: np.int32) -> np.int32:
    code = nearest(_HALF * (inverse * x - _ONE))
    code = code if code > _LOWEST else _LOWEST
    return code if code < most else most


@inner
def _round(plan: Plan, work: Work) -> None:
    """Round the magnitudes at each scale."""
    x, tried, q, place = work.x, work.tried, work.q, work.place
    bits, most = (2, np.int32(2)) if plan.size == 8 else (3, np.int32(7))
    lanes = np.uint64(plan.lanes)
    for i in range(256):
        block, shift = i // plan.sub_block, np.int32(bits * (i % plan.size))
        to, at = np.uint64(LANES * i), np.uint64(LANES * (i // plan.size))
        for lane in range(lanes):
            code = _code(x[i], tried[block, 0, lane], most)
            q[to + lane] = np.float32(np.int32(code + code + np.int32(1)))
            placed = np.int32(code << shift)
            place[at + lane] = placed | place[at + lane] if shift else placed


@inner
def _snap(plan: Plan, grid: Grid, work: Work) -> int:
    """Move what is off the grid to it, at each scale; give -1, or the first element of a point where ggml aborts."""
    x, root, tried, q, terms, place, index = work.x, work.root, work.tried, work.q, work.terms, work.place, work.snapped
    points, kmap, lists, offsets = grid
    size, best = plan.size, np.empty(WIDTH, np.int32)
    for k in range(256 // plan.size):
        first = k * plan.size
        block = first // plan.sub_block
        if work.zeros[block]:
            continue
        fill_terms(x, root, first, tried, block, plan.lanes, plan.size, terms)
        start, count = LANES * k, 2 * plan.tries + 1
        while count > 0:
            run = _run(place[start : start + count])
            found = int(kmap[np.uint32(place[start])])
            if found < 0:
                best_neighbours(found, start - LANES * k, plan.size, lists, offsets, terms, best)
            for lane in range(run):
                index[start + lane] = found if found >= 0 else best[lane]
                if index[start + lane] < 0:
                    return first
            if found < 0:
                _move(points, best[:run], size, q[LANES * first + start - LANES * k :])
            start, count = start + run, count - run
    return _FINE


@inner
def _run(place: npt.NDArray[np.int32]) -> int:
    """Count the scales from the first on at which the same codes are rounded to, at most WIDTH."""
    count = 1
    while count < min(WIDTH, len(place)) and place[count] == place[0]:
        count += 1
    return count


@inner
def _move(points: Floats, chosen: npt.NDArray[np.int32], size: int, q: Floats) -> None:
    """Write the magnitudes of the points chosen at some scales, LANES for each element."""
    for lane in range(len(chosen)):
        point = points[size * chosen[lane] : size * chosen[lane] + size]
        for i in range(size):
            q[LANES * i + lane] = point[i]


@inner
def _add(plan: Plan, work: Work) -> None:
    """Add up for each sub-block, in the elements' order at each scale, what tells how well the points fit."""
    x, weight, q, sums = work.x, work.weight, work.q, work.sums
    sums[:] = 0
    for i in range(256):
        block, at = i // plan.sub_block, np.uint64(LANES * i)
        w = weight[i]
        weighted = w * x[i]
        for lane in range(np.uint64(plan.lanes)):
            sums[block, 0, lane] += weighted * q[at + lane]
            sums[block, 1, lane] += w * q[at + lane] * q[at + lane]


@inner
def _pick(plan: Plan, kmap: npt.NDArray[np.int32], work: Work) -> None:
    """Take for each sub-block the scale that explains the magnitudes best, with its points; tell which of them are held."""
    each = plan.sub_block // plan.size
    place, index, chosen, held, sums, scales = work.place, work.snapped, work.chosen, work.held, work.sums, work.scales
    for block in range(len(scales)):
        best, picked = np.float32(0), -1
        for lane in range(2 * plan.tries + 1):
            products, squares = sums[block, 0, lane], sums[block, 1, lane]
            if squares > 0 and products * products > best * squares:
                scales[block] = products / squares
                best = scales[block] * products
                picked = lane
        off_grid = 0
        for k in range(each * block, each * block + each):
            at = LANES * k + picked
            chosen[k] = index[at] if picked >= 0 else 0
            held[k] = kmap[place[at]] >= 0 if picked >= 0 else not plan.again
            off_grid += not held[k]
        looked_at = not work.zeros[block] and scales[block] > 0 and (plan.fitted or off_grid > 0)
        for k in range(each * block, each * block + each):
            held[k] = not looked_at or (held[k] and not plan.again)


@inner
def _look_again(plan: Plan, grid: Grid, work: Work) -> int:
    """Look up the points at the scale picked; give -1, or the first element of a point where ggml aborts."""
    x, root, terms, chosen, held = work.x, work.root, work.terms, work.chosen, work.held
    bits, most = (2, np.int32(2)) if plan.size == 8 else (3, np.int32(7))
    tried, best = np.empty((1, 2, 1), np.float32), np.empty(WIDTH, np.int32)
    for k in range(len(chosen)):
        if held[k]:
            continue
        first = k * plan.size
        scale = work.scales[first // plan.sub_block]
        inverse = _ONE / scale
        place = 0
        for i in range(plan.size):
            place |= int(_code(x[first + i], inverse, most)) << bits * i
        found = int(grid.kmap[place])
        if found < 0:
            tried[0, 1, 0] = scale
            fill_terms(x, root, first, tried, len(tried) - 1, tried.shape[2], plan.size, terms)  # 0 and 1 would be compiled apart
            best_neighbours(found, len(tried) - 1, plan.size, grid.lists, grid.offsets, terms, best)
            found = int(best[0])
            if found < 0:
                return first
        chosen[k] = found
    return _FINE


@inner
def _fit(plan: Plan, points: Floats, work: Work, signs: Bytes) -> int:
    """Fit the scales to points looked up again and make them positive; give -1, or the first element of one that is NaN."""
    n, each = plan.sub_block, plan.sub_block // plan.size
    for block in range(len(work.scales)):
        scale = np.float32(0) if work.zeros[block] else work.scales[block]
        looked_up = 0
        for k in range(each * block, each * block + each):
            looked_up += not work.held[k]
        if looked_up:
            products = squares = np.float32(0)
            for i in range(n * block, n * block + n):
                w, q = work.weight[i], points[plan.size * work.chosen[i // plan.size] + i % plan.size]
                products += w * work.x[i] * q
                squares += w * q * q
            scale = products / squares if squares > 0 else scale
        if scale < 0:
            for i in range(n // 8 * block, n // 8 * block + n // 8):
                signs[i] = ~signs[i] if plan.free else ~signs[i] & 127
        if np.isnan(scale):
            return n * block
        work.scales[block] = abs(scale)
    return _FINE


@inner
def _store_scales(plan: Plan, scales: Floats, codes: Bytes) -> np.float32:
    """Fill in the sub-blocks' codes and give the block's scale."""
    greatest = np.float32(0)
    for i in range(len(scales)):
        greatest = greatest if greatest > scales[i] else scales[i]
    if greatest == 0:
        codes[:] = 0
        return greatest
    d = greatest / _LARGEST_CODE
    inverse = _ONE / d
    for i in range(len(scales)):
        codes[i] = _code(scales[i], inverse, np.int32(15))
    return plan.stored * d


@inner
def _any_above_zero(scales: Floats) -> bool:
    above = 0
    for i in range(len(scales)):  # scales.max() and the like take longer to compile than all of a step
        above += scales[i] > 0
    return above > 0


@inner
def _store_points(plan: Plan, work: Work, signs: Bytes, to_indices: npt.NDArray[np.uint16], to_signs: Bytes) -> None:
    """Store indices and signs; those of sub-blocks of zeros are 0.

    Where a type closes up, ggml does not move on past a sub-block of zeros, so that the low bytes of the indices and the signs of
    what follows stand too far in front. Their ninth bits do not.
    """
    to_indices[:] = 0
    to_signs[:] = 0
    if not plan.free and not _any_above_zero(work.scales):
        return
    stored, each, groups = 0, plan.sub_block // plan.size, plan.sub_block // 8
    for block in range(len(work.scales)):
        if work.zeros[block]:
            continue
        to = stored if plan.closes_up else block
        for k in range(each):
            to_indices[each * to + k] |= work.chosen[each * block + k] & 255
            to_indices[each * block + k] |= work.chosen[each * block + k] & ~255
        for k in range(groups):
            to_signs[groups * to + k] = signs[groups * block + k]
        stored += 1


@kernel
def search(x: Floats, importance: Floats, plan: Plan, grid: Grid, parts: Parts) -> int:
    """Fill ``parts`` from ``x`` of shape (blocks, 256) and ``importance`` of shape (blocks a row, 256), or (0, 256) for none.

    Returns:
        -1, or where in ``x``, flat, the first element of those stands at which ggml aborts.

    """
    work, signs, none = _work(plan), np.empty(32, np.uint8), np.empty(0, np.float32)
    for block in range(len(x)):
        _weigh(x[block], importance[block % len(importance)] if len(importance) else none, plan, work)
        _fold(x[block], plan.free, work, signs)
        _start(plan, work)
        _round(plan, work)
        fault = _snap(plan, grid, work)
        if fault == _FINE:
            _add(plan, work)
            _pick(plan, grid.kmap, work)
            fault = _look_again(plan, grid, work)
        if fault == _FINE:
            fault = _fit(plan, grid.points, work, signs)
        if fault != _FINE:
            return 256 * block + fault
        parts.d[block] = _store_scales(plan, work.scales, parts.codes[block])
        _store_points(plan, work, signs, parts.indices[block], parts.signs[block])
    return _FINE
