"""What the blocks of an IQ2 or IQ3 type hold, spread out: from there all of them dequantize and multiply in one way.

Source: ``dequantize_row_iq2_*`` and ``_iq3_*`` in ggml/src/ggml-quants.c, ``ggml_vec_dot_iq2_*`` and ``_iq3_*_generic`` in
ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Floats, raw_bytes
from impl.blocks.iq_grids import grid, signs
from impl.blocks.kernel import kernel
from impl.blocks.products import sum_in_order


class Parts(NamedTuple):
    """Super-blocks of 256 elements. An element is ``d * unit * (2 * code + 1)`` times its point's magnitude and its sign.

    ``d``: float32 of shape (blocks,). ``codes``: uint8 of shape (blocks, 8 or 16), the 4-bit scale of each sub-block.
    ``indices``: uint16 of shape (blocks, 32 or 64), the grid's points of 8 or 4 elements each. ``signs``: uint8 of shape
    (blocks, 32), a byte for 8 elements, a set bit a minus. ``unit`` belongs to the type.
    """

    d: Floats
    codes: Bytes
    indices: npt.NDArray[np.uint16]
    signs: Bytes


@dataclass(frozen=True)
class Format:
    """One IQ2 or IQ3 type: ``unpack(raw, parts)`` fills all parts but ``d`` from bytes of shape (blocks, nbytes)."""

    name: str
    unpack: Callable[[Bytes, Parts], None]
    sub_blocks: int
    unit: float

    def empty(self, d: Floats) -> Parts:
        """Give parts with the scales ``d``, the rest still to be filled in."""
        count, points = len(d), 256 // grid(self.name).shape[1]
        codes = np.empty((count, self.sub_blocks), np.uint8)
        return Parts(d, codes, np.empty((count, points), np.uint16), np.empty((count, 32), np.uint8))

    def parts(self, blocks: Blocks) -> Parts:
        """Give what ``blocks``, contiguous records of any shape, hold."""
        parts = self.empty(blocks["d"].reshape(-1).astype(np.float32))
        self.unpack(raw_bytes(blocks), parts)
        return parts

    def dequantize(self, blocks: Blocks, out: Floats) -> None:
        """Fill ``out``, float32 of shape (blocks, 256)."""
        parts, magnitudes = self.parts(blocks), grid(self.name)
        spread = _spread_8 if magnitudes.shape[1] == 8 else _spread_4
        spread(parts, parts.d * np.float32(self.unit), _magnitudes(self.name), _SIGNS, out)

    def dot_rows(self, w: Blocks, y: Blocks) -> Floats:
        """Give float32 of shape (rows,) from records of shape (rows, blocks), ``y`` those of Q8_K. Blocks are added in order."""
        parts, magnitudes = self.parts(w), grid(self.name)
        add = _add_8 if magnitudes.shape[1] == 8 else _add_4
        sums = np.empty(w.size, np.int32)
        add(parts, magnitudes, signs(), np.ascontiguousarray(y["qs"]).reshape(-1, 256), sums)
        terms: Floats = parts.d * y["d"].reshape(-1) * sums.astype(np.float32)
        total: Floats = np.float32(self.unit) * sum_in_order(terms.reshape(y.shape))
        return total


@cache
def _magnitudes(name: str) -> Floats:
    return grid(name).astype(np.float32)


_SIGNS = signs().astype(np.float32)


@kernel
def _spread_8(parts: Parts, d: Floats, magnitudes: Floats, factors: Floats, out: Floats) -> None:
    points = 32 // parts.codes.shape[1]
    for block in range(len(d)):
        for i in range(32):
            scale = d[block] * np.float32(2 * parts.codes[block, i // points] + 1)
            point, minus = parts.indices[block, i], parts.signs[block, i]
            for j in range(8):
                out[block, 8 * i + j] = scale * magnitudes[point, j] * factors[minus, j]


@kernel
def _spread_4(parts: Parts, d: Floats, magnitudes: Floats, factors: Floats, out: Floats) -> None:
    for block in range(len(d)):
        for i in range(32):
            scale = d[block] * np.float32(2 * parts.codes[block, i // 4] + 1)
            first, second, minus = parts.indices[block, 2 * i], parts.indices[block, 2 * i + 1], parts.signs[block, i]
            for j in range(4):
                out[block, 8 * i + j] = scale * magnitudes[first, j] * factors[minus, j]
                out[block, 8 * i + 4 + j] = scale * magnitudes[second, j] * factors[minus, 4 + j]


@kernel
def _add_8(
    parts: Parts,
    magnitudes: npt.NDArray[np.int8],
    factors: npt.NDArray[np.int8],
    quants: npt.NDArray[np.int8],
    sums: npt.NDArray[np.int32],
) -> None:
    points = 32 // parts.codes.shape[1]
    for block in range(len(sums)):
        total = np.int32(0)
        for i in range(32):
            point, minus = parts.indices[block, i], parts.signs[block, i]
            part = np.int32(0)
            for j in range(8):
                part += np.int32(magnitudes[point, j]) * np.int32(factors[minus, j]) * np.int32(quants[block, 8 * i + j])
            total += part * np.int32(2 * parts.codes[block, i // points] + 1)
        sums[block] = total


@kernel
def _add_4(
    parts: Parts,
    magnitudes: npt.NDArray[np.int8],
    factors: npt.NDArray[np.int8],
    quants: npt.NDArray[np.int8],
    sums: npt.NDArray[np.int32],
) -> None:
    for block in range(len(sums)):
        total = np.int32(0)
        for i in range(64):
            point, minus, half = parts.indices[block, i], parts.signs[block, i // 2], i % 2 * 4
            part = np.int32(0)
            for j in range(4):
                part += np.int32(magnitudes[point, j]) * np.int32(factors[minus, half + j]) * np.int32(quants[block, 4 * i + j])
            total += part * np.int32(2 * parts.codes[block, i // 8] + 1)
        sums[block] = total
