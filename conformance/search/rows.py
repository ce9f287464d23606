"""Which rows of a request show a divergence, and of which signature: what numbers are narrowed by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from conformance.judge.divergence import Divergence
from conformance.judge.numbers import Shape, compare_outputs
from conformance.judge.output import Bytes, canonical

Flags = npt.NDArray[np.bool_]

# Rows that differ are looked at one by one until so many have been; the others are likely to show the same.
_LOOKED_AT = 64


def differing_rows(shape: Shape, rows: int, expected: Bytes, found: Bytes) -> Flags:
    """Tell of each of ``rows`` rows of two outputs of equal size whether it differs, NaNs being equal."""
    # Bits first, NaNs where these differ: most of a search's comparing is done here, and mostly nothing differs.
    if bytes_equal(expected, found):
        return np.zeros(rows, np.bool_)
    left, right = (canonical(output, floats=shape.floats) for output in (expected, found))
    flags: Flags = (left != right).reshape(rows, -1).any(axis=1)
    return flags


def bytes_equal(left: Bytes, right: Bytes) -> bool:
    """Tell whether two outputs of equal size have the same bytes, in words as long as they allow."""
    word = np.uint64 if left.nbytes % 8 == 0 else np.uint32 if left.nbytes % 4 == 0 else np.uint8
    return np.array_equal(left.view(word), right.view(word))


def row_divergences(shape: Shape, rows: int, expected: Bytes, found: Bytes) -> Iterator[tuple[int, Divergence]]:
    """Give each row's divergences, of the first rows that differ."""
    left, right = expected.reshape(rows, -1), found.reshape(rows, -1)
    for row in np.flatnonzero(differing_rows(shape, rows, expected, found))[:_LOOKED_AT].tolist():
        for divergence in compare_outputs(shape, left[row], right[row]):
            yield row, divergence


def rows_showing(shape: Shape, rows: int, expected: Bytes, found: Bytes, signature: str) -> Flags:
    """Tell of each row whether it shows a divergence of this signature."""
    flags = differing_rows(shape, rows, expected, found)
    left, right = expected.reshape(rows, -1), found.reshape(rows, -1)
    for row in np.flatnonzero(flags).tolist():
        flags[row] = any(divergence.signature == signature for divergence in compare_outputs(shape, left[row], right[row]))
    return flags
