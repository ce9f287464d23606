"""ggml's rounding to the nearest integer, ties to even, inside compiled loops.

Source: ``nearest_int`` in ggml/src/ggml-quants.c. Adding 1.5 * 2^23 leaves no bit for a fraction, and the integer stands in the low
bits of the sum. Beyond 2^22 they wrap: an infinity gives -2^22 and a NaN without payload 0, and so they do here.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.kernel import inner

_NO_FRACTION = np.float32(12582912)
_SIGNIFICAND = np.int32(0x007FFFFF)
_ZERO = np.int32(0x00400000)


@inner
def nearest(x: np.float32) -> np.int32:
    """Round ``x`` to an integer from -2^22 to 2^22 - 1."""
    bits = np.float32(x + _NO_FRACTION).view(np.int32)
    return np.int32(np.int32(bits & _SIGNIFICAND) - _ZERO)
