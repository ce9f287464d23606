import io
import os
import pty
import re
import select

import msgspec
import pytest

from conformance.errors import ConfigurationError
from conformance.printable import one_line
from conformance.report.command import report_command
from conformance.report.console import wants_color
from conformance.report.events import Answered
from conformance.report.terminal import TerminalView
from tests.report.samples import (
    BYTE,
    FIELD,
    FLOAT,
    GREEN,
    HOSTILE,
    LIBRARY,
    OTHERS,
    PROBLEM,
    RICH,
    ended,
    finished,
    hostile_stream,
    result,
    save,
    started,
)

ESCAPE = "\x1b"


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def shown(events, **settings) -> str:
    out = io.StringIO()
    with TerminalView(out=out, err=io.StringIO(), **settings) as view:
        for event in events:
            view.on_event(event)
        view.finish()
    return out.getvalue()


def test_the_header_names_versions_settings_library_and_arithmetic():
    head = shown(RICH).split("\n\n")[0]
    assert "gguf-conformance 9.8.7 · oracle live · profile llama.cpp · 9 cases" in head
    for said in ("newreader 0.4.1 (rust)", "strings end at NUL", "llama.cpp 0.3.36 (c)", LIBRARY, "rounded apart, AVX2"):
        assert said in head


@pytest.mark.parametrize("width", [None, 80, 100, 200])
def test_nothing_is_cut_and_nothing_is_colored_at_any_width(width):
    text = shown(RICH, width=width)
    assert ESCAPE not in text
    assert "…" not in text
    for event in RICH[1:-2]:
        assert event.case.rpartition("/")[0] in text
        if event.verdict not in ("pass", "known", "skip"):
            assert f"{event.case} · {event.who} " in text
            assert event.repeat in text
    assert LIBRARY in text


@pytest.mark.parametrize("width", [80, 200])
def test_tables_fit_and_prose_is_wrapped(width):
    lines = shown(RICH, width=width).splitlines()
    tables = [line for line in lines if re.match(r"suite |blocks/|container/|all  ", line)]
    assert len(tables) >= 7
    free = [
        line
        for line in lines
        if "repeat" not in line and " compared" not in line and "library" not in line and "signature" not in line
    ]
    assert max(len(line) for line in free if "oracle" not in line) <= width


def test_a_wide_table_is_one_and_a_narrow_one_two():
    assert shown(RICH, width=200).count("suite  ") == 1
    assert shown(RICH, width=80).count("suite  ") == 2


def test_rows_hold_the_numbers_under_their_titles():
    lines = shown(RICH, width=200).splitlines()
    head = next(line for line in lines if line.startswith("suite"))
    row = next(line for line in lines if line.startswith("blocks/quantize"))
    cells = dict(zip(head.split(), row.split(), strict=True))
    assert cells == {
        "suite": "blocks/quantize",
        "who": "newreader",
        "cases": "1",
        "pass": "-",
        "known": "-",
        "diverge": "1",
        "skip": "-",
        "stale": "-",
        "crash": "-",
        "blocks": "4,102",
        "bytes": "139,468",
        "values": "-",
    }
    for title, value in (("cases", "1"), ("bytes", "139,468")):
        assert head.index(title) + len(title) == row.index(f" {value} ", 30) + 1 + len(value)


def test_rare_columns_stay_away_where_they_are_empty():
    assert shown(GREEN, width=200).split("suite")[1].split("\n")[0].split() == [
        "who",
        "cases",
        "pass",
        "known",
        "diverge",
        "skip",
        "blocks",
        "bytes",
        "values",
    ]


def test_a_divergence_is_located():
    text = shown(RICH, width=200)
    assert "where      kv[0].value, offset 55 (0x37)\n" in text
    assert (
        "where      row 3 (ties to even), block 12 of the output, byte 37 of the block, field qs[21], "
        "elements 42, 74 of the row, output byte 1,765 (0x6e5)\n"
    ) in text
    assert "differs    905 of 139,468 bytes: qs 873, scales 32\n" in text
    assert "expected   0x3d  0011 1101\n" in text
    assert "found      0x3f  0011 1111\n" in text
    assert "input      x[42] = 0.125 (0x3e000000), x[74] = -1 (0xbf800000)\n" in text
    assert "remark     a known divergence covers this case with another signature: quantize:Q4_K:bytes:d\n" in text


def test_floats_show_their_bits_and_distance():
    text = shown(RICH)
    assert "expected   0x3f800000  0 01111111 00000000000000000000000  1\n" in text
    assert "found      0x3f800002  0 01111111 00000000000000000000010  1.0000002\n" in text
    assert re.search(r"\n +\^ +2 ulps\n", text)
    assert "at most 7 ulps" in text
    assert "found      0x7fc00000  0 11111111 10000000000000000000000  nan, quiet\n" in text
    assert "no distance: NaN" in text


def test_a_death_shows_the_end_of_stderr():
    text = shown(RICH)
    assert "(56 earlier lines left out)" in text
    assert "frame 55" not in text
    assert "attempt to divide by zero" in text


