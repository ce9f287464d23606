"""docs/matrix.md: its head is the manual, written by hand; the summary between two marks is written by ``matrix --record``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformance.cases.load import load_suites
from conformance.errors import ConfigurationError, UsageError
from conformance.matrix.markdown import summary_table
from conformance.matrix.matrix import Matrix
from conformance.matrix.summary import summary_rows
from conformance.places import cases_root
from conformance.printable import number, one_line
from conformance.report.write import writing
from conformance.whole import write_whole

PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
OF_THE_MACHINE = {"hangs", "memory", "blocks"}
BEGIN, END = "<!-- matrix: begin -->", "<!-- matrix: end -->"


def record(matrix: Matrix, page: Path) -> None:
    """Put the matrix's summary into the page, in the place of the one that is there.

    Raises UsageError where there is no checkout, or where the matrix is of some cases only; ConfigurationError where a run is not
    whole, or the page has no place for it.
    """
    if not page.parent.is_dir():
        raise UsageError("there is no checkout to record in", hint="--record is for those who work on the harness")
    if matrix.partial:
        raise UsageError("a part of the cases is not recorded", hint="leave out --select, or leave out --record")
    if matrix.warnings:
        raise ConfigurationError(f"a run that is not whole is not recorded: {matrix.warnings[0]}", hint="run it again")
    head, _, tail = _apart(page)
    with writing(page.parent):
        write_whole(page, f"{head}{BEGIN}\n\n{_text(matrix)}\n{END}{tail}")


def require_corpus(matrix: Matrix) -> None:
    """Make sure that every subject was run on all cases that there are. Raises UsageError."""
    every = {case.id for case in load_suites(cases_root())}
    for column in matrix.subjects:
        ran = {cell.result.case for cell in matrix.by_who[column.who]}
        if ran != every:
            raise UsageError(
                f"{one_line(column.who.name)} was run on {number(len(ran & every))} of {number(len(every))} cases",
                hint="what is recorded are runs of all of today's cases: run it without --select",
            )


def recorded_rows(page: Path = PAGE) -> list[dict[str, str]]:
    """Give the recorded table's rows, each as title to text. Raises ConfigurationError where the page has none."""
    _, middle, _ = _apart(page)
    lines = [_cells(line) for line in middle.splitlines() if line.startswith("|")]
    if not lines:
        return []
    heads, _, *rows = lines
    return [dict(zip(heads, row, strict=True)) for row in rows]


def drift(matrix: Matrix, page: Path) -> list[str]:
    """Say in which of the matrix's rows the page says something else; rows of those who were not run are not looked at.

    Neither is what depends on the machine: how often time or memory ran out, and how many blocks were compared until then.

    Raises ConfigurationError as recorded_rows does.
    """
    kept = {row["subject"]: row for row in recorded_rows(page)}
    made = {row["subject"]: row for row in _rows_of(_text(matrix))}
    said = [f"{name} is not in the table" for name in made if name not in kept]
    for name in (name for name in made if name in kept):
        pairs = (
            (title, text, kept[name].get(title, "nothing")) for title, text in made[name].items() if title not in OF_THE_MACHINE
        )
        said += [f"{name}: {title} is {text}, recorded is {before}" for title, text, before in pairs if before != text]
    return said


def _text(matrix: Matrix) -> str:
    cases = number(len(matrix.rows))
    return f"{cases} cases, oracle {', '.join(_oracles(matrix))}.\n\n{summary_table(summary_rows(matrix))}"


def _oracles(matrix: Matrix) -> Sequence[str]:
    return list(dict.fromkeys(column.oracle for column in matrix.columns))


def _rows_of(text: str) -> list[dict[str, str]]:
    heads, _, *rows = (_cells(line) for line in text.splitlines() if line.startswith("|"))
    return [dict(zip(heads, row, strict=True)) for row in rows]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _apart(page: Path) -> tuple[str, str, str]:
    """Give the page before, between and after the marks."""
    try:
        text = page.read_text("utf-8")
    except OSError as problem:
        raise ConfigurationError(f"cannot read the page: {problem.strerror}", where=str(page)) from problem
    head, begin, rest = text.partition(BEGIN)
    middle, end, tail = rest.partition(END)
    if not (begin and end):
        raise ConfigurationError(f"the page has no place for the table: {BEGIN} and {END}", where=str(page))
    return head, middle, tail
