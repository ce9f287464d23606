"""The K types quantized: float32 of shape (super-blocks, 256) to bytes of shape (super-blocks, block bytes).

64 super-blocks at a time: the sub-blocks' scales are searched, then coded by the super-block's, and the elements are rounded once
more to the scales as they are stored. Where such a scale is 0, the codes of the search remain.

Source: ``quantize_row_q*_K_ref`` and ``quantize_row_q*_K_impl`` (with an imatrix) in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_affine import BASE, BEST_SCALE, SUM_W, Search, fit_affine
from impl.blocks.k_lanes import LANES, Work, gather, gather_imatrix, level, sum_of_squares, weigh_by_power
from impl.blocks.k_layout import scale_and_minimum, signed_scale, write_half
from impl.blocks.k_pack import (
    pack_bit,
    pack_nibbles,
    pack_pairs,
    pack_scales_and_minima,
    pack_signed_scales,
    pack_six_bits,
)
from impl.blocks.k_positive import fit_positive
from impl.blocks.k_symmetric import SCALE, fit_by_descent, fit_symmetric
from impl.blocks.kernel import kernel
from impl.blocks.nearest import nearest

_Q2 = Search(np.int32(3), np.float32(-0.5), np.float32(0.1), 15, True)
_Q4 = Search(np.int32(15), np.float32(-1), np.float32(0.1), 20, False)
_Q5 = Search(np.int32(31), np.float32(-0.5), np.float32(0.1), 15, False)
_Q2_WEIGHTED = Search(np.int32(3), np.float32(-0.9), np.float32(0.05), 36, False)
_Q4_WEIGHTED = Search(np.int32(15), np.float32(-0.9), np.float32(0.05), 36, False)
_Q5_WEIGHTED = Search(np.int32(31), np.float32(-0.9), np.float32(0.05), 36, False)

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
_SUB_BLOCK = np.float32(32)
_ELEMENTS = np.float32(256)
_ALL_ZERO = np.float32(1e-15)


@kernel
def _weigh_by_magnitude(x: Floats, w: Floats) -> None:
    for i in range(len(x)):
        for lane in range(LANES):
            w[i, lane] = abs(x[i, lane])


@kernel
def _weigh_by_mean_and_magnitude(x: Floats, w: Floats, mean: Floats) -> None:
    """Weigh by ``sqrt(mean square of the sub-block) + |x|``. ``mean`` is room for a row."""
    for lane in range(LANES):
        mean[lane] = _ZERO
    for i in range(len(x)):
        for lane in range(LANES):
            mean[lane] += x[i, lane] * x[i, lane]
    for lane in range(LANES):
        mean[lane] = np.sqrt(mean[lane] / _SUB_BLOCK)
    for i in range(len(x)):
        for lane in range(LANES):
            w[i, lane] = mean[lane] + abs(x[i, lane])


@kernel
def _weigh_by_square(x: Floats, w: Floats) -> None:
    for i in range(len(x)):
        for lane in range(LANES):
            w[i, lane] = x[i, lane] * x[i, lane]


@kernel
def _measure_power(blocks: Floats, factor: np.float32, power: Floats) -> None:
    """Give ``factor`` times the mean square of each super-block."""
    for lane in range(len(blocks)):
        power[lane] = factor * sum_of_squares(blocks[lane]) / _ELEMENTS


@kernel
def _code_by_largest(values: Floats, codes: Bytes, d: Floats, top: np.float32, cap: np.uint8) -> None:
    """Code each lane's scales or minima over its largest one. A negative one wraps as a byte before it is capped."""
    for lane in range(LANES):
        largest = _ZERO
        for j in range(len(values)):
            largest = values[j, lane] if values[j, lane] > largest else largest
        inverse = top / largest if largest > _ZERO else _ZERO
        for j in range(len(values)):
            codes[j, lane] = min(np.uint8(nearest(inverse * values[j, lane])), cap)
        d[lane] = largest / top


