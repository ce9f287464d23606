"""Whatever a subject says in a line: an outcome, never an exception, in each way that a line is read; and a whole run with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from conformance.errors import GgufConformanceError
from conformance.outcomes import Outcome, Protocol
from conformance.search.harness import small
from conformance.search.harness.broken import require
from conformance.search.harness.oracles.refusals import no_traceback, require_refusal
from conformance.search.harness.oracles.streams import require_reports, require_sound_run
from conformance.search.harness.stub import IDS, Setup, identity, replaced, run_small, sound, write_golden
from conformance.subjects.answers import read_answer, read_hello
from conformance.subjects.manifest import Manifest
from conformance.subjects.one_shot import FinishedRun, OneShot
from conformance.subjects.protocol import HeaderRequest, Identity
from conformance.subjects.schema import LineCheck
from conformance.subjects.transport import Bounds

OPS = ("header", "load", "tensor", "dequantize")
_CHECK = LineCheck()


class Said(NamedTuple):
    """A line, ``@`` in it for the request's number; the ``request`` that it answers (0: hello), and what goes into ``out``.

    ``hello`` is a sound one that comes before it.
    """

    line: bytes
    request: int
    output: bytes | None = None
    hello: bytes = small.HELLO


def check(said: Said, folder: Path) -> None:
    """Read the line in each way, then run the small cases with it as one of the answers."""
    line = said.line.replace(b"@", b"1")
    for op in OPS:
        with no_traceback(f"reading an answer to {op}"):
            outcome = read_answer(line, op, 1)
            _CHECK.response(line, op)
        require(isinstance(outcome, Outcome), f"an answer to {op} is read as {outcome!r}")
    with no_traceback("reading a hello"):
        told = read_hello(line, 1)
    require(isinstance(told, Identity | Protocol), f"a hello is read as {told!r}")
    _once(line, folder)
    _run(said, folder)


class _Ended(OneShot):
    """One-shot use whose process has ended with status ``how`` and printed ``output``."""

    def __init__(self, manifest: Manifest, how: str, output: bytes, check: LineCheck | None) -> None:
        super().__init__(manifest, check)
        self._ended = FinishedRun(None, how, output, "", 0.0, None)

    def _run(self, words: Sequence[str], bounds: Bounds) -> FinishedRun:
        del words, bounds
        return self._ended


def _once(line: bytes, folder: Path) -> None:
    """Let a one-shot subject print the line, and exit with 0 or with 1."""
    source = folder / "adapter.yaml"
    manifest = Manifest(name="once", language="sh", command=("none",), folder=folder, source=source, built=folder, one_shot=True)
    for how in ("exit 0", "exit 1"):
        for schema in (None, _CHECK):
            subject = _Ended(manifest, how, line, schema)
            with no_traceback(f"reading what a one-shot subject printed ({how})"):
                answer = subject.exchange(HeaderRequest(seq=1, path="x"), Bounds(1, 1))
                require(isinstance(answer.outcome, Outcome), f"one-shot, {how}: {answer.outcome!r}")
                try:
                    subject.hello()
                except GgufConformanceError as problem:
                    require_refusal(problem, 3, manifest.source)


def _run(said: Said, folder: Path) -> None:
    hello = said.line if said.request == 0 else said.hello
    told = identity(hello)
    if not isinstance(told, Identity):
        return
    edit = replaced([said.request], said.line, said.output) if said.request else sound
    with no_traceback("running with this answer"):
        ran = run_small(write_golden(folder), folder, edit, Setup(hello=hello))
    require_sound_run(ran.stream, ran.code, IDS, ["small"])
    require_reports(folder / "events.ndjson", ran.code)
