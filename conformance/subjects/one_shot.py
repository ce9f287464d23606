"""A subject that is started anew for each request: ``adapter OP FILE``, the answer in the exit status and on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from conformance.outcomes import Crash, Outcome, Protocol, Unsupported
from conformance.subjects.answers import HEADER_OPS, as_outcome, excerpt, read_identity, read_ok, read_reject
from conformance.subjects.child import Child
from conformance.subjects.manifest import Manifest
from conformance.subjects.protocol import HeaderRequest, Identity, LoadRequest, Rejected, Request
from conformance.subjects.schema import LineCheck
from conformance.subjects.transport import Answer, Bounds, begin, fault, hello_error, op_of
from conformance.subjects.watch import Watch

_OK, _REJECT = "exit 0", "exit 1"
_REJECTS = msgspec.json.Decoder(Rejected)


class FinishedRun(NamedTuple):
    """One finished process: ``broken`` if it did anything but exit with 0 or 1 within its limits."""

    broken: Outcome | None
    how: str | None
    output: bytes
    stderr_tail: str
    elapsed: float
    resident_peak: int | None


class OneShot:
    """The processes of one subject, each for one request. ``adapter hello`` prints the identity."""

    def __init__(self, manifest: Manifest, check: LineCheck | None) -> None:
        self._manifest = manifest
        self._check = check
        self._child: Child | None = None
        self._posed: Sequence[Request] = ()

    def hello(self) -> Identity:
        """Ask who it is. Raises ConfigurationError if that is not told, or is of another protocol version."""
        limits = self._manifest.limits
        run = self._run(["hello"], Bounds(limits.hello, limits.memory))
        answer = run.broken or self._unanswered(run, "hello") or read_identity(run.output, run.output)
        if isinstance(answer, Identity):
            return answer
        raise hello_error(self._manifest, (*self._manifest.command, "hello"), answer, run.stderr_tail)

    def exchange(self, request: Request, bounds: Bounds) -> Answer:
        """Run the subject for one file and give what came of it."""
        op = op_of(request)
        if op not in HEADER_OPS:
            return Answer(Unsupported(f"a one-shot subject does header and load, not {op}"))
        run = self._run([op, cast("HeaderRequest | LoadRequest", request).path], bounds)
        outcome = run.broken or self._unanswered(run, op) or as_outcome(read_ok(run.output, op, run.output))
        return Answer(outcome, run.stderr_tail, run.elapsed, run.resident_peak)

    def pose(self, requests: Sequence[Request]) -> None:
        """Keep the requests for ``collect``: there is a process for each."""
        self._posed = requests

    def collect(self, bounds: Bounds) -> list[Answer]:
        """Run the subject for each request that was posed."""
        return [self.exchange(request, bounds) for request in self._posed]

    def kill(self) -> None:
        """Kill the process that runs, from any thread; the one that waits for it sees it die."""
        child = self._child
        if child is not None:
            child.strike()

    def drop(self) -> None:
        """Do nothing: each request has a new process anyway."""

    def close(self) -> None:
        """Do nothing: no process outlives its request."""

    def _run(self, words: Sequence[str], bounds: Bounds) -> FinishedRun:
        child = self._child = begin(self._manifest, (*self._manifest.command, *words))
        try:
            child.close_stdin()
            watch = Watch(child, bounds.time, bounds.memory)
            broken = watch.until(child.stopped) or (None if child.how in (_OK, _REJECT) and not child.full else fault(child))
            return FinishedRun(broken, child.how, child.output, child.stderr_tail, watch.elapsed, watch.peak)
        finally:
            self._child = None
            child.kill()

    def _unanswered(self, run: FinishedRun, op: str) -> Outcome | None:
        """Give what the process did instead of an ``ok``, or None if it exited with 0 and gave one."""
        if run.how == _REJECT:
            return _reject(run)
        if not run.output.strip():
            return Protocol("exit 0, but nothing on stdout; the answer's JSON is due there")
        envelope = b'{"seq":0,"ok":' + run.output + b"}"
        problem = self._check.response(envelope, op) if self._check is not None else None
        return Protocol(f"schema: {problem}", excerpt(run.output)) if problem else None


def _reject(run: FinishedRun) -> Outcome:
    """Read a refusal. Exit status 1 without the JSON of one is a death: many runtimes exit so on an error of their own."""
    try:
        return read_reject(_REJECTS.decode(run.output), run.output)
    except (ValueError, RecursionError):
        return Crash(_REJECT, run.stderr_tail)
