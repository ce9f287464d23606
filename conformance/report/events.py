"""The events of a run, one NDJSON line each. Every report is a view of this stream and can be made again from it.

A stream begins with ``RunStarted``; without a closing ``RunFinished`` it is a truncated run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import msgspec

from conformance.errors import ConfigurationError
from conformance.judge.divergence import Divergence, HexLine
from conformance.regular import read_regular

FORMAT = 1

# "error": the case could not be put to anybody, since its own input could not be made or fetched.
VerdictName = Literal["pass", "diverge", "known", "stale", "skip", "authority-drift", "authority-crash", "error"]
FAILING: frozenset[str] = frozenset({"diverge", "stale", "authority-drift", "authority-crash", "error"})


class Participant(msgspec.Struct, frozen=True, omit_defaults=True):
    """One process that took part, as its hello told; a golden authority's ``details`` say what it was recorded from."""

    name: str
    version: str
    language: str
    role: Literal["subject", "authority", "golden"]
    details: dict[str, str] = {}
    # How its interface limits what is judged, in words ("strings end at NUL").
    limits: tuple[str, ...] = ()


class RunStarted(msgspec.Struct, frozen=True, tag="run-started", tag_field="event", kw_only=True):
    """What is about to be run. ``started`` is ISO 8601 with time zone."""

    format: int
    version: str
    started: str
    command: str
    oracle: Literal["live", "golden"]
    profile: str
    cases: int
    participants: tuple[Participant, ...]


class Counts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was compared for one case and one subject."""

    requests: int = 0
    files: int = 0
    tensors: int = 0
    blocks: int = 0
    bytes: int = 0
    values: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Add field by field."""
        return Counts(
            self.requests + other.requests,
            self.files + other.files,
            self.tensors + other.tensors,
            self.blocks + other.blocks,
            self.bytes + other.bytes,
            self.values + other.values,
        )


class OpCount(msgspec.Struct, frozen=True):
    """How much of one op (with its variant; "quantize with imatrix") on one ggml type was compared.

    Of ``requests`` answers, on ``blocks`` blocks together, ``different`` were not the authority's.
    """

    type: str
    op: str
    requests: int
    blocks: int
    different: int

    def __add__(self, other: OpCount) -> OpCount:
        """Add up; both are of one type and op."""
        return OpCount(
            self.type, self.op, self.requests + other.requests, self.blocks + other.blocks, self.different + other.different
        )


