"""Record what the installed authorities answer: the golden files that runs without them are judged by."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from conformance.cases.model import Case
from conformance.judge.golden import FORMAT, GoldenAuthority, GoldenFile, GoldenStore, Steps, fold
from conformance.report.events import CaseResult
from conformance.run.execute import Lane, Setting
from conformance.run.participants import Member
from conformance.run.prepare import Locate
from conformance.subjects.manifest import Manifest
from conformance.subjects.protocol import View


class Recorded(NamedTuple):
    """What a recording did: the files written, and the cases whose authorities are not as declared (they are not recorded)."""

    files: list[Path]
    refused: list[CaseResult]


def record(
    cases: Sequence[Case],
    authorities: Sequence[Manifest],
    store: GoldenStore,
    locate: Locate,
    on_case: Callable[[Case], None],
) -> Recorded:
    """Ask the authorities each case and write their answers, suite by suite; other cases of a suite stay as they are.

    A case whose declared expectation an authority does not meet is not recorded: the declaration comes first.
    """
    with tempfile.TemporaryDirectory(prefix="gguf-conformance-") as work:
        # Nothing is compared with what is recorded now: the store of the lane is an empty one.
        setting = Setting(GoldenStore(Path(work) / "none"), locate, True, None, "gguf-conformance record", Path(work))
        lane = Lane([Member(manifest, authority=True, validate=False) for manifest in authorities], setting)
        try:
            return _record_suites(cases, lane, store, on_case)
        finally:
            lane.close()


def _record_suites(cases: Sequence[Case], lane: Lane, store: GoldenStore, on_case: Callable[[Case], None]) -> Recorded:
    recorded = Recorded([], [])
    for suite in dict.fromkeys(case.suite for case in cases):
        answers: dict[str, dict[str, Steps]] = {}
        for case in cases:
            if case.suite == suite:
                on_case(case)
                results, steps = lane.record(case)
                wrong = [result for result in results if result.divergences]
                recorded.refused.extend(wrong)
                if not wrong:
                    answers[case.id.rpartition("/")[2]] = fold(steps)
        if answers:
            recorded.files.append(_merge(suite, answers, lane, store))
    return recorded


def _merge(suite: str, answers: dict[str, dict[str, Steps]], lane: Lane, store: GoldenStore) -> Path:
    before = store.file(suite)
    file = GoldenFile(FORMAT, _origins(lane), {**(before.cases if before else {}), **answers})
    return store.write(suite, file)


def _origins(lane: Lane) -> dict[str, GoldenAuthority]:
    """Give what tells an authority's build, without the paths of this machine."""
    return {
        member.name: GoldenAuthority(
            version=member.identity.version,
            view=member.identity.ops.header or View(),
            language=member.identity.language,
            details={key: value for key, value in member.identity.details.items() if "/" not in value},
        )
        for member in lane.members
    }
