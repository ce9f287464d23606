"""The K types dequantized: blocks as bytes of shape (super-blocks, block bytes) to float32 of shape (super-blocks, 256).

Source: ``dequantize_row_q2_K`` to ``dequantize_row_q6_K`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_layout import read_half, scale_and_minimum, signed_scale
from impl.blocks.kernel import kernel


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
            for i in range(16):
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
            for i in range(16):
                y[i] = scale * np.float32(np.int32((packed[i] >> shift & 3) + (high[i] >> bit & 1) * 4 - 4))


@kernel
def dequantize_q4_k(raw: Bytes, out: Floats) -> None:
    """Give ``(d * scale) * code - (dmin * minimum)``. Each 32 bytes hold two sub-blocks, the first in the low nibbles."""
    for n in range(len(raw)):
        block = raw[n]
        d, dmin, scales = read_half(block, 0), read_half(block, 2), block[4:16]
        for j in range(8):
            scale, minimum = scale_and_minimum(scales, j)
            scale, minimum = np.float32(d * scale), np.float32(dmin * minimum)
            first = 16 + 32 * (j // 2)
            packed, y = block[first : first + 32], out[n, 32 * j : 32 * j + 32]
            shift = j % 2 * 4
            for i in range(32):
                y[i] = scale * np.float32(np.int32(packed[i] >> shift & 15)) - minimum


@kernel
def dequantize_q5_k(raw: Bytes, out: Floats) -> None:
    """Give what Q4_K gives, with a fifth bit: sub-block j has its 32 in bit j of the bytes of ``qh``."""
    for n in range(len(raw)):
        block = raw[n]
        d, dmin, scales, fifth = read_half(block, 0), read_half(block, 2), block[4:16], block[16:48]
        for j in range(8):
            scale, minimum = scale_and_minimum(scales, j)
            scale, minimum = np.float32(d * scale), np.float32(dmin * minimum)
            first = 48 + 32 * (j // 2)
            packed, y = block[first : first + 32], out[n, 32 * j : 32 * j + 32]
            shift = j % 2 * 4
            for i in range(32):
                y[i] = scale * np.float32(np.int32((packed[i] >> shift & 15) + (fifth[i] >> j & 1) * 16)) - minimum


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
            for i in range(16):
                y[i] = scale * np.float32(np.int32((low[i] >> shift & 15) + (high[i] >> pair & 3) * 16 - 32))
