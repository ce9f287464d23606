"""Q1_0 and Q2_0: 128 signs, or 64 codes of 2 bits for -1, 0, 1 and 2, and one scale. Consecutive elements share a byte.

Source: ``quantize_row_q1_0_ref``, ``quantize_row_q2_0_ref`` and ``dequantize_row_q*_0`` in ggml/src/ggml-quants.c, dot products in
ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.kernel import kernel
from impl.blocks.products import sum_in_order
from impl.blocks.refusal import refuse_non_finite
from impl.blocks.rounding import to_f16
from impl.types import by_name

Q1_0 = np.dtype([("d", "<f2"), ("qs", "u1", (16,))])
Q2_0 = np.dtype([("d", "<f2"), ("qs", "u1", (16,))])

_HALF = np.float32(0.5)
_ONE = np.float32(1)
_ZERO = np.float32(0)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_COUNT = np.float32(128)


@kernel
def _sums_of_magnitudes(x: Floats, sums: Floats) -> None:
    """Add each block's magnitudes from left to right. Four blocks at a time, since each addition waits for the one before."""
    fours = len(x) // 4 * 4
    for i in range(0, fours, 4):
        a = b = c = e = _ZERO
        for j in range(128):
            a += abs(x[i, j])
            b += abs(x[i + 1, j])
            c += abs(x[i + 2, j])
            e += abs(x[i + 3, j])
        sums[i], sums[i + 1], sums[i + 2], sums[i + 3] = a, b, c, e
    for i in range(fours, len(x)):
        a = _ZERO
        for j in range(128):
            a += abs(x[i, j])
        sums[i] = a


def _quantize_q1_0(x: Floats, out: Blocks) -> None:
    d = np.empty(len(x), np.float32)
    _sums_of_magnitudes(x, d)
    d /= _COUNT
    out["d"] = to_f16(d)
    out["qs"] = np.packbits(x >= 0, axis=1, bitorder="little")


@kernel
def _pack_q2_0(x: Floats, d: Floats, raw: Bytes) -> None:
    """Round x / d half away from zero and add 1. Where the reciprocal overflows, all codes are 0, as x86's integers have it."""
    codes = np.empty(64, np.uint8)
    bits = x.view(np.int32)
    for i in range(len(x)):
        greatest = np.int32(0)
        for j in range(64):
            greatest = max(greatest, bits[i, j] & _MAGNITUDE)
        d[i] = np.int32(greatest).view(np.float32)
        reciprocal = _ONE / d[i] if d[i] > _ZERO else _ZERO
        if reciprocal == np.inf:
            raw[i, 2:] = 0
            continue
        for j in range(64):
            v = x[i, j] * reciprocal
            codes[j] = np.uint8(v >= _HALF) + np.uint8(v > -_HALF)
        for j in range(16):
            raw[i, 2 + j] = codes[4 * j] | codes[4 * j + 1] << 2 | codes[4 * j + 2] << 4 | codes[4 * j + 3] << 6


@kernel
def _spread_q1_0(raw: Bytes, d: Floats, out: Floats) -> None:
    for i in range(len(raw)):
        for j in range(16):
            byte = np.int32(raw[i, 2 + j])
            for bit in range(8):
                out[i, 8 * j + bit] = d[i] if byte >> bit & 1 else -d[i]


@kernel
def _spread_q2_0(raw: Bytes, d: Floats, out: Floats) -> None:
    for i in range(len(raw)):
        for j in range(16):
            byte = np.int32(raw[i, 2 + j])
            for pair in range(4):
                out[i, 4 * j + pair] = np.float32((byte >> 2 * pair & 3) - 1) * d[i]


def _quantize_q2_0(x: Floats, out: Blocks) -> None:
    d = np.empty(len(x), np.float32)
    _pack_q2_0(x, d, raw_bytes(out))
    out["d"] = to_f16(d)


def _dequantize_q1_0(blocks: Blocks, out: Floats) -> None:
    _spread_q1_0(raw_bytes(blocks), blocks["d"].astype(np.float32), out)


def _dequantize_q2_0(blocks: Blocks, out: Floats) -> None:
    _spread_q2_0(raw_bytes(blocks), blocks["d"].astype(np.float32), out)


def _dot(codes: Floats, w: Blocks, y: Blocks) -> Floats:
    """Multiply codes of shape (all blocks, elements) by Q8_0: ``dw * (dy * sum + dy * sum + ...)``, added in order."""
    codes *= y["qs"].reshape(codes.shape)
    sums = codes.reshape(*y.shape, 32).sum(axis=2)  # whole numbers: any order gives the same
    sums *= y["d"].astype(np.float32)
    inner = sum_in_order(sums.reshape(w.size, -1)).reshape(w.shape)
    return sum_in_order(w["d"].astype(np.float32) * inner)


def _dot_q1_0(w: Blocks, y: Blocks) -> Floats:
    codes = np.empty((w.size, 128), np.float32)
    _spread_q1_0(raw_bytes(w), np.ones(w.size, np.float32), codes)
    return _dot(codes, w, y)


def _dot_q2_0(w: Blocks, y: Blocks) -> Floats:
    codes = np.empty((w.size, 64), np.float32)
    _spread_q2_0(raw_bytes(w), np.ones(w.size, np.float32), codes)
    return _dot(codes, w, y)


_codec = partial(Codec, partner="Q8_0", compiled=True, streams=True)
CODECS = (
    _codec(by_name("Q1_0"), Q1_0, _quantize_q1_0, _dequantize_q1_0, dot_rows=_dot_q1_0),
    _codec(by_name("Q2_0"), Q2_0, _quantize_q2_0, _dequantize_q2_0, dot_rows=_dot_q2_0, check=refuse_non_finite),
)
