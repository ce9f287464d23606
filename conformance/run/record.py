"""Record what the installed authorities answer: the golden files that runs without them are judged by."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance.cases.model import Case
from conformance.errors import ConfigurationError
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

    A case whose declared expectation an authority does not meet is not recorded: the declaration comes first. Raises
    ConfigurationError, before anybody is asked about the suite, where answers of other authorities would stay beside the new
    ones: a golden file names one version of each.
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
    recorded, origins = Recorded([], []), _origins(lane)
    for suite in dict.fromkeys(case.suite for case in cases):
        chosen = [case for case in cases if case.suite == suite]
        before = _kept(suite, chosen, origins, store)
        answers: dict[str, dict[str, Steps]] = {}
        for case in chosen:
            on_case(case)
            results, steps = lane.record(case)
            wrong = [result for result in results if result.divergences]
            recorded.refused.extend(wrong)
            if not wrong:
                answers[_key(case)] = fold(steps)
        if answers:
            recorded.files.append(store.write(suite, GoldenFile(FORMAT, origins, {**before, **answers})))
    return recorded


def _key(case: Case) -> str:
    return case.id.rpartition("/")[2]


def _kept(
    suite: str, chosen: Sequence[Case], origins: dict[str, GoldenAuthority], store: GoldenStore
) -> dict[str, dict[str, Steps]]:
    """Give the answers that stay in a suite's file: all, or none where they are from others than those who answer now."""
    keys = {_key(case) for case in chosen}
    before = store.sound(suite, keys)
    if before is None or before.authorities == origins:
        return before.cases if before else {}
    others = before.cases.keys() - keys
    if others:
        raise ConfigurationError(
            f"{len(others)} recorded answers would be told to be from authorities that did not give them: "
            + "; ".join(_changes(before.authorities, origins)),
            where=str(store.path(suite)),
            hint=f"record all of the suite: gguf-conformance record -s '{suite}'; what is no longer a case ({sorted(others)[0]}?) "
            "has to be deleted from the file",
        )
    return {}


def _changes(before: dict[str, GoldenAuthority], now: dict[str, GoldenAuthority]) -> Iterator[str]:
    """Say what tells the authorities of a file from those that answer now."""
    for name in sorted(before.keys() | now.keys()):
        ours, theirs = (_facts(origins.get(name)) for origins in (before, now))
        for fact in sorted(ours.keys() | theirs.keys()):
            if ours.get(fact) != theirs.get(fact):
                yield f"{name} {fact} was {ours.get(fact, 'not told')}, is {theirs.get(fact, 'not told')}"


def _facts(origin: GoldenAuthority | None) -> dict[str, str]:
    if origin is None:
        return {}
    view = msgspec.json.encode(origin.view).decode()
    return {"version": origin.version, "language": origin.language, "view": view, **origin.details}


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
