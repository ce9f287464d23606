"""Searches for scales, 64 at a time: their inputs stand side by side, so that the innermost loop runs over independent searches.

The compiler can then use vector instructions, while the sums of each search keep ggml's order and so their bits. Arrays of
shape (n, LANES) hold element i of each search in row i; what a search remembers is a row of a ``state``, one entry a lane. A
lane is one super-block of a group of 64, and each of its sub-blocks is searched in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.kernel import inner, kernel
from impl.blocks.nearest import nearest

LANES = 64
SUPER_BLOCK = 256
STATE_ROWS = 16

_ZERO = np.float32(0)
# Elements of one super-block that are moved at a time: their places in 64 lanes stay in the first-level cache.
_STRIP = 32


class Work(NamedTuple):
    """Room for 64 super-blocks of ``m`` sub-blocks of ``n`` elements.

    ``x`` and ``w``, float32 (m, n, LANES): the elements and their weights. What is found of each sub-block: ``levels`` uint8
    (m, n, LANES), ``scales``, ``minima`` and the sums of weights ``sums``, float32 (m, LANES). What is made of that: ``codes`` and
    ``minimum_codes``, uint8 (m, LANES), of each super-block ``d`` and ``dmin``, float32 (LANES,), and its bytes ``rows``, uint8
    (block bytes, LANES). ``state``, float32 (STATE_ROWS, LANES), is the searches' own.
    """

    x: Floats
    w: Floats
    levels: Bytes
    scales: Floats
    minima: Floats
    sums: Floats
    codes: Bytes
    minimum_codes: Bytes
    d: Floats
    dmin: Floats
    rows: Bytes
    state: Floats


def make_work(n: int, nbytes: int) -> Work:
    """Give room for sub-blocks of ``n`` elements and blocks of ``nbytes``, all zeros."""
    m = SUPER_BLOCK // n
    return Work(
        x=_floats(m, n, LANES),
        w=_floats(m, n, LANES),
        levels=_bytes(m, n, LANES),
        scales=_floats(m, LANES),
        minima=_floats(m, LANES),
        sums=_floats(m, LANES),
        codes=_bytes(m, LANES),
        minimum_codes=_bytes(m, LANES),
        d=_floats(LANES),
        dmin=_floats(LANES),
        rows=_bytes(nbytes, LANES),
        state=_floats(STATE_ROWS, LANES),
    )


def _floats(*shape: int) -> Floats:
    return np.zeros(shape, np.float32)


def _bytes(*shape: int) -> Bytes:
    return np.zeros(shape, np.uint8)


@inner
def level(x: np.float32, lowest: np.int32, highest: np.int32) -> np.int32:
    """Round ``x`` and keep it within ``lowest`` and ``highest``."""
    found = nearest(x)
    found = highest if found > highest else found
    return np.int32(lowest if found < lowest else found)


@inner
def clear(state: Floats, first: int, last: int) -> None:
    """Set rows ``first`` to ``last`` to 0."""
    for row in range(first, last + 1):
        for lane in range(LANES):
            state[row, lane] = _ZERO


@kernel
def gather(blocks: Floats, x: Floats) -> None:
    """Put each super-block, at most 64, into its lane; lanes left over get zeros."""
    flat = x.reshape(SUPER_BLOCK, LANES)
    for first in range(0, SUPER_BLOCK, _STRIP):
        for lane in range(len(blocks)):
            part = blocks[lane, first : first + _STRIP]
            for i in range(_STRIP):
                flat[first + i, lane] = part[i]
    for i in range(SUPER_BLOCK):
        for lane in range(len(blocks), LANES):
            flat[i, lane] = _ZERO


@kernel
def scatter(rows: Bytes, raw: Bytes) -> None:
    """Put the bytes of each lane into its block."""
    for lane in range(len(raw)):
        block = raw[lane]
        for i in range(len(block)):
            block[i] = rows[i, lane]
