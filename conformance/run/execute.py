"""One case, from its input to the verdicts on everybody who was asked."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from conformance.cases.model import Case, Expect, Put
from conformance.errors import ConfigurationError
from conformance.judge.golden import GoldenAnswer, GoldenStore, record_answer
from conformance.judge.measure import Given, Measure, differences
from conformance.judge.numbers import Shape
from conformance.judge.output import MAX_RANGES, Bytes, GoldenOutput, canonical, condense
from conformance.judge.rounding import Sums, compare_sums
from conformance.judge.verdict import Bench, StepVerdict, is_determined, judge_authority, judge_subject
from conformance.outcomes import Ok, Outcome, Timeout
from conformance.report.events import CaseResult
from conformance.run.participants import Member, Reply, golden_measure
from conformance.run.prepare import Locate, Prepared, place_below, prepare, spoil_input
from conformance.run.result import Tally
from conformance.run.scratch import writing_to
from conformance.run.steps import Step, block_steps, file_steps, multiplied, step_op
from conformance.values import Header

# Whose tensor directory and whose quantized blocks lead, where the profile's authority has none.
LEADERS = ("llama.cpp", "gguf-py")
# A model has hundreds of outputs: each is recorded by few digests, or the golden file would be larger than it is worth.
MODEL_RANGES = 8
REQUANTIZED_RANGES = 2
PRODUCTS = ("dot", "matvec")
# A model has hundreds of tensors: a case may take so many times what one request may, where the manifest does not say how long.
_CASE_TIMES = 10


class Setting(NamedTuple):
    """What all cases of a run share. ``profile`` None leaves it to each subject's manifest."""

    store: GoldenStore
    locate: Locate
    live: bool
    profile: str | None
    repeat: str
    work: Path


class Lane:
    """A set of processes that works through cases one after the other."""

    def __init__(self, members: Sequence[Member], setting: Setting) -> None:
        self.members = members
        self.setting = setting

    def run(self, case: Case) -> list[CaseResult]:
        """Run a case; gives one result for each live authority and each subject.

        An input that cannot be made or fetched is verdict ``error`` for all. Raises ConfigurationError where a subject can no
        longer be started, or where there is no room for temporary files.
        """
        with writing_to(self.setting.work), self._execution(case) as execution:
            try:
                execution.prepare()
            except ConfigurationError as problem:
                return execution.refused(problem)
            execution.run()
            return execution.results()

    def record(self, case: Case) -> tuple[list[CaseResult], dict[str, dict[str, GoldenAnswer]]]:
        """Run a case and give, beside the results, the authorities' answers as golden files keep them."""
        with writing_to(self.setting.work), self._execution(case) as execution:
            execution.prepare()
            execution.run()
            return execution.results(), execution.recorded

    def _execution(self, case: Case) -> Execution:
        return Execution(case, self.members, self.setting)

    def kill(self) -> None:
        """Kill all processes, from any thread: what is under way comes to nothing, and nothing more is asked."""
        for member in self.members:
            member.kill()

    def close(self) -> None:
        """End all processes."""
        for member in self.members:
            member.close()


