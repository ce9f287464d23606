"""A run as one value, folded from its events: what every view shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from conformance.cases.select import PLUMBING, is_plumbing
from conformance.errors import EXIT_AUTHORITY_MISSING, EXIT_DIVERGENCE, EXIT_HARNESS, EXIT_OK, ConfigurationError
from conformance.interrupts import EXIT_INTERRUPTED
from conformance.judge.divergence import Divergence
from conformance.printable import number, one_line, plural
from conformance.report.contradiction import Found, contradiction
from conformance.report.events import (
    FAILING,
    FORMAT,
    Agreement,
    CaseResult,
    Counts,
    Event,
    KnownProblem,
    OpCount,
    RunFinished,
    RunStarted,
)

EXIT_MEANINGS = {
    EXIT_OK: "all as expected",
    EXIT_DIVERGENCE: "a divergence, a stale entry or drift",
    EXIT_HARNESS: "the harness or its configuration failed, or the run is incomplete",
    EXIT_AUTHORITY_MISSING: "an authority is missing",
}
# What a run that began can end with: wrong usage is found before.
_ENDS = frozenset({EXIT_OK, EXIT_DIVERGENCE, EXIT_HARNESS, EXIT_AUTHORITY_MISSING, EXIT_INTERRUPTED})


@dataclass
class Tally:
    """Verdicts and amounts of one participant, in one suite or in all."""

    cases: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    counts: Counts = field(default_factory=Counts)

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.cases += other.cases
        self.verdicts.update(other.verdicts)
        self.counts += other.counts

    @property
    def failed(self) -> int:
        """The number of verdicts that fail a run."""
        return sum(count for verdict, count in self.verdicts.items() if verdict in FAILING)


class Failure(NamedTuple):
    """One divergence of a result, or a result that has none (``divergence`` None); ``also`` is the same of other ops."""

    result: CaseResult
    divergence: Divergence | None
    also: tuple[Divergence, ...] = ()

    @property
    def signature(self) -> str:
        """What tells this failure from others of another kind."""
        if self.divergence is not None:
            return self.divergence.signature
        return f"{self.result.verdict}: {self.result.reason}" if self.result.reason else self.result.verdict


def failures_of(result: CaseResult) -> list[Failure]:
    """Give a result's divergences; those that differ in nothing but op and signature (of header and load, as a rule) are one."""
    alike: dict[str, list[Divergence]] = {}
    for divergence in result.divergences:
        rest = msgspec.structs.replace(divergence, op="", signature="", hexdump=())
        alike.setdefault(repr(rest), []).append(divergence)
    return [Failure(result, first, tuple(others)) for first, *others in alike.values()] or [Failure(result, None)]


def suite_of(case: str) -> str:
    """Give the id without its last part; an id of one part is its own suite."""
    return case.rpartition("/")[0] or case


def key_of(case: str) -> str:
    """Give the last part of the id."""
    return case.rpartition("/")[2]


