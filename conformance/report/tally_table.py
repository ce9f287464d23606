"""The table of a run: suite by participant, verdicts and what was compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from conformance.printable import number, one_line
from conformance.report.events import FAILING
from conformance.report.summary import RunSummary, Tally

_GAP = 2


class TallyColumn(NamedTuple):
    """One numeric column: its title, what it counts, and whether a count in it fails the run."""

    title: str
    count: Callable[[Tally], int]
    failing: bool = False


class TallyRow(NamedTuple):
    """One row: suite and participant as shown, its numbers, and whether it adds others up."""

    suite: str
    who: str
    cells: tuple[str, ...]
    total: bool = False


def _verdict(verdict: str, title: str | None = None) -> TallyColumn:
    return TallyColumn(title or verdict, lambda tally: tally.verdicts[verdict], verdict in FAILING)


VERDICTS = (
    TallyColumn("cases", lambda tally: tally.cases),
    _verdict("pass"),
    _verdict("known"),
    _verdict("diverge"),
    _verdict("skip"),
)
# Shown only where one of them is not zero.
RARE = (_verdict("stale"), _verdict("authority-drift", "drift"), _verdict("authority-crash", "crash"), _verdict("error"))
AMOUNTS = (
    TallyColumn("blocks", lambda tally: tally.counts.blocks),
    TallyColumn("bytes", lambda tally: tally.counts.bytes),
    TallyColumn("values", lambda tally: tally.counts.values),
)


def verdict_columns(summary: RunSummary) -> tuple[TallyColumn, ...]:
    """Give the columns of verdicts that this run needs."""
    totals = [total for _, total in summary.totals]
    return (*VERDICTS, *(column for column in RARE if any(column.count(total) for total in totals)))


def tally_rows(summary: RunSummary, columns: Sequence[TallyColumn]) -> list[TallyRow]:
    """Give the rows in order, each suite named once, and totals where there are several suites or stale entries.

    A zero shows as ``-``.
    """
    rows, last = [], None
    for suite, who, tally in summary.rows:
        rows.append(TallyRow("" if suite == last else one_line(suite), one_line(who), _cells(tally, columns)))
        last = suite
    if summary.problems or len({suite for suite, _ in summary.tallies}) > 1:
        totals = [(one_line(who), _cells(tally, columns)) for who, tally in summary.totals]
        rows += [TallyRow("" if index else "all", who, cells, total=True) for index, (who, cells) in enumerate(totals)]
    return rows


def _cells(tally: Tally, columns: Sequence[TallyColumn]) -> tuple[str, ...]:
    counts = [column.count(tally) for column in columns]
    return tuple(number(count) if count else "-" for count in counts)


class TallyLayout(NamedTuple):
    """A laid out table: widths of suite, who, and each number."""

    columns: Sequence[TallyColumn]
    rows: list[TallyRow]
    suite: int
    who: int
    cells: list[int]

    @property
    def width(self) -> int:
        """Columns of the terminal that the table takes."""
        return self.suite + _GAP + self.who + sum(_GAP + width for width in self.cells)

    def lines(self) -> list[tuple[str, str, list[str], TallyRow | None]]:
        """Give each line padded: suite, who, numbers, and its row (None for the heading)."""
        heading = TallyRow("suite", "who", tuple(column.title for column in self.columns))
        return [self._line(heading, None), *(self._line(row, row) for row in self.rows)]

    def _line(self, row: TallyRow, source: TallyRow | None) -> tuple[str, str, list[str], TallyRow | None]:
        numbers = [f"{cell:>{width + _GAP}}" for cell, width in zip(row.cells, self.cells, strict=True)]
        return f"{row.suite:<{self.suite + _GAP}}", f"{row.who:<{self.who}}", numbers, source


def lay_out(summary: RunSummary, columns: Sequence[TallyColumn]) -> TallyLayout:
    """Measure the table with these columns."""
    rows = tally_rows(summary, columns)
    cells = [max([len(column.title), *(len(row.cells[index]) for row in rows)]) for index, column in enumerate(columns)]
    return TallyLayout(columns, rows, max([5, *(len(row.suite) for row in rows)]), max([3, *(len(row.who) for row in rows)]), cells)
