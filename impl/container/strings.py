"""Finds where the strings of an array end: what the time of reading a header goes into.

Two loops do the same: a plain one, and one compiled by numba, a hundred times as fast, which takes a third of a second to load.
It is loaded when the plain loop has taken as long as that (so that nobody ever waits more than twice as long as with the better
choice made in advance), or when somebody asks for it. Both stop where a string does not fit, and one function then tells why.
"""

from __future__ import annotations

import struct
import sys
from array import array
from typing import NamedTuple

from impl.container.cursor import Buffer, Cursor, MoreNeededError
from impl.container.values import Ends, Strings

# Strings that the plain loop reads (0.4 microseconds each) while the compiled loop is loaded: 0.3 seconds with numba, a few
# hundredths where something else has loaded numba already.
STRINGS_TO_LOAD_NUMBA = 750_000
STRINGS_TO_LOAD_LOOP = 75_000
# Strings between two looks at what was spent, and the most that room is made for before they were seen.
CHUNK = 1 << 19


class Progress:
    """How far a pair's value was read before the bytes at hand ended; it goes on from there once there are more.

    ``start`` is where the array began of which ``ends`` were found. ``nest`` is what was read of arrays within an array.
    """

    def __init__(self) -> None:
        self.start = -1
        self.ends = array("q")
        self.nest: object = None

    def of(self, start: int) -> array[int]:
        """Give the ends found so far of the array that starts there."""
        if self.start != start:
            self.start, self.ends = start, array("q")
        return self.ends


class _Scan(NamedTuple):
    """What both loops read: length fields of ``buffer``, none above ``longest``."""

    buffer: Buffer
    cursor: Cursor
    longest: int


def load_compiled() -> None:
    """Load the compiled loop now."""
    from impl.container.compiled_ends import find_ends  # noqa: PLC0415 - loads numba

    find_ends(b"", 0, 0, 0)


def scan_strings(cursor: Cursor, count: int, field: str, progress: Progress) -> Strings:
    """Read ``count`` strings from here on, without making anything of them.

    Raises:
        GgufError: ``truncated`` or ``bad-length``, for the first string that is not there or not allowed.

    """
    start = cursor.pos
    ends = progress.of(start)
    scan = _Scan(cursor.buffer, cursor, min(cursor.max_string, cursor.end))
    while len(ends) < count:
        pos = ends[-1] if ends else start
        # One more than there is room for: the first that does not fit is told apart from the last that does.
        found = _next_ends(scan, pos, min(count - len(ends), (cursor.end - pos) // cursor.width + 1))
        if len(found) == count and found[-1] <= cursor.end:
            cursor.pos = found[-1]
            return Strings(cursor.buffer, start, found, cursor.width)
        ends.frombytes(memoryview(found).cast("B"))
        if not found or ends[-1] > cursor.end:
            break
    if len(ends) < count or (ends and ends[-1] > cursor.end):
        _finish_short(cursor, count, ends, field)
    cursor.pos = ends[-1] if ends else start
    progress.start = -1
    return Strings(cursor.buffer, start, ends, cursor.width)


_spent = 0


def _next_ends(scan: _Scan, pos: int, count: int) -> Ends:
    """Give the ends of some of the next ``count`` strings, none where the first does not fit; the last may pass the end."""
    global _spent  # noqa: PLW0603 - what all reads of this process have spent is what decides
    if scan.cursor.plain and _pays():
        from impl.container.compiled_ends import find_ends  # noqa: PLC0415 - loads numba

        return find_ends(scan.buffer, pos, min(count, CHUNK), scan.longest)
    count = min(count, CHUNK)
    _spent += count
    return _find_ends(scan, pos, count)


def _pays() -> bool:
    """Tell whether the compiled loop is there, or has been paid for by the strings that were read without it."""
    if "impl.container.compiled_ends" in sys.modules:
        return True
    return _spent >= (STRINGS_TO_LOAD_LOOP if "impl.blocks.kernel" in sys.modules else STRINGS_TO_LOAD_NUMBA)


def _find_ends(scan: _Scan, pos: int, count: int) -> array[int]:
    """Do the same, uncompiled. There is no test for the end: a length field past it makes ``unpack_from`` raise."""
    buffer, longest, width = scan.buffer, scan.longest, scan.cursor.width
    unpack = struct.Struct(("<" if scan.cursor.order == "little" else ">") + ("Q" if width == 8 else "I")).unpack_from
    ends = array("q", [0]) * count  # in one piece: what grows asks the system for memory again and again
    found = 0
    try:
        for found in range(count):
            (length,) = unpack(buffer, pos)
            if length > longest:
                break
            pos += width + length
            ends[found] = pos
        else:
            return ends
    except struct.error:
        pass  # told in full by _finish_short
    del ends[found:]
    return ends


def _finish_short(cursor: Cursor, count: int, ends: array[int], field: str) -> None:
    """Read the string at which the scan stopped: the last one if it passes the end, else the one after it.

    Raises what is wrong with it; only where strings are cut at the end of the file, and it is the array's last, that is nothing.
    """
    while ends and ends[-1] > cursor.end:
        ends.pop()
    cursor.pos = ends[-1] if ends else cursor.pos
    try:
        while len(ends) < count:
            cursor.string(f"{field}[{len(ends)}]")
            ends.append(cursor.pos)
    except MoreNeededError as more:
        # The strings after this one take their length fields at least.
        raise MoreNeededError(more.end + cursor.width * (count - len(ends) - 1)) from None
