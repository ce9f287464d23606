"""What a family registers for each of its types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from impl.types import TensorType

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Blocks = npt.NDArray[Any]
"""A structured array, one record a block."""


@dataclass(frozen=True)
class Codec:
    """One ggml type as arithmetic.

    ``layout`` is the block as a packed numpy dtype. ``quantize(x, out)`` takes float32 of shape (blocks, block) and fills ``out``,
    records of shape (blocks,); ``dequantize(blocks, out)`` is the other way round. ``dot(w, y)`` gives a float32 term a block,
    where ``y`` are blocks of the type named ``partner``. A function that is None is not done here. ``uses_imatrix`` says that ggml
    quantizes the type in another way where it is given an importance matrix.

    Where a row has to be seen whole: ``quantize_rows(x, imatrix, out)`` stands in for ``quantize``, with float32 of shape
    (rows, cols), float32 of shape (cols,) or None, and records of shape (rows, blocks); ``dot_rows(w, y)`` stands in for
    ``dot``, with records of shape (rows, blocks), and gives float32 of shape (rows,). ``quantize_ref(x, out)``, of
    ``quantize``'s shapes, is ggml's ``_ref`` function where that gives other bytes than the normal path; with ``ref_whole`` it
    has to see all blocks at once. ``needs_imatrix``: ggml does not quantize the type without one. ``check(rows, type)`` sees
    all rows, float32 of shape (rows, cols), before any is quantized, and raises InputError for numbers that it cannot be made of.
    ``compiled``: its functions are compiled loops that go through memory once; they are given larger pieces. What they read is
    read-only. ``streams``: ``dequantize`` waits for memory more than it computes, so that large results go past the caches.
    """

    type: TensorType
    layout: np.dtype[Any]
    quantize: Callable[[Floats, Blocks], None] | None = None
    dequantize: Callable[[Blocks, Floats], None] | None = None
    dot: Callable[[Blocks, Blocks], Floats] | None = None
    partner: str = ""
    uses_imatrix: bool = False
    needs_imatrix: bool = False
    quantize_rows: Callable[[Floats, Floats | None, Blocks], None] | None = None
    quantize_ref: Callable[[Floats, Blocks], None] | None = None
    ref_whole: bool = False
    dot_rows: Callable[[Blocks, Blocks], Floats] | None = None
    check: Callable[[Floats, TensorType], None] | None = None
    compiled: bool = False
    streams: bool = False

    def __post_init__(self) -> None:
        if self.layout.itemsize != self.type.nbytes:
            raise ValueError(f"{self.type.name}: a layout of {self.layout.itemsize} bytes, ggml's has {self.type.nbytes}")


def raw_bytes(blocks: Blocks) -> Bytes:
    """View records of any shape, in one piece, as uint8 of shape (blocks, bytes a block)."""
    return blocks.reshape(-1).view(np.uint8).reshape(-1, blocks.dtype.itemsize)
