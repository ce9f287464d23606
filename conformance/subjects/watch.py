"""Waits for a process under a time limit and a memory limit, in the caller's own thread."""

from __future__ import annotations

import time
from collections.abc import Callable

from conformance.outcomes import Memory, Timeout
from conformance.subjects.child import Child
from conformance.subjects.memory import resident_size

FIRST_SAMPLE = 0.03  # seconds: quicker requests are not measured at all
SAMPLE_EVERY = 0.05
SAMPLE_SHARE = 10  # at most a tenth of the time goes into measuring


class Watch:
    """The limits of one wait: ``time_limit`` in seconds from now, ``memory_limit`` in resident bytes of the process tree."""

    def __init__(self, child: Child, time_limit: float, memory_limit: int) -> None:
        self._child = child
        self._time_limit = time_limit
        self._memory_limit = memory_limit
        self._started = time.monotonic()
        self._next_sample = self._started + FIRST_SAMPLE
        self.peak: int | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the watch began."""
        return time.monotonic() - self._started

    def until(self, done: Callable[[], bool]) -> Timeout | Memory | None:
        """Pump the pipes until ``done``; give the limit that was passed first, if any."""
        while not done():
            self._child.pump(self._pause())
            if done():
                break
            if self.elapsed >= self._time_limit:
                return Timeout(self._time_limit)
            if (passed := self._sample()) is not None:
                return passed
        return None

    def _pause(self) -> float:
        now = time.monotonic()
        return max(0.0, min(self._next_sample, self._started + self._time_limit) - now)

    def _sample(self) -> Memory | None:
        before = time.monotonic()
        if before < self._next_sample:
            return None
        resident = resident_size(self._child.pid)
        self.peak = max(self.peak or 0, resident)
        cost = time.monotonic() - before
        self._next_sample = before + max(SAMPLE_EVERY, SAMPLE_SHARE * cost)
        return Memory(resident, self._memory_limit) if resident > self._memory_limit else None
