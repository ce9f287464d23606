"""The last step of quantizing 64 super-blocks: scales are stored, elements rounded once more to them as stored, codes packed.

Where a sub-block's scale is stored as 0, the codes of the search remain. Each function writes ``work.rows``.

Source: ``quantize_row_q*_K_ref`` in ggml/src/ggml-quants.c. See ``k_lanes`` for the arrays.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_lanes import LANES, SUPER_BLOCK, Work, level
from impl.blocks.k_layout import scale_and_minimum, signed_scale
from impl.blocks.k_pack import (
    pack_bit,
    pack_half,
    pack_nibbles,
    pack_pairs,
    pack_scales_and_minima,
    pack_signed_scales,
    pack_six_bits,
)
from impl.blocks.kernel import inner, kernel

_ZERO = np.float32(0)
_LOWEST = np.int32(0)


@inner
def _round_again(x: Floats, scales: Floats, minima: Floats, lowest: np.int32, highest: np.int32, levels: Bytes) -> None:
    """Give the codes of one sub-block of each lane, counted from ``lowest``, where the lane's scale is not 0."""
    for i in range(len(x)):
        for lane in range(LANES):
            code = level((x[i, lane] + minima[lane]) / scales[lane], lowest, highest) - lowest
            levels[i, lane] = levels[i, lane] if scales[lane] == _ZERO else np.uint8(code)


@inner
def _round_by_packed(work: Work, packed: Bytes, top: np.int32) -> None:
    scales, minima = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for j in range(8):
        for lane in range(LANES):
            scale, minimum = scale_and_minimum(packed[:, lane], j)
            scales[lane] = work.d[lane] * scale
            minima[lane] = work.dmin[lane] * minimum
        _round_again(work.x[j], scales, minima, _LOWEST, top, work.levels[j])


@kernel
def finish_q2_k(work: Work) -> None:
    """Make Q2_K of scale and minimum codes, d and dmin."""
    pack_half(work.d, work.rows[80:82])
    pack_half(work.dmin, work.rows[82:84])
    scales, minima = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    for j in range(16):
        for lane in range(LANES):
            packed = np.uint8(work.codes[j, lane] | work.minimum_codes[j, lane] << 4)
            work.rows[j, lane] = packed
            scales[lane] = work.d[lane] * np.float32(packed & 15)
            minima[lane] = work.dmin[lane] * np.float32(packed >> 4)
        _round_again(work.x[j], scales, minima, _LOWEST, np.int32(3), work.levels[j])
    pack_pairs(work.levels.reshape(SUPER_BLOCK, LANES), work.rows[16:80])


@kernel
def finish_q3_k(work: Work) -> None:
    """Make Q3_K of scale codes and d."""
    pack_half(work.d, work.rows[108:110])
    packed = work.rows[96:108]
    pack_signed_scales(work.codes, packed)
    scales, nothing = np.empty(LANES, np.float32), np.zeros(LANES, np.float32)
    for j in range(16):
        for lane in range(LANES):
            scales[lane] = work.d[lane] * signed_scale(packed[:, lane], j)
        _round_again(work.x[j], scales, nothing, np.int32(-4), np.int32(3), work.levels[j])
    levels = work.levels.reshape(SUPER_BLOCK, LANES)
    pack_bit(levels, 2, work.rows[0:32])
    pack_pairs(levels, work.rows[32:96])


@kernel
def finish_q4_k(work: Work) -> None:
    """Make Q4_K of scale and minimum codes, d and dmin."""
    pack_half(work.d, work.rows[0:2])
    pack_half(work.dmin, work.rows[2:4])
    pack_scales_and_minima(work.codes, work.minimum_codes, work.rows[4:16])
    _round_by_packed(work, work.rows[4:16], np.int32(15))
    pack_nibbles(work.levels.reshape(SUPER_BLOCK, LANES), work.rows[16:144])


@kernel
def finish_q5_k(work: Work) -> None:
    """Make Q5_K of scale and minimum codes, d and dmin."""
    pack_half(work.d, work.rows[0:2])
    pack_half(work.dmin, work.rows[2:4])
    pack_scales_and_minima(work.codes, work.minimum_codes, work.rows[4:16])
    _round_by_packed(work, work.rows[4:16], np.int32(31))
    levels = work.levels.reshape(SUPER_BLOCK, LANES)
    pack_bit(levels, 4, work.rows[16:48])
    pack_nibbles(levels, work.rows[48:176])


@kernel
def finish_q6_k(work: Work) -> None:
    """Make Q6_K of scale codes, which are signed bytes, and d."""
    pack_half(work.d, work.rows[208:210])
    scales, nothing = np.empty(LANES, np.float32), np.zeros(LANES, np.float32)
    for j in range(16):
        for lane in range(LANES):
            work.rows[192 + j, lane] = work.codes[j, lane]
            scales[lane] = work.d[lane] * np.float32(np.int8(work.codes[j, lane]))
        _round_again(work.x[j], scales, nothing, np.int32(-32), np.int32(31), work.levels[j])
    pack_six_bits(work.levels.reshape(SUPER_BLOCK, LANES), work.rows[0:128], work.rows[128:192])
