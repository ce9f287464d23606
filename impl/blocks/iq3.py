"""IQ3_XXS, IQ3_S: 4 magnitudes at a time from a grid, signs apart, 4-bit scales of sub-blocks of 32.

Source: ``quantize_row_iq3_*_impl`` and ``dequantize_row_iq3_*`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Blocks, Bytes
from impl.blocks.iq_grids import sign_patterns
from impl.blocks.iq_parts import Format, Parts
from impl.blocks.iq_quantize import Quantizer, pairs, words
from impl.blocks.iq_search import Plan
from impl.blocks.kernel import kernel

IQ3_XXS = np.dtype([("d", "<f2"), ("qs", "u1", (64,)), ("scales_and_signs", "<u4", (8,))])
IQ3_S = np.dtype([("d", "<f2"), ("qs", "u1", (64,)), ("qh", "u1", (8,)), ("signs", "u1", (32,)), ("scales", "u1", (4,))])

_PATTERNS = sign_patterns()


@kernel
def _unpack_iq3_xxs(raw: Bytes, parts: Parts) -> None:
    """Take indices, a byte each; then for each sub-block a word: four times 7 bits of signs, on top the scale."""
    for block in range(len(raw)):
        for i in range(64):
            parts.indices[block, i] = raw[block, 2 + i]
        for i in range(8):
            word = np.uint32(raw[block, 66 + 4 * i])
            for byte in range(1, 4):
                word |= np.uint32(raw[block, 66 + 4 * i + byte]) << np.uint32(8 * byte)
            for j in range(4):
                parts.signs[block, 4 * i + j] = _PATTERNS[word >> np.uint32(7 * j) & np.uint32(127)]
            parts.codes[block, i] = word >> np.uint32(28)


@kernel
def _unpack_iq3_s(raw: Bytes, parts: Parts) -> None:
    """Take the low bytes of the indices, their ninth bits, eight a byte, signs, then the scales, two a byte, low nibble first."""
    for block in range(len(raw)):
        for i in range(64):
            parts.indices[block, i] = raw[block, 2 + i] | (raw[block, 66 + i // 8] >> i % 8 & 1) << 8
        for i in range(32):
            parts.signs[block, i] = raw[block, 74 + i]
        for i in range(8):
            parts.codes[block, i] = raw[block, 106 + i // 2] >> 4 * (i % 2) & 15


def _pack_iq3_xxs(parts: Parts, out: Blocks) -> None:
    out["qs"] = parts.indices
    out["scales_and_signs"] = words(parts.codes, parts.signs)


def _pack_iq3_s(parts: Parts, out: Blocks) -> None:
    out["qs"] = parts.indices
    out["qh"] = np.packbits(parts.indices >> 8 != 0, axis=1, bitorder="little")
    out["signs"] = parts.signs
    out["scales"] = pairs(parts.codes)


_PLAN_XXS = Plan(
    size=4,
    sub_block=32,
    top=np.float32(15),
    tries=15,
    lanes=32,
    step=np.float32(0.2),
    least=np.float32(1e-8),
    spread=np.float32(2),
    variance=False,
    free=False,
    fitted=False,
    again=False,
    stored=np.float32(1.0125),
    closes_up=False,
)
# IQ3_S takes all that is not 0; nothing but 0 is less than the smallest subnormal.
_PLAN_S = _PLAN_XXS._replace(
    tries=9, lanes=32, least=np.float32(2.0**-149), free=True, again=True, stored=np.float32(1.033), closes_up=True
)

_XXS = Quantizer(Format("IQ3_XXS", _unpack_iq3_xxs, sub_blocks=8, unit=0.25), _PLAN_XXS, _pack_iq3_xxs)
_S = Quantizer(Format("IQ3_S", _unpack_iq3_s, sub_blocks=8, unit=1.0), _PLAN_S, _pack_iq3_s)

CODECS = (_XXS.codec(IQ3_XXS), _S.codec(IQ3_S))
