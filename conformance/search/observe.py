"""What the authorities are seen to answer to a finding's case: the expectations that it is declared with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from conformance.cases.model import AUTHORITIES, Case, Expect, ModelInput
from conformance.errors import ConfigurationError
from conformance.judge.golden import GoldenStore
from conformance.report.events import CaseResult
from conformance.run.execute import Lane, Setting
from conformance.run.participants import Member
from conformance.search.declared import load_one
from conformance.search.plan import Finding
from conformance.subjects.manifest import Manifest

Form = str | dict[str, str]
Expects = dict[str, tuple[Expect, ...]]
_DIED = ("timeout", "memory", "error")


def declare(findings: Sequence[Finding], authorities: Sequence[Manifest]) -> dict[str, dict[str, Any]]:
    """Give each finding's case by its key, with what the ``authorities`` answer to it in fresh processes.

    Of an authority that is not among them, and of the spec, nothing is expected. Raises ConfigurationError where one cannot be
    started.
    """
    declared = {finding.slug: finding.case for finding in findings}
    with _asking(authorities) as lane:
        return {key: _with_expectations(mapping, lane) for key, mapping in declared.items()}


def answers_of(manifest: Manifest, findings: Sequence[Finding]) -> dict[str, Expects]:
    """Give what a side that is no authority answers to each finding's case, by its key, as expectations of its ops.

    Raises ConfigurationError where it cannot be started.
    """
    with _asking([manifest]) as lane:
        return {finding.slug: _expected_of(manifest.name, finding.case, lane) for finding in findings}


def _expected_of(name: str, mapping: Mapping[str, Any], lane: Lane) -> Expects:
    case = load_one(mapping)
    free = {op: (Expect("either"),) for op in case.ask}
    results = lane.run(msgspec.structs.replace(case, expect={**case.expect, name: free}))
    answered = next(forms(case, result) for result in results if result.who == name)
    # The words are an authority's, whichever: they mean the same of anyone.
    word, *others = AUTHORITIES
    return load_one({**mapping, "expect": {word: answered, **dict.fromkeys(others, "observe")}}).expect[word]


@contextmanager
def _asking(manifests: Sequence[Manifest]) -> Iterator[Lane]:
    with tempfile.TemporaryDirectory(prefix="gguf-conformance-") as work:
        setting = Setting(GoldenStore(Path(work) / "none"), _no_models, True, None, "", Path(work))
        lane = Lane([Member(manifest, authority=True, validate=False) for manifest in manifests], setting)
        try:
            yield lane
        finally:
            lane.close()


def _with_expectations(mapping: Mapping[str, Any], lane: Lane) -> dict[str, Any]:
    case = load_one(mapping)
    seen = {result.who: forms(case, result) for result in lane.run(case)}
    return {**mapping, "expect": {name: seen.get(name, "observe") for name in AUTHORITIES}}


def forms(case: Case, result: CaseResult) -> Form | dict[str, Form]:
    """Say of one authority's answers, as ``expect`` says it, what they were: once where all ops have the same."""
    answers = {answer.op.partition("[")[0]: answer.outcome for answer in result.answers if answer.who == result.who}
    by_op = {op: _form(answers.get(op)) for op in case.ask}
    same = list(by_op.values())
    return same[0] if all(form == same[0] for form in same) else by_op


def _form(outcome: str | None) -> Form:
    """Turn an outcome's name into an expectation; an authority that was not asked does not do the op."""
    word, _, detail = (outcome or "unsupported").partition(" ")
    match word:
        case "ok":
            return "accept"
        case "reject" | "crash":
            return {word: detail}
    return word if word in (*_DIED, "unsupported") else "observe"


def _no_models(model: ModelInput) -> Path:
    raise ConfigurationError(f"{model.member} is no input that a search makes")
