import os

import msgspec
import pytest

from conformance.errors import ConfigurationError
from conformance.report.events import Agreement, Counts, RunFinished, read_events
from conformance.report.summary import choose, failures_of, key_of, suite_of, summarize
from tests.report.samples import BYTE, CASES, FAILED, FIELD, GREEN, OTHERS, PASSED, RICH, ended, finished, result, save, started


def test_tallies_by_suite_and_participant():
    summary = summarize(RICH)
    rows = {(suite, who): tally for suite, who, tally in summary.rows}
    assert list(rows) == [
        ("blocks/dequantize", "newreader"),
        ("blocks/dot", "newreader"),
        ("blocks/dot", "llama.cpp"),
        ("blocks/quantize", "newreader"),
        ("container/alignment", "newreader"),
        ("container/version", "newreader"),
    ]
    assert rows["container/alignment", "newreader"].verdicts == {"pass": 1, "diverge": 2}
    assert rows["blocks/dequantize", "newreader"].counts == Counts(requests=1, blocks=4, values=128)


def test_totals_count_stale_entries_as_verdicts_but_not_as_cases():
    totals = dict(summarize(RICH).totals)
    assert totals["newreader"].cases == 9
    assert totals["newreader"].verdicts == {"pass": 1, "diverge": 4, "known": 1, "skip": 3, "stale": 1}
    assert totals["newreader"].failed == 5
    assert totals["llama.cpp"].failed == 1
    assert "gguf-py" not in totals


def test_failures_skips_knowns_and_problems_are_kept():
    summary = summarize(RICH)
    assert [one.case for one in summary.failed] == [one.case for one in FAILED] + ["blocks/dot/q4_0"]
    assert len(summary.failures) == 6
    assert summary.skipped == {
        ("newreader", "its hello does not declare dot"): ["blocks/dot/q8_0", "blocks/dot/q4_0"],
        ("newreader", "llama.cpp does not do this"): ["container/version/one"],
    }
    assert summary.known == {("newreader", "bug: rounds twice"): ["blocks/dequantize/q4_1"]}
    assert [problem.kind for problem in summary.problems] == ["stale"]
    assert summary.agreement == {("newreader", "llama.cpp"): Agreement(0, 1), ("newreader", "gguf-py"): Agreement(0, 1)}


def test_a_whole_run_has_no_warning_and_its_own_exit_code():
    summary = summarize(RICH)
    assert (summary.warning, summary.exit_code) == ("", 1)
    assert summarize(GREEN).exit_code == 0
    assert summarize((started(0), finished(130, ended_early=""))).exit_meaning == "ended by a signal"


def test_a_stream_without_its_end_is_truncated():
    summary = summarize(RICH[:4])
    assert summary.warning == f"TRUNCATED: 3 of {CASES} cases, the run did not finish"
    assert summary.exit_code == 3


def test_a_run_that_ended_early_says_why():
    stopped = summarize((started(1500), result("a/b"), finished(130, ended_early="interrupted")))
    assert stopped.warning == "ENDED EARLY: 1 of 1,500 cases, interrupted"
    assert stopped.exit_code == 130
    idle = summarize((started(1), result("a/b", "skip"), finished(3, ended_early="nothing was judged")))
    assert idle.warning == "NOT VALID: 1 of 1 cases, nothing was judged"


AUTHORITY = msgspec.structs.replace(PASSED[1], who="llama.cpp", role="authority")


@pytest.mark.parametrize(
    ("events", "warning"),
    [
        ((started(2), result("a/b"), finished(0)), "INCOMPLETE: 1 of 2 cases have a result"),
        (
            (started(1), result("a/b"), finished(0, verdicts={"newreader": {"pass": 2}})),
            "newreader has 1 pass in the stream, 2 at its end",
        ),
        (
            (started(1), result("a/b", "skip"), finished(0, verdicts={"newreader": {"pass": 1}})),
            "0 pass in the stream, 1 at its end",
        ),
        (
            (started(1), result("a/b", "diverge"), ended([result("a/b", "diverge")], 0)),
            "by what the stream holds the exit code is 1, its end says 0",
        ),
        ((*GREEN[:3], ended([PASSED[0]], 0)), "newreader has 2 pass in the stream, 1 at its end"),
        ((*GREEN[:3], finished(0)), "newreader has 2 pass in the stream, 0 at its end"),
        (
            (*GREEN[:3], msgspec.structs.replace(GREEN[3], counts={"newreader": Counts(files=3)})),
            "newreader has 2 files compared in the stream, 3 at its end",
        ),
        ((*GREEN[:3], PASSED[1], ended([*PASSED, PASSED[1]], 0)), "newreader has 2 results of container/alignment/64"),
        (
            (*GREEN[:2], AUTHORITY, ended([PASSED[0], AUTHORITY], 0)),
            "newreader has 0 results of container/alignment/64",
        ),
    ],
)
def test_a_stream_that_lost_lines_is_no_green_run(events, warning):
    summary = summarize(events)
    assert warning in summary.warning
    assert summary.exit_code == 3


