"""A whole run: lanes of processes share the cases out, results become events as they come."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from conformance import __version__
from conformance.cases.model import Case, FileInput, ModelInput
from conformance.cases.select import is_plumbing
from conformance.errors import EXIT_DIVERGENCE, EXIT_HARNESS, EXIT_OK, ConfigurationError, GgufConformanceError
from conformance.interrupts import EXIT_INTERRUPTED, Interrupted, signals_to
from conformance.judge.golden import GoldenStore
from conformance.judge.verdict import is_determined
from conformance.report.events import (
    FAILING,
    FORMAT,
    CaseResult,
    Counts,
    Event,
    KnownProblem,
    Participant,
    RunFinished,
    RunStarted,
)
from conformance.run.crew import Crew
from conformance.run.execute import LEADERS, Lane, Setting
from conformance.run.known import KnownLedger, known_problems, load_known
from conformance.run.participants import Member, golden_participants
from conformance.run.prepare import Locate
from conformance.run.recorded import check_recorded
from conformance.run.scratch import scratch_folder
from conformance.subjects.manifest import Manifest

INTERRUPTED = "interrupted"

Sink = Callable[[Event], None]


class RunPlan(NamedTuple):
    """What is to be run. ``all_ids`` are the ids of the whole corpus; ``profile`` None leaves it to the manifests."""

    cases: Sequence[Case]
    all_ids: Sequence[str]
    subjects: Sequence[Manifest]
    authorities: Sequence[Manifest]
    store: GoldenStore
    locate: Locate
    profile: str | None
    jobs: int
    # The command itself, the one that repeats a case (but for its selection), the one that records (the same).
    command: str
    repeat: str
    record: str
    validate: bool = False

    @property
    def live(self) -> bool:
        """Whether the authorities run."""
        return bool(self.authorities)


def run(plan: RunPlan, sink: Sink, lane: Callable[[RunPlan, Path], Lane] | None = None) -> int:
    """Run the plan, give each event to ``sink`` in this thread, and return the exit code.

    ``lane`` makes a lane that has its temporary files in a folder; by default one with processes of its own (``make_lane``).
    Raises ConfigurationError, or Interrupted, before the first event where the plan cannot be run at all. A ConfigurationError that
    comes up during the run ends it after the closing event; so does a signal, and EXIT_INTERRUPTED is returned.
    """
    if not plan.live:
        require_golden(plan)
    ledgers = {manifest.name: KnownLedger(load_known(manifest.divergences)) for manifest in plan.subjects}
    crew = Crew()
    with signals_to(crew.interrupt), scratch_folder() as work:
        crew.lanes = [(lane or make_lane)(plan, work) for _ in range(max(1, min(plan.jobs, len(plan.cases))))]
        try:
            return _Run(plan, sink, ledgers, crew).go()
        finally:
            crew.close()


def require_golden(plan: RunPlan) -> None:
    """Make sure that each case has recorded answers of its profile's authority. Raises ConfigurationError naming the first."""
    check_recorded(plan.store, plan.cases)
    for manifest in plan.subjects:
        profile = plan.profile or manifest.profile
        lacking = [case for case in plan.cases if profile in LEADERS and not _recorded(plan.store, case, profile)]
        if lacking:
            raise ConfigurationError(
                f"no recorded answers of {profile} for {lacking[0].id}" + (f" and {len(lacking) - 1} more" if lacking[1:] else ""),
                where=f"{lacking[0].source}:{lacking[0].line}",
                hint=f"record them with the authorities installed: {plan.record} --select '{lacking[0].suite}'",
            )


def _recorded(store: GoldenStore, case: Case, profile: str) -> bool:
    """Tell whether what the case expects of the authority is recorded, op by op, as far as it is determined at all.

    Of a file's tensors the steps are not known yet, and of numbers gguf-py does only some: there the case alone counts.
    """
    determined = [op for op, expects in case.expect[profile].items() if is_determined(expects)]
    file, key = store.file(case.suite), case.id.rpartition("/")[2]
    if not determined:
        return True
    if file is None or key not in file.cases:
        return False
    is_file = isinstance(case.input, FileInput | ModelInput)
    due = [op for op in determined if op in {"header", "load"}] if is_file else determined if profile == LEADERS[0] else []
    return all(store.answer(case.suite, key, profile, op) is not None for op in due)


