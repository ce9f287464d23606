"""Who is asked: subjects and live authorities are processes, a golden authority is a file of recorded answers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from conformance.cases.model import Case
from conformance.judge.golden import GoldenStore
from conformance.judge.headers import limits
from conformance.judge.measure import Measure
from conformance.judge.output import Bytes, Kept, kept_bytes
from conformance.outcomes import Ok, Outcome, Protocol
from conformance.report.events import Participant
from conformance.run.extended import extended
from conformance.run.outputs import take_output
from conformance.run.scratch import require_room
from conformance.run.steps import Step, request
from conformance.subjects.manifest import Manifest
from conformance.subjects.process import Answer, Subject
from conformance.subjects.protocol import Identity, Request, View


class Reply(NamedTuple):
    """A participant's answer to one step."""

    outcome: Outcome
    output: Bytes | None = None
    output_path: Path | None = None
    seconds: float = 0.0
    stderr: str = ""


class Member:
    """One process that takes part in a lane."""

    def __init__(self, manifest: Manifest, *, authority: bool, validate: bool) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self.is_authority = authority
        self.subject = Subject(manifest, validate=validate)

    @property
    def identity(self) -> Identity:
        """What it said in its hello; starts it the first time."""
        return self.subject.identity

    def view(self, op: str) -> View:
        """Give what its interface shows of the answers to ``op``."""
        return getattr(self.identity.ops, op, None) or View() if op in {"header", "load", "tensor"} else View()

    def does(self, step: Step) -> bool:
        """Tell whether its hello declares the step's op, and type where it has one."""
        declared = getattr(self.identity.ops, step.op)
        if step.type_name is None:
            return declared is not None
        return step.type_name in declared and (step.imatrix is None or self.identity.ops.imatrix)

    def seconds(self, case: Case) -> float:
        """Give how long one of the case's requests may take."""
        return case.limits.time or self.manifest.limits.time

    def ask(
        self, step: Step, case: Case, path: Path | None, source: Path | None, folder: Path, *, time: float | None = None
    ) -> list[Reply]:
        """Put the step's request to the process, as often at once as the case says; an answer without its output is a breach.

        ``time`` is how long it may take, where that is less than the case and the manifest say. The replies are fewer than the
        requests where one of them broke the process: it is the last. A one-shot subject is asked once, since its process ends
        with each request.
        """
        outs = [self._out(step, case, folder, number) for number in range(1 if self.manifest.one_shot else case.put.ahead)]
        require_room(folder, (step.due_bytes or 0) * len(outs))
        messages = [self._message(case, request(step, path, source, out)) for out in outs]
        time, memory = time or self.seconds(case), case.limits.memory
        if len(messages) == 1:
            answers = [self.subject.ask(messages[0], time=time, memory=memory)]
        else:
            self.subject.pose(messages)
            answers = self.subject.collect(time=time, memory=memory)
        return [self._reply(step, answer, out) for answer, out in zip(answers, outs, strict=False)]

    def _out(self, step: Step, case: Case, folder: Path, number: int) -> Path:
        """Give the place of an output: nothing stands there, or as much as the case says.

        A variant's is another one: what a later step takes in is the output of the op itself.
        """
        out = folder / f"{quote(self.name, safe='')}-{quote(step.asked, safe='')}{f'-{number}' if number else ''}.out"
        out.unlink(missing_ok=True)
        if case.put.over and step.has_output:
            out.write_bytes(b"\xff" * case.put.over)
        return out

    def _message(self, case: Case, message: Request) -> Request:
        return extended(message, msgspec.json.decode(case.put.fields)) if case.put.fields else message

    def _reply(self, step: Step, answer: Answer, out: Path) -> Reply:
        """Take in an answer, and what it wrote."""
        outcome: Outcome = answer.outcome
        if not (isinstance(outcome, Ok) and step.has_output):
            return Reply(outcome, seconds=answer.elapsed, stderr=answer.stderr_tail)
        output = take_output(out, step.due_bytes)
        if isinstance(output, Protocol):
            return Reply(output, seconds=answer.elapsed, stderr=answer.stderr_tail)
        return Reply(outcome, output, out, answer.elapsed, answer.stderr_tail)

    def kill(self) -> None:
        """Kill the process for good, from any thread."""
        self.subject.kill()

    def close(self) -> None:
        """End the process."""
        self.subject.close()

    def describe(self) -> Participant:
        """Give what a report says of it."""
        identity = self.identity
        views = (identity.ops.header or View(), identity.ops.load or View())
        return Participant(
            name=self.name,
            version=identity.version,
            language=identity.language,
            role="authority" if self.is_authority else "subject",
            details=identity.details,
            limits=tuple(dict.fromkeys(words for view in views for words in limits(view))),
        )


def golden_measure(store: GoldenStore, case: Case, authority: str, step: str) -> Measure | None:
    """Give the recorded answer of an authority to a step, None where none is recorded."""
    key = case.id.rpartition("/")[2]
    answer = store.answer(case.suite, key, authority, step)
    origin = store.authority(case.suite, authority)
    if answer is None or origin is None:
        return None
    output = kept_bytes(answer.output) if isinstance(answer.output, Kept) else answer.output
    return Measure(authority, answer.outcome, origin.view, output, answer.arrays)


def golden_participants(store: GoldenStore, suites: set[str]) -> tuple[Participant, ...]:
    """Give what the recorded answers of these suites were taken from, each authority and version once."""
    found: dict[tuple[str, str], Participant] = {}
    for suite in sorted(suites):
        file = store.file(suite)
        for name, origin in file.authorities.items() if file else ():
            found.setdefault(
                (name, origin.version),
                Participant(name, origin.version, origin.language, "golden", origin.details, limits(origin.view)),
            )
    return tuple(found.values())
