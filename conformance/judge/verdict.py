"""From answers to verdicts: is an authority what the case declares, is a subject what its profile's authority is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from conformance.cases.model import Expect
from conformance.judge.divergence import Divergence
from conformance.judge.measure import Given, Measure, differences, failure, same_class, wrong_class, wrong_kind
from conformance.judge.numbers import Shape
from conformance.outcomes import Crash, Error, Memory, Ok, Outcome, Reject, Timeout, Unsupported, outcome_name

# An authority that is declared to die, to hang, to fail or to be wrong says nothing on the input: a subject may answer either way.
_NO_ANSWER = {"crash", "timeout", "memory", "error", "fault"}


class StepVerdict(NamedTuple):
    """What one step says of a participant: its divergences, or why nothing was compared."""

    divergences: list[Divergence]
    skipped: str = ""
    # True where values were compared and were equal, False where not, None where there was nothing to compare.
    same: bool | None = None
    # What to tell of the answer besides: how far it is from another that it need not equal.
    told: str = ""


def expectation_text(expects: tuple[Expect, ...]) -> str:
    """Give expectations in words: ``reject bad-magic or crash SIGABRT``."""
    return " or ".join(f"{expect.kind} {expect.detail}".strip() for expect in expects)


def satisfies(outcome: Outcome, expects: tuple[Expect, ...]) -> bool:
    """Tell whether an authority's outcome is one of those that the case declares."""
    return any(_satisfies(outcome, expect) for expect in expects)


def _satisfies(outcome: Outcome, expect: Expect) -> bool:
    match expect.kind:
        case "observe":
            return True
        case "reject":
            return isinstance(outcome, Reject) and same_class(expect.detail, outcome.reject_class)
        case "crash":
            return isinstance(outcome, Crash) and expect.detail in ("", outcome.how)
        case "fault":
            return isinstance(outcome, Ok if expect.detail == "accept" else Reject)
        case kind:
            return isinstance(outcome, _OUTCOMES[kind])


_OUTCOMES = {
    "accept": Ok,
    "near": Ok,
    "either": Ok | Reject,
    "refuse": Reject | Error,
    "timeout": Timeout,
    "memory": Memory,
    "error": Error,
    "unsupported": Unsupported,
}


def judge_authority(
    op: str, type_name: str, expects: tuple[Expect, ...], given: Given, recorded: Measure | None, shape: Shape | None
) -> StepVerdict:
    """Hold a live authority to what the case declares and, where its answer is determined, to what is recorded."""
    if not satisfies(given.outcome, expects):
        name = outcome_name(given.outcome)
        found = Divergence(
            signature=f"{op}:{type_name}:expectation:{name.replace(' ', '-')}",
            op=op,
            authority="the case",
            summary=f"{name} instead of {expectation_text(expects)}{_message(given.outcome)}",
            expected=expectation_text(expects),
            found=name,
        )
        return StepVerdict([found])
    if recorded is None or not is_determined(expects) or not isinstance(given.outcome, Ok | Reject):
        return StepVerdict([])
    drift = differences(op, type_name, recorded, given, shape)
    return StepVerdict(drift, same=not drift)


def _message(outcome: Outcome) -> str:
    told = outcome.last_words if isinstance(outcome, Crash) else getattr(outcome, "message", "")
    return f" ({told})" if told else ""


def is_determined(expects: tuple[Expect, ...]) -> bool:
    """Tell whether a case fixes an authority's answer, so that it is recorded and drift from the record fails."""
    return len(expects) == 1 and expects[0].kind in {"accept", "reject", "crash", "fault"}


class Bench(NamedTuple):
    """What a subject's step is judged with: the profile, what the case expects of its authority, all authorities' answers."""

    profile: str
    expects: tuple[Expect, ...]
    measures: Mapping[str, Measure]


def judge_subject(op: str, type_name: str, bench: Bench, given: Given, shape: Shape | None) -> StepVerdict:
    """Hold a subject to its profile's authority: to the answer where there is one, else to what the case declares."""
    kinds = {expect.kind for expect in bench.expects}
    refused = "refuse" in kinds and isinstance(given.outcome, Reject | Error)
    failed = None if refused else failure(op, type_name, bench.profile, given.outcome)
    if failed:
        return StepVerdict([failed], same=False)
    # Sums that have to be near the authority's are compared by whoever has what was multiplied.
    if refused or "observe" in kinds or kinds & _NO_ANSWER or ("near" in kinds and isinstance(given.outcome, Ok)):
        return StepVerdict([])
    if "either" in kinds:
        return _judge_free(op, type_name, bench, given, shape)
    if "unsupported" in kinds:
        return StepVerdict([], skipped=f"{bench.profile} does not do this")
    measure = bench.measures.get(bench.profile)
    if measure is not None and satisfies(measure.outcome, bench.expects):
        found = differences(op, type_name, measure, given, shape)
        return StepVerdict(found, same=not found)
    return _judge_declared(op, type_name, bench, given, shape)


def _judge_free(op: str, type_name: str, bench: Bench, given: Given, shape: Shape | None) -> StepVerdict:
    """Accept or reject are both right; where both sides accept, the values are compared."""
    measure = bench.measures.get(bench.profile)
    if measure is None or not (isinstance(measure.outcome, Ok) and isinstance(given.outcome, Ok)):
        return StepVerdict([])
    found = differences(op, type_name, measure, given, shape)
    return StepVerdict(found, same=not found)


def _judge_declared(op: str, type_name: str, bench: Bench, given: Given, shape: Shape | None) -> StepVerdict:
    """Judge by the case's word alone (profile ``spec``, or an authority that is not at hand); values by whoever accepts."""
    classes = [expect.detail for expect in bench.expects if expect.kind == "reject"]
    if isinstance(given.outcome, Ok) and any(expect.kind == "accept" for expect in bench.expects):
        measure = next((m for m in bench.measures.values() if isinstance(m.outcome, Ok)), None)
        found = differences(op, type_name, measure, given, shape) if measure else []
        return StepVerdict(found, same=not found if measure else None)
    if isinstance(given.outcome, Reject) and classes:
        if any(same_class(name, given.outcome.reject_class) for name in classes):
            return StepVerdict([], same=True)
        return StepVerdict([wrong_class(op, type_name, bench.profile, " or ".join(classes), given.outcome)], same=False)
    return StepVerdict([wrong_kind(op, type_name, bench.profile, expectation_text(bench.expects), given.outcome)], same=False)
