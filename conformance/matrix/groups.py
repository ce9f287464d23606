"""Rows that read the same, together: within a suite, the cases whose cells look the same for everybody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from conformance.matrix.cell import Cell, Who
from conformance.matrix.kinds import GRAVITY, KINDS
from conformance.matrix.matrix import Matrix, Row

# Texts of one kind that a cell of several cases tells; more are counted.
_TOLD = 3


@dataclass(frozen=True)
class Group:
    """Cases of one suite that form one row of the page."""

    rows: tuple[Row, ...]

    def cells(self, who: Who) -> list[Cell]:
        """Give a participant's cells, one a case, which all look the same; none where it was not asked."""
        return [row.cells[who] for row in self.rows if who in row.cells]

    def title(self, who: Who) -> str:
        """Say in words what the cell means: what was done, whether that is known, and what the sign leaves open."""
        cells = self.cells(who)
        if not cells:
            return KINDS["absent"].words
        said = ", ".join(KINDS[mark].words for mark in cells[0].marks or (cells[0].kind,))
        detail = _some([_detail(cell) for cell in cells])
        return f"{said}{' (known)' if cells[0].state == 'known' else ''}{f': {detail}' if detail else ''}"


def _detail(cell: Cell) -> str:
    """Give the classes of what was refused; the reason why nothing was compared. Of a departure its finding tells the rest."""
    if cell.kind in {"skip", "unput"}:
        return cell.result.reason
    return "" if cell.state else ", ".join(cell.reject_classes)


def _some(texts: list[str]) -> str:
    different = list(dict.fromkeys(text for text in texts if text))
    more = len(different) - _TOLD
    return ", ".join(different[:_TOLD]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Suite:
    """A file of cases: its groups, those with departures first, and the number of its cases."""

    name: str
    groups: tuple[Group, ...]

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return sum(len(group.rows) for group in self.groups)

    def cells(self, who: Who) -> list[Cell]:
        """Give a participant's cells of all cases."""
        return [cell for group in self.groups for cell in group.cells(who)]


def suites_of(matrix: Matrix) -> list[Suite]:
    """Give the suites by name."""
    grouped: dict[str, dict[tuple[object, ...], list[Row]]] = {}
    for row in matrix.rows:
        look = tuple(row.cells[column.who].look if column.who in row.cells else () for column in matrix.columns)
        grouped.setdefault(row.suite, {}).setdefault(look, []).append(row)
    return [Suite(name, tuple(sorted(_groups(looks.values()), key=_rank))) for name, looks in sorted(grouped.items())]


def _groups(looks: Iterable[list[Row]]) -> Iterator[Group]:
    return (Group(tuple(rows)) for rows in looks)


def _rank(group: Group) -> tuple[int, int, str]:
    """Order the rows of a suite: the gravest departures first, then the most cases."""
    marks = [mark for cell in group.rows[0].cells.values() if cell.state for mark in cell.marks]
    return min((GRAVITY[mark] for mark in marks), default=len(GRAVITY)), -len(group.rows), group.rows[0].id
