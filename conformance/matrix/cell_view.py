"""What the page of the matrix shows of suites, groups and cells, as plain texts; the template only lays them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from conformance.matrix.cell import STATE_SIGNS, Cell, Who
from conformance.matrix.findings import Finding
from conformance.matrix.groups import Group, Suite, suites_of
from conformance.matrix.kinds import DEATHS, GRAVITY, KINDS
from conformance.matrix.matrix import Matrix
from conformance.printable import number, plural
from conformance.report.summary import key_of

# By case and signature.
FindingIndex = Mapping[tuple[str, str], Finding]


class CellView(NamedTuple):
    """A cell: its classes, what stands in it, what it means, and the finding that it leads to."""

    classes: str
    sign: str
    title: str
    finding: Finding | None = None


class GroupView(NamedTuple):
    """A row: the first case's key, all ids, a cell a column, and the findings that no cell leads to."""

    label: str
    ids: tuple[str, ...]
    cells: tuple[CellView, ...]
    findings: tuple[Finding, ...]


class SuiteView(NamedTuple):
    """A suite: a line that counts its departures, and its rows."""

    name: str
    cases: int
    cells: tuple[CellView, ...]
    groups: tuple[GroupView, ...]


def finding_index(findings: Iterable[Finding]) -> FindingIndex:
    """Give each case's findings by their signatures. Of those with one signature none share a case."""
    return {(row.id, finding.signature): finding for finding in findings for row in finding.rows}


def suite_views(matrix: Matrix, index: FindingIndex) -> list[SuiteView]:
    """Give what the table shows."""
    columns = [column.who for column in matrix.columns]
    return [
        SuiteView(
            suite.name,
            suite.cases,
            tuple(_sum_view(suite, who) for who in columns),
            tuple(_group_view(group, columns, index) for group in suite.groups),
        )
        for suite in suites_of(matrix)
    ]


def _sum_view(suite: Suite, who: Who) -> CellView:
    """Count a participant's gravest departures in a suite, of how many; of an authority, the cases that it does not survive."""
    cells = suite.cells(who)
    departing = [cell for cell in cells if cell.state or DEATHS & set(cell.marks)]
    if not departing:
        return _calm_view(cells)
    gravest = min((cell.kind for cell in departing), key=lambda kind: GRAVITY.get(kind, len(GRAVITY)))
    those = sum(cell.kind == gravest for cell in departing)
    count = number(those) if those == len(departing) else f"{number(those)}/{number(len(departing))}"
    counts = Counter(KINDS[mark].words for cell in departing for mark in cell.marks or (cell.kind,))
    told = "; ".join(f"{words}: {number(count)}" for words, count in counts.most_common())
    new = " new" if any(cell.state == "new" for cell in departing) else ""
    title = f"{number(len(departing))} of {plural(len(cells), 'case')} · {told}"
    return CellView(f"{gravest}{new}", f"{KINDS[gravest].sign}{count}{STATE_SIGNS['new'] if new else ''}", title)


def _calm_view(cells: list[Cell]) -> CellView:
    if not cells:
        return CellView("absent", "", KINDS["absent"].words)
    if all(cell.kind == "skip" for cell in cells):
        return CellView("skip", KINDS["skip"].sign, KINDS["skip"].words)
    skipped = sum(cell.kind == "skip" for cell in cells)
    left_out = f", {number(skipped)} not compared" if skipped else ""
    return CellView("calm", "✓", f"{plural(len(cells) - skipped, 'case')} as expected{left_out}")


def _group_view(group: Group, columns: list[Who], index: FindingIndex) -> GroupView:
    cells = tuple(_cell_view(group, who, index) for who in columns)
    found = {finding.slug: finding for who in columns for finding in _findings(group, who, index)}
    for cell in cells:
        if cell.finding:
            found.pop(cell.finding.slug, None)
    return GroupView(
        key_of(group.rows[0].id),
        tuple(row.id for row in group.rows),
        cells,
        tuple(found.values()),
    )


def _cell_view(group: Group, who: Who, index: FindingIndex) -> CellView:
    cells = group.cells(who)
    if not cells:
        return CellView("absent", "", group.title(who))
    first = cells[0]
    # The gravest mark comes last, so that its colour covers the others'.
    classes = " ".join(filter(None, [*reversed(first.marks), *([] if first.marks else [first.kind]), first.state]))
    finding = next(iter(_findings(group, who, index)), None)
    return CellView(classes, f"{KINDS[first.kind].sign}{STATE_SIGNS[first.state]}", group.title(who), finding)


def _findings(group: Group, who: Who, index: FindingIndex) -> list[Finding]:
    """Give the findings that a cell of the group stands for; cases that look the same may belong to the same ones only."""
    cell = group.rows[0].cells.get(who)
    if cell is None:
        return []
    return [index[group.rows[0].id, failure.signature] for failure in cell.failures]
