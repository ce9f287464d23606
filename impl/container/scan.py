"""Reads a pair's value: finds where it and its elements stand, and makes nothing of them yet.

Source of rules and their order: ``gguf_init_from_reader`` and ``gguf_reader::read`` in ggml/src/gguf.cpp.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from impl.container.cursor import Cursor
from impl.container.strings import Progress, scan_strings
from impl.container.values import ARRAY, STRING, VALUE_TYPES, Nested, Number, Numbers, String, Strings, Value, ValueType
from impl.errors import GgufError

if TYPE_CHECKING:
    from impl.container.rules import Rules


def read_value(cursor: Cursor, field: str, rules: Rules, progress: Progress) -> Value:
    """Read a pair's type and value; ``field`` is the pair (``kv[0]``).

    Raises:
        GgufError: ``truncated``, ``bad-value-type``, ``bad-length`` or ``too-deep``.

    """
    at = cursor.pos
    number = cursor.i32(f"{field}.type")
    if number == ARRAY.id:
        return _read_array(cursor, f"{field}.value", rules, progress)
    kind = _known_type(number, field=f"{field}.type", at=at)
    if kind is STRING:
        return String(cursor.string(f"{field}.value"))
    if cursor.cuts and cursor.lacks(1):
        return Number(kind, b"")  # found missing when it is asked for
    raw = cursor.take(kind.size, f"{field}.value")
    return Number(kind, raw if cursor.order == "little" else raw[::-1])


def _known_type(number: int, *, field: str, at: int) -> ValueType:
    if not 0 <= number < len(VALUE_TYPES):
        problem = f"unknown value type {number}: the known ones are 0 to {len(VALUE_TYPES) - 1}"
        raise GgufError("bad-value-type", problem, field=field, at=at)
    return VALUE_TYPES[number]


def _read_array(cursor: Cursor, field: str, rules: Rules, progress: Progress) -> Value:
    items, count, length_at = _read_array_head(cursor, field, rules)
    if items is ARRAY and rules.max_levels > 1:
        return _read_nested(cursor, length_at - 4, field, rules, progress)
    if items is ARRAY:
        problem = f"the elements are arrays (type 9): {rules.who} reads no arrays of arrays"
        raise GgufError("bad-value-type", problem, field=f"{field}.items", at=length_at - 4)
    return _read_elements(cursor, items, count, field, length_at, rules, progress)


def _read_array_head(cursor: Cursor, field: str, rules: Rules) -> tuple[ValueType, int, int]:
    """Read the elements' type and the length; give them, and where the length stands."""
    items_at = cursor.pos
    number = cursor.i32(f"{field}.items")
    length_at = cursor.pos
    count = cursor.word(f"{field}.length")
    if count == 0 and not rules.types_empty_arrays and not 0 <= number < len(VALUE_TYPES):
        return ValueType(number, "", 1, "B"), 0, length_at
    # llama.cpp reads the element type and the length before it looks at the type, so a short length is blamed first.
    return _known_type(number, field=f"{field}.items", at=items_at), count, length_at


def _read_elements(
    cursor: Cursor, items: ValueType, count: int, field: str, length_at: int, rules: Rules, progress: Progress
) -> Numbers | Strings:
    if cursor.cuts and items is not STRING:
        count = _present(cursor, count, items)
    elif not cursor.cuts:
        _check_array_length(cursor, count, items, rules.max_array, field=f"{field}.length", at=length_at)
    if items is STRING:
        return scan_strings(cursor, count, field, progress)
    start = cursor.skip(count * items.size, field)
    return Numbers(items, count, cursor.buffer, start, cursor.order)


def _present(cursor: Cursor, count: int, items: ValueType) -> int:
    """Give how many elements are read of an array that ends with the file: one that is there in part counts, and fails."""
    return min(count, -(-cursor.remaining // items.size)) if cursor.lacks(count * items.size) else count


def _check_array_length(cursor: Cursor, count: int, items: ValueType, limit: int, *, field: str, at: int) -> None:
    least = items.size or cursor.width  # a string takes at least its length field
    if count > limit:
        problem = f"array length {count} is over the limit of {limit}"
    elif cursor.lacks(count * least):
        problem = (
            f"array length {count}: {count} elements of type {items.name} take at least {count * least} bytes, "
            f"but only {cursor.remaining} are left (the file ends at {cursor.end})"
        )
    else:
        return
    raise GgufError("bad-length", problem, field=field, at=at)


# No file holds so many arrays: where gguf-py would count up to more, the end of the file comes first.
_MOST = 2**63 - 1


class _Nest:
    """What was read of arrays within an array: ``left[i]`` are still to come on level i, the next one at ``pos``."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.counts = array("q")
        self.leaves: list[Numbers | Strings] = []
        self.left = [1]
        self.pos = start
        self.progress = Progress()


def _read_nested(cursor: Cursor, start: int, field: str, rules: Rules, progress: Progress) -> Nested:
    """Read arrays within an array, depth first; ``start`` is where the outermost one's type of elements stands."""
    nest = progress.nest
    if not isinstance(nest, _Nest) or nest.start != start:
        progress.nest = nest = _Nest(start)
    cursor.pos = nest.pos
    while nest.left:
        _read_inner(cursor, nest, field if nest.pos == start else f"{field}[...]", rules)
        nest.pos = cursor.pos
        while nest.left and nest.left[-1] == 0:
            nest.left.pop()
    progress.nest = None
    return Nested(nest.counts, nest.leaves)


def _read_inner(cursor: Cursor, nest: _Nest, field: str, rules: Rules) -> None:
    items, count, at = _read_array_head(cursor, field, rules)
    if items is ARRAY:
        _check_nested(cursor, count, len(nest.left), rules, field=field, at=at)
        nest.left[-1] -= 1
        nest.counts.append(min(count, _MOST))
        nest.left.append(count)
    else:
        nest.leaves.append(_read_elements(cursor, items, count, field, at, rules, nest.progress))
        nest.left[-1] -= 1
        nest.counts.append(-1)


def _check_nested(cursor: Cursor, count: int, level: int, rules: Rules, *, field: str, at: int) -> None:
    """Refuse more levels than are read, and more arrays than the file has room for."""
    if level >= rules.max_levels:
        problem = f"arrays within arrays, {level + 1} levels deep: {rules.who} reads {rules.max_levels}"
        raise GgufError("too-deep", problem, field=field, at=at)
    least = count * (4 + cursor.width)
    if not cursor.cuts and cursor.lacks(least):
        problem = f"array length {count}: {count} arrays take at least {least} bytes, but only {cursor.remaining} are left"
        raise GgufError("bad-length", problem, field=f"{field}.length", at=at)
