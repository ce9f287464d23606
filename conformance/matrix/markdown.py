"""The matrix as Markdown: the summary, who departs in which suite, and the divergences. No data gets into it unescaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.matrix.findings import findings_of
from conformance.matrix.groups import suites_of
from conformance.matrix.kinds import KINDS
from conformance.matrix.matrix import Matrix
from conformance.matrix.numbers import Compared, number_rows, percent
from conformance.matrix.summary import SummaryRow, summary_rows
from conformance.matrix.table import COLUMNS
from conformance.printable import number, plural
from conformance.report.markdown import cell, prose


def markdown(matrix: Matrix) -> str:
    """Give the whole matrix as a document."""
    parts = [
        f"# {number(len(matrix.rows))} cases, {number(len(matrix.subjects))} subjects",
        *(f"> **Not a whole run.** {prose(warning)}" for warning in matrix.warnings),
        *(f"{prose(note)}" for note in matrix.notes),
        summary_table(summary_rows(matrix)).rstrip(),
        "## Suites\n\nIn how many cases somebody departs, known divergences included; `-`: in none, `skip`: nothing was compared.",
        "\n".join(_suites(matrix)),
        *_numbers(matrix),
        "## Divergences",
        "\n".join(_findings(matrix)) or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def summary_table(rows: Sequence[SummaryRow]) -> str:
    """Give the summary as a table, a line for each participant."""
    heads = [column.title for column in COLUMNS]
    rules = ["--:" if column.numeric else "---" for column in COLUMNS]
    lines = [[str(prose(column.text(row))) if not column.numeric else column.text(row) for column in COLUMNS] for row in rows]
    return "".join(f"{_line(texts)}\n" for texts in (heads, rules, *lines))


def _line(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _suites(matrix: Matrix) -> Iterator[str]:
    yield _line(["suite", "cases", *(str(prose(column.who.name)) for column in matrix.columns)])
    yield _line(["---", "--:", *("--:" for _ in matrix.columns)])
    for suite in suites_of(matrix):
        cells = [suite.cells(column.who) for column in matrix.columns]
        counts = [sum(bool(one.state) for one in members) for members in cells]
        skipped = [bool(members) and all(one.kind == "skip" for one in members) for members in cells]
        told = [number(count) if count else "skip" if skip else "-" for count, skip in zip(counts, skipped, strict=True)]
        yield _line([str(prose(suite.name)), number(suite.cases), *told])


def _numbers(matrix: Matrix) -> Iterator[str]:
    """Give the ops and types on which somebody computes other numbers, and how far these are."""
    rows = [row for row in number_rows(matrix) if row.differs]
    if not rows:
        return
    who = [column.who for column in matrix.columns if any(column.who in row.by_who for row in rows)]
    yield "## Numbers\n\nOf how many answers the numbers are not the authority's; of the blocks in these, how much of the bytes."
    heads = [_line(["op and type", *(str(prose(one.name)) for one in who)]), _line(["---"] * (len(who) + 1))]
    lines = [_line([str(prose(f"{row.op} {row.type}")), *(_compared(row.by_who.get(one)) for one in who)]) for row in rows]
    yield "\n".join([*heads, *lines])


def _compared(compared: Compared | None) -> str:
    if compared is None or not compared.different:
        return "" if compared is None else "-"
    told = f"{number(compared.different)} of {number(compared.answers)}"
    if compared.largest is not None:
        told += f", at most {plural(compared.largest, 'ulp')}"
    return told if compared.share is None else f"{told}, {percent(compared.share)}"


def _findings(matrix: Matrix) -> Iterator[str]:
    found = findings_of(matrix)
    if found:
        yield _line(["signature", "what", "who", "cases", "smallest case", "known as"])
        yield _line(["---", "---", "---", "--:", "---", "---"])
    for one in found:
        who = ", ".join(member.name for member in one.who)
        what = f"{KINDS[one.mark].words}{', not known' if one.state == 'new' else ''}"
        yield _line(
            [
                str(cell(one.signature)),
                str(prose(what)),
                str(prose(who)),
                number(len(one.rows)),
                str(cell(one.smallest.id)),
                str(prose(one.known_as)),
            ]
        )