def test_a_failure_shows_its_own_answer_and_no_other(tmp_path):
    answers = (
        Answered("newreader", "header", "reject other", message="mine"),
        Answered("llama.cpp", "header", "reject bad-magic", message="its"),
    )
    one = result("a/b", "diverge", answers=answers)
    text = shown((started(1), one, ended([one])))
    assert "answered   header: reject other: mine\n" in text
    assert "its" not in text.split("newreader diverges")[1]


def test_a_failure_of_two_ops_names_both_signatures():
    load = msgspec.structs.replace(FIELD, op="load", signature="load:-:other")
    text = shown((started(1), result("a/b", "diverge", divergences=(FIELD, load)), finished()))
    assert f"   signature  {FIELD.signature}\n              load:-:other\n" in text
    assert text.count("where ") == 1


def test_a_reason_that_a_divergence_gives_is_not_repeated():
    assert "   reason " not in shown(
        (started(1), result("a/b", "diverge", reason=BYTE.summary, divergences=(FLOAT, BYTE)), finished())
    )
    assert "   reason     another\n" in shown(
        (started(1), result("a/b", "diverge", reason="another", divergences=(BYTE,)), finished())
    )


def test_a_failure_tells_that_others_of_its_case_are_known():
    text = shown(
        (started(1), result("a/b", "diverge", divergences=(BYTE, FLOAT), known=("bug: rounds twice",)), finished()), width=200
    )
    assert text.count("   known      of this case's divergences some are known: bug: rounds twice\n") == 2


def test_an_authority_is_held_to_the_record_or_to_the_case():
    recorded = msgspec.structs.replace(FIELD, authority="llama.cpp")
    declared = msgspec.structs.replace(FIELD, authority="the case")
    drift = [result(f"a/{n}", "authority-drift", who="llama.cpp", divergences=(d,)) for n, d in enumerate((recorded, declared))]
    text = shown((started(2), *drift, finished()))
    assert "a/0 · llama.cpp answers otherwise than recorded\n" in text
    assert "a/1 · llama.cpp answers otherwise than the case declares\n" in text


def test_skips_and_knowns_have_reasons_and_suites():
    text = shown(RICH)
    skipped = text.split("\nnot asked or not compared\n")[1].split("\n\n")[0]
    assert "newreader  2  its hello does not declare dot\n" in skipped
    assert "newreader  1  llama.cpp does not do this\n" in skipped
    assert "blocks/dot (2)" in skipped
    assert "newreader  1  bug: rounds twice\n" in text.split("\nknown divergences\n")[1]


def test_an_entry_that_no_longer_holds_comes_with_its_edit():
    text = shown(RICH)
    assert "known divergence stale · newreader · container/kv/* no longer happens" in text
    assert "adapters/newreader/divergences.yaml" in text
    assert "delete the entry with pattern 'container/kv/*'\n" in text
    assert "and signature 'header:-:value:kv'\n" in text


def test_entries_that_one_edit_mends_are_told_together():
    alike = [msgspec.structs.replace(PROBLEM, pattern=f"a/b/{index}", edit="take it out") for index in range(10)]
    text = shown((started(0), *alike, PROBLEM, finished()))
    assert "known divergence stale · newreader · 10 patterns, each no longer happens\n" in text
    assert "   patterns   a/b/0, a/b/1, a/b/2, a/b/3, a/b/4, a/b/5, a/b/6, a/b/7 and 2 more\n" in text
    assert text.count("take it out") == 1
    assert "known divergence stale · newreader · container/kv/* no longer happens\n" in text


def test_what_gives_no_reason_is_not_called_stale():
    silent = msgspec.structs.replace(PROBLEM, kind="unexplained")
    one = result("a/b", "known")
    for problems, meaning in (((silent,), "unexplained"), ((PROBLEM, silent), "stale, unexplained")):
        last = shown((started(1), one, *problems, ended((one, *problems)))).splitlines()[-1]
        assert last.startswith(f"exit 1: not as expected: {meaning} ·")


def test_agreement_with_each_authority_stands_above_the_totals():
    assert "newreader answers the same as llama.cpp in 0 of 1 steps\n" in shown(RICH)


def test_the_last_lines_are_totals_and_the_exit_code():
    *_, one, two, last = shown(RICH).rstrip("\n").split("\n")
    assert one == (
        "newreader: 1 pass, 4 diverge, 1 known, 1 stale, 3 skip (reasons above) · "
        "2 files, 4,106 blocks, 139,468 bytes, 128 values compared"
    )
    assert two == "llama.cpp: 1 pass, 0 diverge, 1 authority-crash · 3 values compared"
    assert last == "exit 1: not as expected: diverge, stale, authority-crash · 12.3 s"
    assert shown(GREEN).endswith("exit 0: all as expected · 12.3 s\n")