class Execution:
    """The run of one case in one lane; a context manager that owns the case's scratch folder."""

    def __init__(self, case: Case, members: Sequence[Member], setting: Setting) -> None:
        self.case = case
        self.members = members
        self.setting = setting
        self.scratch = Path(tempfile.mkdtemp(prefix="case-", dir=setting.work))
        self.folder = place_below(self.scratch, case.put)
        self.tallies = {member.name: Tally(case, member.name, authority=member.is_authority) for member in members}
        self.recorded: dict[str, dict[str, GoldenAnswer]] = {}
        self.directory: Header | None = None
        # The authorities that do not take the file: what follows from a directory is no question to them.
        self.without_directory: set[str] = set()
        # By step and by participant: the outputs that later steps take in, quantized blocks or a tensor's values.
        self.outputs: dict[tuple[str, str], Path] = {}
        # By op: the authorities' sums in order, which sums in another order are held to.
        self.sums: dict[str, dict[str, Measure]] = {}
        # Seconds that each participant took for the case so far.
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.prepared = Prepared()
        self.before: list[tuple[Case, Prepared]] = []

    def __enter__(self) -> Execution:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def prepare(self) -> None:
        """Make, or fetch, the input, and what is put before it. Raises ConfigurationError."""
        self.prepared = prepare(self.case, self.folder, self.setting.locate)
        for number, before in enumerate(self.case.before):
            folder = self.folder / f"before-{number}"
            folder.mkdir()
            case = msgspec.structs.replace(self.case, input=before.input, ask=before.ask, before=(), put=Put())
            self.before.append((case, prepare(case, folder, self.setting.locate)))
        if self.case.put.input and self.prepared.path is not None:
            spoil_input(self.prepared.path, self.case.put.input)
            self.prepared = self.prepared._replace(data=None, fields=None)

    def refused(self, problem: ConfigurationError) -> list[CaseResult]:
        """Give the verdicts on a case without an input."""
        reason = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
        return [msgspec.structs.replace(result, verdict="error", reason=reason) for result in self.results()]

    def run(self) -> None:
        """Ask every step of everybody and judge the answers."""
        for case, prepared in self.before:
            self._put_before(case, prepared)
        fitting: set[str] = set()
        for step in self._steps():
            for number in range(self.case.put.times):
                self._run_step(step, again=number > 0)
            if step.op == "quantize":
                fitting.add(step.kind_name)
        for name in self.case.requantize:
            if name not in fitting:
                reason = f"no row is a whole number of {name} blocks"
                for tally in self.tallies.values():
                    tally.skip(reason, reason)

    def _put_before(self, case: Case, prepared: Prepared) -> None:
        """Ask everybody what the case puts first; nobody is judged by the answers."""
        steps = block_steps(case, prepared) if prepared.numbers is not None else (Step(name=op, op=op) for op in case.ask)
        for step in steps:
            for member in self.members:
                if member.does(step):
                    member.ask(step, case, prepared.path, step.input, self.folder)

    def results(self) -> list[CaseResult]:
        """Give the verdicts."""
        return [
            self.tallies[member.name].result(self._profile(member), self.prepared, self.setting.repeat) for member in self.members
        ]

    def _steps(self) -> Iterator[Step]:
        if self.prepared.numbers is not None:
            yield from block_steps(self.case, self.prepared)
            return
        for op in self.case.ask:
            if op in {"header", "load"}:
                yield Step(name=op, op=op)
        if "write" in self.case.ask:
            yield Step(name="write", op="write", described=self.prepared.described)
        yield from file_steps(self.case, self.prepared, self.directory, self.folder)

    def _profile(self, member: Member) -> str:
        return self.setting.profile or member.manifest.profile

    def _run_step(self, step: Step, *, again: bool) -> None:
        replies: dict[str, list[Reply]] = {}
        for member in self._authorities_first():
            if again and (member.manifest.one_shot or self.tallies[member.name].divergences):
                continue  # whose process is a new one each time, or who is wrong already, has nothing more to show
            tally = self.tallies[member.name]
            tally.meet(step)
            if reason := self._why_not(member, step):
                tally.skip(*reason)
            elif (asked := self._ask_in_time(member, step)) is None:
                tally.leave_out(step, self._budget(member))
            else:
                replies[member.name] = asked
        measures = self._measures(step, replies)
        if step.op in PRODUCTS and step.variant is None:
            self.sums[step.op] = measures
        self._note_directory(step, measures)
        for member in self.members:
            if member.name in replies:
                self._judge_all(member, step, replies[member.name], measures)

    def _why_not(self, member: Member, step: Step) -> tuple[str, str] | None:
        """Give the reason why a member is not asked a step, and its kind, which is the same for all cases; None if it is."""
        judge = member.name if member.is_authority else self._profile(member)
        if not member.does(step):
            kind = f"{step.asked}{' with an imatrix' if step.imatrix else ''} is not claimed"
            return f"{kind} of {step.numbers.kind.name}" if step.numbers else kind, kind
        if self.case.put.input and member.manifest.one_shot:
            kind = f"{step.asked} of what is no file: a process that ends with it may end as it likes"
            return kind, kind
        if step.of_a_tensor and judge in self.without_directory:
            kind = f"{step.asked}: {judge} does not take the file"
            return kind, kind
        if step.numbers is not None and self._source(member, step) is None:
            return f"no blocks of {step.after} that equal the authority's", f"{step.asked} had no input"
        return None

    def _budget(self, member: Member) -> float:
        return member.manifest.limits.case or _CASE_TIMES * member.seconds(self.case)

    def _authorities_first(self) -> list[Member]:
        return sorted(self.members, key=lambda member: not member.is_authority)

    def _ask_in_time(self, member: Member, step: Step) -> list[Reply] | None:
        """Ask a step; None where the time for the case was over before, or ended the request sooner than its own would have."""
        left = self._budget(member) - self.spent[member.name]
        if member.is_authority or left >= member.seconds(self.case):
            return self._ask(member, step, None)
        if left <= 0:
            return None
        replies = self._ask(member, step, left)
        return None if isinstance(replies[-1].outcome, Timeout) else replies

    def _ask(self, member: Member, step: Step, limit: float | None) -> list[Reply]:
        started = time.monotonic()
        replies = member.ask(step, self.case, self.prepared.path, self._source(member, step), self.folder, time=limit)
        self.spent[member.name] += time.monotonic() - started
        first = replies[0].output_path
        if member.is_authority and first is not None and self._is_taken_in(step):
            self.outputs[step.name, member.name] = first
        return replies

    def _is_taken_in(self, step: Step) -> bool:
        return step.op == ("dequantize" if self.case.requantize else "quantize")

    def _source(self, member: Member, step: Step) -> Path | None:
        """Give the input of a block step: an authority's output of an earlier one, so that all take in the same bytes.

        Without a live authority a subject takes in its own, once they were found equal to the recorded ones.
        """
        if step.after is None:
            return step.input
        sources = (self.outputs.get((step.after, name)) for name in (*LEADERS, member.name))
        return next((source for source in sources if source is not None), None)

    def _measures(self, step: Step, replies: dict[str, list[Reply]]) -> dict[str, Measure]:
        """Give the authorities' answers, live or recorded."""
        if not self.setting.live:
            recorded = ((name, golden_measure(self.setting.store, self.case, name, step.name)) for name in LEADERS)
            return {name: measure for name, measure in recorded if measure is not None}
        return {
            member.name: Measure(member.name, first.outcome, member.view(step.op), first.output)
            for member in self.members
            if member.is_authority and member.name in replies and (first := replies[member.name][0])
        }

    def _note_directory(self, step: Step, measures: dict[str, Measure]) -> None:
        """Keep the first authority's tensor directory: it says which tensors are asked for."""
        if step.op != ("header" if "header" in self.case.ask else "load"):
            return
        outcomes = {name: measures[name].outcome for name in dict.fromkeys([*LEADERS, *measures]) if name in measures}
        self.without_directory = {name for name, outcome in outcomes.items() if not isinstance(outcome, Ok)}
        self.directory = next((outcome.header for outcome in outcomes.values() if isinstance(outcome, Ok)), None)

    def _shape(self, step: Step, authority: str, member: Member | None = None) -> Shape | None:
        """Say what is compared; with ``member``, whose output it is, so that the exact model can say who of the two is right."""
        if step.tensor_type is not None:
            return Shape(step.asked, step.tensor_type, step.tensor_type.block, authority, floats=False, width=0)
        if step.numbers is None:
            return None
        numbers, data = step.numbers, self.prepared.numbers
        return Shape(
            step.asked,
            numbers.kind,
            numbers.cols,
            authority,
            floats=numbers.floats,
            width=numbers.width,
            nan_payload=self.case.nan_payload,
            row_names=data.names if data else (),
            inputs=data.values if data else None,
            blocks=self._source(member, step) if member and step.op == "dequantize" else None,
            subject=member.name if member else "",
        )

    def _judge_all(self, member: Member, step: Step, replies: list[Reply], measures: dict[str, Measure]) -> None:
        """Judge each answer to a request that was put several times at once, up to the first that is wrong."""
        for reply in replies:
            self._judge(member, step, reply, measures)
            if self.tallies[member.name].divergences:
                return

    def _judge(self, member: Member, step: Step, reply: Reply, measures: dict[str, Measure]) -> None:
        given = Given(reply.outcome, member.view(step.op), reply.output)
        if member.is_authority:
            verdict = self._near(member, step, given, self._judge_authority(member, step, given))
            self.tallies[member.name].add(step, reply, verdict, {})
            return
        verdict = self._near(member, step, given, self._judge_subject(member, step, given, measures))
        if verdict.same and self._is_taken_in(step) and reply.output_path is not None:
            self.outputs.setdefault((step.name, member.name), reply.output_path)
        self.tallies[member.name].add(step, reply, verdict, self._agreement(step, given, measures))

    def _judge_authority(self, member: Member, step: Step, given: Given) -> StepVerdict:
        expects = self._expects(member.name, step)
        if is_determined(expects):
            self.recorded.setdefault(member.name, {})[step.name] = record_answer(given.outcome, self._kept(step, given.output))
        recorded = golden_measure(self.setting.store, self.case, member.name, step.name)
        shape = self._shape(step, f"recorded {member.name}", member)
        return judge_authority(step.asked, step.kind_name, expects, given, recorded, shape)

    def _near(self, member: Member, step: Step, given: Given, verdict: StepVerdict) -> StepVerdict:
        """Hold sums that may be added in another order to the ones in order; ``verdict`` is what is known without them."""
        judge = member.name if member.is_authority else self._profile(member)
        weights = self._source(member, step)
        if verdict.divergences or verdict.skipped or weights is None or given.output is None:
            return verdict
        if not any(expect.kind == "near" for expect in self._expects(judge, step)):
            return verdict
        measure = self.sums[step.op].get(judge)
        if measure is None or not isinstance(measure.output, np.ndarray):
            return StepVerdict([], skipped=f"no sums of {judge} in order to hold {step.asked} to")
        sums = Sums(step.asked, judge, measure.output.view(np.float32), given.output.view(np.float32))
        found, ulps, unbounded = compare_sums(multiplied(step, weights), sums)
        told = f"at most {ulps} ulps from the sums in order"
        if unbounded:
            told += f", {unbounded} of {sums.found.size} rows not judged: their terms are not finite"
        return StepVerdict([found] if found else [], same=found is None, told=told)

    def _kept(self, step: Step, output: Bytes | None) -> GoldenOutput | None:
        if output is None:
            return None
        floats = step.numbers is not None and step.numbers.floats
        ranges = (MODEL_RANGES if step.after is None else REQUANTIZED_RANGES) if self.prepared.is_model else MAX_RANGES
        return condense(canonical(output, floats=floats and not self.case.nan_payload), step.unit, ranges)

    def _judge_subject(self, member: Member, step: Step, given: Given, measures: dict[str, Measure]) -> StepVerdict:
        profile = self._profile(member)
        expects = self._expects(profile, step)
        if profile not in measures and profile != "spec" and is_determined(expects):
            return StepVerdict([], skipped=f"{profile} does not answer {step.asked} of {step.kind_name}")
        bench = Bench(profile, expects, measures)
        return judge_subject(step.asked, step.kind_name, bench, given, self._shape(step, profile, member))

    def _agreement(self, step: Step, given: Given, measures: dict[str, Measure]) -> dict[str, tuple[Outcome, bool]]:
        """Give each authority's outcome, and whether the subject's answer equals it.

        Left out are authorities that only are observed here, that die, or that are wrong: nobody has to answer the same.
        """
        return {
            name: (
                measure.outcome,
                not differences(step.asked, step.kind_name, measure, given, self._shape(step, name)),
            )
            for name, measure in measures.items()
            if {expect.kind for expect in self._expects(name, step)} <= {"accept", "reject"}
        }

    def _expects(self, authority: str, step: Step) -> tuple[Expect, ...]:
        return self.case.expect[authority][step_op(step.asked)]
