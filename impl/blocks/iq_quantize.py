"""Quantizing to IQ2 and IQ3: rows are searched, and what was found is packed into the type's blocks.

Where ggml finds no grid point near some numbers, or a scale that is no number, it aborts; here that is an InputError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Bytes, Codec, Floats
from impl.blocks.iq_nearest import searched
from impl.blocks.iq_parts import Format, Parts
from impl.blocks.iq_search import Plan, search
from impl.blocks.rounding import to_f16
from impl.errors import InputError
from impl.types import by_name


@dataclass(frozen=True)
class Quantizer:
    """Quantization of one type: ``pack(parts, out)`` writes all but the field ``d`` of records of shape (blocks,)."""

    format: Format
    plan: Plan
    pack: Callable[[Parts, Blocks], None]

    def codec(self, layout: np.dtype[Any], *, needs_imatrix: bool = False) -> Codec:
        """Give all that the type can do."""
        return Codec(
            by_name(self.format.name),
            layout,
            dequantize=self.format.dequantize,
            partner="Q8_K",
            uses_imatrix=True,
            needs_imatrix=needs_imatrix,
            quantize_rows=self.rows,
            dot_rows=self.format.dot_rows,
            compiled=True,
        )

    def rows(self, x: Floats, imatrix: Floats | None, out: Blocks) -> None:
        """Fill ``out``, records of shape (rows, blocks), from ``x`` of shape (rows, cols); ``imatrix`` has shape (cols,).

        Raises:
            InputError: ggml aborts on these numbers.

        """
        flat = out.reshape(-1)
        parts = self.format.empty(np.empty(len(flat), np.float32))
        importance = _read_only(np.empty((0, 256), np.float32) if imatrix is None else imatrix.reshape(-1, 256))
        fault = search(_read_only(x.reshape(-1, 256)), importance, self.plan, searched(self.format.name), parts)
        if fault >= 0:
            raise InputError(self._refusal(x, fault))
        flat["d"] = to_f16(parts.d)
        self.pack(parts, flat)

    def _refusal(self, x: Floats, fault: int) -> str:
        row, col = divmod(fault, x.shape[1])
        block, first = divmod(col, 256)
        numbers = x[row, 256 * block : 256 * block + 256]
        special = np.flatnonzero(~np.isfinite(numbers))
        element = int(special[0]) if len(special) else int(np.abs(numbers).argmax())
        return (
            f"row {row}, block {block}: ggml aborts, since no grid point is near the elements from {first} on; "
            f"element {element} of the block is {numbers[element]}: {self.format.name} takes finite numbers "
            "whose weighted squares do not overflow float32, and imatrix values that are finite and not negative"
        )


def _read_only(view: Floats) -> Floats:
    """Make a view read-only: the search is compiled for that alone."""
    view.flags.writeable = False
    return view


def pairs(scales: Bytes) -> Bytes:
    """Put two 4-bit scales in a byte, the first one low: (blocks, n) to (blocks, n / 2)."""
    packed: Bytes = scales[:, 0::2] | scales[:, 1::2] << np.uint8(4)
    return packed


def words(codes: Bytes, signs: Bytes) -> npt.NDArray[np.uint32]:
    """Give a word for each sub-block of 32: four times 7 bits of signs, on top the 4-bit scale."""
    shifted = signs.reshape(-1, 8, 4).astype(np.uint32) << np.arange(0, 28, 7, dtype=np.uint32)
    word: npt.NDArray[np.uint32] = shifted[..., 0] | shifted[..., 1] | shifted[..., 2] | shifted[..., 3]
    return word | codes.astype(np.uint32) << np.uint32(28)
