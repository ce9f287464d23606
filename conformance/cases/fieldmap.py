"""The field map: path, offset, length and kind of every field of a built file.

A field is never made before it is asked for: an array of a million elements is one span that answers by arithmetic.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

_INDEX = re.compile(r"\[(0|[1-9][0-9]*)\]")
_TEXT_INDEX = re.compile(r"\[(0|[1-9][0-9]*)\](\.length)?")
_NEST = re.compile(r"((?:\[0\])*)\.(items|length)")


class Field(NamedTuple):
    """One field. ``offset`` counts from the file's start, ``length`` is in bytes.

    ``kind`` is a value type (``u32``, ``f32``, ``bool``, ...), ``text`` (bytes of a key, a string or a name), ``bytes``
    (raw), ``data`` (a tensor's) or ``padding``.
    """

    path: str
    offset: int
    length: int
    kind: str

    @property
    def end(self) -> int:
        """Offset of the first byte after the field."""
        return self.offset + self.length


class Span(Protocol):
    """Fields one after the other, made when asked for."""

    @property
    def offset(self) -> int:
        """Where the first field starts."""
        ...

    def __len__(self) -> int: ...

    def field(self, index: int) -> Field:
        """Give field number ``index`` of the span."""
        ...

    def index_at(self, offset: int) -> int:
        """Give the number of the field that holds the byte at ``offset``, which lies in the span."""
        ...

    def find(self, path: str) -> Field | None:
        """Give the field at ``path``, None if it is not of this span."""
        ...


class Single(NamedTuple):
    """A span of one field."""

    only: Field

    @property
    def offset(self) -> int:  # noqa: D102 - see Span
        return self.only.offset

    def __len__(self) -> int:
        return 1

    def field(self, index: int) -> Field:  # noqa: ARG002, D102 - see Span; there is one field only
        return self.only

    def index_at(self, offset: int) -> int:  # noqa: ARG002, D102 - the same
        return 0

    def find(self, path: str) -> Field | None:  # noqa: D102 - see Span
        return self.only if path == self.only.path else None


class Run:
    """``count`` elements of ``size`` bytes: ``path[0]``, ``path[1]``, ..."""

    def __init__(self, path: str, offset: int, count: int, size: int, kind: str) -> None:
        self.path, self.offset, self.count, self.size, self.kind = path, offset, count, size, kind

    def __len__(self) -> int:
        return self.count

    def field(self, index: int) -> Field:  # noqa: D102 - see Span
        return Field(f"{self.path}[{index}]", self.offset + index * self.size, self.size, self.kind)

    def index_at(self, offset: int) -> int:  # noqa: D102 - see Span
        return (offset - self.offset) // self.size

    def find(self, path: str) -> Field | None:  # noqa: D102 - see Span
        match = _INDEX.fullmatch(path, len(self.path)) if path.startswith(self.path) else None
        return self.field(int(match[1])) if match and int(match[1]) < self.count else None


class TextRun:
    """Strings: ``path[0].length``, ``path[0]``, ``path[1].length``, ...

    ``starts`` (int64) holds the offset of each length field and, last, the end of the span; a length field has ``width`` bytes.
    """

    def __init__(self, path: str, starts: NDArray[np.int64], width: int) -> None:
        self.path, self.starts, self.width = path, starts, width
        self.offset = int(starts[0])

    def __len__(self) -> int:
        return 2 * (len(self.starts) - 1)

    def field(self, index: int) -> Field:  # noqa: D102 - see Span
        number, is_text = divmod(index, 2)
        start, end = int(self.starts[number]), int(self.starts[number + 1])
        if is_text:
            return Field(f"{self.path}[{number}]", start + self.width, end - start - self.width, "text")
        return Field(f"{self.path}[{number}].length", start, self.width, f"u{8 * self.width}")

    def index_at(self, offset: int) -> int:  # noqa: D102 - see Span
        number = int(np.searchsorted(self.starts, offset, side="right")) - 1
        return 2 * number + (offset >= int(self.starts[number]) + self.width)

    def find(self, path: str) -> Field | None:  # noqa: D102 - see Span
        match = _TEXT_INDEX.fullmatch(path, len(self.path)) if path.startswith(self.path) else None
        if not match or int(match[1]) >= len(self.starts) - 1:
            return None
        return self.field(2 * int(match[1]) + (match[2] is None))


class Nest:
    """The heads of ``levels`` arrays of length one within each other: ``path.items``, ``path.length``, ``path[0].items``, ...

    A path grows by three characters a level, so that going through all fields of a deep nest takes time that grows with
    the square of its depth; ``find`` and ``at`` do not.
    """

    def __init__(self, path: str, offset: int, levels: int, width: int) -> None:
        self.path, self.offset, self.levels, self.width = path, offset, levels, width
        self._size = 4 + width

    def __len__(self) -> int:
        return 2 * self.levels

    def field(self, index: int) -> Field:  # noqa: D102 - see Span
        level, is_length = divmod(index, 2)
        path, start = self.path + "[0]" * level, self.offset + level * self._size
        if is_length:
            return Field(f"{path}.length", start + 4, self.width, f"u{8 * self.width}")
        return Field(f"{path}.items", start, 4, "u32")

    def index_at(self, offset: int) -> int:  # noqa: D102 - see Span
        level, rest = divmod(offset - self.offset, self._size)
        return 2 * level + (rest >= 4)

    def find(self, path: str) -> Field | None:  # noqa: D102 - see Span
        match = _NEST.fullmatch(path, len(self.path)) if path.startswith(self.path) else None
        if not match or len(match[1]) // 3 >= self.levels:
            return None
        return self.field(2 * (len(match[1]) // 3) + (match[2] == "length"))


class Cut:
    """The first ``count`` fields of ``span`` in a file cut to ``size`` bytes; the last of them may be shorter."""

    def __init__(self, span: Span, count: int, size: int) -> None:
        self.offset = span.offset
        self._span, self._count, self._size = span, count, size

    def __len__(self) -> int:
        return self._count

    def field(self, index: int) -> Field:  # noqa: D102 - see Span
        return _clipped(self._span.field(index), self._size)

    def index_at(self, offset: int) -> int:  # noqa: D102 - see Span
        return self._span.index_at(offset)

    def find(self, path: str) -> Field | None:  # noqa: D102 - see Span
        field = self._span.find(path)
        return _clipped(field, self._size) if field and field.offset < self._size else None


class FieldMap:
    """The fields of one file in file order; they tile it without gap or overlap.

    ``extra`` are fields that lie over others (``data``, the whole section; a tensor's bytes that another tensor's
    overlap): ``find`` knows them, iteration and ``at`` do not.
    """

    def __init__(self, spans: Sequence[Span], extra: Sequence[Field] = ()) -> None:
        self._spans = [span for span in spans if len(span)]
        self._extra = tuple(extra)

    # Made when first asked for: a search builds files by the thousand and looks into few of their maps.

    @cached_property
    def _starts(self) -> list[int]:
        return [span.offset for span in self._spans]

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([len(span) for span in self._spans], dtype=np.int64)

    @cached_property
    def _named(self) -> dict[str, Field]:
        named = {span.only.path: span.only for span in self._spans if isinstance(span, Single)}
        return named | {field.path: field for field in self._extra}

    @cached_property
    def _runs(self) -> list[Span]:
        return [span for span in self._spans if not isinstance(span, Single)]

    def find(self, path: str) -> Field | None:
        """Give the field at ``path``, or None."""
        return self._named.get(path) or next((found for run in self._runs if (found := run.find(path))), None)

    def at(self, offset: int) -> Field | None:
        """Give the field that holds the byte at ``offset``, or None beyond the file."""
        position = bisect_right(self._starts, offset) - 1
        if position < 0:
            return None
        span = self._spans[position]
        index = span.index_at(offset)
        field = span.field(index) if index < len(span) else None
        return field if field and offset < field.end else None

    def paths(self, limit: int = 1000) -> list[str]:
        """Give up to ``limit`` paths that are no element of an array: what an error message can suggest."""
        return list(self._named)[:limit]

    def cut(self, size: int) -> FieldMap:
        """Give the map of the file's first ``size`` bytes: later fields are gone, one that is cut through is shorter."""
        kept = self._spans[: bisect_left(self._starts, size)]
        if kept:
            last = kept.pop()
            only = last.only if isinstance(last, Single) else None
            kept.append(Single(_clipped(only, size)) if only else _cut_run(last, size))
        return FieldMap(kept, [_clipped(field, size) for field in self._extra if field.offset < size])

    def joined(self, field: Field) -> FieldMap:
        """Give the map with ``field`` after all others; it starts where they end."""
        return FieldMap([*self._spans, Single(field)], self._extra)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, index: int) -> Field:
        """Give field number ``index`` in file order. Raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        position = int(np.searchsorted(self._ends, index, side="right"))
        span = self._spans[position]
        return span.field(index - int(self._ends[position]) + len(span))

    def __iter__(self) -> Iterator[Field]:
        return (span.field(index) for span in self._spans for index in range(len(span)))


def _clipped(field: Field, size: int) -> Field:
    """Cut ``field``, which starts before ``size``, at the file's end."""
    return field if field.end <= size else field._replace(length=size - field.offset)


def _cut_run(span: Span, size: int) -> Span:
    """Cut a span that starts before ``size``; one that ends before it stays whole."""
    last = span.field(len(span) - 1)
    return span if last.end <= size else Cut(span, span.index_at(size - 1) + 1, size)
