"""Searches for scales, 64 at a time: their inputs stand side by side, so that the innermost loop runs over independent searches.

The compiler can then use vector instructions, while the sums of each search keep ggml's order and so their bits. Arrays of
shape (n, LANES) hold element i of each search in row i; what a search remembers is a row of a ``state``, one entry a lane. A
lane is one super-block of a group of 64, and each of its sub-blocks is searched in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.kernel import kernel
from impl.blocks.nearest import nearest

LANES = 64
SUPER_BLOCK = 256
STATE_ROWS = 16

_ZERO = np.float32(0)


class Work(NamedTuple):
    """Room for 64 super-blocks of ``m`` sub-blocks of ``n`` elements.

    ``x`` and ``w`` (n, LANES): one sub-block of each and the weights of its elements; ``state`` (STATE_ROWS, LANES). What is found
    for all sub-blocks: ``levels`` uint8 (m, n, LANES), ``scales``, ``minima`` and the sums of weights ``sums``, float32 (m, LANES).
    What is made of that: ``codes`` and ``minimum_codes`` uint8 (m, LANES), and of each super-block ``d``, ``dmin`` and the mean
    square ``power``, float32 (LANES,).
    """

    x: Floats
    w: Floats
    state: Floats
    levels: Bytes
    scales: Floats
    minima: Floats
    sums: Floats
    codes: Bytes
    minimum_codes: Bytes
    d: Floats
    dmin: Floats
    power: Floats


def make_work(n: int) -> Work:
    """Give room for sub-blocks of ``n`` elements, all zeros."""
    m = SUPER_BLOCK // n
    return Work(
        x=_floats(n, LANES),
        w=_floats(n, LANES),
        state=_floats(STATE_ROWS, LANES),
        levels=_bytes(m, n, LANES),
        scales=_floats(m, LANES),
        minima=_floats(m, LANES),
        sums=_floats(m, LANES),
        codes=_bytes(m, LANES),
        minimum_codes=_bytes(m, LANES),
        d=_floats(LANES),
        dmin=_floats(LANES),
        power=_floats(LANES),
    )


def _floats(*shape: int) -> Floats:
    return np.zeros(shape, np.float32)


def _bytes(*shape: int) -> Bytes:
    return np.zeros(shape, np.uint8)


@kernel
def level(x: np.float32, lowest: np.int32, highest: np.int32) -> np.int32:
    """Round ``x`` and keep it within ``lowest`` and ``highest``."""
    found = nearest(x)
    found = highest if found > highest else found
    return np.int32(lowest if found < lowest else found)


@kernel
def clear(state: Floats, first: int, last: int) -> None:
    """Set rows ``first`` to ``last`` to 0."""
    for row in range(first, last + 1):
        for lane in range(LANES):
            state[row, lane] = _ZERO


@kernel
def gather(blocks: Floats, j: int, x: Floats) -> None:
    """Put sub-block ``j`` of each super-block, at most 64, into its lane; lanes left over get zeros."""
    n = len(x)
    for lane in range(len(blocks)):
        row = blocks[lane, n * j : n * j + n]
        for i in range(n):
            x[i, lane] = row[i]
    for lane in range(len(blocks), LANES):
        for i in range(n):
            x[i, lane] = _ZERO


@kernel
def gather_imatrix(imatrix: Floats, first: int, j: int, w: Floats) -> None:
    """Put the importances of sub-block ``j`` into each lane; lane 0 is super-block ``first`` of all rows together."""
    n, per_row = len(w), len(imatrix) // SUPER_BLOCK
    for lane in range(LANES):
        start = (first + lane) % per_row * SUPER_BLOCK + n * j
        for i in range(n):
            w[i, lane] = imatrix[start + i]


@kernel
def weigh_by_power(x: Floats, power: Floats, w: Floats) -> None:
    """Multiply the importances in ``w`` by ``sqrt(power + x * x)``."""
    for i in range(len(x)):
        for lane in range(LANES):
            w[i, lane] *= np.sqrt(power[lane] + x[i, lane] * x[i, lane])


@kernel
def sum_of_squares(x: Floats) -> np.float32:
    """Add up the squares from left to right."""
    total = _ZERO
    for i in range(len(x)):
        total += x[i] * x[i]
    return np.float32(total)
