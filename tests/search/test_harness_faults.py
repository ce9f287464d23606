"""Each oracle bites: a fault is put into the harness, and the search of that area finds it."""

import signal
import time

import pytest

from conformance.cases.load import load_suites
from conformance.errors import UsageError
from conformance.report.events import CaseResult, EventLog, KnownProblem, RunFinished
from conformance.report.summary import RunSummary
from conformance.run import engine as run_engine
from conformance.run.known import KnownLedger
from conformance.search.harness import engine
from conformance.search.harness.areas import AREAS
from conformance.search.harness.broken import Broken, BrokenRule, require
from conformance.search.harness.engine import hunt
from conformance.search.harness.stub import golden_file


@pytest.fixture(autouse=True)
def _little_shrinking(monkeypatch):
    monkeypatch.setattr(engine, "_SHRINK", 1.5)


def found(name: str, examples: int = 400, seed: int = 1) -> Broken:
    area = next(area for area in AREAS if area.name == name)
    broken = hunt(area, None, examples, seed).broken
    assert broken is not None, "the fault was not found"
    assert broken.area == name
    return broken


def raising(*_args, **_settings):
    raise KeyError("put in by a test")


def test_an_exception_in_the_loader(monkeypatch):
    monkeypatch.setattr("conformance.cases.load._memory", raising)
    monkeypatch.setattr("conformance.cases.load._covers", raising)
    broken = found("case-files")
    assert "traceback: KeyError: 'put in by a test'" in broken.what
    assert broken.suffix == ".yaml"


def test_a_case_that_list_leaves_out(monkeypatch):
    monkeypatch.setattr("conformance.run.setup.load_suites", lambda root: load_suites(root)[1:] or load_suites(root))
    assert found("case-files").what == "list does not give all cases"


def test_text_that_no_process_can_be_given(monkeypatch):
    monkeypatch.setattr("conformance.subjects.manifest._check_texts", lambda *_: None)
    what = found("manifests", 800).what
    assert any(told in what for told in ("holds NUL", "is no word that a process can be given", "embedded null byte"))


def test_an_error_without_a_place(monkeypatch):
    monkeypatch.setattr("conformance.subjects.manifest._Document.error", lambda _self, message, **_: UsageError(message))
    assert "refused with exit code 2, not 3" in found("manifests").what


def test_known_problems_that_are_not_written(monkeypatch):
    drop_events(monkeypatch, lambda event: isinstance(event, KnownProblem))
    assert "its end says verdicts" in found("known").what or "exit code" in found("known").what


def test_an_exception_in_a_ledger(monkeypatch):
    monkeypatch.setattr(KnownLedger, "could_show", raising)
    assert "traceback: KeyError" in found("known").what


def test_recorded_answers_that_nobody_looks_at(monkeypatch):
    monkeypatch.setattr("conformance.judge.golden.answer_faults", lambda *_: iter(()))
    assert found("golden").document != golden_file()


def test_a_contradiction_that_nobody_looks_for(monkeypatch):
    monkeypatch.setattr("conformance.report.summary.contradiction", lambda *_: "")
    assert "not whole" in found("event-streams").what


def test_a_truncated_stream_that_is_read_as_whole(monkeypatch):
    monkeypatch.setattr(RunSummary, "warning", "")
    said = found("event-streams").what
    assert "a stream that is not whole" in said


def test_an_exception_in_what_reads_answers(monkeypatch):
    monkeypatch.setattr("conformance.subjects.answers._text_problems", raising)
    assert "traceback: KeyError" in found("protocol-lines", 60).what


@pytest.mark.parametrize("area", ["protocol-lines", "subject-runs"])
def test_a_result_that_is_lost(monkeypatch, area):
    drop_events(monkeypatch, lambda event: isinstance(event, CaseResult) and event.verdict == "diverge")
    assert "contradicts itself" in found(area, 60).what


def test_a_closing_event_that_is_lost(monkeypatch):
    drop_events(monkeypatch, lambda event: isinstance(event, RunFinished))
    assert found("golden", 30).what == "the stream does not end with run-finished"


def test_a_wrong_exit_code(monkeypatch):
    monkeypatch.setattr(run_engine._Run, "_exit_code", lambda *_: 0)
    assert "its end says exit code 0, due is" in found("known", 60).what
    assert "closing event says 0" in found("subject-runs", 60).what or "its end says exit code 0" in found("subject-runs", 60).what


def test_an_exit_code_that_is_not_documented(monkeypatch):
    monkeypatch.setattr(UsageError, "exit_code", 77)
    assert found("command-lines").what == "exit code 77 is none of the documented ones"


def test_a_document_without_end(monkeypatch):
    monkeypatch.setattr(engine, "_HANG", 0.2)
    monkeypatch.setattr("conformance.subjects.manifest.load_manifest", lambda *_: None)
    area = AREAS[0]._replace(check=lambda _document, _folder: time.sleep(60))
    broken = hunt(area, None, 1, 1).broken
    assert broken is not None
    assert "no end within 0.2 s" in broken.what
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_finding_is_made_small(monkeypatch):
    monkeypatch.setattr(engine, "_SHRINK", 20)

    def check(document: bytes, _folder: object) -> None:
        require(document.count(b"pattern") < 2, "two entries")

    known = next(area for area in AREAS if area.name == "known")
    broken = hunt(known._replace(check=check), None, 50, 1).broken
    assert broken is not None
    assert broken.steady
    assert len(broken.document) < 300


def test_what_breaks_only_once_is_said_to(monkeypatch):
    seen = []

    def check(_document, _folder):
        seen.append(1)
        if len(seen) == 3:
            raise BrokenRule("once")

    broken = hunt(AREAS[0]._replace(check=check), None, 20, 1).broken
    assert broken is not None
    assert (broken.what, broken.steady) == ("once", False)


def drop_events(monkeypatch, unwanted):
    write = EventLog.write
    monkeypatch.setattr(EventLog, "write", lambda self, event: None if unwanted(event) else write(self, event))
