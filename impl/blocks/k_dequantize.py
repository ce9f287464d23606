"""The K types dequantized: blocks as bytes of shape (super-blocks, block bytes) to float32 of shape (super-blocks, 256).

The inner loops run over the length of a slice, not over 16 or 32: loops of so few known rounds would be unrolled before they could
be made vector instructions.

Source: ``dequantize_row_q2_K`` to ``dequantize_row_q6_K`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_layout import read_half, scale_and_minimum, signed_scale
from impl.blocks.kernel import inner, kernel


@kernel
def dequantize_q2_k(raw: Bytes, out: Floats) -> None:
    """Give ``(d * scale) * code - (dmin * minimum)``. A half's 32 bytes hold four runs of 32 elements, a bit pair each."""
    for n in range(len(raw)):
        block = raw[n]
        d, dmin = read_half(block, 80), read_half(block, 82)
        for j in range(16):
            scale = np.float32(d * np.float32(block[j] & 15))
            minimum = np.float32(dmin * np.float32(block[j] >> 4))
            first = 16 + 32 * (j // 8) + 16 * (j % 2)
            packed, y = block[first : first + 16], out[n, 16 * j : 16 * j + 16]
            shift = j % 8 // 2 * 2
            for i in range(len(y)):
                y[i] = scale * np.float32(np.int32(packed[i] >> shift & 3)) - minimum


@kernel
def dequantize_q3_k(raw: Bytes, out: Floats) -> None:
    """Give ``(d * scale) * code``; a code is its bit pair, less 4 where its bit of ``hmask`` is clear."""
    for n in range(len(raw)):
        block = raw[n]
        d, scales = read_half(block, 108), block[96:108]
        for j in range(16):
            scale = np.float32(d * signed_scale(scales, j))
            first = 16 * (j % 2)
            high, y = block[first : first + 16], out[n, 16 * j : 16 * j + 16]
            first += 32 + 32 * (j // 8)
            packed = block[first : first + 16]
            shift, bit = j % 8 // 2 * 2, j // 2
            for i in range(len(y)):
                y[i] = scale * np.float32(np.int32((packed[i] >> shift & 3) + (high[i] >> bit & 1) * 4 - 4))


@inner
def _affine(d: np.float32, dmin: np.float32, packed: Bytes, j: int) -> tuple[np.float32, np.float32]:
    scale, minimum = scale_and_minimum(packed, j)
    return np.float32(d * scale), np.float32(dmin * minimum)


@kernel
def dequantize_q4_k(raw: Bytes, out: Floats) -> None:
    """Give ``(d * scale) * code - (dmin * minimum)``. Each 32 bytes hold two sub-blocks, the first in the low nibbles."""
    for n in range(len(raw)):
        block = raw[n]
        d, dmin, scales = read_half(block, 0), read_half(block, 2), block[4:16]
        for pair in range(4):
            packed, y = block[16 + 32 * pair : 48 + 32 * pair], out[n, 64 * pair : 64 * pair + 64]
            scale, minimum = _affine(d, dmin, scales, 2 * pair)
            next_scale, next_minimum = _affine(d, dmin, scales, 2 * pair + 1)
            for i in range(len(packed)):
                y[i] = scale * np.float32(np.int32(packed[i] & 15)) - minimum
                y[i + 32] = next_scale * np.float32(np.int32(packed[i] >> 4)) - next_minimum


@kernel
def dequantize_q5_k(raw: Bytes, out: Floats) -> None:
    """Give what Q4_K gives, with a fifth bit: sub-block j has its 32 in bit j of the bytes of ``qh``."""
    for n in range(len(raw)):
        block = raw[n]
        d, dmin, scales, fifth = read_half(block, 0), read_half(block, 2), block[4:16], block[16:48]
        for pair in range(4):
            packed, y = block[48 + 32 * pair : 80 + 32 * pair], out[n, 64 * pair : 64 * pair + 64]
            scale, minimum = _affine(d, dmin, scales, 2 * pair)
            next_scale, next_minimum = _affine(d, dmin, scales, 2 * pair + 1)
            bit, next_bit = np.uint8(1 << 2 * pair), np.uint8(2 << 2 * pair)
            for i in range(len(packed)):
                high, next_high = 16 if fifth[i] & bit else 0, 16 if fifth[i] & next_bit else 0
                y[i] = scale * np.float32(np.int32((packed[i] & 15) + high)) - minimum
                y[i + 32] = next_scale * np.float32(np.int32((packed[i] >> 4) + next_high)) - next_minimum


@kernel
def dequantize_q6_k(raw: Bytes, out: Floats) -> None:
    """Give ``(d * scale) * code``, codes -32 to 31, signed scales of 8 bits.

    A half of 128 elements has 64 bytes of nibbles and 32 of upper bit pairs. Elements 0-31 and 32-63 are the low nibbles of the
    first and second 32 bytes, elements 64-127 the high ones; the four runs' bit pairs follow each other in each byte.
    """
    for n in range(len(raw)):
        block = raw[n]
        d, scales = read_half(block, 208), block[192:208].view(np.int8)
        for j in range(16):
            scale = np.float32(d * np.float32(scales[j]))
            half, run, side = j // 8, j % 8 // 2, j % 2
            first = 64 * half + 32 * (run % 2) + 16 * side
            low, y = block[first : first + 16], out[n, 16 * j : 16 * j + 16]
            first = 128 + 32 * half + 16 * side
            high = block[first : first + 16]
            shift, pair = run // 2 * 4, 2 * run
            for i in range(len(y)):
                y[i] = scale * np.float32(np.int32((low[i] >> shift & 15) + (high[i] >> pair & 3) * 16 - 32))
