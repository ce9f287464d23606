"""The integer part of a dot product, and the terms that the block types share. All float32, in ggml's order of operations.

Source: the ``ggml_vec_dot_*_generic`` functions, ggml/src/ggml-cpu/quants.c.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Blocks, Floats


def integer_products(w: npt.NDArray[Any], y: npt.NDArray[np.int8]) -> Floats:
    """Give the sum of products of each row, exact: two bytes' product fits 16 bits, and 32 of them the 24 bits of a float32."""
    products = np.multiply(w, y, dtype=np.int16, casting="unsafe")
    sums: Floats = products.sum(axis=1, dtype=np.int32).astype(np.float32)
    return sums


def scaled(sums: Floats, w: Blocks, y: Blocks) -> Floats:
    """Give ``sums * (dw * dy)`` for each block."""
    term: Floats = w["d"].astype(np.float32) * y["d"].astype(np.float32) * sums
    return term


def scaled_with_minimum(sums: Floats, w: Blocks, y: Blocks) -> Floats:
    """Give ``(dw * dy) * sums + m * s``, where s is the scaled sum that a Q8_1 block stores."""
    offset: Floats = w["m"].astype(np.float32) * y["s"].astype(np.float32)
    return scaled(sums, w, y) + offset


def sum_in_order(terms: Floats) -> Floats:
    """Add each row from left to right, starting from +0. ``np.sum`` would add in pairs, which rounds otherwise."""
    if terms.shape[1] == 0:
        return np.zeros(len(terms), np.float32)
    terms[:, 0] += np.float32(0)  # 0 + -0 is 0
    sums: Floats = np.add.accumulate(terms, axis=1, out=terms)[:, -1]
    return sums