@kernel
def _round_again(x: Floats, d: np.float32, minimum: np.float32, lowest: np.int32, highest: np.int32, codes: Bytes) -> None:
    """Give the codes, counted from ``lowest``, for the scale and minimum as they are stored."""
    for i in range(len(x)):
        codes[i] = level((x[i] + minimum) / d, lowest, highest) - lowest


@kernel
def _search_affine(blocks: Floats, first: int, imatrix: Floats | None, search: Search, work: Work) -> None:
    """Find scale, minimum, sum of weights and codes of every sub-block."""
    for j in range(len(work.scales)):
        gather(blocks, j, work.x)
        if imatrix is not None:
            gather_imatrix(imatrix, first, j, work.w)
            weigh_by_power(work.x, work.power, work.w)
        elif search.absolute:
            _weigh_by_magnitude(work.x, work.w)
        else:
            _weigh_by_mean_and_magnitude(work.x, work.w, work.d)
        fit_affine(work.x, work.w, work.levels[j], work.state, search)
        for lane in range(LANES):
            work.scales[j, lane] = work.state[BEST_SCALE, lane]
            work.minima[j, lane] = -work.state[BASE, lane]
            work.sums[j, lane] = work.state[SUM_W, lane]


@kernel
def _code_scales(work: Work, top: np.int32, cap: np.uint8) -> None:
    _code_by_largest(work.scales, work.codes, work.d, np.float32(top), cap)
    _code_by_largest(work.minima, work.minimum_codes, work.dmin, np.float32(top), cap)


@kernel
def _fit_scales(work: Work, top: np.int32, cap: np.uint8) -> None:
    """Code the scales and minima by searches of their own, weighted by the sub-blocks."""
    fit_positive(work.scales, work.sums, work.codes, work.d, work.state, top)
    fit_positive(work.minima, work.sums, work.minimum_codes, work.dmin, work.state, top)
    for j in range(len(work.codes)):
        for lane in range(LANES):
            work.codes[j, lane] = min(work.codes[j, lane], cap)
            work.minimum_codes[j, lane] = min(work.minimum_codes[j, lane], cap)


@kernel
def _finish_affine(x: Floats, lane: int, scales: Bytes, top: np.int32, work: Work, codes: Bytes) -> None:
    """Round a Q4_K's or Q5_K's elements by its packed scales; ``work`` holds d and dmin as they are stored."""
    for j in range(8):
        scale, minimum = scale_and_minimum(scales, j)
        d = work.d[lane] * scale
        part = codes[32 * j : 32 * j + 32]
        if d == _ZERO:
            part[:] = work.levels[j, :, lane]
        else:
            _round_again(x[32 * j : 32 * j + 32], d, work.dmin[lane] * minimum, np.int32(0), top, part)


@kernel
def quantize_q4_k(x: Floats, imatrix: Floats | None, raw: Bytes, work: Work) -> None:
    """Quantize to Q4_K; ``imatrix`` of shape (cols,) belongs to each row of ``x``."""
    codes = np.empty(256, np.uint8)
    for first in range(0, len(x), LANES):
        blocks = x[first : first + LANES]
        if imatrix is not None:
            _measure_power(blocks, _TWO, work.power)
            _search_affine(blocks, first, imatrix, _Q4_WEIGHTED, work)
            _fit_scales(work, np.int32(63), np.uint8(255))
        else:
            _search_affine(blocks, first, imatrix, _Q4, work)
            _code_scales(work, np.int32(63), np.uint8(63))
        for lane in range(len(blocks)):
            block = raw[first + lane]
            work.d[lane] = write_half(block, 0, work.d[lane])
            work.dmin[lane] = write_half(block, 2, work.dmin[lane])
            pack_scales_and_minima(work.codes[:, lane], work.minimum_codes[:, lane], block[4:16])
            _finish_affine(blocks[lane], lane, block[4:16], np.int32(15), work, codes)
            pack_nibbles(codes, block[16:144])


