"""Reads a pair's value: finds where it and its elements stand, and makes nothing of them yet.

Source of rules and their order: ``gguf_init_from_reader`` and ``gguf_reader::read`` in ggml/src/gguf.cpp.
"""

from __future__ import annotations

import struct
from array import array

from impl.container.cursor import MAX_ARRAY_ELEMENTS, MAX_STRING_LENGTH, Cursor
from impl.container.values import ARRAY, STRING, VALUE_TYPES, Number, Numbers, String, Strings, Value, ValueType
from impl.errors import GgufError


def read_value(cursor: Cursor, field: str) -> Value:
    """Read a pair's type and value; ``field`` is the pair (``kv[0]``).

    Raises:
        GgufError: ``truncated``, ``bad-value-type`` or ``bad-length``.

    """
    at = cursor.pos
    number = cursor.i32(f"{field}.type")
    if number == ARRAY.id:
        return _read_array(cursor, f"{field}.value")
    kind = _known_type(number, field=f"{field}.type", at=at)
    if kind is STRING:
        return String(cursor.string(f"{field}.value"))
    start = cursor.skip(kind.size, f"{field}.value")
    return Number(kind, cursor.buffer[start : cursor.pos])


def _known_type(number: int, *, field: str, at: int) -> ValueType:
    if not 0 <= number < len(VALUE_TYPES):
        problem = f"unknown value type {number}: the known ones are 0 to {len(VALUE_TYPES) - 1}"
        raise GgufError("bad-value-type", problem, field=field, at=at)
    return VALUE_TYPES[number]


def _read_array(cursor: Cursor, field: str) -> Value:
    items_at = cursor.pos
    number = cursor.i32(f"{field}.items")
    length_at = cursor.pos
    count = cursor.u64(f"{field}.length")
    # llama.cpp reads the element type and the length before it looks at the type, so a short length is blamed first.
    items = _known_type(number, field=f"{field}.items", at=items_at)
    if items is ARRAY:
        problem = "the elements are arrays (type 9): llama.cpp reads no arrays of arrays"
        raise GgufError("bad-value-type", problem, field=f"{field}.items", at=items_at)
    _check_array_length(cursor, count, items, field=f"{field}.length", at=length_at)
    if items is STRING:
        return _scan_strings(cursor, count, field)
    start = cursor.skip(count * items.size, field)
    return Numbers(items, count, cursor.buffer, start)


def _check_array_length(cursor: Cursor, count: int, items: ValueType, *, field: str, at: int) -> None:
    least = items.size or 8  # a string takes at least its length field
    if count > MAX_ARRAY_ELEMENTS:
        problem = f"array length {count} is over the limit of {MAX_ARRAY_ELEMENTS}"
    elif count * least > cursor.remaining:
        problem = (
            f"array length {count}: {count} elements of type {items.name} take at least {count * least} bytes, "
            f"but only {cursor.remaining} are left (the file ends at {cursor.end})"
        )
    else:
        return
    raise GgufError("bad-length", problem, field=field, at=at)


def _scan_strings(cursor: Cursor, count: int, field: str) -> Strings:
    """Find where each string of an array ends. This is the loop that the time of reading a header goes into.

    It has no test for the end of the file: a length field that lies past it makes ``unpack_from`` raise, and a last string
    that passes it is found after the loop.
    """
    buffer, start, limit = cursor.buffer, cursor.pos, MAX_STRING_LENGTH
    unpack = struct.Struct("<Q").unpack_from
    ends = array("q")
    append = ends.append
    pos = start
    try:
        for _ in range(count):
            (length,) = unpack(buffer, pos)
            if length > limit:
                break
            pos += 8 + length
            append(pos)
    except struct.error:
        pass  # told in full below
    if len(ends) < count or pos > cursor.end:
        _blame_string(cursor, ends, field)
    cursor.pos = pos
    return Strings(buffer, start, ends)


def _blame_string(cursor: Cursor, ends: array[int], field: str) -> None:
    """Raise for the string at which the scan stopped: the last one if it passes the end, else the one after it."""
    if ends and ends[-1] > cursor.end:
        ends.pop()
    cursor.pos = ends[-1] if ends else cursor.pos
    cursor.string(f"{field}[{len(ends)}]")
