"""The super-blocks of the K types as packed numpy dtypes, and their 6-bit scales.

Source: the ``block_q*_K`` structs in ggml/src/ggml-common.h, ``get_scale_min_k4`` and ``dequantize_row_q3_K`` in
ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes
from impl.blocks.half import f16_bits_to_f32
from impl.blocks.kernel import inner

Q2_K = np.dtype([("scales", "u1", (16,)), ("qs", "u1", (64,)), ("d", "<f2"), ("dmin", "<f2")])
Q3_K = np.dtype([("hmask", "u1", (32,)), ("qs", "u1", (64,)), ("scales", "u1", (12,)), ("d", "<f2")])
Q4_K = np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", (12,)), ("qs", "u1", (128,))])
Q5_K = np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", (12,)), ("qh", "u1", (32,)), ("qs", "u1", (128,))])
Q6_K = np.dtype([("ql", "u1", (128,)), ("qh", "u1", (64,)), ("scales", "i1", (16,)), ("d", "<f2")])


@inner
def read_half(block: Bytes, at: int) -> np.float32:
    """Give the float16 at byte ``at`` as float32."""
    return f16_bits_to_f32(np.uint16(block[at] | block[at + 1] << 8))


@inner
def scale_and_minimum(packed: Bytes, j: int) -> tuple[np.float32, np.float32]:
    """Give scale and minimum, 0 to 63, of sub-block ``j`` of a Q4_K or Q5_K from its 12 bytes.

    Bytes 0-3 and 4-7 hold the first four of each in their low 6 bits; bytes 8-11 hold the low nibbles of the last four, whose
    upper two bits stand in the top of bytes 0-3 and 4-7.
    """
    if j < 4:
        scale, minimum = packed[j] & 63, packed[j + 4] & 63
    else:
        scale = packed[j + 4] & 15 | packed[j - 4] >> 6 << 4
        minimum = packed[j + 4] >> 4 | packed[j] >> 6 << 4
    return np.float32(scale), np.float32(minimum)


@inner
def signed_scale(packed: Bytes, j: int) -> np.float32:
    """Give the scale, -32 to 31, of sub-block ``j`` of a Q3_K from its 12 bytes.

    Bytes 0-7 hold the low nibbles of scales 0-7 and, above them, of 8-15; bytes 8-11 hold the upper two bits, scale j's in byte
    8 + j % 4.
    """
    nibble = packed[j % 8] >> (4 if j >= 8 else 0) & 15
    return np.float32((nibble | (packed[8 + j % 4] >> 2 * (j // 4) & 3) << 4) - 32)
