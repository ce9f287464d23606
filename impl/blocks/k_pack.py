"""The codes of 64 super-blocks packed as the K types store them: ``levels`` of shape (256, LANES), packed bytes (bytes, LANES).

Source: the last loops of ``quantize_row_q*_K_ref`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from impl.blocks.codec import Bytes, Floats
from impl.blocks.half import f16_bits_to_f32, f32_to_f16_bits
from impl.blocks.k_lanes import LANES
from impl.blocks.kernel import inner


@inner
def pack_half(d: Floats, packed: Bytes) -> None:
    """Pack a float16 for each lane, and leave in ``d`` what a reader will find there."""
    for lane in range(LANES):
        bits = f32_to_f16_bits(d[lane])
        packed[0, lane] = bits & 255
        packed[1, lane] = bits >> 8
        d[lane] = f16_bits_to_f32(bits)


@inner
def pack_pairs(levels: Bytes, packed: Bytes) -> None:
    """Pack the low 2 bits of the codes into 64 bytes: each 32 bytes hold four runs of 32 elements, the first lowest."""
    for i in range(64):
        first = i // 32 * 128 + i % 32
        for lane in range(LANES):
            low = levels[first, lane] & 3 | (levels[first + 32, lane] & 3) << 2
            packed[i, lane] = low | (levels[first + 64, lane] & 3) << 4 | (levels[first + 96, lane] & 3) << 6


@inner
def pack_nibbles(levels: Bytes, packed: Bytes) -> None:
    """Pack the low 4 bits of the codes into 128 bytes: each 32 bytes hold two runs of 32 elements, the first low."""
    for i in range(128):
        first = i // 32 * 64 + i % 32
        for lane in range(LANES):
            packed[i, lane] = levels[first, lane] & 15 | (levels[first + 32, lane] & 15) << 4


@inner
def pack_bit(levels: Bytes, bit: int, packed: Bytes) -> None:
    """Collect bit ``bit`` of the codes in 32 bytes: run j of 32 elements has bit j of each byte."""
    for i in range(32):
        for lane in range(LANES):
            packed[i, lane] = 0
        for j in range(8):
            for lane in range(LANES):
                packed[i, lane] |= (levels[32 * j + i, lane] >> bit & 1) << j


@inner
def pack_six_bits(levels: Bytes, low: Bytes, high: Bytes) -> None:
    """Pack codes of 6 bits as Q6_K does: nibbles into 128 bytes, upper pairs into 64."""
    for i in range(128):
        first = i // 64 * 128 + i % 64
        for lane in range(LANES):
            low[i, lane] = levels[first, lane] & 15 | (levels[first + 64, lane] & 15) << 4
    for i in range(64):
        first = i // 32 * 128 + i % 32
        for lane in range(LANES):
            pairs = levels[first, lane] >> 4 | levels[first + 32, lane] >> 4 << 2
            high[i, lane] = pairs | levels[first + 64, lane] >> 4 << 4 | levels[first + 96, lane] >> 4 << 6


@inner
def pack_scales_and_minima(scales: Bytes, minima: Bytes, packed: Bytes) -> None:
    """Pack eight of each, 6 bits wide, into the 12 bytes of a Q4_K or Q5_K; of a wider one the bits fall where they do in ggml."""
    for j in range(4):
        for lane in range(LANES):
            packed[j, lane] = scales[j, lane] | scales[j + 4, lane] >> 4 << 6
            packed[j + 4, lane] = minima[j, lane] | minima[j + 4, lane] >> 4 << 6
            packed[j + 8, lane] = scales[j + 4, lane] & 15 | (minima[j + 4, lane] & 15) << 4


@inner
def pack_signed_scales(codes: Bytes, packed: Bytes) -> None:
    """Pack sixteen scales, 0 to 63, into the 12 bytes of a Q3_K."""
    for lane in range(LANES):
        for j in range(8):
            packed[j, lane] = codes[j, lane] & 15 | (codes[j + 8, lane] & 15) << 4
        for j in range(4):
            pairs = codes[j, lane] >> 4 | codes[j + 4, lane] >> 4 << 2
            packed[j + 8, lane] = pairs | codes[j + 8, lane] >> 4 << 4 | codes[j + 12, lane] >> 4 << 6
