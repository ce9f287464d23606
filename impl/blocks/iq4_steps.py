"""IQ4_XS's block scales: 6 bits each, as steps of the super-block's scale, from -32 to 31.

They are stored with 32 added. In all loops ``raw`` is uint8 of shape (records, bytes): bytes 2 and 3 are a word with the upper
two bits of each block, the first lowest; bytes 4 to 7 have the lower four, two blocks a byte, the first in the low nibble.

Source: the second half of ``quantize_row_iq4_nl_impl``, and ``dequantize_row_iq4_xs``, in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.kernel import kernel
from impl.blocks.nearest import nearest

_LEAST, _GREATEST = np.int32(-32), np.int32(31)
_ONE, _ZERO = np.float32(1), np.float32(0)


@kernel
def store_steps(scale: Floats, d: Floats, raw: Bytes, inverse: Floats) -> None:
    """Store ``scale`` over ``d``, and give the inverse of what is stored, 0 of 0.

    Shapes: ``scale`` and ``inverse`` (records, 8), ``d`` (records,).
    """
    for record in range(len(scale)):
        over = _ONE / d[record] if d[record] != _ZERO else _ZERO
        upper = np.int32(0)
        for block in range(8):
            step = min(max(nearest(over * scale[record, block]), _LEAST), _GREATEST)
            stored = d[record] * np.float32(step)
            inverse[record, block] = _ONE / stored if stored != _ZERO else _ZERO
            upper |= (step + 32 >> 4) << 2 * block
            lower = (step & 15) << 4 * (block % 2)
            raw[record, 4 + block // 2] = lower | (raw[record, 4 + block // 2] if block % 2 else 0)
        raw[record, 2] = upper & 255
        raw[record, 3] = upper >> 8


@kernel
def load_steps(raw: Bytes, steps: Floats) -> None:
    """Give the steps. Shape of ``steps``: (records, 8)."""
    for record in range(len(steps)):
        upper = raw[record, 2] | raw[record, 3] << 8
        for block in range(8):
            lower = raw[record, 4 + block // 2] >> 4 * (block % 2) & 15
            steps[record, block] = np.float32((lower | (upper >> 2 * block & 3) << 4) - 32)
