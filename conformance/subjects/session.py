"""A subject that stays: one process, one hello, then a line out and a line back for each request."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from conformance.outcomes import Crash, Memory, Outcome, Protocol, Timeout
from conformance.subjects.answers import excerpt, read_answer, read_hello
from conformance.subjects.child import Child
from conformance.subjects.manifest import Manifest
from conformance.subjects.protocol import PROTOCOL, Hello, Identity, Request
from conformance.subjects.schema import LineCheck
from conformance.subjects.transport import Answer, Bounds, begin, fault, hello_error, op_of
from conformance.subjects.watch import Watch

MAX_RESTARTS = 3
_BREAKS = (Crash, Timeout, Memory, Protocol)  # after these the process is not used again


class Session:
    """The process of one subject, restarted when it broke. Requests, hello included, are numbered over all its processes."""

    def __init__(self, manifest: Manifest, check: LineCheck | None) -> None:
        self._manifest = manifest
        self._numbers = itertools.count(1)
        self._check = check
        self._child: Child | None = None
        self._failed_restarts = 0
        self._last = "hello"
        self._posed: list[Request] = []
        self._unfit: Answer | None = None

    def hello(self) -> Identity:
        """Start the process and greet it. Raises ConfigurationError if it does not answer as a subject of this protocol does."""
        child = begin(self._manifest, self._manifest.command)
        self._child = child
        answer = self._greet(child)
        if isinstance(answer, Identity):
            return answer
        tail = child.stderr_tail
        self._discard()
        raise hello_error(self._manifest, self._manifest.command, answer, tail)

    def exchange(self, request: Request, bounds: Bounds) -> Answer:
        """Send one request under the next number and give what came of it.

        Raises ConfigurationError if the subject can no longer be started.
        """
        try:
            answer = self._exchange(request, bounds)
        except BaseException:
            self._discard()  # an answer may still be on its way
            raise
        if isinstance(answer.outcome, _BREAKS):
            self._discard()
        return answer

    def pose(self, requests: Sequence[Request]) -> None:
        """Send several requests at once, each under the next number, and wait for nothing; ``collect`` gives the answers.

        Raises ConfigurationError if the subject can no longer be started.
        """
        child, failure = (self._child, None) if self._child is not None else self._restart()
        failure = failure or self._unasked(child)
        if failure is not None:
            self._posed, self._unfit = [], Answer(failure, child.stderr_tail)
            return
        child.forget_stderr()
        self._posed = [msgspec.structs.replace(request, seq=next(self._numbers)) for request in requests]
        child.send(b"".join(msgspec.json.encode(request) + b"\n" for request in self._posed))

    def collect(self, bounds: Bounds) -> list[Answer]:
        """Give the answers to what was posed, in order.

        They are fewer where one of them broke the process, and the last then says how: what was posed after it was not asked.
        """
        try:
            answers = list(self._collected(bounds))
        except BaseException:
            self._discard()
            raise
        if isinstance(answers[-1].outcome, _BREAKS):
            self._discard()
        return answers

    def kill(self) -> None:
        """Kill the process, from any thread; the one that waits for its answer sees it die."""
        child = self._child
        if child is not None:
            child.strike()

    def drop(self) -> None:
        """End the process at once, whatever it does: the next request goes to a new one."""
        self._discard()

    def close(self) -> None:
        """End the process in good order if it will, and its descendants in any case."""
        if self._child is not None:
            self._child.end()
            self._child = None

    def _collected(self, bounds: Bounds) -> Iterator[Answer]:
        if self._unfit is not None:
            answer, self._unfit = self._unfit, None
            yield answer
            return
        child = self._child
        assert child is not None  # noqa: S101 - who collects has posed
        for request in self._posed:
            self._last = f"{op_of(request)}, seq {request.seq}"
            watch = Watch(child, bounds.time, bounds.memory)
            answer = self._answer(child, request, watch, self._next_line(child, watch))
            yield answer
            if isinstance(answer.outcome, _BREAKS):
                return

    def _exchange(self, request: Request, bounds: Bounds) -> Answer:
        child = self._child
        if child is None:
            child, failure = self._restart()
            if failure is not None:
                return Answer(failure, child.stderr_tail)
        if (broken := self._unasked(child)) is not None:
            return Answer(broken, child.stderr_tail)
        child.forget_stderr()
        numbered = msgspec.structs.replace(request, seq=next(self._numbers))
        self._last = f"{op_of(numbered)}, seq {numbered.seq}"
        return self._converse(child, numbered, bounds)

    def _converse(self, child: Child, request: Request, bounds: Bounds) -> Answer:
        watch = Watch(child, bounds.time, bounds.memory)
        return self._answer(child, request, watch, self._ask_line(child, request, watch))

    def _answer(self, child: Child, request: Request, watch: Watch, line: bytes | Outcome) -> Answer:
        elapsed = watch.elapsed
        if isinstance(line, bytes):
            outcome = self._broken_schema(line, op_of(request)) or read_answer(line, op_of(request), request.seq)
        else:
            outcome = line
        return Answer(outcome, child.stderr_tail, elapsed, watch.peak)

    def _ask_line(self, child: Child, request: Request, watch: Watch) -> bytes | Outcome:
        line = msgspec.json.encode(request)
        if self._check is not None and (problem := self._check.request(line)):
            return Protocol(f"the harness's own request breaks the schema: {problem}", excerpt(line))
        child.send(line + b"\n")
        answer = self._next_line(child, watch)
        if isinstance(answer, bytes) and child.unsent:
            return Protocol("answered before it had read the whole request", excerpt(answer))
        return answer

    def _next_line(self, child: Child, watch: Watch) -> bytes | Outcome:
        limit = watch.until(lambda: child.has_line() or child.stopped())
        if limit is not None:
            return limit
        return child.take_line() if child.has_line() else fault(child)

    def _broken_schema(self, line: bytes, op: str) -> Protocol | None:
        problem = self._check.response(line, op) if self._check is not None else None
        return Protocol(f"schema: {problem}", excerpt(line)) if problem else None

    def _greet(self, child: Child) -> Identity | Outcome:
        hello = Hello(seq=next(self._numbers), protocol=PROTOCOL)
        watch = Watch(child, self._manifest.limits.hello, self._manifest.limits.memory)
        line = self._ask_line(child, hello, watch)
        if not isinstance(line, bytes):
            return line
        self._last = "hello"
        return self._broken_schema(line, "hello") or read_hello(line, hello.seq)

    def _restart(self) -> tuple[Child, Outcome | None]:
        """Start a fresh process; it was greeted before, so a failure now belongs to the request that needs it."""
        child = begin(self._manifest, self._manifest.command)
        self._child = child
        answer = self._greet(child)
        if isinstance(answer, Identity):
            self._failed_restarts = 0
            return child, None
        self._failed_restarts += 1
        if self._failed_restarts >= MAX_RESTARTS:
            raise hello_error(self._manifest, self._manifest.command, answer, child.stderr_tail, self._failed_restarts)
        return child, answer

    def _unasked(self, child: Child) -> Crash | Protocol | None:
        """Find what the process did since its last answer: it may have ended, or said something that nobody asked for."""
        child.pump(0)
        if child.spoke:
            return Protocol(f"unsolicited output after its answer to {self._last}", excerpt(child.output))
        return Crash(child.how, child.stderr_tail) if child.how is not None else None

    def _discard(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None