def make_lane(plan: RunPlan, work: Path) -> Lane:
    """Give a lane with processes of its own; ``work`` is where it keeps the files of its cases."""
    members = [Member(manifest, authority=True, validate=plan.validate) for manifest in plan.authorities]
    members += [Member(manifest, authority=False, validate=plan.validate) for manifest in plan.subjects]
    return Lane(members, Setting(plan.store, plan.locate, plan.live, plan.profile, plan.repeat, work))


def _participants(plan: RunPlan, running: tuple[Participant, ...]) -> tuple[Participant, ...]:
    return running if plan.live else (*running, *golden_participants(plan.store, {case.suite for case in plan.cases}))


def in_order(cases: Sequence[Case]) -> deque[Case]:
    """Order cases: plumbing first, since what else an adapter gets wrong may follow from it, then the large files.

    A long one at the end would leave the other lanes idle.
    """
    return deque(sorted(cases, key=_place))


def _place(case: Case) -> tuple[bool, int]:
    return not is_plumbing(case.id), -case.input.size if isinstance(case.input, ModelInput) else 0


class _Run:
    def __init__(self, plan: RunPlan, sink: Sink, ledgers: dict[str, KnownLedger], crew: Crew) -> None:
        self.plan = plan
        self.sink = sink
        self.ledgers = ledgers
        self.crew = crew
        self.verdicts: dict[str, Counter[str]] = {}
        self.counts: dict[str, Counts] = {}
        self.started = time.monotonic()

    def go(self) -> int:
        participants = _participants(self.plan, self.crew.describe())
        self.sink(self._opening(participants))
        failure: GgufConformanceError | None = None
        ended = ""
        try:
            for result in self.crew.work(in_order(self.plan.cases)):
                self._take(result)
        except Interrupted:
            ended = INTERRUPTED
        except GgufConformanceError as problem:
            failure, ended = problem, f"stopped: {problem.message}"
        problems = [] if ended else self._known_problems()
        idle = [] if ended else self._never_judged()
        if idle:
            ended = f"nothing was judged: every selected case was skipped for {', '.join(idle)}"
        code = self._exit_code(problems, ended, failure)
        self.sink(
            RunFinished(
                exit_code=code,
                seconds=round(time.monotonic() - self.started, 3),
                verdicts={who: dict(counter) for who, counter in self.verdicts.items()},
                counts=self.counts,
                ended_early=ended,
            )
        )
        if failure is not None:
            raise failure
        return code

    def _opening(self, participants: tuple[Participant, ...]) -> RunStarted:
        return RunStarted(
            format=FORMAT,
            version=__version__,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            command=self.plan.command,
            oracle="live" if self.plan.live else "golden",
            profile=self.plan.profile or ", ".join(dict.fromkeys(manifest.profile for manifest in self.plan.subjects)),
            cases=len(self.plan.cases),
            participants=participants,
        )

    def _take(self, result: CaseResult) -> None:
        sorted_result = self._with_known(result)
        self.verdicts.setdefault(result.who, Counter())[sorted_result.verdict] += 1
        self.counts[result.who] = self.counts.get(result.who, Counts()) + result.counts
        self.sink(sorted_result)

    def _with_known(self, result: CaseResult) -> CaseResult:
        """Tell known divergences from new ones."""
        ledger = self.ledgers.get(result.who) if result.role == "subject" else None
        return ledger.apply(result) if ledger else result

    def _known_problems(self) -> list[KnownProblem]:
        problems = [
            problem
            for manifest in self.plan.subjects
            for problem in known_problems(manifest, self.ledgers[manifest.name], self.plan.all_ids)
        ]
        for problem in problems:
            self.verdicts.setdefault(problem.subject, Counter())["stale"] += not problem.is_broken
            self.sink(problem)
        return problems

    def _exit_code(self, problems: list[KnownProblem], ended: str, failure: GgufConformanceError | None) -> int:
        if failure is not None:
            return failure.exit_code
        if ended == INTERRUPTED:
            return EXIT_INTERRUPTED
        if ended or any(problem.is_broken for problem in problems) or self._errors():
            return EXIT_HARNESS
        failed = any(FAILING & {name for name, count in counter.items() if count} for counter in self.verdicts.values())
        return EXIT_DIVERGENCE if failed else EXIT_OK

    def _errors(self) -> int:
        """Count the cases whose input could not be had."""
        return sum(counter["error"] for counter in self.verdicts.values())

    def _never_judged(self) -> list[str]:
        """No silent green: name the subjects of which every case was skipped."""
        return [manifest.name for manifest in self.plan.subjects if set(self.verdicts.get(manifest.name, ())) == {"skip"}]
