"""A small corpus of its own, judged by the reference under the authorities' names: the plumbing, without the library."""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from conformance.cases.load import load_suites
from conformance.judge.golden import GoldenStore
from conformance.report.events import CaseResult, Event, KnownProblem, RunFinished
from conformance.run import engine
from conformance.run import record as recording
from conformance.run.engine import RunPlan, run
from conformance.run.participants import Member
from conformance.run.record import record
from conformance.subjects.manifest import Manifest, find_manifest
from conformance.subjects.process import Subject

CASES = """
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  plain: {build: {kv: [{key: a, u32: 7}]}}
  tensor: {build: {tensors: [{name: t, type: F32, dims: [4]}]}, ask: [header, load, tensor]}
  alignment-0:
    build: {kv: [{key: general.alignment, u32: 0}]}
    expect: {llama.cpp: {reject: bad-alignment}, gguf-py: {reject: bad-alignment}, spec: {reject: bad-alignment}}
"""
BLOCKS = """
suite: small/blocks
cases:
  q8_0: {type: Q8_0, rows: {random: {seed: 1, rows: 4, cols: 1024, distribution: normal}}}
  q4_k: {type: Q4_K, blocks: {random: {seed: 2, rows: 2, cols: 512}}}
"""

# Processes that stay, by what they are started with: the reference takes a second to load what it quantizes with, and a run
# of this corpus milliseconds. Only what is in KEEPABLE stays: it has no memory, and so answers as a new process would.
KEPT: defaultdict[str, list[Subject]] = defaultdict(list)
KEEPABLE = {find_manifest(name).command for name in ("impl", "impl-gguf-py", "q8_0-stored-scale", "llama.cpp", "gguf-py")}


class KeptMember(Member):
    """A member whose process stays for the next run, as it does for the next case of a run."""

    def __init__(self, manifest: Manifest, *, authority: bool, validate: bool) -> None:
        super().__init__(manifest, authority=authority, validate=validate)
        environment = {**manifest.environment, "PYTEST_CURRENT_TEST": ""}
        alike = KEPT[repr((manifest.command, environment, manifest.limits, manifest.one_shot, validate))]
        self._give_back = alike.append
        if alike:
            self.subject = alike.pop()

    def kill(self) -> None:
        """Kill it after all: who was killed is not asked again."""
        self._give_back = Subject.close
        super().kill()

    def close(self) -> None:
        """Let the next one have it."""
        self._give_back(self.subject)


def _member(manifest: Manifest, *, authority: bool, validate: bool) -> Member:
    kind = KeptMember if manifest.command in KEEPABLE else Member
    return kind(manifest, authority=authority, validate=validate)


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes stay, for what runs and records within pytest's own process."""
    for module in (engine, recording):
        monkeypatch.setattr(module, "Member", _member)


@pytest.fixture(scope="package", autouse=True)
def _kept_end() -> Iterator[None]:
    """End in the end what has stayed."""
    yield
    for subject in itertools.chain(*KEPT.values()):
        subject.drop()
    KEPT.clear()


class Ran(NamedTuple):
    """What a run gave."""

    code: int
    events: list[Event]

    @property
    def verdicts(self) -> dict[tuple[str, str], str]:
        """By case and participant."""
        return {(e.case, e.who): e.verdict for e in self.events if isinstance(e, CaseResult)}

    @property
    def problems(self) -> list[KnownProblem]:
        return [e for e in self.events if isinstance(e, KnownProblem)]

    @property
    def finished(self) -> RunFinished:
        (last,) = [e for e in self.events if isinstance(e, RunFinished)]
        assert self.events[-1] is last
        return last


class Bench:
    """A corpus in a folder, and runs over it."""

    def __init__(self, root: Path, scripts: Path) -> None:
        self.root = root
        self.scripts = scripts
        self.store = GoldenStore(root / "golden")
        self.impl = find_manifest("impl")
        self.stored_scale = find_manifest("q8_0-stored-scale")
        self.authorities = [msgspec.structs.replace(self.impl, name=name) for name in ("llama.cpp", "gguf-py")]

    def write(self, suite: str, text: str) -> None:
        path = self.root / f"{suite}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def keepable(self, script: str) -> tuple[str, ...]:
        """Give the command of a subject without a memory, the same to all who ask with the same script, so that it may stay."""
        path = self.scripts / f"{hashlib.sha256(script.encode()).hexdigest()}.py"
        path.write_text(script)
        command = (self.impl.command[0], str(path))
        KEEPABLE.add(command)
        return command

    def record(self) -> None:
        cases = load_suites(self.root)
        assert not record(cases, self.authorities, self.store, lambda model: Path(model.member), lambda _: None).refused

    def run(self, *subjects: Manifest, live: bool = True, select: str = "", **changes: object) -> Ran:
        cases = load_suites(self.root)
        plan = RunPlan(
            cases=[case for case in cases if case.id.startswith(select)],
            all_ids=[case.id for case in cases],
            subjects=subjects,
            authorities=self.authorities if live else (),
            store=GoldenStore(self.root / "golden"),
            locate=lambda model: Path(model.member),
            profile=None,
            jobs=1,
            command="gguf-conformance run --all",
            repeat="gguf-conformance run",
            record="gguf-conformance record",
        )._replace(**changes)
        events: list[Event] = []
        return Ran(run(plan, events.append), events)


@pytest.fixture
def bench(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, keeping: None) -> Bench:
    made = Bench(tmp_path / "cases", tmp_path_factory.getbasetemp())
    made.write("small/files", CASES)
    made.write("small/blocks", BLOCKS)
    return made
