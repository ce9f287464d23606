"""IQ1_S and IQ1_M: super-blocks of 256 elements, eight at a time a point of one grid of -1, 0 and 1, moved up or down by 1/8.

An element is ``d * (2 * code + 1) * (grid value + shift / 8)``, with a code of 3 bits for each 32 (IQ1_S) or 16 elements
(IQ1_M), and a shift of 1 or -1 for each 32 (IQ1_S) or 8 (IQ1_M).

Source: ``dequantize_row_iq1_*`` in ggml/src/ggml-quants.c, ``ggml_vec_dot_iq1_*_generic`` in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.half import f16_bits_to_f32
from impl.blocks.iq1_quantize import quantize_iq1_m, quantize_iq1_s
from impl.blocks.iq_grids import grid
from impl.blocks.kernel import kernel
from impl.blocks.products import sum_in_order
from impl.types import by_name

IQ1_S = np.dtype([("d", "<f2"), ("qs", "u1", (32,)), ("qh", "<u2", (8,))])
IQ1_M = np.dtype([("qs", "u1", (32,)), ("qh", "u1", (16,)), ("scales", "<u2", (4,))])

_DELTA = np.float32(0.125)
_TOGETHER = 2048


class Parts(NamedTuple):
    """What blocks hold: ``d``, float32 of shape (blocks,); for each 8 elements, shape (blocks, 32), the other three.

    ``point``, uint16: its index in the grid. ``factor``, int8: odd, 1 to 15. ``shift``, int8: 1 or -1.
    """

    d: Floats
    point: npt.NDArray[np.uint16]
    factor: npt.NDArray[np.int8]
    shift: npt.NDArray[np.int8]


Unpack = Callable[[Bytes, Parts], None]


@kernel
def _unpack_iq1_s(raw: Bytes, parts: Parts) -> None:
    """Read blocks of 50 bytes: d, the indices' low bytes, eight words of their upper bits (3 each), code and shift."""
    for block in range(len(raw)):
        parts.d[block] = f16_bits_to_f32(np.uint16(raw[block, 0] | raw[block, 1] << 8))
        for eight in range(32):
            word = raw[block, 34 + eight // 4 * 2] | raw[block, 35 + eight // 4 * 2] << 8
            parts.point[block, eight] = raw[block, 2 + eight] | (word >> 3 * (eight % 4) & 7) << 8
            parts.factor[block, eight] = 2 * (word >> 12 & 7) + 1
            parts.shift[block, eight] = -1 if word & 0x8000 else 1


@kernel
def _unpack_iq1_m(raw: Bytes, parts: Parts) -> None:
    """Read blocks of 56 bytes: low bytes, nibbles of upper bits and shift, and words of four codes with 4 bits of d on top."""
    for block in range(len(raw)):
        d = 0
        for i in range(4):
            d |= (raw[block, 49 + 2 * i] >> 4) << 4 * i
        parts.d[block] = f16_bits_to_f32(np.uint16(d))
        for eight in range(32):
            nibble = raw[block, 32 + eight // 2] >> 4 * (eight % 2) & 15
            word = raw[block, 48 + eight // 8 * 2] | raw[block, 49 + eight // 8 * 2] << 8
            parts.point[block, eight] = raw[block, eight] | (nibble & 7) << 8
            parts.factor[block, eight] = 2 * (word >> 3 * (eight // 2 % 4) & 7) + 1
            parts.shift[block, eight] = -1 if nibble & 8 else 1


@kernel
def _spread(parts: Parts, values: npt.NDArray[np.int8], out: Floats) -> None:
    for block in range(len(out)):
        for eight in range(32):
            scale = parts.d[block] * np.float32(parts.factor[block, eight])
            delta = _DELTA * np.float32(parts.shift[block, eight])
            point = values[parts.point[block, eight]]
            for i in range(8):
                out[block, 8 * eight + i] = scale * (np.float32(point[i]) + delta)


@kernel
def _multiply(parts: Parts, values: npt.NDArray[np.int8], quants: npt.NDArray[np.int8], sums: Floats) -> None:
    """Write each block's sum of ``factor * (value + shift / 8) * quant``; a multiple of 1/8 below 2**20, exact in float32."""
    for block in range(len(sums)):
        total, moved = np.int32(0), np.int32(0)
        for eight in range(32):
            point = values[parts.point[block, eight]]
            products, plain = np.int32(0), np.int32(0)
            for i in range(8):
                quant = np.int32(quants[block, 8 * eight + i])
                products += np.int32(point[i]) * quant
                plain += quant
            total += np.int32(parts.factor[block, eight]) * products
            moved += np.int32(parts.factor[block, eight]) * np.int32(parts.shift[block, eight]) * plain
        sums[block] = np.float32(total) + _DELTA * np.float32(moved)


def _room(blocks: int) -> Parts:
    shape = (blocks, 32)
    return Parts(np.empty(blocks, np.float32), np.empty(shape, np.uint16), np.empty(shape, np.int8), np.empty(shape, np.int8))


def _dequantize(unpack: Unpack, blocks: Blocks, out: Floats) -> None:
    """Take a few blocks at a time, so that what they hold stays in the cache."""
    raw, parts = raw_bytes(blocks), _room(min(len(blocks), _TOGETHER))
    for start in range(0, len(raw), _TOGETHER):
        unpack(raw[start : start + _TOGETHER], parts)
        _spread(parts, grid("IQ1_S"), out[start : start + _TOGETHER])


def _dot_rows(unpack: Unpack, w: Blocks, y: Blocks) -> Floats:
    """Add super-block by super-block: ``(dw * dy) * sum``."""
    parts, sums = _room(w.size), np.empty(w.size, np.float32)
    unpack(raw_bytes(w), parts)
    _multiply(parts, grid("IQ1_S"), np.ascontiguousarray(y["qs"]).reshape(-1, 256), sums)
    return sum_in_order((parts.d * y["d"].reshape(-1) * sums).reshape(w.shape))


def _quantize_iq1_s(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    quantize_iq1_s(x, imatrix, raw_bytes(out))


def _quantize_iq1_m(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    quantize_iq1_m(x, imatrix, raw_bytes(out))


CODECS = (
    Codec(
        by_name("IQ1_S"),
        IQ1_S,
        dequantize=partial(_dequantize, _unpack_iq1_s),
        partner="Q8_K",
        uses_imatrix=True,
        needs_imatrix=True,
        quantize_rows=_quantize_iq1_s,
        dot_rows=partial(_dot_rows, _unpack_iq1_s),
        compiled=True,
    ),
    Codec(
        by_name("IQ1_M"),
        IQ1_M,
        dequantize=partial(_dequantize, _unpack_iq1_m),
        partner="Q8_K",
        uses_imatrix=True,
        quantize_rows=_quantize_iq1_m,
        dot_rows=partial(_dot_rows, _unpack_iq1_m),
        compiled=True,
    ),
)
