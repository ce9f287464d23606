"""The 16 levels that the codes of IQ4_NL and IQ4_XS stand for, and the nibbles that hold the codes.

ggml finds the level nearest to a number by bisection and compares its distances to two levels. These differences are exact near
the middle, so a number's code is the count of the middles that are not above it: no branch, and NaN gets 15, as there.

In all loops ``raw`` is uint8 of shape (records, bytes), whose nibbles start at byte ``at``: 16 bytes a block of 32, element i in
the low nibble of byte i and element i + 16 in the high one.

Source: ``kvalues_iq4nl`` in ggml/src/ggml-common.h, ``best_index_int8`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Bytes, Floats
from impl.blocks.kernel import inner, kernel

LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)

# Tuples are constants to the compiler, which then unrolls the loops over them.
_LEVELS = tuple(LEVELS)
_MIDDLES = tuple((LEVELS[1:] + LEVELS[:-1]) / np.float32(2))


@inner
def nearest_level(x: np.float32) -> np.float32:
    """Give the level nearest to ``x``, in the middle the upper one."""
    level: np.float32 = _LEVELS[0]
    for i in range(15):
        level = level if x < _MIDDLES[i] else _LEVELS[i + 1]
    return level


@inner
def nearest_code(x: np.float32) -> int:
    """Give the code, 0 to 15, of the level nearest to ``x``."""
    code = 0
    for i in range(15):
        code += not x < _MIDDLES[i]
    return code


@kernel
def write_codes(x: Floats, inverse: Floats, raw: Bytes, at: int) -> None:
    """Write the codes of ``x``, shape (records, blocks, 32), times ``inverse``, one a block: shape (records, blocks)."""
    for record in range(x.shape[0]):
        for block in range(x.shape[1]):
            for i in range(16):
                low = nearest_code(inverse[record, block] * x[record, block, i])
                high = nearest_code(inverse[record, block] * x[record, block, 16 + i])
                raw[record, at + 16 * block + i] = low | high << 4


@kernel
def read_levels(raw: Bytes, at: int, scale: Floats, out: Floats) -> None:
    """Write levels times ``scale``, one a block, to ``out``. Shapes: (records, blocks), (records, blocks, 32)."""
    for record in range(out.shape[0]):
        for block in range(out.shape[1]):
            for i in range(16):
                pair = raw[record, at + 16 * block + i]
                out[record, block, i] = scale[record, block] * LEVELS[pair & 15]
                out[record, block, 16 + i] = scale[record, block] * LEVELS[pair >> 4]


@kernel
def multiply_levels(raw: Bytes, at: int, quants: npt.NDArray[np.int8], sums: Floats) -> None:
    """Write each block's sum of levels times ``quants``: shapes (records, blocks, 32), (records, blocks).

    The sum is an integer below 2**24, exact in float32 in whatever order.
    """
    for record in range(sums.shape[0]):
        for block in range(sums.shape[1]):
            total = np.float32(0)
            for i in range(16):
                pair = raw[record, at + 16 * block + i]
                total += LEVELS[pair & 15] * np.float32(quants[record, block, i])
                total += LEVELS[pair >> 4] * np.float32(quants[record, block, 16 + i])
            sums[record, block] = total
