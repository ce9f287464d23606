"""Conversions between floats and integers exactly as the compiled ggml does them, undefined ones included.

C leaves the conversion of a NaN, an infinity or a number out of range to an integer undefined. On x86 it gives the smallest
32-bit integer, whose low byte is 0; here it gives 0 on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Floats
from impl.blocks.half import f32_to_f16
from impl.blocks.kernel import kernel

# The largest float32 below one half. Added to x with x's sign before the fraction is cut off, it rounds half away from zero, as
# roundf does; one half itself would carry 0.49999997 up to 1.
_BELOW_HALF = np.float32(0.49999997)
_INT32 = np.float32(2**31)
_ZERO = np.float32(0)


@kernel
def truncated(x: np.float32) -> np.int8:
    """Cut off the fraction and keep the low 8 bits: C's ``(int8_t)`` of a float. NaN and what passes 32 bits give 0."""
    return np.int8(np.int32(x if abs(x) < _INT32 else _ZERO))


@kernel
def rounded(x: np.float32) -> np.int8:
    """Round half away from zero and keep the low 8 bits: C's ``(int8_t) roundf(x)``."""
    return truncated(x + np.float32(np.copysign(_BELOW_HALF, x)))


def reciprocal(d: Floats) -> Floats:
    """Give 1/d, and 0 where d is 0. The reciprocal of the smallest subnormals is infinite."""
    return np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)


def to_f16(x: Floats) -> npt.NDArray[np.float16]:
    """Round to float16, ties to even. A NaN becomes the quiet NaN without payload, its sign kept.

    Source: ``ggml_compute_fp32_to_fp16``, ggml/src/ggml-impl.h.
    """
    half = np.empty(x.shape, np.uint16)
    f32_to_f16(x.reshape(-1), half.reshape(-1))
    return half.view(np.float16)


def column(values: npt.NDArray[Any]) -> Floats:
    """Give float16 numbers, one a block, as float32 of shape (blocks, 1)."""
    return values.astype(np.float32)[:, np.newaxis]