@kernel
def quantize_q5_k(x: Floats, imatrix: Floats | None, raw: Bytes, work: Work) -> None:
    """Quantize to Q5_K, otherwise as ``quantize_q4_k``."""
    codes = np.empty(256, np.uint8)
    for first in range(0, len(x), LANES):
        blocks = x[first : first + LANES]
        if imatrix is not None:
            _measure_power(blocks, _TWO, work.power)
            _search_affine(blocks, first, imatrix, _Q5_WEIGHTED, work)
            _fit_scales(work, np.int32(63), np.uint8(63))
        else:
            _search_affine(blocks, first, imatrix, _Q5, work)
            _code_scales(work, np.int32(63), np.uint8(63))
        for lane in range(len(blocks)):
            block = raw[first + lane]
            work.d[lane] = write_half(block, 0, work.d[lane])
            work.dmin[lane] = write_half(block, 2, work.dmin[lane])
            pack_scales_and_minima(work.codes[:, lane], work.minimum_codes[:, lane], block[4:16])
            _finish_affine(blocks[lane], lane, block[4:16], np.int32(31), work, codes)
            pack_bit(codes, 4, block[16:48])
            pack_nibbles(codes, block[48:176])


@kernel
def quantize_q2_k(x: Floats, imatrix: Floats | None, raw: Bytes, work: Work) -> None:
    """Quantize to Q2_K, otherwise as ``quantize_q4_k``."""
    codes = np.empty(256, np.uint8)
    for first in range(0, len(x), LANES):
        blocks = x[first : first + LANES]
        if imatrix is not None:
            _measure_power(blocks, _ONE, work.power)
            _search_affine(blocks, first, imatrix, _Q2_WEIGHTED, work)
            _fit_scales(work, np.int32(15), np.uint8(255))
        else:
            _search_affine(blocks, first, imatrix, _Q2, work)
            _code_scales(work, np.int32(15), np.uint8(255))
        for lane in range(len(blocks)):
            _finish_q2_k(blocks[lane], lane, work, raw[first + lane], codes)
            pack_pairs(codes, raw[first + lane, 16:80])


@kernel
def _finish_q2_k(x: Floats, lane: int, work: Work, block: Bytes, codes: Bytes) -> None:
    """Store a Q2_K's scales, and round its elements by them."""
    d, dmin = write_half(block, 80, work.d[lane]), write_half(block, 82, work.dmin[lane])
    for j in range(16):
        block[j] = work.codes[j, lane] | work.minimum_codes[j, lane] << 4
        scale = d * np.float32(block[j] & 15)
        part = codes[16 * j : 16 * j + 16]
        if scale == _ZERO:
            part[:] = work.levels[j, :, lane]
        else:
            _round_again(x[16 * j : 16 * j + 16], scale, dmin * np.float32(block[j] >> 4), np.int32(0), np.int32(3), part)


@kernel
def _search_symmetric(blocks: Floats, first: int, imatrix: Floats | None, half: np.int32, work: Work) -> None:
    """Find scale, sum of weights and codes of every sub-block; weights are the importances, times power in a Q3_K."""
    for j in range(16):
        gather(blocks, j, work.x)
        if imatrix is not None:
            gather_imatrix(imatrix, first, j, work.w)
            if half == 4:
                weigh_by_power(work.x, work.power, work.w)
        else:
            _weigh_by_square(work.x, work.w)
        fit_symmetric(work.x, work.w, work.levels[j], work.state, half)
        for lane in range(LANES):
            work.scales[j, lane] = work.state[SCALE, lane]
            work.sums[j, lane] = _ZERO
        for i in range(16):
            for lane in range(LANES):
                work.sums[j, lane] += work.w[i, lane]


@kernel
def _extreme(values: Floats) -> np.float32:
    """Give the first of the greatest magnitude, 0 where all are zeros or NaN."""
    found = _ZERO
    for j in range(len(values)):
        found = values[j] if abs(values[j]) > abs(found) else found
    return np.float32(found)


