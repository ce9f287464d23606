"""The matrix on a terminal, or in a pipe: the summary, and the new divergences by signature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from conformance.matrix.findings import Finding, findings_of
from conformance.matrix.kinds import KINDS
from conformance.matrix.matrix import Matrix, problems_of
from conformance.matrix.summary import SummaryRow, summary_rows
from conformance.matrix.table import COLUMNS, SummaryColumn
from conformance.printable import number, one_line, plural

# Findings of a kind that are shown; the rest is counted.
SHOWN = 20
_BAD, _CALM, _HEAD = "bold red", "dim", "bold"


def render(matrix: Matrix, console: Console) -> None:
    """Print what the streams add up to."""
    for line in _all_lines(matrix, console.width):
        console.print(line, soft_wrap=True)


def _all_lines(matrix: Matrix, width: int) -> Iterator[Text]:
    yield Text(f"{plural(len(matrix.rows), 'case')}, {plural(len(matrix.subjects), 'subject')}", style=_HEAD)
    yield from _remarks(matrix)
    yield from _tables(summary_rows(matrix), width)
    yield Text()
    yield from _findings(findings_of(matrix))


def _remarks(matrix: Matrix) -> Iterator[Text]:
    yield from (Text(f"!! {one_line(warning)} !!", style=_BAD) for warning in matrix.warnings)
    yield from (Text(one_line(note), style=_CALM) for note in matrix.notes)
    for (subject, said), problems in problems_of(matrix).items():
        yield Text(f"{one_line(subject)}: {plural(len(problems), 'known divergence')}, each {said}, such as", style=_BAD)
        yield Text(f"  {one_line(problems[0].pattern)} with {one_line(problems[0].signature)}", style=_CALM)


def _tables(rows: Sequence[SummaryRow], width: int) -> Iterator[Text]:
    """Lay the summary out in one table, or in two where the console is too narrow; nothing in them is cut, for who looks for it."""
    first, *rest = COLUMNS
    whole = _lines((first, *rest), rows)
    if len(whole[0].plain) <= width:
        yield from (Text(), *whole)
        return
    half = next(place for place, column in enumerate(rest) if column.title == "crashes")
    for part in (rest[:half], rest[half:]):
        yield from (Text(), *_lines((first, *part), rows))


def _lines(columns: Sequence[SummaryColumn], rows: Sequence[SummaryRow]) -> list[Text]:
    """Give the heading and a line for each row, padded."""
    widths = [max([len(column.title), *(len(column.text(row)) for row in rows)]) for column in columns]
    lines = [Text(style=_CALM).append("  ".join(_padded(c, c.title, width) for c, width in zip(columns, widths, strict=True)))]
    for row in rows:
        cells = (
            (_padded(column, column.text(row), width), _style(column, row)) for column, width in zip(columns, widths, strict=True)
        )
        lines.append(Text("  ").join(Text(text, style=style) for text, style in cells))
    return lines


def _padded(column: SummaryColumn, text: str, width: int) -> str:
    return f"{text:>{width}}" if column.numeric else f"{text:<{width}}"


def _style(column: SummaryColumn, row: SummaryRow) -> str:
    if not column.numeric:
        return ""
    return _CALM if column.text(row) == "-" else _BAD if column.failing else ""


def _findings(findings: Sequence[Finding]) -> Iterator[Text]:
    new = [finding for finding in findings if finding.state == "new"]
    known = len(findings) - len(new)
    yield Text(f"{plural(len(findings), 'divergence')} by signature and subjects: {number(known)} known, {number(len(new))} not")
    for finding in new[:SHOWN]:
        who = ", ".join(one_line(one.name) for one in finding.who)
        yield Text.assemble(
            "  ",
            (one_line(finding.signature), _BAD),
            f" · {who} · {plural(len(finding.rows), 'case')} · {KINDS[finding.mark].words}",
        )
        yield Text(f"    {one_line(finding.smallest.id)}", style=_CALM)
    if len(new) > SHOWN:
        yield Text(f"  and {number(len(new) - SHOWN)} more", style=_CALM)
