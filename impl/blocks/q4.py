"""Q4_0 and Q4_1: 32 codes of 4 bits, a scale, and for Q4_1 a minimum.

Source: ``quantize_row_q4_*_ref`` and ``dequantize_row_q4_*`` in ggml/src/ggml-quants.c, dot products in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats
from impl.blocks.extremes import minimum_and_maximum, signed_extreme
from impl.blocks.nibbles import pack, unpack
from impl.blocks.products import integer_products, scaled_with_minimum
from impl.blocks.rounding import column, reciprocal, to_f16, truncated
from impl.blocks.weighted import search_affine, search_symmetric
from impl.types import by_name

Q4_0 = np.dtype([("d", "<f2"), ("qs", "u1", (16,))])
Q4_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qs", "u1", (16,))])


def _codes(x: Floats) -> Bytes:
    """Cut to integers of 8 bits, at most 15. ``MIN`` compares them as signed and keeps their bits."""
    codes = truncated(x)
    return np.minimum(codes, 15, out=codes).view(np.uint8)


def _quantize_q4_0(x: Floats, out: Blocks) -> None:
    d = signed_extreme(x) / np.float32(-8)
    scaled = x * reciprocal(d)[:, np.newaxis]
    scaled += np.float32(8.5)
    out["d"] = to_f16(d)
    out["qs"] = pack(_codes(scaled))


def _quantize_q4_1(x: Floats, out: Blocks) -> None:
    least, greatest = minimum_and_maximum(x)
    d = (greatest - least) / np.float32(15)
    scaled = x - least[:, np.newaxis]
    scaled *= reciprocal(d)[:, np.newaxis]
    scaled += np.float32(0.5)
    out["d"] = to_f16(d)
    out["m"] = to_f16(least)
    out["qs"] = pack(_codes(scaled))


def _quantize_q4_0_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, codes = search_symmetric(x, imatrix, 8)
    blocks["d"] = to_f16(d)
    blocks["qs"] = pack(codes)


def _quantize_q4_1_weighted(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    assert imatrix is not None  # noqa: S101 - without one, the plain function is asked
    blocks = out.reshape(-1)
    d, minima, codes = search_affine(x, imatrix, 15)
    blocks["d"] = to_f16(d)
    blocks["m"] = to_f16(minima)
    blocks["qs"] = pack(codes)


def _signed_codes(blocks: Blocks) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    codes = unpack(blocks["qs"]).view(np.int8)
    codes -= 8
    return codes


def _dequantize_q4_0(blocks: Blocks, out: Floats) -> None:
    np.multiply(_signed_codes(blocks), column(blocks["d"]), out=out)


def _dequantize_q4_1(blocks: Blocks, out: Floats) -> None:
    np.multiply(unpack(blocks["qs"]), column(blocks["d"]), out=out)
    out += column(blocks["m"])


def _dot_q4_0(w: Blocks, y: Blocks) -> Floats:
    sums = integer_products(_signed_codes(w), y["qs"])
    term: Floats = sums * w["d"].astype(np.float32) * y["d"].astype(np.float32)  # the one type that scales in this order
    return term


def _dot_q4_1(w: Blocks, y: Blocks) -> Floats:
    return scaled_with_minimum(integer_products(unpack(w["qs"]), y["qs"]), w, y)


_codec = partial(Codec, uses_imatrix=True)
CODECS = (
    _codec(by_name("Q4_0"), Q4_0, _quantize_q4_0, _dequantize_q4_0, _dot_q4_0, "Q8_0", quantize_rows=_quantize_q4_0_weighted),
    _codec(by_name("Q4_1"), Q4_1, _quantize_q4_1, _dequantize_q4_1, _dot_q4_1, "Q8_1", quantize_rows=_quantize_q4_1_weighted),
)
