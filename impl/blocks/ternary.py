"""TQ1_0 and TQ2_0: 256 codes 0, 1, 2, which stand for -1, 0, 1, and one scale, the greatest magnitude.

TQ2_0 has two bits a code. TQ1_0 has five codes a byte, as the digits of a number in base 3, scaled so that the first digit is
the carry out of the byte when it is multiplied by 3, the second when by 9, and so on.

Source: ``quantize_row_tq*_ref`` and ``dequantize_row_tq*`` in ggml/src/ggml-quants.c, dot products in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.kernel import inner, kernel
from impl.blocks.products import scaled
from impl.blocks.refusal import refuse_non_finite
from impl.blocks.rounding import to_f16
from impl.types import by_name

TQ1_0 = np.dtype([("qs", "u1", (48,)), ("qh", "u1", (4,)), ("d", "<f2")])
TQ2_0 = np.dtype([("qs", "u1", (64,)), ("d", "<f2")])

_HALF = np.float32(0.5)
_ONE = np.float32(1)
_ZERO = np.float32(0)
_MAGNITUDE = np.int32(0x7FFFFFFF)


@inner
def _greatest(bits: npt.NDArray[np.int32]) -> np.float32:
    """Give the greatest magnitude of finite numbers. As integers their bits have the same order, and that loop vectorises."""
    greatest = np.int32(0)
    for j in range(256):
        greatest = max(greatest, bits[j] & _MAGNITUDE)
    return np.int32(greatest).view(np.float32)


@inner
def _to_codes(x: Floats, d: np.float32, codes: Bytes) -> None:
    """Give 0, 1 or 2 for each element: x / d, at most 1 in magnitude, rounded half away from zero, plus 1.

    Where the reciprocal overflows, all codes are 1: lroundf of an infinity or NaN gives the smallest integer, cut to zero.
    """
    reciprocal = _ONE / d if d > _ZERO else _ZERO
    if reciprocal == np.inf:
        reciprocal = _ZERO
    for j in range(256):
        v = x[j] * reciprocal
        codes[j] = np.uint8(v >= _HALF) + np.uint8(v > -_HALF)


@inner
def _pack_digits(codes: Bytes, count: int, out: Bytes) -> None:
    """Put five digits of base 3 in each of ``count`` bytes: the foremost of all first, then the second ones, and so on.

    The number is scaled by 256/243 and rounded up, so that multiplying the byte by 3 carries out its foremost digit.
    """
    for j in range(count):
        number = np.uint16(0)
        for digit in range(5):
            number = np.uint16(number * 3 + codes[digit * count + j])
        out[j] = np.uint8(np.uint16(number * 256 + 242) // np.uint16(243))


@kernel
def _pack_tq1_0(x: Floats, d: Floats, raw: Bytes) -> None:
    codes = np.zeros(260, np.uint8)  # the last four bytes have four digits; their fifth is 0
    bits = x.view(np.int32)
    for i in range(len(x)):
        d[i] = _greatest(bits[i])
        _to_codes(x[i], d[i], codes)
        _pack_digits(codes, 32, raw[i])
        _pack_digits(codes[160:], 16, raw[i, 32:])
        _pack_digits(codes[240:], 4, raw[i, 48:])


@kernel
def _pack_tq2_0(x: Floats, d: Floats, raw: Bytes) -> None:
    codes = np.empty(256, np.uint8)
    bits = x.view(np.int32)
    for i in range(len(x)):
        d[i] = _greatest(bits[i])
        _to_codes(x[i], d[i], codes)
        for half in range(2):
            for j in range(32):
                at = 128 * half + j
                raw[i, 32 * half + j] = codes[at] | codes[at + 32] << 2 | codes[at + 64] << 4 | codes[at + 96] << 6


@inner
def _digit(byte: np.uint32, d: np.float32) -> np.float32:
    """Give -d, 0 or d for the foremost digit of a byte; what is above the byte has been carried out before."""
    return np.float32(np.int32(np.uint32((byte & 255) * 3) >> 8) - np.int32(1)) * d


@kernel
def _spread_tq1_0(raw: Bytes, d: Floats, out: Floats) -> None:
    """Take digit after digit off the bytes: 32 bytes of five, 16 of five, 4 of four."""
    for i in range(len(raw)):
        for j in range(32):
            byte = np.uint32(raw[i, j])
            for digit in range(5):
                out[i, 32 * digit + j] = _digit(byte, d[i])
                byte = np.uint32(byte * 3)
        for j in range(16):
            byte = np.uint32(raw[i, 32 + j])
            for digit in range(5):
                out[i, 160 + 16 * digit + j] = _digit(byte, d[i])
                byte = np.uint32(byte * 3)
        for j in range(4):
            byte = np.uint32(raw[i, 48 + j])
            for digit in range(4):
                out[i, 240 + 4 * digit + j] = _digit(byte, d[i])
                byte = np.uint32(byte * 3)


@kernel
def _spread_tq2_0(raw: Bytes, d: Floats, out: Floats) -> None:
    """Bit pairs of 32 bytes: the lowest ones are elements 0 to 31, the next ones 32 to 63, and so on."""
    for i in range(len(raw)):
        for half in range(2):
            for j in range(32):
                byte = np.int32(raw[i, 32 * half + j])
                for pair in range(4):
                    out[i, 128 * half + 32 * pair + j] = np.float32((byte >> 2 * pair & 3) - 1) * d[i]


def _quantize_tq1_0(x: Floats, out: Blocks) -> None:
    d = np.empty(len(x), np.float32)
    _pack_tq1_0(x, d, raw_bytes(out))
    out["d"] = to_f16(d)


def _quantize_tq2_0(x: Floats, out: Blocks) -> None:
    d = np.empty(len(x), np.float32)
    _pack_tq2_0(x, d, raw_bytes(out))
    out["d"] = to_f16(d)


def _dequantize_tq1_0(blocks: Blocks, out: Floats) -> None:
    _spread_tq1_0(raw_bytes(blocks), blocks["d"].astype(np.float32), out)


def _dequantize_tq2_0(blocks: Blocks, out: Floats) -> None:
    _spread_tq2_0(raw_bytes(blocks), blocks["d"].astype(np.float32), out)


def _products(codes: Floats, y: Blocks) -> Floats:
    """Give each block's sum of products; whole numbers of 16 bits, so that any order gives the same float32."""
    codes *= y["qs"]
    sums: Floats = codes.sum(axis=1)
    return sums


def _dot_tq1_0(w: Blocks, y: Blocks) -> Floats:
    codes = np.empty((len(w), 256), np.float32)
    _spread_tq1_0(raw_bytes(w), np.ones(len(w), np.float32), codes)
    return scaled(_products(codes, y), w, y)


def _dot_tq2_0(w: Blocks, y: Blocks) -> Floats:
    codes = np.empty((len(w), 256), np.float32)
    _spread_tq2_0(raw_bytes(w), np.ones(len(w), np.float32), codes)
    return scaled(_products(codes, y), w, y)


_codec = partial(Codec, partner="Q8_K", compiled=True, streams=True)
CODECS = (
    _codec(by_name("TQ1_0"), TQ1_0, _quantize_tq1_0, _dequantize_tq1_0, _dot_tq1_0, check=refuse_non_finite),
    _codec(by_name("TQ2_0"), TQ2_0, _quantize_tq2_0, _dequantize_tq2_0, _dot_tq2_0, check=refuse_non_finite),
)
