"""The other views: cells as texts, Markdown, the terminal, small pictures."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from conformance.matrix.cell_view import finding_index, suite_views
from conformance.matrix.findings import findings_of
from conformance.matrix.html import index_html
from conformance.matrix.load import load_matrix
from conformance.matrix.markdown import markdown
from conformance.matrix.matrix import Matrix
from conformance.matrix.plot import power_text, shares, small_plot, spread_text, wide_plot
from conformance.matrix.terminal import render
from conformance.report.console import make_console
from tests.matrix.streams import DEATH, LLAMA, answer, lax_results, stream, subject
from tests.report.samples import PROBLEM, result


def _printed(matrix: Matrix, width: int = 200, **options: str) -> str:
    out = io.StringIO()
    render(matrix, make_console(out, width=width, **options))  # type: ignore[arg-type] - a test may name any colour setting
    return out.getvalue()


def test_a_suites_line_counts_the_gravest_of_how_many(tmp_path: Path) -> None:
    dies = {"divergences": (DEATH,), "reason": DEATH.summary}
    results = [*lax_results(), answer("files/a/four", "lax", "crash SIGSEGV", "diverge", **dies)]
    matrix = load_matrix([stream(tmp_path / "s", results, LLAMA, subject("lax"))])
    first, last = suite_views(matrix, finding_index(findings_of(matrix)))[::2]
    assert (first.name, first.cells[1].sign, first.cells[1].classes) == ("files/a", "†1/3!", "dies new")
    assert first.cells[1].title == "3 of 4 cases · accepts what is to be refused: 2; dies: 1"
    assert (last.name, last.cells[1].sign) == ("numbers/q4_k", "≠2!")
    assert last.cells[0].sign == ""


def test_a_suite_as_expected_says_what_was_left_out(matrix: Matrix, tmp_path: Path) -> None:
    by_name = {suite.name: suite for suite in suite_views(matrix, finding_index(findings_of(matrix)))}
    assert [cell.sign for cell in by_name["files/b"].cells] == ["†1", "✓", "†1!"]
    assert by_name["numbers/q4_k"].cells[2].sign == "–"
    results = [answer("a/b/one", "lax"), result("a/b/two", "skip", who="lax", reason="no")]
    (suite,) = suite_views(load_matrix([stream(tmp_path / "s", results, subject("lax"))]), {})
    assert suite.cells[0].title == "1 case as expected, 1 not compared"


def test_markdown_has_the_summary_the_suites_and_the_divergences(matrix: Matrix) -> None:
    text = markdown(matrix)
    assert "| lax | 1.0 | rust | llama.cpp | 6 | 2 | 2 | 2 | - | - | - | - | - | 4 |\n" in text
    assert "| files/a | 3 | - | 2 | - |\n" in text
    assert "| numbers/q4\\_k | 2 | - | 2 | skip |\n" in text or "| numbers/q4_k | 2 | - | 2 | skip |\n" in text
    assert "| `header:-:crash-SIGSEGV:-` | dies, not known | mortal | 1 | `files/b/dead` |  |\n" in text
    assert "| `files/a/two` | policy: reads on |\n" in text
    assert "| op and type | lax |\n| --- | --- |\n| dequantize Q4_K | 2 of 2, at most 9 ulps |\n" in text


def test_markdown_holds_no_markup_of_a_stream(tmp_path: Path) -> None:
    name = "a|b<script>*c*\n| escaped"
    matrix = load_matrix([stream(tmp_path / "s", lax_results(name), subject(name, name, name))])
    text = markdown(matrix)
    assert "<script" not in text
    assert "\n| escaped" not in text
    table = [line for line in text.splitlines() if line.startswith("| a\\|b")]
    assert table
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 15 for line in table)


def test_the_terminal_shows_the_summary_in_one_table_or_two(matrix: Matrix) -> None:
    wide, narrow = _printed(matrix), _printed(matrix, 100)
    (line,) = [line for line in wide.splitlines() if line.startswith("lax")]
    assert line.split() == ["lax", "1.0", "rust", "llama.cpp", "6", "2", "2", "2", "-", "-", "-", "-", "-", "4"]
    assert [line.split() for line in narrow.splitlines() if line.startswith("mortal")] == [
        ["mortal", "1.0", "go", "llama.cpp", "6", "3", "1", "-", "2"],
        ["mortal", "1", "-", "-", "-", "-"],
    ]
    assert "3 divergences by signature and subjects: 1 known, 2 not" in wide
    assert "header:-:crash-SIGSEGV:- · mortal · 1 case · dies" in wide


def test_the_terminal_tells_what_is_not_whole_and_what_no_longer_holds(tmp_path: Path) -> None:
    cut = stream(tmp_path / "cut", lax_results(), subject("lax"), whole=False)
    text = _printed(load_matrix([cut]))
    assert "TRUNCATED" in text
    matrix = load_matrix([stream(tmp_path / "s", lax_results(), subject("lax"))])
    told = Matrix(matrix.columns, matrix.rows, problems=(PROBLEM,))
    assert "newreader: 1 known divergence, each no longer happens, such as\n  container/kv/* with header:-:value:kv\n" in _printed(
        told
    )
    page = index_html(told, findings_of(told))
    assert "newreader: 1 known divergence, each no longer happens" in page
    assert "<code>container/kv/*</code> with <code>header:-:value:kv</code>" in page


def test_colours_are_for_terminals(matrix: Matrix) -> None:
    assert "\x1b" not in _printed(matrix)
    assert "\x1b" in _printed(matrix, color="always")


def test_a_hostile_name_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    name = "a\x1b[31m\u202eb\n"
    text = _printed(load_matrix([stream(tmp_path / "s", lax_results(name), subject(name, name, name))]))
    assert not {"\x1b", "\u202e"} & set(text)


@pytest.mark.parametrize(
    ("place", "text"),
    [(0, "0"), (1, "1"), (2, "2 to 3"), (11, "1,024 to 2,047"), (20, "524,288 to 1,048,575"), (21, "2^20 to 2^21")],
)
def test_a_place_of_a_spread_says_which_distances_it_counts(place: int, text: str) -> None:
    assert power_text(place) == text


def test_a_picture_has_a_bar_for_each_place_that_counts_anything() -> None:
    assert spread_text((0, 20, 5)) == "20 of 1 ulp, 5 of 2 to 3 ulps"
    assert small_plot((0, 20, 0, 5)).count("M") == 2
    assert wide_plot((1, 20, 0, 5)).count("<rect") == 3
    assert [bool(str(picture)) for picture in (small_plot(()), small_plot((0, 0)), wide_plot(()), shares({}))] == [False] * 4


def test_the_tallest_bar_takes_the_height_and_one_is_seen() -> None:
    heights = [float(height) for height in re.findall(r'height="([0-9.]+)"/>', wide_plot((1, 1_000_000)))]
    assert heights == [6.0, 120.0]
    assert 'height="2"' in wide_plot((1, 2**62))


def test_shares_add_up_to_the_whole_and_none_is_lost() -> None:
    picture = shares({"calm": 100_000, "dies": 1, "skip": 0})
    widths = [float(width) for width in re.findall(r'<rect class="\w+" x="[0-9.]+" y="0" width="([0-9.]+)"', picture)]
    assert len(widths) == 2
    assert min(widths) > 1.5
    assert sum(widths) == pytest.approx(200, abs=0.2)
    assert 'aria-label="calm 100,000, dies 1"' in picture
