"""The compiled loop over the strings of an array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.kernel import kernel
from impl.container.cursor import Buffer

# A length may be anything; up to this one adding it to a position cannot wrap.
_LARGEST = 2**62


def find_ends(buffer: Buffer, pos: int, count: int, longest: int) -> memoryview:
    """Give the ends of up to ``count`` strings from ``pos`` on, whose lengths are 64-bit, little-endian and at most ``longest``.

    It stops where a length is longer or not there. The last string may pass the end of the buffer. Of int64, and shared: it is
    not to be written to.
    """
    raw = np.frombuffer(memoryview(buffer).toreadonly(), np.uint8)
    ends = np.empty(count, np.int64)
    found = int(_fill(raw, pos, min(longest, _LARGEST), ends))
    return ends.data[:found]


@kernel
def _fill(raw: npt.NDArray[np.uint8], start: int, longest: int, ends: npt.NDArray[np.int64]) -> int:
    # Indices are unsigned: for one that might be negative, numba would look at each of the eight bytes apart.
    size, limit, pos = np.uint64(raw.size), np.uint64(longest), np.uint64(start)
    width = np.uint64(8)
    for i in range(ends.size):
        if pos + width > size:
            return i
        length = np.uint64(0)
        for j in range(8):
            length |= np.uint64(raw[pos + np.uint64(j)]) << np.uint64(8 * j)
        if length > limit:
            return i
        pos += width + length
        ends[i] = pos
    return int(ends.size)
