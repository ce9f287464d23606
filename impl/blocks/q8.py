"""Q8_0 and Q8_1: 32 signed bytes and a scale; Q8_1, which serves dot products only, also stores their scaled sum.

Source: ``quantize_row_q8_*_ref`` and ``dequantize_row_q8_0`` in ggml/src/ggml-quants.c, ``ggml_vec_dot_q8_0_q8_0_generic`` in
ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Codec, Floats
from impl.blocks.extremes import largest_magnitude
from impl.blocks.products import integer_products, scaled
from impl.blocks.rounding import column, reciprocal, rounded, to_f16
from impl.types import by_name

Q8_0 = np.dtype([("d", "<f2"), ("qs", "i1", (32,))])
Q8_1 = np.dtype([("d", "<f2"), ("s", "<f2"), ("qs", "i1", (32,))])


def scales(x: Floats) -> Floats:
    """Give the scale of each block of 32, in float32 as it is before it is stored."""
    return largest_magnitude(x) / np.float32(127)


def quants(x: Floats, d: Floats) -> npt.NDArray[np.int8]:
    """Round each block of ``x`` over its scale; a scale of 0 gives zeros."""
    return rounded(x * reciprocal(d)[:, np.newaxis])


def _quantize_q8_0(x: Floats, out: Blocks) -> None:
    d = scales(x)
    out["d"] = to_f16(d)
    out["qs"] = quants(x, d)


def _quantize_q8_1(x: Floats, out: Blocks) -> None:
    d = scales(x)
    q = quants(x, d)
    out["d"] = to_f16(d)
    out["s"] = to_f16(q.sum(axis=1, dtype=np.int32).astype(np.float32) * d)
    out["qs"] = q


def _dequantize_q8_0(blocks: Blocks, out: Floats) -> None:
    np.multiply(blocks["qs"], column(blocks["d"]), out=out)


def _dot_q8_0(w: Blocks, y: Blocks) -> Floats:
    return scaled(integer_products(w["qs"], y["qs"]), w, y)


CODECS = (
    Codec(by_name("Q8_0"), Q8_0, _quantize_q8_0, _dequantize_q8_0, _dot_q8_0, partner="Q8_0"),
    Codec(by_name("Q8_1"), Q8_1, quantize_ref=_quantize_q8_1),
)
