"""Q2_K to Q6_K: super-blocks of 256 elements, whose sub-blocks of 16 or 32 have quantized scales of their own.

Q2_K, Q4_K and Q5_K have a scale and a minimum for each sub-block, Q3_K and Q6_K a signed scale. This module only registers what the
others do: ``k_layout``, ``k_dequantize``, ``k_quantize``, ``k_dot``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.k_dequantize import dequantize_q2_k, dequantize_q3_k, dequantize_q4_k, dequantize_q5_k, dequantize_q6_k
from impl.blocks.k_dot import Input, dot_q2_k, dot_q3_k, dot_q4_k, dot_q5_k, dot_q6_k, input_of
from impl.blocks.k_lanes import SUPER_BLOCK
from impl.blocks.k_layout import Q2_K, Q3_K, Q4_K, Q5_K, Q6_K
from impl.blocks.k_quantize import quantize_q2_k, quantize_q3_k, quantize_q4_k, quantize_q5_k, quantize_q6_k
from impl.types import by_name

_Quantize = Callable[[Floats, Floats | None, Bytes], None]
_Dequantize = Callable[[Bytes, Floats], None]
_Dot = Callable[[Bytes, Input, Floats], None]


def _codec(
    name: str, layout: np.dtype[Any], quantize: _Quantize, dequantize: _Dequantize, dot: _Dot, *, streams: bool = False
) -> Codec:
    def quantize_rows(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
        quantize(x.reshape(-1, SUPER_BLOCK), imatrix, raw_bytes(out))

    def dequantize_blocks(blocks: Blocks, out: Floats) -> None:
        dequantize(raw_bytes(blocks), out)

    def dot_rows(w: Blocks, y: Blocks) -> Floats:
        out = np.empty(len(w), np.float32)
        dot(raw_bytes(w).reshape(*w.shape, layout.itemsize), input_of(y), out)
        return out

    return Codec(
        by_name(name),
        layout,
        quantize_rows=quantize_rows,
        dequantize=dequantize_blocks,
        dot_rows=dot_rows,
        partner="Q8_K",
        uses_imatrix=True,
        compiled=True,
        streams=streams,
    )


CODECS = (
    _codec("Q2_K", Q2_K, quantize_q2_k, dequantize_q2_k, dot_q2_k),
    _codec("Q3_K", Q3_K, quantize_q3_k, dequantize_q3_k, dot_q3_k),
    _codec("Q4_K", Q4_K, quantize_q4_k, dequantize_q4_k, dot_q4_k, streams=True),
    _codec("Q5_K", Q5_K, quantize_q5_k, dequantize_q5_k, dot_q5_k, streams=True),
    _codec("Q6_K", Q6_K, quantize_q6_k, dequantize_q6_k, dot_q6_k, streams=True),
)
