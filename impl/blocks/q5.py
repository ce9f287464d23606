"""Q5_0 and Q5_1: 32 codes of 5 bits, the fifth bits apart, a scale, and for Q5_1 a minimum.

Source: ``quantize_row_q5_*_ref`` and ``dequantize_row_q5_*`` in ggml/src/ggml-quants.c, dot products in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats
from impl.blocks.extremes import minimum_and_maximum, signed_extreme
from impl.blocks.nibbles import pack, pack_fifth_bits, unpack_with_fifth_bits
from impl.blocks.products import integer_products, scaled, scaled_with_minimum
from impl.blocks.rounding import column, reciprocal, to_f16, truncated
from impl.blocks.weighted import search_affine, search_symmetric
from impl.types import by_name

Q5_0 = np.dtype([("d", "<f2"), ("qh", "u1", (4,)), ("qs", "u1", (16,))])
Q5_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qh", "u1", (4,)), ("qs", "u1", (16,))])


def _store_codes(codes: Bytes, out: Blocks) -> None:
    out["qh"] = pack_fifth_bits(codes)
    out["qs"] = pack(codes & np.uint8(15))


def _quantize_q5_0(x: Floats, out: Blocks) -> None:
    d = signed_extreme(x) / np.float32(-16)
    scaled_x = x * reciprocal(d)[:, np.newaxis]
    scaled_x += np.float32(16.5)
    codes = truncated(scaled_x)
    out["d"] = to_f16(d)
    _store_codes(np.minimum(codes, 31, out=codes).view(np.uint8), out)


def _quantize_q5_1(x: Floats, out: Blocks) -> None:
    least, greatest = minimum_and_maximum(x)
    d = (greatest - least) / np.float32(31)
    scaled_x = x - least[:, np.newaxis]
    scaled_x *= reciprocal(d)[:, np.newaxis]
    scaled_x += np.float32(0.5)
    out["d"] = to_f16(d)
    out["m"] = to_f16(least)
    _store_codes(truncated(scaled_x).view(np.uint8), out)


def _quantize_q5_0_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, codes = search_symmetric(x, imatrix, 16)
    blocks["d"] = to_f16(d)
    _store_codes(codes, blocks)


def _quantize_q5_1_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, minima, codes = search_affine(x, imatrix, 31)
    blocks["d"] = to_f16(d)
    blocks["m"] = to_f16(minima)
    _store_codes(codes, blocks)


def _codes(blocks: Blocks) -> Bytes:
    return unpack_with_fifth_bits(blocks["qs"], blocks["qh"])


def _signed_codes(blocks: Blocks) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    codes = _codes(blocks).view(np.int8)
    codes -= 16
    return codes


def _dequantize_q5_0(blocks: Blocks, out: Floats) -> None:
    np.multiply(_signed_codes(blocks), column(blocks["d"]), out=out)


def _dequantize_q5_1(blocks: Blocks, out: Floats) -> None:
    np.multiply(_codes(blocks), column(blocks["d"]), out=out)
    out += column(blocks["m"])


def _dot_q5_0(w: Blocks, y: Blocks) -> Floats:
    return scaled(integer_products(_signed_codes(w), y["qs"]), w, y)


def _dot_q5_1(w: Blocks, y: Blocks) -> Floats:
    return scaled_with_minimum(integer_products(_codes(w), y["qs"]), w, y)


_codec = partial(Codec, uses_imatrix=True)
CODECS = (
    _codec(by_name("Q5_0"), Q5_0, _quantize_q5_0, _dequantize_q5_0, _dot_q5_0, "Q8_0", quantize_rows=_quantize_q5_0_weighted),
    _codec(by_name("Q5_1"), Q5_1, _quantize_q5_1, _dequantize_q5_1, _dot_q5_1, "Q8_1", quantize_rows=_quantize_q5_1_weighted),
)
