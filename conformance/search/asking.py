"""One side of a search: many requests to one process, all answered, whatever the process does."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.outcomes import Crash, Memory, Outcome, Protocol, Timeout
from conformance.subjects.manifest import Manifest
from conformance.subjects.process import Subject
from conformance.subjects.protocol import Identity, Request, View

BREAKS = (Crash, Timeout, Memory, Protocol)
# Of one batch so many may run into the limit of time; the rest is not asked, or one batch would take minutes.
_MOST_TIMEOUTS = 3


class Side:
    """A subject that is asked many requests at a time; a context manager.

    ``deaths`` counts how often its process had to be started again.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.name = manifest.name
        self.deaths = 0
        self._subject = Subject(manifest)
        self._posed: Sequence[Request] = ()

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._subject.close()

    @property
    def identity(self) -> Identity:
        """What it said in its hello; starts it the first time."""
        return self._subject.identity

    def view(self, op: str) -> View:
        """Give what its interface shows of the answers to ``op``."""
        return getattr(self.identity.ops, op) or View() if op in {"header", "load", "tensor"} else View()

    def does(self, op: str, type_name: str | None = None) -> bool:
        """Tell whether its hello declares the op, and the type (``Q8_0``, ``Q8_0:ref``) where there is one."""
        declared = getattr(self.identity.ops, op)
        return declared is not None if type_name is None else type_name in declared

    def pose(self, requests: Sequence[Request]) -> None:
        """Send requests and wait for nothing."""
        self._posed = requests
        if requests:
            self._subject.pose(requests)

    def collect(self, time: float | None = None) -> list[Outcome | None]:
        """Give one outcome for each request that was posed; what a death left unanswered is asked again of a new process.

        None for a request that was not asked, the process having let the time run out for several before it. ``time`` (seconds a
        request) is the manifest's, or less.
        """
        limit = self.manifest.limits.time
        outcomes: list[Outcome | None] = []
        while len(outcomes) < len(self._posed):
            if sum(isinstance(outcome, Timeout) for outcome in outcomes) >= _MOST_TIMEOUTS:
                return [*outcomes, *[None] * (len(self._posed) - len(outcomes))]
            if outcomes:
                self.deaths += 1
                self._subject.pose(self._posed[len(outcomes) :])
            outcomes += [answer.outcome for answer in self._subject.collect(time=limit if time is None else min(time, limit))]
        return outcomes

    def answer(self, time: float | None = None) -> Outcome:
        """Give the outcome of the one request that was posed; ``time`` as of ``collect``."""
        (outcome,) = self.collect(time)
        assert outcome is not None  # noqa: S101 - only what follows others is left out
        return outcome

    def restart(self) -> None:
        """End the process: the next request is the first of a new one."""
        self._subject.drop()
