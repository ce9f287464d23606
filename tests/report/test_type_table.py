"""Blocks by type and op: what adds up, in which order it stands, and that a difference shows."""

import io

from conformance.report.events import OpCount
from conformance.report.markdown import summary_markdown
from conformance.report.summary import summarize
from conformance.report.terminal import TerminalView
from conformance.report.type_table import type_tables
from tests.report.samples import finished, result, started

FIRST = result("blocks/q8_0/a", by_op=(OpCount("Q8_0", "quantize", 1, 1000, 0), OpCount("Q8_0", "dequantize", 1, 1000, 0)))
SECOND = result(
    "blocks/q8_0/b", "diverge", by_op=(OpCount("Q8_0", "quantize", 2, 234, 1), OpCount("Q4_0", "quantize with imatrix", 1, 8, 0))
)
AUTHORITY = result("blocks/q8_0/a", who="llama.cpp", role="authority", by_op=(OpCount("Q8_0", "quantize", 1, 1000, 0),))
EVENTS = [started(2), FIRST, SECOND, AUTHORITY, finished(1)]
LINES = [
    "type          quantize  quantize with imatrix  dequantize",
    "Q4_0                 -                      8           -",
    "Q8_0  1,234, 1 differ                      -       1,000",
]


def shape(lines: list[str]) -> list[list[str]]:
    return [" ".join(line.split()).split(" ") for line in lines]


def test_blocks_add_up_by_type_and_op_for_subjects_alone() -> None:
    (table,) = type_tables(summarize(EVENTS))
    assert table.who == "newreader"
    assert table.ops == ("quantize", "quantize with imatrix", "dequantize")
    assert table.rows == [("Q4_0", ("", "8", "")), ("Q8_0", ("1,234, 1 differ", "", "1,000"))]
    assert shape(list(table.lines())) == shape(LINES)
    assert len({len(line) for line in table.lines()}) == 1


def test_the_terminal_shows_them_where_they_are_asked_for() -> None:
    shown = {}
    for by_type in (True, False):
        out = io.StringIO()
        view = TerminalView(out=out, width=100, color="never", progress=False)
        for event in EVENTS:
            view.on_event(event)
        view.finish(by_type=by_type)
        shown[by_type] = out.getvalue()
    assert "newreader: blocks compared, by type and op" in shown[True]
    assert "1,234, 1 differ" in shown[True]
    assert "blocks compared, by type and op" not in shown[False]


def test_a_run_without_blocks_says_so() -> None:
    out = io.StringIO()
    view = TerminalView(out=out, width=100, color="never", progress=False)
    for event in (started(1), result("container/a"), finished(0)):
        view.on_event(event)
    view.finish(by_type=True)
    assert "no blocks were compared" in out.getvalue()


def test_the_summary_in_markdown_has_them_too() -> None:
    summary = summarize(EVENTS)
    assert summary.started
    text = summary_markdown(summary, summary.started)
    assert "## Blocks compared, by type and op: newreader" in text
    assert "1,234, 1 differ" in text
    bare = summarize([started(1), result("container/a"), finished(0)])
    assert bare.started
    assert "by type and op" not in summary_markdown(bare, bare.started)


def test_a_type_of_a_later_ggml_comes_last() -> None:
    later = result("blocks/a", by_op=(OpCount("Q9_Z", "dequantize", 1, 3, 0), OpCount("Q8_0", "dequantize", 1, 2, 0)))
    (table,) = type_tables(summarize([started(1), later]))
    assert [name for name, _ in table.rows] == ["Q8_0", "Q9_Z"]
