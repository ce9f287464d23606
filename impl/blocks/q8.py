"""Q8_0 and Q8_1: 32 signed bytes and a scale; Q8_1, which serves dot products only, also stores their scaled sum.

Source: ``quantize_row_q8_*_ref`` and ``dequantize_row_q8_0`` in ggml/src/ggml-quants.c, ``ggml_vec_dot_q8_0_q8_0_generic`` in
ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.extremes import largest_magnitude
from impl.blocks.k_layout import read_half
from impl.blocks.kernel import kernel
from impl.blocks.products import integer_products, scaled
from impl.blocks.rounding import reciprocal, rounded, to_f16
from impl.types import by_name

Q8_0 = np.dtype([("d", "<f2"), ("qs", "i1", (32,))])
Q8_1 = np.dtype([("d", "<f2"), ("s", "<f2"), ("qs", "i1", (32,))])


def _scales(x: Floats) -> Floats:
    """Give the scale of each block of 32, in float32 as it is before it is stored."""
    return largest_magnitude(x) / np.float32(127)


@kernel
def _round(x: Floats, inverse: Floats, raw: Bytes, at: int) -> None:
    """Store ``x * inverse``, rounded, from byte ``at`` of each block on."""
    cols = x.shape[1]
    for i in range(len(x)):
        factor, row = inverse[i], raw[i, at:]
        for j in range(cols):
            row[j] = np.uint8(rounded(x[i, j] * factor))


def store_quants(x: Floats, d: Floats, raw: Bytes, at: int) -> None:
    """Round each block of ``x`` over its scale; a scale of 0 gives zeros. ``raw`` has shape (blocks, bytes a block)."""
    _round(x, reciprocal(d), raw, at)


@kernel
def _spread_q8_0(raw: Bytes, out: Floats) -> None:
    cols = raw.shape[1] - 2
    for i in range(len(raw)):
        d = read_half(raw[i], 0)
        for j in range(cols):
            out[i, j] = np.float32(np.int8(raw[i, 2 + j])) * d


def _quantize_q8_0(x: Floats, out: Blocks) -> None:
    d = _scales(x)
    out["d"] = to_f16(d)
    store_quants(x, d, raw_bytes(out), 2)


def _quantize_q8_1(x: Floats, out: Blocks) -> None:
    d = _scales(x)
    out["d"] = to_f16(d)
    store_quants(x, d, raw_bytes(out), 4)
    out["s"] = to_f16(out["qs"].sum(axis=1, dtype=np.int32).astype(np.float32) * d)


def _dequantize_q8_0(blocks: Blocks, out: Floats) -> None:
    _spread_q8_0(raw_bytes(blocks), out)


def _dot_q8_0(w: Blocks, y: Blocks) -> Floats:
    return scaled(integer_products(w["qs"], y["qs"]), w, y)


CODECS = (
    Codec(by_name("Q8_0"), Q8_0, _quantize_q8_0, _dequantize_q8_0, _dot_q8_0, partner="Q8_0", compiled=True, streams=True),
    Codec(by_name("Q8_1"), Q8_1, quantize_ref=_quantize_q8_1, compiled=True),
)
