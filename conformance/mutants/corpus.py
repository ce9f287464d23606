"""The corpus put to mutants, one after the other, by the engine of every run. The reference comes first, and must pass."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from conformance.cases.select import select
from conformance.errors import ConfigurationError
from conformance.interrupts import EXIT_INTERRUPTED
from conformance.mutants.catalogue import Mutant
from conformance.mutants.make import make
from conformance.mutants.matrix import Row, row_of
from conformance.report.events import CaseResult, Event, RunFinished
from conformance.run.engine import RunPlan, run
from conformance.run.setup import Options, make_plan
from conformance.subjects.manifest import load_manifest

REFERENCE = "impl"


class Put(NamedTuple):
    """A mutant's row, the ids of all that was put to it and of all that killed it, and the seconds it took."""

    row: Row
    asked: tuple[str, ...]
    killing: tuple[str, ...]
    seconds: float


def plan_for(mutants: Sequence[Mutant], options: Options) -> RunPlan:
    """Give the plan of running the reference on all that is to be put to any of the mutants. Raises as ``make_plan``."""
    patterns = tuple(dict.fromkeys(pattern for mutant in mutants for pattern in mutant.select))
    return make_plan(options._replace(subjects=(REFERENCE,), select=patterns))


def require_reference(plan: RunPlan) -> None:
    """Run the reference without a fault. Raises ConfigurationError where it does not pass."""
    results, code = _run(plan)
    failed = [result for result in results if result.verdict not in {"pass", "skip"}]
    if code:
        first = f": {failed[0].case}: {failed[0].reason}" if failed else ""
        raise ConfigurationError(
            f"the reference itself does not pass, so that mutants would prove nothing{first}", hint=f"this shows it: {plan.command}"
        )


def put(mutants: Sequence[Mutant], plan: RunPlan) -> Iterator[Put]:
    """Put to each mutant its cases of the plan. Raises ConfigurationError for one that cannot be made or started."""
    for mutant in mutants:
        began = time.monotonic()
        cases = select(plan.cases, mutant.select)
        results, _ = _run(plan._replace(subjects=(load_manifest(make(mutant)),), cases=cases))
        killing = tuple(result.case for result in results if result.verdict == "diverge")
        yield Put(row_of(mutant, cases, results), tuple(case.id for case in cases), killing, time.monotonic() - began)


def _run(plan: RunPlan) -> tuple[list[CaseResult], int]:
    """Run a plan; give the subject's results and the exit code."""
    events: list[Event] = []
    code = run(plan, events.append)
    if code == EXIT_INTERRUPTED:  # a run keeps what it has, and ends; here all is to end
        raise KeyboardInterrupt
    ended = events[-1]
    if isinstance(ended, RunFinished) and ended.ended_early:
        who = ", ".join(subject.name for subject in plan.subjects)
        raise ConfigurationError(f"{who}: {ended.ended_early}", hint="of a run that did not end nothing can be said")
    return [event for event in events if isinstance(event, CaseResult) and event.role == "subject"], code
