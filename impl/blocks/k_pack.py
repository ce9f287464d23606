"""The codes of a super-block, one a byte, packed as the K types store them.

Loops run over the length of a slice, not over a number known beforehand: those of 32 would be unrolled before they could be made
vector instructions.

Source: the last loops of ``quantize_row_q*_K_ref`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from impl.blocks.codec import Bytes
from impl.blocks.kernel import kernel


@kernel
def pack_pairs(codes: Bytes, packed: Bytes) -> None:
    """Pack the low 2 bits of 256 codes into 64 bytes: each 32 bytes hold four runs of 32 elements, the first lowest."""
    for half in range(2):
        run, out = codes[128 * half : 128 * half + 128], packed[32 * half : 32 * half + 32]
        for i in range(len(out)):
            out[i] = run[i] & 3 | (run[i + 32] & 3) << 2 | (run[i + 64] & 3) << 4 | (run[i + 96] & 3) << 6


@kernel
def pack_nibbles(codes: Bytes, packed: Bytes) -> None:
    """Pack the low 4 bits of 256 codes into 128 bytes: each 32 bytes hold two runs of 32 elements, the first low."""
    for quarter in range(4):
        run, out = codes[64 * quarter : 64 * quarter + 64], packed[32 * quarter : 32 * quarter + 32]
        for i in range(len(out)):
            out[i] = run[i] & 15 | (run[i + 32] & 15) << 4


@kernel
def pack_bit(codes: Bytes, bit: int, packed: Bytes) -> None:
    """Collect bit ``bit`` of 256 codes in 32 bytes: run j of 32 elements has bit j of each byte."""
    packed[:] = 0
    for j in range(8):
        run = codes[32 * j : 32 * j + 32]
        for i in range(len(run)):
            packed[i] |= (run[i] >> bit & 1) << j


@kernel
def pack_six_bits(codes: Bytes, low: Bytes, high: Bytes) -> None:
    """Pack 256 codes of 6 bits as Q6_K does: nibbles into 128 bytes, upper pairs into 64."""
    for half in range(2):
        run, nibbles, pairs = (
            codes[128 * half : 128 * half + 128],
            low[64 * half : 64 * half + 64],
            high[32 * half : 32 * half + 32],
        )
        for i in range(len(nibbles)):
            nibbles[i] = run[i] & 15 | (run[i + 64] & 15) << 4
        for i in range(len(pairs)):
            pairs[i] = run[i] >> 4 | run[i + 32] >> 4 << 2 | run[i + 64] >> 4 << 4 | run[i + 96] >> 4 << 6


@kernel
def pack_scales_and_minima(scales: Bytes, minima: Bytes, packed: Bytes) -> None:
    """Pack eight of each, 6 bits wide, into the 12 bytes of a Q4_K or Q5_K; of a wider one the low bits go where ggml puts them."""
    for j in range(4):
        packed[j] = scales[j] | scales[j + 4] >> 4 << 6
        packed[j + 4] = minima[j] | minima[j + 4] >> 4 << 6
        packed[j + 8] = scales[j + 4] & 15 | (minima[j + 4] & 15) << 4


@kernel
def pack_signed_scales(codes: Bytes, packed: Bytes) -> None:
    """Pack sixteen scales, 0 to 63, into the 12 bytes of a Q3_K."""
    for j in range(8):
        packed[j] = codes[j] & 15 | (codes[j + 8] & 15) << 4
    for j in range(4):
        packed[j + 8] = codes[j] >> 4 | codes[j + 4] >> 4 << 2 | codes[j + 8] >> 4 << 4 | codes[j + 12] >> 4 << 6
