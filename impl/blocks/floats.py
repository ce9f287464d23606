"""F32, F16, BF16: a block is one number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Codec, Floats
from impl.blocks.half import f16_to_f32, f32_to_f16
from impl.blocks.kernel import kernel
from impl.types import by_name


def _quantize_f32(x: Floats, out: Blocks) -> None:
    out["d"].view(np.uint32)[:] = x[:, 0].view(np.uint32)  # bits, so that no NaN changes


def _dequantize_f32(blocks: Blocks, out: Floats) -> None:
    out[:, 0].view(np.uint32)[:] = blocks["d"].view(np.uint32)


def _quantize_f16(x: Floats, out: Blocks) -> None:
    f32_to_f16(x[:, 0], out["d"].view(np.uint16))


def _dequantize_f16(blocks: Blocks, out: Floats) -> None:
    f16_to_f32(blocks["d"].view(np.uint16), out[:, 0])


@kernel
def _round_bf16(bits: npt.NDArray[np.uint32], out: npt.NDArray[np.uint16]) -> None:
    for i in range(len(bits)):
        upper = np.uint32(bits[i] >> 16)
        nearest = np.uint32(bits[i] + 0x7FFF + (upper & 1)) >> 16
        out[i] = np.uint16(upper | 64 if bits[i] & 0x7FFFFFFF > 0x7F800000 else nearest)


def _quantize_bf16(x: Floats, out: Blocks) -> None:
    """Round the upper half of the bits, ties to even; a NaN keeps its upper half and is made quiet.

    Source: ``ggml_compute_fp32_to_bf16``, ggml/src/ggml-impl.h.
    """
    _round_bf16(x[:, 0].view(np.uint32), out["bits"])


@kernel
def _spread_bf16(upper: npt.NDArray[np.uint16], out: npt.NDArray[np.uint32]) -> None:
    for i in range(len(upper)):
        out[i] = np.uint32(upper[i]) << 16


def _dequantize_bf16(blocks: Blocks, out: Floats) -> None:
    _spread_bf16(blocks["bits"], out[:, 0].view(np.uint32))


CODECS = (
    Codec(by_name("F32"), np.dtype([("d", "<f4")]), _quantize_f32, _dequantize_f32, compiled=True),
    Codec(by_name("F16"), np.dtype([("d", "<f2")]), _quantize_f16, _dequantize_f16, compiled=True),
    Codec(by_name("BF16"), np.dtype([("bits", "<u2")]), _quantize_bf16, _dequantize_bf16, compiled=True, streams=True),
)
