"""Q2_K to Q6_K: super-blocks of 256 elements, whose sub-blocks of 16 or 32 have quantized scales of their own.

Q2_K, Q4_K and Q5_K have a scale and a minimum for each sub-block, Q3_K and Q6_K a signed scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats
from impl.blocks.k_dequantize import dequantize_q2_k, dequantize_q3_k, dequantize_q4_k, dequantize_q5_k, dequantize_q6_k
from impl.blocks.k_layout import Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, raw
from impl.types import by_name


def _codec(
    name: str,
    layout: np.dtype[Any],
    dequantize: Callable[[Bytes, Floats], None],
) -> Codec:
    def dequantize_blocks(blocks: Blocks, out: Floats) -> None:
        dequantize(raw(blocks), out)

    return Codec(
        by_name(name),
        layout,
        dequantize=dequantize_blocks,
        uses_imatrix=True,
    )


CODECS = (
    _codec("Q2_K", Q2_K, dequantize_q2_k),
    _codec("Q3_K", Q3_K, dequantize_q3_k),
    _codec("Q4_K", Q4_K, dequantize_q4_k),
    _codec("Q5_K", Q5_K, dequantize_q5_k),
    _codec("Q6_K", Q6_K, dequantize_q6_k),
)
