"""IQ2_XXS, IQ2_XS, IQ2_S: 8 magnitudes at a time from a grid, signs apart, 4-bit scales of sub-blocks.

Source: ``quantize_row_iq2_*_impl`` and ``dequantize_row_iq2_*`` in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Blocks, Bytes
from impl.blocks.iq_grids import sign_patterns
from impl.blocks.iq_parts import Format, Parts
from impl.blocks.iq_quantize import Quantizer, pairs, words
from impl.blocks.iq_search import Plan
from impl.blocks.kernel import inner, kernel

IQ2_XXS = np.dtype([("d", "<f2"), ("qs", "<u4", (8, 2))])
IQ2_XS = np.dtype([("d", "<f2"), ("qs", "<u2", (32,)), ("scales", "u1", (8,))])
IQ2_S = np.dtype([("d", "<f2"), ("qs", "u1", (32,)), ("signs", "u1", (32,)), ("qh", "u1", (8,)), ("scales", "u1", (8,))])

_UNIT = 0.125
_PATTERNS = sign_patterns()


@inner
def _unpack_nibbles(packed: Bytes, out: Bytes) -> None:
    for i in range(len(packed)):
        out[2 * i] = packed[i] & 15
        out[2 * i + 1] = packed[i] >> 4


@kernel
def _unpack_iq2_xxs(raw: Bytes, parts: Parts) -> None:
    """Split each sub-block of 32: it has four bytes of indices, then a word: four times 7 bits of signs, on top the scale."""
    for block in range(len(raw)):
        for i in range(8):
            at = 2 + 8 * i
            word = np.uint32(raw[block, at + 4])
            for byte in range(1, 4):
                word |= np.uint32(raw[block, at + 4 + byte]) << np.uint32(8 * byte)
            for j in range(4):
                parts.indices[block, 4 * i + j] = raw[block, at + j]
                parts.signs[block, 4 * i + j] = _PATTERNS[word >> np.uint32(7 * j) & np.uint32(127)]
            parts.codes[block, i] = word >> np.uint32(28)


@kernel
def _unpack_iq2_xs(raw: Bytes, parts: Parts) -> None:
    """Split each word, 9 bits of index and 7 of signs; then the scales of sub-blocks of 16, two a byte, low nibble first."""
    for block in range(len(raw)):
        for i in range(32):
            low, high = raw[block, 2 + 2 * i], raw[block, 3 + 2 * i]
            parts.indices[block, i] = low | (high & 1) << 8
            parts.signs[block, i] = _PATTERNS[high >> 1]
        _unpack_nibbles(raw[block, 66:74], parts.codes[block])


@kernel
def _unpack_iq2_s(raw: Bytes, parts: Parts) -> None:
    """Take the low bytes of the indices, signs, the indices' upper bit pairs, four a byte, then the scales, two a byte."""
    for block in range(len(raw)):
        for i in range(32):
            upper = raw[block, 66 + i // 4] >> 2 * (i % 4) & 3
            parts.indices[block, i] = raw[block, 2 + i] | upper << 8
            parts.signs[block, i] = raw[block, 34 + i]
        _unpack_nibbles(raw[block, 74:82], parts.codes[block])


def _pack_iq2_xxs(parts: Parts, out: Blocks) -> None:
    out["qs"][:, :, 0] = parts.indices.astype(np.uint8).view("<u4")
    out["qs"][:, :, 1] = words(parts.codes, parts.signs)


def _pack_iq2_xs(parts: Parts, out: Blocks) -> None:
    out["qs"] = parts.indices | parts.signs.astype(np.uint16) << np.uint16(9)
    out["scales"] = pairs(parts.codes)


def _pack_iq2_s(parts: Parts, out: Blocks) -> None:
    out["qs"] = parts.indices
    out["signs"] = parts.signs
    upper = (parts.indices >> 8).astype(np.uint8).reshape(-1, 8, 4) << np.arange(0, 8, 2, dtype=np.uint8)
    out["qh"] = upper[..., 0] | upper[..., 1] | upper[..., 2] | upper[..., 3]
    out["scales"] = pairs(parts.codes)


_PLAN_XXS = Plan(
    size=8,
    sub_block=32,
    top=np.float32(5),
    tries=6,
    lanes=16,
    step=np.float32(0.1),
    least=np.float32(1e-15),
    spread=np.float32(1),
    variance=False,
    free=False,
    fitted=True,
    again=True,
    stored=np.float32(1),
    closes_up=False,
)
_PLAN_XS = _PLAN_XXS._replace(sub_block=16, tries=9, lanes=24, fitted=False, again=False)
_PLAN_S = _PLAN_XS._replace(least=np.float32(1e-8), spread=np.float32(2), variance=True, free=True, stored=np.float32(0.9875))

_XXS = Quantizer(Format("IQ2_XXS", _unpack_iq2_xxs, sub_blocks=8, unit=_UNIT), _PLAN_XXS, _pack_iq2_xxs)
_XS = Quantizer(Format("IQ2_XS", _unpack_iq2_xs, sub_blocks=16, unit=_UNIT), _PLAN_XS, _pack_iq2_xs)
_S = Quantizer(Format("IQ2_S", _unpack_iq2_s, sub_blocks=16, unit=_UNIT), _PLAN_S, _pack_iq2_s)

CODECS = (
    _XXS.codec(IQ2_XXS, needs_imatrix=True),
    _XS.codec(IQ2_XS, needs_imatrix=True),
    _S.codec(IQ2_S),
)
