"""Q5_0 and Q5_1: 32 codes of 5 bits, the fifth bits apart, a scale, and for Q5_1 a minimum.

Source: ``quantize_row_q5_*_ref`` and ``dequantize_row_q5_*`` in ggml/src/ggml-quants.c, dot products in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.extremes import minimum_and_maximum, signed_extreme
from impl.blocks.k_layout import read_half
from impl.blocks.kernel import kernel
from impl.blocks.nibbles import encode, fifth_bits, pack_with_fifth_bits, unpack_with_fifth_bits
from impl.blocks.products import integer_products, scaled, scaled_with_minimum
from impl.blocks.rounding import reciprocal, to_f16
from impl.blocks.weighted import search_affine, search_symmetric
from impl.types import by_name

Q5_0 = np.dtype([("d", "<f2"), ("qh", "u1", (4,)), ("qs", "u1", (16,))])
Q5_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qh", "u1", (4,)), ("qs", "u1", (16,))])


def _quantize_q5_0(x: Floats, out: Blocks) -> None:
    d = signed_extreme(x) / np.float32(-16)
    out["d"] = to_f16(d)
    pack_with_fifth_bits(encode(x, np.zeros_like(d), reciprocal(d), np.float32(16.5), np.int32(31)), raw_bytes(out), 2)


def _quantize_q5_1(x: Floats, out: Blocks) -> None:
    least, greatest = minimum_and_maximum(x)
    d = (greatest - least) / np.float32(31)
    out["d"] = to_f16(d)
    out["m"] = to_f16(least)
    pack_with_fifth_bits(encode(x, least, reciprocal(d), np.float32(0.5), np.int32(31)), raw_bytes(out), 4)


def _quantize_q5_0_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, codes = search_symmetric(x, imatrix, 16)
    blocks["d"] = to_f16(d)
    pack_with_fifth_bits(codes, raw_bytes(blocks), 2)


def _quantize_q5_1_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, minima, codes = search_affine(x, imatrix, 31)
    blocks["d"] = to_f16(d)
    blocks["m"] = to_f16(minima)
    pack_with_fifth_bits(codes, raw_bytes(blocks), 4)


@kernel
def _spread_q5_0(raw: Bytes, out: Floats) -> None:
    half = raw.shape[1] - 6
    for i in range(len(raw)):
        d, word = read_half(raw[i], 0), fifth_bits(raw, i, 2)
        for j in range(half):
            byte = np.int32(raw[i, 6 + j])
            low, high = np.int32(word >> np.uint32(j)) & 1, np.int32(word >> np.uint32(16 + j)) & 1
            out[i, j] = np.float32(np.int32(byte & 15 | low << 4) - 16) * d
            out[i, 16 + j] = np.float32(np.int32(byte >> 4 | high << 4) - 16) * d


@kernel
def _spread_q5_1(raw: Bytes, out: Floats) -> None:
    half = raw.shape[1] - 8
    for i in range(len(raw)):
        d, m, word = read_half(raw[i], 0), read_half(raw[i], 2), fifth_bits(raw, i, 4)
        for j in range(half):
            byte = np.int32(raw[i, 8 + j])
            low, high = np.int32(word >> np.uint32(j)) & 1, np.int32(word >> np.uint32(16 + j)) & 1
            out[i, j] = np.float32(np.int32(byte & 15 | low << 4)) * d + m
            out[i, 16 + j] = np.float32(np.int32(byte >> 4 | high << 4)) * d + m


def _dequantize_q5_0(blocks: Blocks, out: Floats) -> None:
    _spread_q5_0(raw_bytes(blocks), out)


def _dequantize_q5_1(blocks: Blocks, out: Floats) -> None:
    _spread_q5_1(raw_bytes(blocks), out)


def _dot_q5_0(w: Blocks, y: Blocks) -> Floats:
    codes = unpack_with_fifth_bits(raw_bytes(w), 2).view(np.int8)
    codes -= 16
    return scaled(integer_products(codes, y["qs"]), w, y)


def _dot_q5_1(w: Blocks, y: Blocks) -> Floats:
    return scaled_with_minimum(integer_products(unpack_with_fifth_bits(raw_bytes(w), 4), y["qs"]), w, y)


_codec = partial(Codec, uses_imatrix=True, compiled=True)
CODECS = (
    _codec(
        by_name("Q5_0"),
        Q5_0,
        _quantize_q5_0,
        _dequantize_q5_0,
        _dot_q5_0,
        "Q8_0",
        quantize_rows=_quantize_q5_0_weighted,
        streams=True,
    ),
    _codec(by_name("Q5_1"), Q5_1, _quantize_q5_1, _dequantize_q5_1, _dot_q5_1, "Q8_1", quantize_rows=_quantize_q5_1_weighted),
)
