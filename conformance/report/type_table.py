"""The table of a run on numbers: ggml type by op, with how many blocks were compared and how many answers differed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

from conformance.ggml_types import BY_NAME
from conformance.printable import number, one_line
from conformance.report.events import OpCount
from conformance.report.summary import RunSummary

# In the order in which a quantized row is made and used; others follow.
_OPS = ("quantize", "quantize with imatrix", "quantize:ref", "dequantize", "dot", "dot:simd", "matvec", "matvec:simd")
_GAP = 2


class TypeTable(NamedTuple):
    """One subject's table: the ops in order, and for each type its cells, empty where nothing was compared."""

    who: str
    ops: tuple[str, ...]
    rows: list[tuple[str, tuple[str, ...]]]

    def lines(self) -> Iterator[str]:
        """Give heading and rows, each column as wide as its widest cell."""
        table = [("type", self.ops), *self.rows]
        widths = [max(len(cells[index]) for _, cells in table) for index in range(len(self.ops))]
        first = max(len(name) for name, _ in table)
        for name, cells in table:
            padded = "".join(" " * _GAP + f"{cell or '-':>{width}}" for cell, width in zip(cells, widths, strict=True))
            yield f"{name:<{first}}{padded}"


def type_tables(summary: RunSummary) -> list[TypeTable]:
    """Give a table for each subject that was compared on blocks; authorities have none."""
    participants = summary.started.participants if summary.started else ()
    subjects = [participant.name for participant in participants if participant.role == "subject"]
    return [table for who in subjects if (table := _table(summary, who)).rows]


def _table(summary: RunSummary, who: str) -> TypeTable:
    counted = {(kind, op): count for (name, kind, op), count in summary.by_op.items() if name == who}
    seen = dict.fromkeys(op for _, op in counted)
    ops = tuple(op for op in (*_OPS, *sorted(set(seen) - set(_OPS))) if op in seen)
    types = sorted({kind for kind, _ in counted}, key=_place)
    rows = [(one_line(kind), tuple(_cell(counted.get((kind, op))) for op in ops)) for kind in types]
    return TypeTable(who, ops, rows)


def _place(kind: str) -> tuple[int, str]:
    """Order types by their numbers; those of a later ggml, in a stream of a later version, come last by name."""
    return (BY_NAME[kind].id if kind in BY_NAME else sys.maxsize, kind)


def _cell(count: OpCount | None) -> str:
    if count is None:
        return ""
    return f"{number(count.blocks)}, {number(count.different)} differ" if count.different else number(count.blocks)
