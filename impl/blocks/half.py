"""float16 for compiled loops, which know no such type: its 16 bits to float32 and back, as ggml converts them.

Source: ``ggml_compute_fp16_to_fp32``, ``ggml_compute_fp32_to_fp16`` in ggml/src/ggml-impl.h: rounded once, ties to even, subnormals
kept; a NaN becomes the quiet NaN 0x7E00 with its sign.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Floats
from impl.blocks.kernel import inner, kernel

_MAGNITUDE = np.uint32(0x7FFFFFFF)
_REBIAS = np.uint32(112 << 23)  # float32's exponent bias over float16's, 127 - 15
_INFINITE = np.uint32(0x7F800000)
_STEP = np.float32(2.0**-24)  # of float16's subnormals
_HALF = np.float32(0.5)  # in float32, numbers from 0.5 to 1 have the step of float16's subnormals
_HALF_BITS = np.uint32(0x3F000000)
_SMALLEST_NORMAL = np.uint32(0x38800000)  # 2^-14
_TOO_LARGE = np.uint32(0x47800000)  # 65536


@inner
def f16_bits_to_f32(half: np.uint16) -> np.float32:
    """Give the float32 of a float16's bits; exact."""
    magnitude = np.uint32(half & 0x7FFF)
    normal = np.uint32((magnitude << 13) + _REBIAS)
    subnormal = np.float32(np.float32(np.int32(magnitude)) * _STEP).view(np.uint32)
    bits = subnormal if magnitude < 0x400 else normal
    bits = np.uint32(bits | _INFINITE) if magnitude >= 0x7C00 else bits
    return np.uint32(bits | np.uint32(half >> 15) << 31).view(np.float32)


@inner
def f32_to_f16_bits(x: np.float32) -> np.uint16:
    """Give the bits of the float16 nearest to ``x``."""
    bits = np.float32(x).view(np.uint32)
    magnitude = np.uint32(bits & _MAGNITUDE)
    subnormal = np.uint32(np.float32(np.uint32(magnitude).view(np.float32) + _HALF).view(np.uint32) - _HALF_BITS)
    normal = np.uint32(np.uint32(magnitude + 0xFFF + (magnitude >> 13 & 1)) - _REBIAS) >> 13
    half = np.uint32(subnormal if magnitude < _SMALLEST_NORMAL else normal)
    half = np.uint32(0x7C00 if magnitude >= _TOO_LARGE else half)
    half = np.uint32(0x7E00 if magnitude > _INFINITE else half)
    return np.uint16(half | (bits >> 16 & 0x8000))


@kernel
def f16_to_f32(half: npt.NDArray[np.uint16], out: Floats) -> None:
    """Convert bits of shape (n,) to ``out``, of the same shape."""
    for i in range(len(half)):
        out[i] = f16_bits_to_f32(half[i])


@kernel
def f32_to_f16(x: Floats, out: npt.NDArray[np.uint16]) -> None:
    """Convert numbers of shape (n,) to the bits ``out``, of the same shape."""
    for i in range(len(x)):
        out[i] = f32_to_f16_bits(x[i])
