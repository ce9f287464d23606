"""F32, F16, BF16: a block is one number."""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Blocks, Codec, Floats
from impl.blocks.rounding import to_f16
from impl.types import by_name


def _quantize_f32(x: Floats, out: Blocks) -> None:
    out["d"].view(np.uint32)[:] = x[:, 0].view(np.uint32)  # bits, so that no NaN changes


def _dequantize_f32(blocks: Blocks, out: Floats) -> None:
    out[:, 0].view(np.uint32)[:] = blocks["d"].view(np.uint32)


def _quantize_f16(x: Floats, out: Blocks) -> None:
    out["d"] = to_f16(x[:, 0])


def _dequantize_f16(blocks: Blocks, out: Floats) -> None:
    out[:, 0] = blocks["d"]


def _quantize_bf16(x: Floats, out: Blocks) -> None:
    """Round the upper half of the bits, ties to even; a NaN keeps its upper half and is made quiet.

    Source: ``ggml_compute_fp32_to_bf16``, ggml/src/ggml-impl.h.
    """
    bits = x[:, 0].view(np.uint32)
    upper = bits >> 16
    rounded = (bits + (upper & 1) + np.uint32(0x7FFF)) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    out["bits"] = np.where(nan, upper | 64, rounded)


def _dequantize_bf16(blocks: Blocks, out: Floats) -> None:
    np.left_shift(blocks["bits"], 16, out=out[:, 0].view(np.uint32), dtype=np.uint32)


CODECS = (
    Codec(by_name("F32"), np.dtype([("d", "<f4")]), _quantize_f32, _dequantize_f32),
    Codec(by_name("F16"), np.dtype([("d", "<f2")]), _quantize_f16, _dequantize_f16),
    Codec(by_name("BF16"), np.dtype([("bits", "<u2")]), _quantize_bf16, _dequantize_bf16),
)
