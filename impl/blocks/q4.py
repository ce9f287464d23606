"""Q4_0 and Q4_1: 32 codes of 4 bits, a scale, and for Q4_1 a minimum.

Source: ``quantize_row_q4_*_ref`` and ``dequantize_row_q4_*`` in ggml/src/ggml-quants.c, dot products in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.extremes import minimum_and_maximum, signed_extreme
from impl.blocks.k_layout import read_half
from impl.blocks.kernel import kernel
from impl.blocks.nibbles import encode, pack, unpack
from impl.blocks.products import integer_products, scaled_with_minimum
from impl.blocks.rounding import reciprocal, to_f16
from impl.blocks.weighted import search_affine, search_symmetric
from impl.types import by_name

Q4_0 = np.dtype([("d", "<f2"), ("qs", "u1", (16,))])
Q4_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qs", "u1", (16,))])


def _quantize_q4_0(x: Floats, out: Blocks) -> None:
    d = signed_extreme(x) / np.float32(-8)
    out["d"] = to_f16(d)
    pack(encode(x, np.zeros_like(d), reciprocal(d), np.float32(8.5), np.int32(15)), raw_bytes(out), 2)


def _quantize_q4_1(x: Floats, out: Blocks) -> None:
    least, greatest = minimum_and_maximum(x)
    d = (greatest - least) / np.float32(15)
    out["d"] = to_f16(d)
    out["m"] = to_f16(least)
    pack(encode(x, least, reciprocal(d), np.float32(0.5), np.int32(15)), raw_bytes(out), 4)


def _quantize_q4_0_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, codes = search_symmetric(x, imatrix, 8)
    blocks["d"] = to_f16(d)
    pack(codes, raw_bytes(blocks), 2)


def _quantize_q4_1_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, minima, codes = search_affine(x, imatrix, 15)
    blocks["d"] = to_f16(d)
    blocks["m"] = to_f16(minima)
    pack(codes, raw_bytes(blocks), 4)


@kernel
def _spread_q4_0(raw: Bytes, out: Floats) -> None:
    half = raw.shape[1] - 2
    for i in range(len(raw)):
        d = read_half(raw[i], 0)
        for j in range(half):
            byte = np.int32(raw[i, 2 + j])
            out[i, j] = np.float32((byte & 15) - 8) * d
            out[i, 16 + j] = np.float32((byte >> 4) - 8) * d


@kernel
def _spread_q4_1(raw: Bytes, out: Floats) -> None:
    half = raw.shape[1] - 4
    for i in range(len(raw)):
        d, m = read_half(raw[i], 0), read_half(raw[i], 2)
        for j in range(half):
            byte = np.int32(raw[i, 4 + j])
            out[i, j] = np.float32(byte & 15) * d + m
            out[i, 16 + j] = np.float32(byte >> 4) * d + m


def _dequantize_q4_0(blocks: Blocks, out: Floats) -> None:
    _spread_q4_0(raw_bytes(blocks), out)


def _dequantize_q4_1(blocks: Blocks, out: Floats) -> None:
    _spread_q4_1(raw_bytes(blocks), out)


def _dot_q4_0(w: Blocks, y: Blocks) -> Floats:
    codes = unpack(raw_bytes(w), 2).view(np.int8)
    codes -= 8
    sums = integer_products(codes, y["qs"])
    term: Floats = sums * w["d"].astype(np.float32) * y["d"].astype(np.float32)  # the one type that scales in this order
    return term


def _dot_q4_1(w: Blocks, y: Blocks) -> Floats:
    return scaled_with_minimum(integer_products(unpack(raw_bytes(w), 4), y["qs"]), w, y)


_codec = partial(Codec, uses_imatrix=True, compiled=True, streams=True)
CODECS = (
    _codec(by_name("Q4_0"), Q4_0, _quantize_q4_0, _dequantize_q4_0, _dot_q4_0, "Q8_0", quantize_rows=_quantize_q4_0_weighted),
    _codec(by_name("Q4_1"), Q4_1, _quantize_q4_1, _dequantize_q4_1, _dot_q4_1, "Q8_1", quantize_rows=_quantize_q4_1_weighted),
)
