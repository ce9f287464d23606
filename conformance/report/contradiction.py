"""What a stream's closing event says, held against its results: lines lost, doubled or edited add up to something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from conformance.errors import EXIT_DIVERGENCE, EXIT_HARNESS, EXIT_OK
from conformance.printable import number, one_line
from conformance.report.events import FAILING, Counts, KnownProblem, RunFinished


class Found(NamedTuple):
    """What a stream holds: how many results of a case by a participant, and each participant's verdicts and amounts.

    ``subjects`` are those that the run began with: each of them has a result of each case.
    """

    results: Counter[tuple[str, str]]
    subjects: frozenset[str]
    verdicts: Mapping[str, Counter[str]]
    counts: Mapping[str, Counts]
    problems: list[KnownProblem]


def contradiction(found: Found, told: RunFinished) -> str:
    """Say what the end of a run that was not ended early, and its results, contradict each other in; empty where they agree."""
    return next(_all(found, told), "")


def _all(found: Found, told: RunFinished) -> Iterator[str]:
    yield from _results(found)
    for who in dict.fromkeys([*told.verdicts, *found.verdicts]):
        here, there = found.verdicts.get(who, Counter()), told.verdicts.get(who, {})
        for verdict in sorted({*there, *here}):
            yield from _unequal(who, verdict, here[verdict], there.get(verdict, 0))
    for who in dict.fromkeys([*told.counts, *found.counts]):
        amounts, said = (msgspec.structs.asdict(counts.get(who, Counts())) for counts in (found.counts, told.counts))
        for unit, amount in amounts.items():
            yield from _unequal(who, f"{unit} compared", amount, said[unit])
    due = _due_code(found)
    if told.exit_code != due:
        yield f"by what the stream holds the exit code is {due}, its end says {told.exit_code}"


def _results(found: Found) -> Iterator[str]:
    due = {(case, who) for case, _ in found.results for who in found.subjects}
    for case, who in sorted(due | found.results.keys()):
        count = found.results[case, who]
        if count != 1:
            yield f"{one_line(who)} has {number(count)} results of {one_line(case)}"


def _unequal(who: str, what: str, held: int, said: int) -> Iterator[str]:
    if held != said:
        yield f"{one_line(who)} has {number(held)} {one_line(what)} in the stream, {number(said)} at its end"


def _due_code(found: Found) -> int:
    verdicts = {verdict for counter in found.verdicts.values() for verdict, count in counter.items() if count}
    if "error" in verdicts or any(problem.is_broken for problem in found.problems):
        return EXIT_HARNESS
    return EXIT_DIVERGENCE if verdicts & FAILING else EXIT_OK