class Answered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one participant answered to one op, shortened: ``outcome`` is ``ok``, ``reject bad-magic``, ``crash SIGSEGV`` ..."""

    who: str
    op: str
    outcome: str
    message: str = ""
    # For ok: a line or a few on the value ("version 3, 1 pair, 0 tensors, data at 64"; "34 bytes").
    value: str = ""
    at: int | None = None
    field: str | None = None
    # Whether it equals the judging authority's answer; None for that authority itself and where nothing was compared.
    same: bool | None = None
    seconds: float = 0.0
    stderr: str = ""


class Agreement(msgspec.Struct, frozen=True):
    """In how many steps a subject's answers were the same as an authority's, and in how many not."""

    same: int = 0
    different: int = 0


class CaseResult(msgspec.Struct, frozen=True, tag="result", tag_field="event", omit_defaults=True, kw_only=True):
    """The verdict on one case for one participant. ``reason`` is one line; ``divergences`` say where."""

    case: str
    who: str
    role: Literal["subject", "authority"]
    verdict: VerdictName
    profile: str
    reason: str = ""
    divergences: tuple[Divergence, ...] = ()
    # The first steps' answers, and those that differ: the participant's own and, for a subject, each authority's.
    answers: tuple[Answered, ...] = ()
    agreement: dict[str, Agreement] = {}
    counts: Counts = Counts()
    # The same by type and op, where blocks were the input or the output.
    by_op: tuple[OpCount, ...] = ()
    seconds: float = 0.0
    source: str = ""
    recipe: str = ""
    # The input's annotated bytes, short ones whole, long ones by their header.
    input_hexdump: tuple[HexLine, ...] = ()
    expected: dict[str, str] = {}
    spec: str = ""
    note: str = ""
    covers: tuple[str, ...] = ()
    repeat: str = ""
    # What was not put to the participant, or not compared, and why, whatever the verdict.
    not_asked: tuple[str, ...] = ()
    # The ops of which nothing was compared: they cannot show whether a known divergence of values is gone.
    uncompared: tuple[str, ...] = ()
    # The ops of which nothing could be asked (no authority said which tensors there are), or not all, for want of time: they cannot
    # show whether any known divergence is gone.
    undecided: tuple[str, ...] = ()
    # The known divergences' reasons, for verdict "known".
    known: tuple[str, ...] = ()


class KnownProblem(msgspec.Struct, frozen=True, tag="known-problem", tag_field="event", kw_only=True):
    """An entry of a divergences file that no longer holds, or gives no reason. ``edit`` is the change that mends it."""

    subject: str
    kind: Literal["stale", "unmatched", "unexplained"]
    pattern: str
    signature: str
    file: str
    edit: str

    @property
    def is_broken(self) -> bool:
        """Whether the file itself is at fault, by which nothing can be judged: all others are counted as stale."""
        return self.kind == "unmatched"

    @property
    def says(self) -> str:
        """What is the matter, to follow the pattern."""
        return {"stale": "no longer happens", "unmatched": "matches no case", "unexplained": "gives no reason"}[self.kind]


class RunFinished(msgspec.Struct, frozen=True, tag="run-finished", tag_field="event", kw_only=True):
    """The closing event. ``verdicts[who][verdict]`` counts cases; ``counts[who]`` what was compared."""

    exit_code: int
    seconds: float
    verdicts: dict[str, dict[str, int]]
    counts: dict[str, Counts]
    # Why the run ended before all cases were done ("interrupted"), empty otherwise.
    ended_early: str = ""


Event = RunStarted | CaseResult | KnownProblem | RunFinished


class EventLog:
    """Writes events to a file, each line flushed at once, so that a killed run keeps what it found."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink

    def write(self, event: Event) -> None:
        """Append one event. Raises ConfigurationError where the file takes no more."""
        rest = memoryview(msgspec.json.encode(event) + b"\n")
        try:
            while rest:  # a file without a buffer, on a disk that is nearly full, takes a part
                rest = rest[self._sink.write(rest) :]
            self._sink.flush()
        except OSError as problem:
            where = str(getattr(self._sink, "name", ""))
            raise ConfigurationError(
                f"cannot write the event stream: {problem.strerror}", where=where, hint="make room, or name another folder"
            ) from problem


def read_events(path: Path) -> Iterator[Event]:
    """Give the events of a stream in order; a last line that was cut in the middle of writing is left out.

    Raises ConfigurationError for a file that cannot be read, for a whole line that is no event, and for a cut one after the end.
    """
    try:
        data = read_regular(path)
    except OSError as problem:
        said = problem.strerror or str(problem)
        hint = "give the events.ndjson that `gguf-conformance run` wrote, or its folder"
        raise ConfigurationError(f"cannot read the event stream: {said}", where=str(path), hint=hint) from problem
    *whole, cut = data.split(b"\n")
    decoder = msgspec.json.Decoder(Event)
    event: Event | None = None
    for number, line in enumerate(whole, 1):
        try:
            event = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise ConfigurationError(
                f"not an event: {problem}",
                where=f"{path}:{number}",
                hint="reports are made from the events.ndjson that `gguf-conformance run` writes",
            ) from problem
        yield event
    if cut and isinstance(event, RunFinished):
        hint = "give one run's events at a time"
        raise ConfigurationError(
            "the event stream goes on after its run-finished event", where=f"{path}:{len(whole) + 1}", hint=hint
        )