@kernel
def quantize_q6_k(x: Floats, imatrix: Floats | None, raw: Bytes, work: Work) -> None:
    """Quantize to Q6_K, otherwise as ``quantize_q4_k``."""
    codes = np.empty(256, np.uint8)
    for first in range(0, len(x), LANES):
        blocks = x[first : first + LANES]
        _search_symmetric(blocks, first, imatrix, np.int32(32), work)
        for lane in range(len(blocks)):
            block = raw[first + lane]
            largest = _extreme(work.scales[:, lane])
            if abs(largest) < _ALL_ZERO:
                block[:] = 0
            else:
                _finish_q6_k(blocks[lane], lane, np.float32(-128) / largest, work, block, codes)
                pack_six_bits(codes, block[0:128], block[128:192])


@kernel
def _finish_q6_k(x: Floats, lane: int, inverse: np.float32, work: Work, block: Bytes, codes: Bytes) -> None:
    """Store a Q6_K's scales, and round its elements by them."""
    d, scales = write_half(block, 208, _ONE / inverse), block[192:208].view(np.int8)
    for j in range(16):
        scales[j] = np.int8(min(nearest(inverse * work.scales[j, lane]), np.int32(127)))
        scale = d * np.float32(scales[j])
        part = codes[16 * j : 16 * j + 16]
        if scale == _ZERO:
            part[:] = work.levels[j, :, lane]
        else:
            _round_again(x[16 * j : 16 * j + 16], scale, _ZERO, np.int32(-32), np.int32(31), part)


@kernel
def _search_by_descent(blocks: Floats, work: Work) -> None:
    for j in range(16):
        gather(blocks, j, work.x)
        fit_by_descent(work.x, work.w, work.levels[j], work.state, np.int32(4))
        for lane in range(LANES):
            work.scales[j, lane] = work.state[SCALE, lane]


@kernel
def _code_signed_scales(work: Work) -> None:
    """Code each lane's scales, 0 to 63, over the one of greatest magnitude. One beyond a byte wraps before it is bounded."""
    for lane in range(LANES):
        largest = _extreme(work.scales[:, lane])
        inverse = np.float32(-32) / largest
        for j in range(16):
            code = int(np.int8(nearest(inverse * work.scales[j, lane])))
            work.codes[j, lane] = 0 if largest == _ZERO else min(max(code, -32), 31) + 32
        work.d[lane] = _ZERO if largest == _ZERO else _ONE / inverse


@kernel
def quantize_q3_k(x: Floats, imatrix: Floats | None, raw: Bytes, work: Work) -> None:
    """Quantize to Q3_K, otherwise as ``quantize_q4_k``."""
    codes = np.empty(256, np.uint8)
    for first in range(0, len(x), LANES):
        blocks = x[first : first + LANES]
        if imatrix is not None:
            _measure_power(blocks, _TWO, work.power)
            _search_symmetric(blocks, first, imatrix, np.int32(4), work)
            fit_symmetric(work.scales, work.sums, work.codes, work.state, np.int32(32))
            work.d[:] = work.state[SCALE]
        else:
            _search_by_descent(blocks, work)
            _code_signed_scales(work)
        for lane in range(len(blocks)):
            block = raw[first + lane]
            pack_signed_scales(work.codes[:, lane], block[96:108])
            _finish_q3_k(blocks[lane], lane, work, block, codes)
            pack_bit(codes, 2, block[0:32])
            pack_pairs(codes, block[32:96])


@kernel
def _finish_q3_k(x: Floats, lane: int, work: Work, block: Bytes, codes: Bytes) -> None:
    """Store a Q3_K's scale, and round its elements by the packed scales."""
    d = write_half(block, 108, work.d[lane])
    for j in range(16):
        scale = d * signed_scale(block[96:108], j)
        part = codes[16 * j : 16 * j + 16]
        if scale == _ZERO:
            part[:] = work.levels[j, :, lane]
        else:
            _round_again(x[16 * j : 16 * j + 16], scale, _ZERO, np.int32(-4), np.int32(3), part)
