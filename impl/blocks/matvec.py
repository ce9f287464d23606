"""A matrix of blocks times one vector: as ggml's CPU code does it, and as code does it that keeps the vector in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from impl.arguments import BytesLike, raw_bytes
from impl.blocks.api import codec, dequantize, float_cols, multiply, quantize, records, unsupported
from impl.blocks.codec import Blocks, Codec, Floats
from impl.blocks.products import sum_in_order
from impl.errors import InputError

# Elements of the matrix worked on at a time, in whole rows.
PIECE = 1 << 18


def matvec(type: str, weights: BytesLike, x: npt.NDArray[Any], *, keep_input: bool = False) -> Floats:  # noqa: A002 - ggml's word
    """Multiply every row of ``weights`` (blocks of ``type``) by the vector ``x``, float32 of shape (cols,).

    ggml's CPU code quantizes ``x`` first, to the type that it pairs with ``type``; so does this, and each product has the bits
    of ``impl.dot`` of that row. With ``keep_input`` the vector stays float32, as GPU code often leaves it: each weight is
    dequantized to float32, multiplied by its element (one rounding), and the products are added from left to right in float32,
    starting at +0. The two differ by the error of quantizing ``x``; and a NaN in ``x`` surely reaches every product only where
    ``x`` is kept.

    Returns:
        float32 of shape (rows,), rows being what the size of ``weights`` says.

    Raises:
        InputError: ``x`` is not float32 of one dimension, or no multiple of the block, or ``weights`` is no whole rows.
        UnsupportedError: the type has no dot product here; with ``keep_input``, it cannot be dequantized here.

    """
    found = codec(type)
    cols = float_cols(x, "x", found)
    w = _matrix(weights, x, found)
    if keep_input:
        products = [_kept(found, w[rows], x) for rows in _pieces(len(w), cols)]
    elif found.dot is None and found.dot_rows is None:
        raise unsupported("dot", type)
    else:
        partner = codec(found.partner)
        y = quantize(found.partner, x, reference=True).view(partner.layout)
        products = [multiply(found, w[rows], _repeated(y, len(w[rows]))) for rows in _pieces(len(w), cols)]
    return np.concatenate(products) if products else np.zeros(0, np.float32)


def _matrix(weights: BytesLike, x: Floats, found: Codec) -> Blocks:
    """View ``weights`` as records of shape (rows, blocks a row)."""
    if x.ndim != 1 or not x.size:
        raise InputError(f"x must be one row that is not empty: float32 of shape (cols,), not {x.shape}")
    row = found.type.row_bytes(x.size)
    raw = raw_bytes(weights, f"weights of {found.type.name}")
    size = len(raw)
    if size % row:
        raise InputError(f"{size} bytes are no whole rows of {x.size} elements of {found.type.name}, which take {row} bytes each")
    blocks = x.size // found.type.block
    return records(raw, size // row * blocks, found).reshape(-1, blocks)


def _pieces(rows: int, cols: int) -> Iterator[slice]:
    step = max(1, PIECE // cols)
    return (slice(start, start + step) for start in range(0, rows, step))


def _repeated(y: Blocks, rows: int) -> Blocks:
    return np.tile(y, (rows, 1))


def _kept(found: Codec, w: Blocks, x: Floats) -> Floats:
    matrix = dequantize(found.type.name, np.ascontiguousarray(w).view(np.uint8), (len(w), x.size))
    with np.errstate(all="ignore"):  # infinity and NaN are part of what blocks and vectors can hold
        matrix *= x
        return sum_in_order(matrix)
