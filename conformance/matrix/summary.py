"""The summary table: one row a participant, and the same rows for the terminal, Markdown and the page."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from conformance.matrix.cell import Cell
from conformance.matrix.kinds import MARKS
from conformance.matrix.matrix import Column, Matrix


class SummaryRow(NamedTuple):
    """What one participant's cases add up to.

    ``passed`` (None for a recorded authority, which is not judged), ``diverging``, ``known``, ``skipped`` and ``broken`` (the case
    could not be put to it) add up to ``cases``. ``crashes``, ``hangs``, ``memory`` and ``errors`` count cases in which that
    happened, whatever the verdict. ``blocks`` is how many were compared. ``shares`` counts the cases by what the column shows.
    """

    name: str
    version: str
    language: str
    role: str
    judged_by: str
    cases: int
    passed: int | None
    diverging: int
    known: int
    skipped: int
    broken: int
    crashes: int
    hangs: int
    memory: int
    errors: int
    blocks: int
    shares: dict[str, int]


def summary_rows(matrix: Matrix) -> list[SummaryRow]:
    """Give one row a column, in their order."""
    return [_row(matrix, column) for column in matrix.columns]


def _row(matrix: Matrix, column: Column) -> SummaryRow:
    cells, participant = matrix.by_who[column.who], column.participant
    verdicts = Counter(cell.result.verdict for cell in cells)
    marks = Counter(mark for cell in cells for mark in cell.marks)
    return SummaryRow(
        participant.name,
        participant.version,
        participant.language,
        participant.role,
        matrix.judged_by(column.who),
        cases=len(cells),
        passed=None if participant.role == "golden" else verdicts["pass"],
        diverging=sum(cell.state == "new" and cell.result.verdict != "error" for cell in cells),
        known=verdicts["known"],
        skipped=verdicts["skip"],
        broken=verdicts["error"],
        crashes=marks["dies"],
        hangs=marks["hangs"],
        memory=marks["memory"],
        errors=marks["fails"],
        blocks=sum(cell.result.counts.blocks for cell in cells),
        shares=_shares(cells),
    )


def _shares(cells: list[Cell]) -> dict[str, int]:
    counts = Counter(cell.share for cell in cells)
    order = ("calm", *(kind.name for kind in reversed(MARKS)), "unput", "skip")
    return {name: counts[name] for name in order if counts[name]}
