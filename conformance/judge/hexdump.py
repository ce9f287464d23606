"""Annotated hexdumps: the bytes of a file by field, and the bytes of a block by block field."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.cases.fieldmap import Field, FieldMap
from conformance.judge.divergence import HexLine
from conformance.judge.layouts import FIELDS, BlockField
from conformance.judge.output import Bytes

LINE_BYTES = 16
# Of a field longer than this the first and the last line are shown.
WHOLE_FIELD = 4 * LINE_BYTES


def dump_file(data: bytes, fields: FieldMap, *, mark: int | None = None, limit: int = 48) -> tuple[HexLine, ...]:
    """Give a file's lines, one or more a field, ``limit`` lines at most; ``mark`` is the offset at fault.

    Where the file is longer, the lines are those around ``mark``, or the first.
    """
    window = _window(fields, mark, limit)
    lines = [line for field in window for line in _field_lines(data, field, mark)]
    return tuple(lines[: 2 * limit])


def _window(fields: FieldMap, mark: int | None, limit: int) -> list[Field]:
    total = len(fields)
    at = fields.at(mark) if mark is not None else None
    if total <= limit or at is None:
        return [fields[index] for index in range(min(total, limit))]
    middle = _index_of(fields, at)
    start = max(0, min(middle - limit // 2, total - limit))
    return [fields[index] for index in range(start, start + limit)]


def _index_of(fields: FieldMap, wanted: Field) -> int:
    """Find a field's number by bisection on its offset; fields tile the file in order."""
    low, high = 0, len(fields)
    while low < high:
        middle = (low + high) // 2
        if fields[middle].offset < wanted.offset:
            low = middle + 1
        else:
            high = middle
    return low


def _field_lines(data: bytes, field: Field, mark: int | None) -> Iterator[HexLine]:
    marked = mark is not None and field.offset <= mark < max(field.end, field.offset + 1)
    starts = list(range(field.offset, field.end, LINE_BYTES)) or [field.offset]
    if field.length > WHOLE_FIELD:
        elided = (len(starts) - 2) * LINE_BYTES
        yield _line(data, field, starts[0], marked, elided)
        starts = starts[-1:]
    for start in starts:
        yield _line(data, field, start, marked)


def _line(data: bytes, field: Field, start: int, marked: bool, elided: int = 0) -> HexLine:
    chunk = data[start : min(start + LINE_BYTES, field.end)]
    return HexLine(start, chunk.hex(" "), field.path, marked, elided)


def dump_block(type_name: str, expected: Bytes, found: Bytes, start: int) -> tuple[HexLine, ...]:
    """Give the lines of one block, field by field; a field that differs stands twice, as expected and as found.

    ``expected`` and ``found`` are the block's bytes, ``start`` its offset in the output.
    """
    return tuple(line for field in FIELDS.get(type_name, ()) for line in _block_field(field, expected, found, start))


def _block_field(field: BlockField, expected: Bytes, found: Bytes, start: int) -> Iterator[HexLine]:
    for offset in range(field.offset, field.offset + field.nbytes, LINE_BYTES):
        end = min(offset + LINE_BYTES, field.offset + field.nbytes)
        ours, theirs = expected[offset:end].tobytes(), found[offset:end].tobytes()
        if ours == theirs:
            yield HexLine(start + offset, ours.hex(" "), field.name)
        else:
            yield HexLine(start + offset, ours.hex(" "), f"{field.name} expected", mark=True)
            yield HexLine(start + offset, theirs.hex(" "), f"{field.name} found", mark=True)
