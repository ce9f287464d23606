"""Q4_K, Q5_K, Q6_K: super-blocks of 256 elements, whose sub-blocks have quantized scales of their own.

Source: ``dequantize_row_q4_K``, ``_q5_K``, ``_q6_K`` and ``get_scale_min_k4`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Codec, Floats
from impl.blocks.rounding import column
from impl.types import by_name

Q4_K = np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", (12,)), ("qs", "u1", (128,))])
Q5_K = np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", (12,)), ("qh", "u1", (32,)), ("qs", "u1", (128,))])
Q6_K = np.dtype([("ql", "u1", (128,)), ("qh", "u1", (64,)), ("scales", "i1", (16,)), ("d", "<f2")])

# Q5_K: sub-block i has its 32 fifth bits in bit i of the 32 bytes of qh.
_BIT_OF_SUB_BLOCK = (1 << np.arange(8, dtype=np.uint8))[:, np.newaxis]


def unpack_scales(packed: Bytes) -> tuple[Bytes, Bytes]:
    """Give the eight 6-bit scales and the eight 6-bit minima of each super-block from its 12 bytes.

    Bytes 0-3 and 4-7 hold the first four of each in their low 6 bits; bytes 8-11 hold the low nibbles of the last four, and
    their upper two bits stand in the top of bytes 0-3 and 4-7.
    """
    first, second, last = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate((first & 63, (last & 15) | (first >> 6 << 4)), axis=1)
    minima = np.concatenate((second & 63, (last >> 4) | (second >> 6 << 4)), axis=1)
    return scales, minima


def _unpack_nibbles(qs: Bytes) -> Bytes:
    """Give codes of shape (super-blocks, 8, 32): each 32 bytes hold two sub-blocks, the first in the low nibbles."""
    pairs = qs.reshape(len(qs), 4, 32)
    codes = np.empty((len(qs), 4, 2, 32), np.uint8)
    np.bitwise_and(pairs, 15, out=codes[:, :, 0])
    np.right_shift(pairs, 4, out=codes[:, :, 1])
    return codes.reshape(len(qs), 8, 32)


def _scale_and_shift(codes: Bytes, blocks: Blocks, out: Floats) -> None:
    """Compute ``(d * scale) * code - (dmin * minimum)`` for codes of shape (super-blocks, 8, 32)."""
    scales, minima = unpack_scales(blocks["scales"])
    y = out.reshape(codes.shape)
    np.multiply(codes, (column(blocks["d"]) * scales)[:, :, np.newaxis], out=y)
    y -= (column(blocks["dmin"]) * minima)[:, :, np.newaxis]


def _dequantize_q4_k(blocks: Blocks, out: Floats) -> None:
    _scale_and_shift(_unpack_nibbles(blocks["qs"]), blocks, out)


def _dequantize_q5_k(blocks: Blocks, out: Floats) -> None:
    codes = _unpack_nibbles(blocks["qs"])
    fifth = blocks["qh"][:, np.newaxis, :] & _BIT_OF_SUB_BLOCK != 0
    codes |= fifth.view(np.uint8) << 4
    _scale_and_shift(codes, blocks, out)


def _unpack_q6_k(blocks: Blocks) -> npt.NDArray[np.int8]:
    """Give codes -32 to 31 of shape (super-blocks, 16, 16).

    A half of 128 elements has 64 bytes of nibbles and 32 of upper bit pairs. Elements 0-31 and 32-63 are the low nibbles of the
    first and second 32 bytes, elements 64-127 the high nibbles; the four groups' upper bits follow each other in each byte.
    """
    ql = blocks["ql"].reshape(-1, 2, 1, 2, 32)
    qh = blocks["qh"].reshape(-1, 2, 1, 32)
    nibbles = np.concatenate((ql & 15, ql >> 4), axis=2).reshape(-1, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, np.newaxis]
    codes: npt.NDArray[np.int8] = (nibbles | (qh >> shifts & 3) << 4).view(np.int8)
    codes -= 32
    return codes.reshape(-1, 16, 16)


def _dequantize_q6_k(blocks: Blocks, out: Floats) -> None:
    scales = column(blocks["d"]) * blocks["scales"]
    np.multiply(_unpack_q6_k(blocks), scales[:, :, np.newaxis], out=out.reshape(-1, 16, 16))


CODECS = (
    Codec(by_name("Q4_K"), Q4_K, dequantize=_dequantize_q4_k, uses_imatrix=True),
    Codec(by_name("Q5_K"), Q5_K, dequantize=_dequantize_q5_k, uses_imatrix=True),
    Codec(by_name("Q6_K"), Q6_K, dequantize=_dequantize_q6_k, uses_imatrix=True),
)
