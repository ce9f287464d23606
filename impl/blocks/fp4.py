"""MXFP4 and NVFP4: codes of 4 bits that are floats themselves (E2M1), and scales of 8 bits that are floats without a sign.

A code's magnitude is 0, 0.5, 1, 1.5, 2, 3, 4 or 6, its highest bit the sign. As in ggml, magnitudes are kept doubled, as whole
numbers, and scales are halved. MXFP4: 32 elements, a power of two (E8M0). NVFP4: four sub-blocks of 16, each with a UE4M3 scale.

Source: ``quantize_row_mxfp4_ref``, ``quantize_row_nvfp4_ref``, ``best_index_mxfp4`` and ``dequantize_row_*`` in
ggml/src/ggml-quants.c, the scales' conversions in ggml/src/ggml-impl.h, dot products in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.kernel import inner, kernel
from impl.blocks.products import sum_in_order
from impl.blocks.refusal import refuse_infinite
from impl.types import by_name

MXFP4 = np.dtype([("e", "u1"), ("qs", "u1", (16,))])
NVFP4 = np.dtype([("d", "u1", (4,)), ("qs", "u1", (32,))])

_ZERO = np.float32(0)
_INFINITE = np.float32(np.inf)
_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITE_BITS = np.int32(0x7F800000)
_SIX = np.float32(6)  # the largest magnitude
_LARGEST_UE4M3 = np.float32(448)
_HALF = np.float32(0.5)
_UE4M3_STEPS = np.float32(512)  # its subnormals are multiples of 1/512
_SMALLEST_NORMAL = np.float32(2.0**-126)
_NORMALIZE = np.float32(2.0**24)
_DOUBLED = np.array([0, 1, 2, 3, 4, 6, 8, 12], np.float32)
_NUMBERS = np.concatenate((_DOUBLED, 0 - _DOUBLED))  # 0 - 0 has no sign


def _where_log2_rounds_up() -> Floats:
    """Give, for each exponent k from -149 on, the first float32 below 2**(k + 1) whose log2f is rounded to k + 1.

    That is where log2 comes within half a step of float32 to the whole number: a correctly rounded log2f, as glibc's is there.
    """
    limits = np.empty(277, np.float32)
    for k in range(-149, 128):
        whole = k + 1
        step = 0.0
        if whole:
            step = 2.0 ** (math.ceil(math.log2(whole)) - 24 if whole > 0 else math.floor(math.log2(-whole)) - 23)
        limit = math.ldexp(2.0 ** (-step / 2), whole)
        nearest = np.float32(limit)
        limits[k + 149] = nearest if float(nearest) >= limit else np.nextafter(nearest, _INFINITE)
    return limits


_ROUNDS_UP = _where_log2_rounds_up()


def _e8m0_halves() -> Floats:
    """Give 2**(e - 128) for each byte. 255, a NaN in the MX specification, is a number like the others in ggml."""
    return np.ldexp(np.float32(1), np.arange(256) - 128).astype(np.float32)


def _ue4m3_halves() -> Floats:
    """Give half the number of each byte: 4 bits of exponent, 3 of significand; 127 stands for 0, the highest bit for nothing."""
    code = np.arange(256)
    exponent, significand = code >> 3 & 15, code & 7
    numbers = np.where(exponent == 0, np.ldexp(significand / 8, -6), np.ldexp(1 + significand / 8, exponent - 7))
    numbers[127] = 0
    return (numbers / 2).astype(np.float32)


_E8M0_HALVES = _e8m0_halves()
_UE4M3_HALVES = _ue4m3_halves()


class Limits(NamedTuple):
    """Midways between neighbouring magnitudes, times a scale: code n is for what lies above n of them."""

    m1: np.float32
    m2: np.float32
    m3: np.float32
    m4: np.float32
    m5: np.float32
    m6: np.float32
    m7: np.float32


@inner
def _limit(lower: np.float32, upper: np.float32, d: np.float32) -> np.float32:
    """Give the midway, where an element still takes the lower magnitude; none reaches a magnitude that overflows."""
    return np.float32((lower + upper) * _HALF * d) if upper * d < _INFINITE else _INFINITE


@kernel
def _limits(d: np.float32) -> Limits:
    """Give the limits for a scale. A scale of 0 makes all magnitudes the same, and the first one is taken."""
    if d == _ZERO:
        return Limits(_INFINITE, _INFINITE, _INFINITE, _INFINITE, _INFINITE, _INFINITE, _INFINITE)
    v = _DOUBLED
    return Limits(
        _limit(v[0], v[1], d),
        _limit(v[1], v[2], d),
        _limit(v[2], v[3], d),
        _limit(v[3], v[4], d),
        _limit(v[4], v[5], d),
        _limit(v[5], v[6], d),
        _limit(v[6], v[7], d),
    )


@inner
def _code(x: np.float32, limits: Limits) -> np.int32:
    """Give the code of the nearest number, the smaller of two as near. A NaN is 0, and no zero has a sign."""
    m = abs(x)
    n = np.int32(m > limits.m1) + np.int32(m > limits.m2) + np.int32(m > limits.m3) + np.int32(m > limits.m4)
    n += np.int32(m > limits.m5) + np.int32(m > limits.m6) + np.int32(m > limits.m7)
    return np.int32(n | np.int32(-x > limits.m1) << 3)


@inner
def _code_of_large(x: np.float32, d: np.float32) -> np.int32:
    """Do the same where the difference to a number is rounded: the smallest magnitude of those that seem equally near."""
    code = np.int32(0)
    best = np.float32(abs(x))
    for n in range(1, 8):
        distance = abs(np.float32(_DOUBLED[n] * d) - np.float32(abs(x)))
        if distance < best:
            code, best = np.int32(n), distance
    return np.int32(code | 8 if x < _ZERO and code > 0 else code)


@inner
def _greatest(bits: npt.NDArray[np.int32]) -> np.float32:
    """Give the greatest magnitude, NaNs not counted. As integers magnitudes have the same order, and any order will do."""
    greatest = np.int32(0)
    for bit in bits:
        magnitude = bit & _MAGNITUDE
        magnitude = np.int32(0) if magnitude > _INFINITE_BITS else magnitude
        greatest = magnitude if magnitude > greatest else greatest
    return np.int32(greatest).view(np.float32)


@inner
def _e8m0(amax: np.float32) -> np.uint8:
    """Give log2f of ``amax``, rounded down, plus 125: the largest magnitude is 6, its exponent 2. Below 2**-125 this wraps."""
    if amax == _ZERO:
        return np.uint8(0)
    if amax < _SMALLEST_NORMAL:
        exponent = (np.float32(amax * _NORMALIZE).view(np.int32) >> 23) - 151
    else:
        exponent = (np.float32(amax).view(np.int32) >> 23) - 127
    if amax >= _ROUNDS_UP[exponent + 149]:
        exponent += 1
    return np.uint8(exponent + 125 & 255)


@inner
def _ue4m3(x: np.float32) -> np.uint8:
    """Round to 3 bits of significand, half up; below half the smallest number is 0, and what reaches 256 becomes 448."""
    x = min(x, _LARGEST_UE4M3)
    bits = np.float32(x).view(np.int32)
    exponent = (bits >> 23) - 120
    if exponent <= 0:
        steps = np.int32(x * _UE4M3_STEPS + _HALF)
        return np.uint8(steps if steps < 7 else 7)
    code = (exponent << 3 | bits >> 20 & 7) + (bits >> 19 & 1)
    return np.uint8(code if code < 120 else 126)


@kernel
def _pack_mxfp4(x: Floats, raw: Bytes) -> None:
    codes = np.empty(32, np.int32)
    bits, cols = x.view(np.int32), x.shape[1]
    for i in range(len(x)):
        e = _e8m0(_greatest(bits[i]))
        limits = _limits(_E8M0_HALVES[e])
        for j in range(cols):
            codes[j] = _code(x[i, j], limits)
        raw[i, 0] = e
        for j in range(cols // 2):
            raw[i, 1 + j] = np.uint8(codes[j] | codes[16 + j] << 4)


@kernel
def _pack_nvfp4(x: Floats, raw: Bytes) -> None:
    """Elements beyond 24 scales cannot be told by limits: their distance to the magnitudes is no longer exact."""
    codes = np.empty(64, np.int32)
    bits, sub_block = x.view(np.int32), x.shape[1] // 4
    for i in range(len(x)):
        for s in range(4):
            amax = _greatest(bits[i, 16 * s : 16 * s + 16])
            scale = _ue4m3(amax / _SIX)
            d = _UE4M3_HALVES[scale]
            raw[i, s] = scale
            if amax > 24 * d > 0:
                for j in range(16 * s, 16 * s + 16):
                    codes[j] = _code_of_large(x[i, j], d)
            else:
                limits = _limits(d)
                for j in range(sub_block):
                    codes[16 * s + j] = _code(x[i, 16 * s + j], limits)
        for s in range(4):
            for j in range(8):
                raw[i, 4 + 8 * s + j] = np.uint8(codes[16 * s + j] | codes[16 * s + 8 + j] << 4)


@kernel
def _number(code: np.int32) -> np.float32:
    """Give the doubled number that a code stands for: 0 to 4 are themselves, then it goes on by 2 and by 4. Zero has no sign."""
    magnitude = code & 7
    doubled = magnitude + (magnitude - 4 if magnitude > 4 else 0) + (2 if magnitude > 6 else 0)
    return np.float32(np.int32(-doubled if code & 8 else doubled))


@kernel
def _spread_mxfp4(raw: Bytes, out: Floats) -> None:
    half = raw.shape[1] - 1
    for i in range(len(raw)):
        d = _E8M0_HALVES[raw[i, 0]]
        for j in range(half):
            byte = np.int32(raw[i, 1 + j])
            out[i, j] = _number(byte & 15) * d
            out[i, 16 + j] = _number(byte >> 4) * d


@kernel
def _spread_nvfp4(raw: Bytes, out: Floats) -> None:
    """Look numbers up in a table: runs of 8 are too short for the arithmetic to vectorise."""
    for i in range(len(raw)):
        for s in range(4):
            d = _UE4M3_HALVES[raw[i, s]]
            for j in range(8):
                byte = raw[i, 4 + 8 * s + j]
                out[i, 16 * s + j] = _NUMBERS[byte & 15] * d
                out[i, 16 * s + 8 + j] = _NUMBERS[byte >> 4] * d


def _dequantize_mxfp4(blocks: Blocks, out: Floats) -> None:
    _spread_mxfp4(raw_bytes(blocks), out)


def _dequantize_nvfp4(blocks: Blocks, out: Floats) -> None:
    _spread_nvfp4(raw_bytes(blocks), out)


def _quantize_mxfp4(x: Floats, out: Blocks) -> None:
    _pack_mxfp4(x, raw_bytes(out))


def _quantize_nvfp4(x: Floats, out: Blocks) -> None:
    _pack_nvfp4(x, raw_bytes(out))


def _dot_mxfp4(w: Blocks, y: Blocks) -> Floats:
    """Give ``(dy * dw) * sum`` for each block."""
    unit = w.copy()
    unit["e"] = 128  # 1, halved and doubled
    numbers = np.empty((len(w), 32), np.float32)
    _dequantize_mxfp4(unit, numbers)
    numbers *= y["qs"]
    term: Floats = y["d"].astype(np.float32) * _E8M0_HALVES[w["e"]] * numbers.sum(axis=1)  # whole numbers: any order will do
    return term


def _dot_nvfp4(w: Blocks, y: Blocks) -> Floats:
    """Add ``(dy * dw) * sum`` of each sub-block, in order; two of them meet a block of Q8_0."""
    unit = w.copy()
    unit["d"] = 64  # 2, halved
    numbers = np.empty((w.size, 64), np.float32)
    _dequantize_nvfp4(unit.reshape(-1), numbers)
    numbers *= y["qs"].reshape(-1, 64)
    sums = numbers.reshape(len(w), -1, 16).sum(axis=2)
    scales = np.repeat(y["d"].astype(np.float32), 2, axis=1) * _UE4M3_HALVES[w["d"]].reshape(sums.shape)
    return sum_in_order(scales * sums)


_codec = partial(Codec, partner="Q8_0", compiled=True, streams=True)
CODECS = (
    _codec(by_name("MXFP4"), MXFP4, _quantize_mxfp4, _dequantize_mxfp4, _dot_mxfp4, check=refuse_infinite),
    _codec(by_name("NVFP4"), NVFP4, _quantize_nvfp4, _dequantize_nvfp4, dot_rows=_dot_nvfp4),
)