@pytest.mark.parametrize("code", [-1, 2, 5, 256, 2**40])
def test_an_exit_code_that_no_run_has_is_none(code):
    """A shell would take 256 for 0."""
    assert summarize((*GREEN[:3], ended(PASSED, code))).exit_code == 3


def test_an_exit_code_beyond_what_the_stream_holds_is_told():
    assert "the exit code is 0, its end says 1" in summarize((*GREEN[:3], ended(PASSED, 1))).warning


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ((), "no whole event"),
        (RICH[1:], "does not begin with a run-started event"),
        ((RICH[0], RICH[0]), "second run-started"),
        ((*GREEN, result("a/b")), "goes on after its run-finished event"),
        ((msgspec.structs.replace(started(1), format=2),), "has format 2; this version reads format 1"),
    ],
)
def test_what_is_no_stream_is_refused(events, says):
    with pytest.raises(ConfigurationError, match=says):
        summarize(events)


def test_a_stream_reads_back_from_its_file(tmp_path):
    assert tuple(read_events(save(RICH, tmp_path / "events.ndjson"))) == RICH


def test_a_cut_last_line_is_left_out_and_the_run_is_truncated(tmp_path):
    path = save(RICH, tmp_path / "events.ndjson")
    path.write_bytes(path.read_bytes()[:-20])
    events = tuple(read_events(path))
    assert events == RICH[:-1]
    assert not any(isinstance(event, RunFinished) for event in events)
    assert summarize(events).warning.startswith(f"TRUNCATED: {CASES} of {CASES} cases")


def test_what_follows_the_end_is_told_though_it_is_cut(tmp_path):
    path = save(RICH, tmp_path / "events.ndjson")
    path.write_bytes(path.read_bytes() + b'{"event":"resu')
    with pytest.raises(ConfigurationError, match="goes on after its run-finished event") as caught:
        summarize(read_events(path))
    assert caught.value.where == f"{path}:{len(RICH) + 1}"


def test_a_pipe_is_no_stream(tmp_path):
    os.mkfifo(tmp_path / "events.ndjson")
    with pytest.raises(ConfigurationError, match="a named pipe"):
        summarize(read_events(tmp_path / "events.ndjson"))


def test_each_signature_is_shown_before_any_is_shown_twice():
    other = msgspec.structs.replace(BYTE, signature="quantize:Q4_K:bytes:d")
    same = tuple(result(f"blocks/quantize/{n}", "diverge", divergences=(BYTE,)) for n in range(5))
    late = result("blocks/quantize/late", "diverge", divergences=(other,))
    full, rest = choose(summarize((started(6), *same, late)).failures, 3)
    assert [failure.result.case for failure in full] == ["blocks/quantize/0", "blocks/quantize/1", "blocks/quantize/late"]
    assert [failure.result.case for failure in rest] == ["blocks/quantize/2", "blocks/quantize/3", "blocks/quantize/4"]


def test_what_differs_in_op_alone_is_one_failure():
    load = msgspec.structs.replace(FIELD, op="load", signature="load:-:accept-for-reject-bad-alignment:-")
    elsewhere = msgspec.structs.replace(load, at=56)
    failures = failures_of(result("a/b", "diverge", divergences=(FIELD, load, BYTE, elsewhere)))
    assert [(failure.divergence, failure.also) for failure in failures] == [(FIELD, (load,)), (BYTE, ()), (elsewhere, ())]
    assert failures_of(result("a/b", "diverge"))[0].divergence is None


def test_ids_have_a_suite_and_a_key():
    assert (suite_of("a/b/c"), key_of("a/b/c")) == ("a/b", "c")
    assert (suite_of("alone"), key_of("alone")) == ("alone", "alone")


def test_participants_come_in_the_order_of_the_hello():
    events = (started(1), result("a/b", who="late", role="subject"), *OTHERS)
    assert summarize(events).participants == ["newreader", "llama.cpp", "gguf-py", "late"]
