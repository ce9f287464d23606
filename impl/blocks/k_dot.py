"""Rows of the K types multiplied by rows of Q8_K.

The products of a super-block, times the sub-blocks' scales, are added up in integers, which is exact in any order: for Q2_K in
one sum, for the others in eight, element i in sum i % 8. In float32 each of the eight runs over the super-blocks, and at the end
they are added to what the minima gave.

Source: ``ggml_vec_dot_q2_K_q8_K_generic`` to ``ggml_vec_dot_q6_K_q8_K_generic`` in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Floats
from impl.blocks.k_layout import read_half, scale_and_minimum, signed_scale
from impl.blocks.kernel import inner, kernel

Ints = npt.NDArray[np.int32]

_ZERO = np.float32(0)


class Input(NamedTuple):
    """Rows of Q8_K: scales (rows, blocks), quants int8 (rows, blocks, 256), sums of 16 quants int16 (rows, blocks, 16)."""

    d: Floats
    qs: npt.NDArray[np.int8]
    bsums: npt.NDArray[np.int16]


def input_of(y: Blocks) -> Input:
    """Take records of Q8_K apart."""
    return Input(np.ascontiguousarray(y["d"]), np.ascontiguousarray(y["qs"]), np.ascontiguousarray(y["bsums"]))


@inner
def _multiply(codes: Ints, scales: Ints, qs: npt.NDArray[np.int8], sums: Ints) -> None:
    """Give the eight sums of one super-block."""
    sums[:] = 0
    n = 256 // len(scales)
    for j in range(len(scales)):
        scale = scales[j]
        for first in range(n * j, n * j + n, 8):
            for i in range(8):
                sums[i] += scale * codes[first + i] * qs[first + i]


@inner
def _add(total: Floats, d: np.float32, sums: Ints) -> None:
    for i in range(8):
        total[i] += d * np.float32(sums[i])


@inner
def _added_to(start: np.float32, total: Floats) -> np.float32:
    for i in range(8):
        start += total[i]
    return np.float32(start)


@inner
def _unpack_pairs(packed: Bytes, codes: Ints) -> None:
    """Give 256 bit pairs: each 32 bytes hold four runs of 32 elements, the first lowest."""
    for j in range(8):
        part, run = packed[32 * (j // 4) : 32 * (j // 4) + 32], codes[32 * j : 32 * j + 32]
        for i in range(len(run)):
            run[i] = part[i] >> 2 * (j % 4) & 3


@inner
def _unpack_nibbles(packed: Bytes, codes: Ints) -> None:
    """Give 256 nibbles: each 32 bytes hold two runs of 32 elements, the first low."""
    for j in range(8):
        part, run = packed[32 * (j // 2) : 32 * (j // 2) + 32], codes[32 * j : 32 * j + 32]
        for i in range(len(run)):
            run[i] = part[i] >> 4 * (j % 2) & 15


@inner
def _add_bit(packed: Bytes, weight: int, codes: Ints) -> None:
    """Add ``weight`` to each code whose bit is set: run j of 32 elements has bit j of the 32 bytes."""
    for j in range(8):
        run = codes[32 * j : 32 * j + 32]
        for i in range(len(run)):
            run[i] += (packed[i] >> j & 1) * weight


@inner
def _unpack_six_bits(low: Bytes, high: Bytes, codes: Ints) -> None:
    """Give the 256 codes of a Q6_K, -32 to 31."""
    for j in range(8):
        first = 64 * (j // 4) + 32 * (j % 2)
        nibbles, pairs, run = low[first : first + 32], high[32 * (j // 4) : 32 * (j // 4) + 32], codes[32 * j : 32 * j + 32]
        for i in range(len(run)):
            run[i] = (nibbles[i] >> j % 4 // 2 * 4 & 15 | (pairs[i] >> 2 * (j % 4) & 3) << 4) - 32


@inner
def _unpack_scales(packed: Bytes, scales: Ints, minima: Ints) -> None:
    for j in range(8):
        scale, minimum = scale_and_minimum(packed, j)
        scales[j], minima[j] = np.int32(scale), np.int32(minimum)


@inner
def _sum_minima(minima: Ints, bsums: npt.NDArray[np.int16]) -> np.float32:
    """Add up each minimum times the sum of its quants; a minimum of 32 elements has two sums."""
    total = np.int32(0)
    for j in range(16):
        total += minima[j * len(minima) // 16] * bsums[j]
    return np.float32(total)


@kernel
def dot_q2_k(w: Bytes, y: Input, out: Floats) -> None:
    """Multiply rows of bytes (rows, blocks, 84) by ``y``; give float32 of shape (rows,)."""
    codes, scales, minima, sums = np.empty(256, np.int32), np.empty(16, np.int32), np.empty(16, np.int32), np.empty(8, np.int32)
    for row in range(len(w)):
        result = _ZERO
        for n in range(w.shape[1]):
            block = w[row, n]
            for j in range(16):
                scales[j], minima[j] = block[j] & 15, block[j] >> 4
            _unpack_pairs(block[16:80], codes)
            _multiply(codes, scales, y.qs[row, n], sums)
            d, dmin = y.d[row, n] * read_half(block, 80), y.d[row, n] * read_half(block, 82)
            result += d * np.float32(np.int32(sums.sum())) - dmin * _sum_minima(minima, y.bsums[row, n])
        out[row] = result


@kernel
def dot_q3_k(w: Bytes, y: Input, out: Floats) -> None:
    """Multiply rows of bytes (rows, blocks, 110) by ``y``; give float32 of shape (rows,)."""
    codes, scales, sums, total = np.empty(256, np.int32), np.empty(16, np.int32), np.empty(8, np.int32), np.empty(8, np.float32)
    for row in range(len(w)):
        total[:] = _ZERO
        for n in range(w.shape[1]):
            block = w[row, n]
            for j in range(16):
                scales[j] = np.int32(signed_scale(block[96:108], j))
            _unpack_pairs(block[32:96], codes)
            codes -= 4
            _add_bit(block[0:32], 4, codes)
            _multiply(codes, scales, y.qs[row, n], sums)
            _add(total, read_half(block, 108) * y.d[row, n], sums)
        out[row] = _added_to(_ZERO, total)


@kernel
def dot_q4_k(w: Bytes, y: Input, out: Floats) -> None:
    """Multiply rows of bytes (rows, blocks, 144) by ``y``; give float32 of shape (rows,)."""
    codes, scales, minima, sums = np.empty(256, np.int32), np.empty(8, np.int32), np.empty(8, np.int32), np.empty(8, np.int32)
    total = np.empty(8, np.float32)
    for row in range(len(w)):
        total[:] = _ZERO
        result = _ZERO
        for n in range(w.shape[1]):
            block = w[row, n]
            _unpack_scales(block[4:16], scales, minima)
            _unpack_nibbles(block[16:144], codes)
            _multiply(codes, scales, y.qs[row, n], sums)
            _add(total, read_half(block, 0) * y.d[row, n], sums)
            result -= read_half(block, 2) * y.d[row, n] * _sum_minima(minima, y.bsums[row, n])
        out[row] = _added_to(result, total)


@kernel
def dot_q5_k(w: Bytes, y: Input, out: Floats) -> None:
    """Multiply rows of bytes (rows, blocks, 176) by ``y``; give float32 of shape (rows,)."""
    codes, scales, minima, sums = np.empty(256, np.int32), np.empty(8, np.int32), np.empty(8, np.int32), np.empty(8, np.int32)
    total = np.empty(8, np.float32)
    for row in range(len(w)):
        total[:] = _ZERO
        result = _ZERO
        for n in range(w.shape[1]):
            block = w[row, n]
            _unpack_scales(block[4:16], scales, minima)
            _unpack_nibbles(block[48:176], codes)
            _add_bit(block[16:48], 16, codes)
            _multiply(codes, scales, y.qs[row, n], sums)
            _add(total, read_half(block, 0) * y.d[row, n], sums)
            result -= read_half(block, 2) * y.d[row, n] * _sum_minima(minima, y.bsums[row, n])
        out[row] = _added_to(result, total)


@kernel
def dot_q6_k(w: Bytes, y: Input, out: Floats) -> None:
    """Multiply rows of bytes (rows, blocks, 210) by ``y``; give float32 of shape (rows,)."""
    codes, scales, sums, total = np.empty(256, np.int32), np.empty(16, np.int32), np.empty(8, np.int32), np.empty(8, np.float32)
    for row in range(len(w)):
        total[:] = _ZERO
        for n in range(w.shape[1]):
            block = w[row, n]
            scales[:] = block[192:208].view(np.int8)
            _unpack_six_bits(block[0:128], block[128:192], codes)
            _multiply(codes, scales, y.qs[row, n], sums)
            _add(total, read_half(block, 208) * y.d[row, n], sums)
        out[row] = _added_to(_ZERO, total)
