"""One subject as the runner sees it: ask, and get an outcome, whatever the subject does."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from conformance.subjects.manifest import Manifest
from conformance.subjects.one_shot import OneShot
from conformance.subjects.protocol import Identity, Request
from conformance.subjects.schema import LineCheck
from conformance.subjects.session import Session
from conformance.subjects.transport import Answer, Bounds

__all__ = ["Answer", "Subject"]


class KilledError(Exception):
    """The subject was killed for good, by another thread than the one that asks it."""


class Subject:
    """A subject's process, used from one thread, as a context manager.

    What kills or breaks the process is the outcome of the one request that it was about; the next request gets a
    fresh process. ``validate`` checks each line in both directions against the JSON Schema.
    """

    def __init__(self, manifest: Manifest, *, validate: bool = False) -> None:
        self.manifest = manifest
        self._identity: Identity | None = None
        self._killed = False
        check = LineCheck() if validate else None
        self._transport = OneShot(manifest, check) if manifest.one_shot else Session(manifest, check)

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def start(self) -> Identity:
        """Start the process and take its hello, once; later calls give the same identity.

        Raises ConfigurationError if the command cannot be started or gives no proper hello, KilledError after ``kill``.
        """
        if self._killed:
            raise KilledError(self.manifest.name)
        if self._identity is None:
            self._identity = self._transport.hello()
        return self._identity

    @property
    def identity(self) -> Identity:
        """The answer to hello; starts the process if need be."""
        return self.start()

    def ask(self, request: Request, *, time: float | None = None, memory: int | None = None) -> Answer:
        """Send ``request`` and give what came of it; its ``seq`` is replaced by the next number, counted over all processes.

        ``time`` (seconds) and ``memory`` (resident bytes of the process tree) default to the manifest's limits. Raises
        ConfigurationError if the subject never gave a proper hello, or failed to in three successive restarts, and KilledError
        after ``kill``.
        """
        self.start()
        return self._transport.exchange(request, self._bounds(time, memory))

    def pose(self, requests: Sequence[Request]) -> None:
        """Send several requests at once and wait for nothing; ``collect``, which must follow, gives the answers.

        Raises as ``ask`` does.
        """
        self.start()
        self._transport.pose(requests)

    def collect(self, *, time: float | None = None, memory: int | None = None) -> list[Answer]:
        """Give the answers to what was posed, in order; ``time`` and ``memory`` are each request's, as in ``ask``.

        They are fewer where one of them broke the process, and the last then says how: what was posed after it was not asked.
        """
        return self._transport.collect(self._bounds(time, memory))

    def _bounds(self, time: float | None, memory: int | None) -> Bounds:
        limits = self.manifest.limits
        return Bounds(limits.time if time is None else time, limits.memory if memory is None else memory)

    def kill(self) -> None:
        """Kill the process, from any thread; what is asked comes to nothing, and to ask again raises KilledError.

        A process that is just being started escapes: call this until the thread that asks has stopped, then ``close``.
        """
        self._killed = True
        self._transport.kill()

    def drop(self) -> None:
        """End the process at once: the next request is the first of a new one."""
        self._transport.drop()

    def close(self) -> None:
        """End the process and all its descendants. A later ``ask`` starts it again."""
        self._transport.close()
