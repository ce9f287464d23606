"""A subject that fails cases about the protocol is told to mend these first, on the terminal and in the summary."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from conformance.report.events import CaseResult
from conformance.report.markdown import summary_markdown
from conformance.report.summary import summarize
from conformance.report.terminal import TerminalView
from tests.report.samples import ended, result, started

TOLD = "newreader fails 1 of 2 cases about the protocol"
BROKEN = [result("protocol/requests/ahead", "diverge"), result("protocol/answers/empty"), result("container/a/b", "diverge")]
SOUND = [result("protocol/requests/ahead"), result("protocol/answers/empty", "known"), result("container/a/b", "diverge")]
OF_AN_AUTHORITY = [result("protocol/requests/ahead", "authority-drift", role="authority", who="llama.cpp"), result("container/a/b")]


def terminal(results: Sequence[CaseResult]) -> str:
    out = io.StringIO()
    view = TerminalView(out=out, err=io.StringIO(), width=200, progress=False)
    for event in (started(len({each.case for each in results})), *results, ended(results)):
        view.on_event(event)
    view.finish()
    return out.getvalue()


def summary(results: Sequence[CaseResult]) -> str:
    opening = started(len({each.case for each in results}))
    return summary_markdown(summarize([opening, *results, ended(results)]), opening)


@pytest.mark.parametrize("view", [terminal, summary])
def test_who_fails_plumbing_is_told_so(view) -> None:
    assert TOLD in view(BROKEN)
    assert "mend these first" in view(BROKEN)


@pytest.mark.parametrize("view", [terminal, summary])
@pytest.mark.parametrize("results", [SOUND, OF_AN_AUTHORITY])
def test_nobody_else_is(view, results) -> None:
    assert "mend these first" not in view(results)