def test_a_truncated_run_is_said_at_the_top_and_at_the_end():
    text = shown(RICH[:4])
    assert text.count("!! TRUNCATED: 3 of 9 cases, the run did not finish !!") == 2
    assert text.index("TRUNCATED") < text.index("suite ")
    assert text.rstrip().split("\n")[-1].startswith("exit 3: ")


def test_a_run_without_results_says_so():
    assert "no results" in shown((started(3),))


def test_beyond_ten_failures_signatures_are_counted(tmp_path):
    many = [result(f"blocks/quantize/{n:04}", "diverge", divergences=(BYTE,), reason=BYTE.summary) for n in range(2015)]
    text = shown((started(2015), *many, finished()), reports=tmp_path)
    assert text.count("\n   where ") == 10
    assert f"2,005 more differences, by signature; see {tmp_path / 'summary.md'}" in text
    assert "   2,005  newreader  quantize:Q4_K:bytes:qs\n" in text
    assert f"report     {tmp_path / 'cases/blocks/quantize/0000.md'}" in text


@pytest.mark.parametrize("color", ["never", "auto"])
def test_hostile_strings_reach_the_terminal_only_escaped(color):
    text = shown(hostile_stream(), color=color)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert one_line(HOSTILE) in text


def test_hostile_strings_cannot_color_either():
    text = shown(hostile_stream(), color="always")
    assert set(re.findall(r"\x1b(?!\[[\d;]*m)", text)) == set()
    assert "\x1b[31m`" not in text
    assert "\u202e" not in text


def test_color_is_a_choice(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert ESCAPE in shown(RICH, color="always")
    assert ESCAPE not in shown(RICH, color="auto")
    assert wants_color("auto", Screen())
    assert not wants_color("never", Screen())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color("auto", Screen())
    assert wants_color("always", Screen())
    monkeypatch.setenv("NO_COLOR", "")
    assert wants_color("auto", Screen())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_color("auto", Screen())


def test_a_terminal_without_color_gets_no_escapes(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = Screen()
    view = TerminalView(out=out, progress=False)
    for event in RICH:
        view.on_event(event)
    view.finish()
    assert out.getvalue()
    assert ESCAPE not in out.getvalue()


def test_in_a_pipe_progress_is_a_line_at_most_every_ten_seconds():
    clock, err = Clock(), io.StringIO()
    view = TerminalView(out=io.StringIO(), err=err, clock=clock)
    view.on_event(started(1000))
    for n in range(100):
        clock.now += 1.0
        view.on_event(result(f"a/{n}", "diverge" if n % 10 == 0 else "pass"))
    lines = err.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "10 of 1,000 cases, 1 failed, 10.0 s, at a/9"


def test_on_a_terminal_progress_is_a_bar_that_goes_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    main, secondary = pty.openpty()
    with open(secondary, "w", encoding="utf-8") as err, TerminalView(out=io.StringIO(), err=err, width=120) as view:  # noqa: PTH123 - a descriptor
        view.on_event(started(9))
        for event in (*RICH[1:4], *OTHERS[:1]):
            view.on_event(event)
        view._progress._progress.refresh()
        view.finish()
        err.flush()
        written = b""
        while select.select([main], [], [], 0.05)[0]:
            written += os.read(main, 65536)
    os.close(main)
    assert b"4/9" in written
    assert b"3 failed" in written
    assert b"container/alignment/32" in written
    assert written.count(b"\x1b[?25h") == 1


def test_a_view_that_saw_nothing_prints_nothing():
    assert shown(()) == ""


def test_a_stream_that_cannot_show_a_sign_shows_its_escape():
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    view = TerminalView(out=out, progress=False)
    for event in GREEN:
        view.on_event(event)
    view.finish()
    out.flush()
    assert b"gguf-conformance 9.8.7 \\xb7 oracle live" in raw.getvalue()


def test_report_shows_and_writes_the_same_as_the_run(tmp_path):
    events = save(RICH, tmp_path / "events.ndjson")
    out = io.StringIO()
    assert report_command(events, tmp_path / "made", out=out) == 1
    assert out.getvalue() == shown(RICH, reports=tmp_path / "made")
    assert (tmp_path / "made/summary.md").exists()
    assert report_command(save(GREEN, tmp_path / "green.ndjson"), out=io.StringIO()) == 0
    assert report_command(save(GREEN[:2], tmp_path / "cut.ndjson"), out=io.StringIO()) == 3


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no whole event"),
        (b'{"event":"run-st', "no whole event"),
        (b'{"event":"other"}\n', "events.ndjson:1: not an event"),
        (msgspec.json.encode(RICH[1]) + b"\n", "does not begin with a run-started event"),
    ],
)
def test_report_refuses_what_is_no_stream_before_it_writes(tmp_path, data, says):
    path = tmp_path / "events.ndjson"
    path.write_bytes(data)
    with pytest.raises(ConfigurationError) as caught:
        report_command(path, tmp_path / "made", out=io.StringIO())
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert not (tmp_path / "made").exists()