class RunSummary:
    """What a stream's events add up to, at any moment of the run.

    ``tallies[suite, who]``; ``failed`` are the results that fail the run; ``skipped[who, reason]`` (of single steps too, in
    cases that were judged by others) and ``known[who, reason]`` list case ids; ``agreement[who, authority]`` counts steps;
    ``by_op[who, type, op]`` counts blocks; ``problems`` are entries of divergences files that no longer hold.
    """

    def __init__(self, where: str = "") -> None:
        self._where = where
        self.started: RunStarted | None = None
        self.finished: RunFinished | None = None
        self.tallies: dict[tuple[str, str], Tally] = {}
        self.failed: list[CaseResult] = []
        self.skipped: dict[tuple[str, str], list[str]] = {}
        self.known: dict[tuple[str, str], list[str]] = {}
        self.agreement: dict[tuple[str, str], Agreement] = {}
        self.by_op: dict[tuple[str, str, str], OpCount] = {}
        self.problems: list[KnownProblem] = []
        self.seen: set[str] = set()
        self.results: Counter[tuple[str, str]] = Counter()

    def add(self, event: Event) -> None:
        """Fold one event in. Raises ConfigurationError where the events do not make one stream."""
        if isinstance(event, RunStarted):
            self._start(event)
        elif self.started is None:
            raise self._wrong("does not begin with a run-started event", "the start of the file is missing")
        elif self.finished is not None:
            raise self._wrong("goes on after its run-finished event", "give one run's events at a time")
        elif isinstance(event, RunFinished):
            self.finished = event
        elif isinstance(event, KnownProblem):
            self.problems.append(event)
        else:
            self._count(event)

    def _start(self, event: RunStarted) -> None:
        if self.started is not None:
            raise self._wrong("has a second run-started event", "give one run's events at a time")
        if event.format != FORMAT:
            hint = f"make the report with gguf-conformance {one_line(event.version)}"
            raise self._wrong(f"has format {event.format}; this version reads format {FORMAT}", hint)
        self.started = event

    def _wrong(self, problem: str, hint: str) -> ConfigurationError:
        return ConfigurationError(f"the event stream {problem}", where=self._where, hint=hint)

    def close(self) -> RunStarted:
        """Give the opening event of a stream that has been read to its end. Raises ConfigurationError where there was none."""
        if self.started is None:
            raise self._wrong("has no whole event", "the run ended before it began; run it again")
        return self.started

    def _count(self, result: CaseResult) -> None:
        self.seen.add(result.case)
        self.results[result.case, result.who] += 1
        tally = self.tallies.setdefault((suite_of(result.case), result.who), Tally())
        tally.add(Tally(1, Counter([result.verdict]), result.counts))
        self._count_agreement(result)
        for counted in result.by_op:
            key = (result.who, counted.type, counted.op)
            self.by_op[key] = self.by_op[key] + counted if key in self.by_op else counted
        if result.verdict in FAILING:
            self.failed.append(result)
        for reason in result.not_asked or ((result.reason or "no reason given",) if result.verdict == "skip" else ()):
            self.skipped.setdefault((result.who, reason), []).append(result.case)
        if result.verdict == "known":
            for reason in result.known or (result.reason or "no reason given",):
                self.known.setdefault((result.who, reason), []).append(result.case)

    def _count_agreement(self, result: CaseResult) -> None:
        for authority, agreement in result.agreement.items():
            before = self.agreement.get((result.who, authority), Agreement())
            same, different = before.same + agreement.same, before.different + agreement.different
            self.agreement[result.who, authority] = Agreement(same, different)

    @property
    def participants(self) -> list[str]:
        """Names in the order of the hello: first as the run began, then as results came."""
        announced = [participant.name for participant in self.started.participants] if self.started else []
        return list(dict.fromkeys([*announced, *(who for _, who in self.tallies)]))

    @property
    def rows(self) -> list[tuple[str, str, Tally]]:
        """Suite, who and tally, by suite and then in the order of participants."""
        place = {who: index for index, who in enumerate(self.participants)}
        return [
            (suite, who, self.tallies[suite, who]) for suite, who in sorted(self.tallies, key=lambda row: (row[0], place[row[1]]))
        ]

    def total(self, who: str) -> Tally:
        """Add up one participant's suites; stale entries, which belong to no case, count among its verdicts here only."""
        total = Tally()
        for (_, name), tally in self.tallies.items():
            if name == who:
                total.add(tally)
        total.verdicts["stale"] += sum(not problem.is_broken and problem.subject == who for problem in self.problems)
        return total

    @property
    def totals(self) -> list[tuple[str, Tally]]:
        """Each participant with results, and its total."""
        return [(who, total) for who in self.participants if (total := self.total(who)).cases]

    @property
    def failures(self) -> list[Failure]:
        """All divergences of the results that failed, in the order in which they came."""
        return [failure for result in self.failed for failure in failures_of(result)]

    @property
    def plumbing(self) -> list[str]:
        """What to mend first: for each subject that fails cases about the protocol, a sentence."""
        broken = Counter(one.who for one in self.failed if one.role == "subject" and is_plumbing(one.case))
        asked = Counter(who for case, who in self.results if is_plumbing(case))
        return [
            f"{one_line(who)} fails {number(count)} of {plural(asked[who], 'case')} about the protocol ({PLUMBING}/**): "
            "mend these first, what else differs may follow from them"
            for who, count in broken.items()
        ]

    @property
    def warning(self) -> str:
        """Why this stream must not be read as a whole run; empty for a whole one."""
        if self.started is None:
            return ""
        done = f"{number(len(self.seen))} of {number(self.started.cases)} cases"
        if self.finished is None:
            return f"TRUNCATED: {done}, the run did not finish"
        if self.finished.ended_early:
            label = "ENDED EARLY" if len(self.seen) < self.started.cases else "NOT VALID"
            return f"{label}: {done}, {one_line(self.finished.ended_early)}"
        if len(self.seen) != self.started.cases:
            return f"INCOMPLETE: {done} have a result, though the run says that it finished"
        wrong = contradiction(self._found(), self.finished)
        return f"INCONSISTENT: {wrong}" if wrong else ""

    def _found(self) -> Found:
        totals = {who: self.total(who) for who in dict.fromkeys([*self.participants, *(one.subject for one in self.problems)])}
        announced = self.started.participants if self.started else ()
        return Found(
            self.results,
            frozenset(one.name for one in announced if one.role == "subject"),
            {who: total.verdicts for who, total in totals.items()},
            {who: total.counts for who, total in totals.items()},
            self.problems,
        )

    @property
    def exit_code(self) -> int:
        """The run's exit code; EXIT_HARNESS where the stream says none, or one that no run has, or says 0 and is not whole."""
        if self.finished is None or (self.finished.exit_code == EXIT_OK and self.warning):
            return EXIT_HARNESS
        return self.finished.exit_code if self.finished.exit_code in _ENDS else EXIT_HARNESS

    @property
    def exit_meaning(self) -> str:
        """What the exit code says, and which failing verdicts there were."""
        if self.exit_code == EXIT_DIVERGENCE:
            verdicts = sum((total.verdicts for _, total in self.totals), Counter())
            found = [verdict for verdict in ("diverge", "stale", "authority-drift", "authority-crash") if verdicts[verdict]]
            if kinds := dict.fromkeys(problem.kind for problem in self.problems):  # counted as stale, each of them
                found = [word for verdict in found for word in (kinds if verdict == "stale" else (verdict,))]
            return f"not as expected: {', '.join(found)}" if found else EXIT_MEANINGS[EXIT_DIVERGENCE]
        return EXIT_MEANINGS.get(self.exit_code, "ended by a signal" if self.exit_code > 128 else "unknown")


def summarize(events: Iterable[Event], where: str = "") -> RunSummary:
    """Fold a whole stream; ``where`` names it in errors.

    Raises ConfigurationError where it has no events or they do not make one stream.
    """
    summary = RunSummary(where)
    for event in events:
        summary.add(event)
    summary.close()
    return summary


def choose(failures: list[Failure], limit: int) -> tuple[list[Failure], list[Failure]]:
    """Choose up to ``limit`` failures to show in full, and give the rest.

    The first of each signature and participant goes before a second of any; both lists keep the order of the run.
    """
    kinds: set[tuple[str, str]] = set()
    first: list[int] = []
    repeated: list[int] = []
    for index, failure in enumerate(failures):
        kind = (failure.result.who, failure.signature)
        (repeated if kind in kinds else first).append(index)
        kinds.add(kind)
    shown = set([*first, *repeated][:limit])
    return [failures[index] for index in sorted(shown)], [one for index, one in enumerate(failures) if index not in shown]
