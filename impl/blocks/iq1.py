"""IQ1_S and IQ1_M: super-blocks of 256 elements, eight at a time a point of one grid of -1, 0 and 1, moved up or down by 1/8.

An element is ``d * (2 * code + 1) * (grid value + shift / 8)``, with a code of 3 bits for each 32 (IQ1_S) or 16 elements
(IQ1_M), and a shift of 1 or -1 for each 32 (IQ1_S) or 8 (IQ1_M).

Source: ``dequantize_row_iq1_*`` in ggml/src/ggml-quants.c, ``ggml_vec_dot_iq1_*_generic`` in ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Codec, Floats, raw_bytes
from impl.blocks.half import f16_bits_to_f32
from impl.blocks.iq1_quantize import quantize_iq1_m, quantize_iq1_s
from impl.blocks.iq_grids import grid
from impl.blocks.kernel import inner, kernel
from impl.blocks.products import sum_in_order
from impl.types import by_name

IQ1_S = np.dtype([("d", "<f2"), ("qs", "u1", (32,)), ("qh", "<u2", (8,))])
IQ1_M = np.dtype([("qs", "u1", (32,)), ("qh", "u1", (16,)), ("scales", "<u2", (4,))])

_EIGHTH = np.float32(0.125)

Eighths = npt.NDArray[np.int8]


@inner
def _word(raw: Bytes, block: int, at: int) -> int:
    return int(raw[block, at] | raw[block, at + 1] << 8)


@inner
def _scale_of_iq1_m(raw: Bytes, block: int) -> np.float32:
    """Put d together from the top four bits of each of the four words of codes, the first lowest."""
    d = 0
    for i in range(4):
        d |= (raw[block, 49 + 2 * i] >> 4) << 4 * i
    return f16_bits_to_f32(np.uint16(d))


@inner
def _point_of_iq1_s(raw: Bytes, block: int, four: int, i: int, word: int) -> int:
    """Give the place in ``_eighths`` of the i-th eight of 32: a byte, three bits of the word, and the shift on top of it."""
    return int(raw[block, 2 + 4 * four + i] | (word >> 3 * i & 7 | word >> 15 << 3) << 8)


@inner
def _point_of_iq1_m(raw: Bytes, block: int, eight: int) -> int:
    """Give the place in ``_eighths`` of an eight: a byte, and a nibble with three bits and the shift."""
    return int(raw[block, eight] | (raw[block, 32 + (eight >> 1)] >> 4 * (eight & 1) & 15) << 8)


@inner
def _factor_of_iq1_m(raw: Bytes, block: int, half: int) -> int:
    return 2 * (_word(raw, block, 48 + (half >> 2) * 2) >> 3 * (half & 3) & 7) + 1


@kernel
def _dequantize_iq1_s(raw: Bytes, values: Floats, out: Floats) -> None:
    for block in range(len(raw)):
        d = f16_bits_to_f32(np.uint16(_word(raw, block, 0)))
        for four in range(8):
            word = _word(raw, block, 34 + 2 * four)
            scale = d * np.float32(2 * (word >> 12 & 7) + 1)
            for i in range(4):
                point = _point_of_iq1_s(raw, block, four, i, word)
                for j in range(8):
                    out[block, 32 * four + 8 * i + j] = scale * values[point, j]


@kernel
def _dequantize_iq1_m(raw: Bytes, values: Floats, out: Floats) -> None:
    for block in range(len(raw)):
        d = _scale_of_iq1_m(raw, block)
        for half in range(16):
            scale = d * np.float32(_factor_of_iq1_m(raw, block, half))
            first, second = _point_of_iq1_m(raw, block, 2 * half), _point_of_iq1_m(raw, block, 2 * half + 1)
            for j in range(8):
                out[block, 16 * half + j] = scale * values[first, j]
            for j in range(8):
                out[block, 16 * half + 8 + j] = scale * values[second, j]


@kernel
def _product(eighths: Eighths, point: int, quants: Eighths, block: int, at: int) -> int:
    total = np.int32(0)
    for j in range(8):
        total += np.int32(eighths[point, j]) * np.int32(quants[block, at + j])
    return int(total)


@kernel
def _multiply_iq1_s(raw: Bytes, eighths: Eighths, quants: Eighths, d: Floats, sums: Floats) -> None:
    """Write each block's d, and its sum of ``factor * value * quant``: a number of eighths below 2**23, exact in float32."""
    for block in range(len(raw)):
        total = 0
        for four in range(8):
            word, products = _word(raw, block, 34 + 2 * four), 0
            for i in range(4):
                products += _product(eighths, _point_of_iq1_s(raw, block, four, i, word), quants, block, 32 * four + 8 * i)
            total += (2 * (word >> 12 & 7) + 1) * products
        d[block] = f16_bits_to_f32(np.uint16(_word(raw, block, 0)))
        sums[block] = np.float32(total) * _EIGHTH


@kernel
def _multiply_iq1_m(raw: Bytes, eighths: Eighths, quants: Eighths, d: Floats, sums: Floats) -> None:
    """Write what ``_multiply_iq1_s`` does."""
    for block in range(len(raw)):
        total = 0
        for eight in range(32):
            product = _product(eighths, _point_of_iq1_m(raw, block, eight), quants, block, 8 * eight)
            total += _factor_of_iq1_m(raw, block, eight >> 1) * product
        d[block] = _scale_of_iq1_m(raw, block)
        sums[block] = np.float32(total) * _EIGHTH


@cache
def _eighths() -> Eighths:
    """Give the grid's points moved up, then moved down, in eighths: int8 of shape (4096, 8)."""
    points = grid("IQ1_S") * np.int8(8)
    return np.concatenate((points + np.int8(1), points - np.int8(1)))


@cache
def _values() -> Floats:
    return _eighths() * _EIGHTH


Dequantize = Callable[[Bytes, Floats, Floats], None]
Multiply = Callable[[Bytes, Eighths, Eighths, Floats, Floats], None]


def _dequantize(spread: Dequantize, blocks: Blocks, out: Floats) -> None:
    spread(raw_bytes(blocks), _values(), out)


def _dot_rows(multiply: Multiply, w: Blocks, y: Blocks) -> Floats:
    """Add super-block by super-block: ``(dw * dy) * sum``."""
    d, sums = np.empty((2, w.size), np.float32)
    multiply(raw_bytes(w), _eighths(), np.ascontiguousarray(y["qs"]).reshape(-1, 256), d, sums)
    return sum_in_order((d * y["d"].reshape(-1) * sums).reshape(w.shape))


def _quantize_iq1_s(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    quantize_iq1_s(x, imatrix, raw_bytes(out))


def _quantize_iq1_m(x: Floats, imatrix: Floats | None, out: Blocks) -> None:
    quantize_iq1_m(x, imatrix, raw_bytes(out))


CODECS = (
    Codec(
        by_name("IQ1_S"),
        IQ1_S,
        dequantize=partial(_dequantize, _dequantize_iq1_s),
        partner="Q8_K",
        uses_imatrix=True,
        needs_imatrix=True,
        quantize_rows=_quantize_iq1_s,
        dot_rows=partial(_dot_rows, _multiply_iq1_s),
        compiled=True,
        streams=True,
    ),
    Codec(
        by_name("IQ1_M"),
        IQ1_M,
        dequantize=partial(_dequantize, _dequantize_iq1_m),
        partner="Q8_K",
        uses_imatrix=True,
        quantize_rows=_quantize_iq1_m,
        dot_rows=partial(_dot_rows, _multiply_iq1_m),
        compiled=True,
        streams=True,
    ),
)
