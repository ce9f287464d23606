"""The matrix as one value: columns are participants, rows are cases."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from conformance.matrix.cell import Cell, Who
from conformance.report.events import CaseResult, KnownProblem, Participant, RunStarted
from conformance.report.summary import suite_of


class Run(NamedTuple):
    """A run that was joined in: where its stream is, and how it began."""

    path: Path
    started: RunStarted


class Column(NamedTuple):
    """A participant; ``oracle`` says whether the run that it comes from asked live authorities or recorded answers."""

    who: Who
    participant: Participant
    oracle: str


@dataclass(frozen=True)
class Row:
    """A case; ``about`` is a result that tells of its input, the same in all; ``cells`` lacks whoever was not asked."""

    id: str
    about: CaseResult
    cells: dict[Who, Cell]

    @property
    def suite(self) -> str:
        """The file that declares it."""
        return suite_of(self.id)


@dataclass(frozen=True)
class Matrix:
    """``warnings`` say which stream is not a whole run, ``notes`` what was left out in joining; ``partial``: cases were chosen."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    runs: tuple[Run, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[KnownProblem, ...] = ()
    partial: bool = False

    @property
    def subjects(self) -> tuple[Column, ...]:
        """The columns of those under test."""
        return tuple(column for column in self.columns if not column.who.is_authority)

    @cached_property
    def by_who(self) -> dict[Who, list[Cell]]:
        """Each participant's cells."""
        return {column.who: [row.cells[column.who] for row in self.rows if column.who in row.cells] for column in self.columns}

    def judged_by(self, who: Who) -> str:
        """Give the authority that most of a subject's cases were judged by; empty for an authority."""
        if who.is_authority:
            return ""
        return next((name for name, _ in Counter(cell.result.profile for cell in self.by_who[who]).most_common(1)), "")


def problems_of(matrix: Matrix) -> dict[tuple[str, str], list[KnownProblem]]:
    """Give the entries of divergences files that no longer hold, by subject and by what is the matter with them."""
    found: dict[tuple[str, str], list[KnownProblem]] = {}
    for problem in matrix.problems:
        found.setdefault((problem.subject, problem.says), []).append(problem)
    return found
