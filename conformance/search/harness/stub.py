"""The small cases run whole, through engine, judge, events and reports, without a process: a hundred runs a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import msgspec

from conformance.cases.load import load_suites
from conformance.cases.model import Case, ModelInput
from conformance.judge.golden import FORMAT, GoldenAuthority, GoldenFile, GoldenStore, fold
from conformance.outcomes import Ok, Protocol
from conformance.report.events import Event, EventLog
from conformance.report.summary import RunSummary, summarize
from conformance.run.engine import RunPlan, run
from conformance.run.execute import Lane, Setting
from conformance.run.participants import Member
from conformance.search.harness import small
from conformance.subjects.answers import read_answer, read_hello
from conformance.subjects.manifest import Manifest
from conformance.subjects.process import Subject
from conformance.subjects.protocol import Identity, Request, View
from conformance.subjects.transport import Answer, op_of

Edit = Callable[[int, small.Answered], small.Answered]


class Stub:
    """In the place of a subject's process: it answers well, but for what ``edit`` makes of the answer to a request, by number."""

    def __init__(self, identity: Identity, edit: Edit) -> None:
        self.identity = identity
        self._edit = edit
        self._seq = 0

    def ask(self, request: Request, *, time: float | None = None, memory: int | None = None) -> Answer:
        """Answer one request at once."""
        del time, memory
        self._seq += 1
        line, output = self._edit(self._seq, small.answer(request))
        outcome = read_answer(line.replace(b"@", b"%d" % self._seq), op_of(request), self._seq)
        out: str | None = getattr(request, "out", None)
        if isinstance(outcome, Ok) and output is not None and out is not None:
            Path(out).write_bytes(output)
        return Answer(outcome)

    def kill(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Ran(NamedTuple):
    """What a run gave: its exit code, and the event stream as it was written."""

    code: int
    stream: bytes
    summary: RunSummary


def identity(hello: bytes = small.HELLO) -> Identity | Protocol:
    """Read an answer to hello, in which ``@`` stands for the request's number."""
    return read_hello(hello.replace(b"@", b"1"), 1)


@cache
def small_cases() -> list[Case]:
    """Give the small cases, loaded once: their file is gone when they are run."""
    with TemporaryDirectory() as name:
        return load_suites(small.write_cases(Path(name)))


IDS = ("own/small/bad", "own/small/long", "own/small/plain", "own/small/rows")


class Setup(NamedTuple):
    """What a run may be given besides: other cases than the small ones, a divergences file, a profile, a (sound) hello."""

    cases: Sequence[Case] | None = None
    divergences: Path | None = None
    profile: str | None = None
    hello: bytes = small.HELLO


def run_small(golden: Path, folder: Path, edit: Edit, setup: Setup = Setup()) -> Ran:  # noqa: B008 - it is frozen
    """Run the small cases by the recorded answers in the folder ``golden`` and write the stream into ``folder``.

    Raises what the engine raises.
    """
    cases, manifest = small_cases() if setup.cases is None else setup.cases, _manifest("small", setup.divergences)
    names = [case.id for case in cases]
    plan = RunPlan(cases, names, [manifest], (), GoldenStore(golden), _no_model, setup.profile, 1, "run", "run", "record")
    path, events = folder / "events.ndjson", list[Event]()
    with path.open("wb") as file:
        log = EventLog(file)

        def sink(event: Event) -> None:
            log.write(event)
            events.append(event)

        code = run(plan, sink, lambda plan, work: Lane([_member(manifest, edit, setup.hello)], _setting(plan, work)))
    return Ran(code, path.read_bytes(), summarize(events))


def write_golden(folder: Path) -> Path:
    """Write sound recorded answers below ``folder`` and give the folder of recorded answers."""
    golden = folder / "golden"
    small.golden_path(golden).write_bytes(golden_file())
    return golden


@cache
def golden_file() -> bytes:
    """Give the recorded answers of the small cases, as recording writes them."""
    names = ("llama.cpp", "gguf-py")
    with TemporaryDirectory() as name:
        work = Path(name)
        members = [_member(_manifest(who), sound, authority=True) for who in names]
        lane = Lane(members, Setting(GoldenStore(work / "none"), _no_model, True, None, "run", work))
        answers = {case.id.rpartition("/")[2]: fold(lane.record(case)[1]) for case in small_cases()}
    return msgspec.json.encode(GoldenFile(FORMAT, {who: GoldenAuthority("1", View()) for who in names}, answers))


def _manifest(name: str, divergences: Path | None = None) -> Manifest:
    return Manifest(
        name=name,
        language="python",
        command=("none",),
        folder=Path(),
        source=Path("adapter.yaml"),
        built=Path(),
        divergences=divergences,
    )


def _member(manifest: Manifest, edit: Edit, hello: bytes = small.HELLO, *, authority: bool = False) -> Member:
    member = Member(manifest, authority=authority, validate=False)
    told = identity(hello)
    assert isinstance(told, Identity)  # noqa: S101 - the caller has looked
    member.subject = cast("Subject", Stub(told, edit))
    return member


def _setting(plan: RunPlan, work: Path) -> Setting:
    return Setting(plan.store, _no_model, False, plan.profile, "run", work)


def _no_model(model: ModelInput) -> Path:
    raise AssertionError(f"no case of the small ones has a model: {model}")


def sound(_number: int, answered: small.Answered) -> small.Answered:
    """Leave an answer as it is."""
    return answered


def replaced(numbers: Sequence[int], line: bytes, output: bytes | None) -> Edit:
    """Give the edit that puts ``line`` and ``output`` in the place of the answers to the requests ``numbers``."""
    return lambda number, answered: small.Answered(line, output) if number in numbers else answered
