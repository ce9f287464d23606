"""The lanes of a run, each driven by a thread of its own; the main thread only takes what they bring.

So no signal ever interrupts something that is half done: it is one more thing that is brought.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue

from conformance.cases.model import Case
from conformance.interrupts import Interrupted
from conformance.report.events import CaseResult, Participant
from conformance.run.execute import Lane

# Seconds that a lane has for what it does after its last case, and that all have to stop once their processes are killed.
_LAST_STEPS = 0.1
_STOP_WITHIN = 10.0

News = tuple[Participant, ...] | list[CaseResult] | BaseException | None


class Crew:
    """Lanes at work. ``interrupt`` may be called from a signal handler: SimpleQueue alone can be put to from there."""

    def __init__(self) -> None:
        self.lanes: Sequence[Lane] = ()
        self._news: SimpleQueue[News] = SimpleQueue()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def interrupt(self, interrupted: Interrupted) -> None:
        """Make whoever waits for what the lanes bring raise ``interrupted``."""
        self._news.put(interrupted)

    def describe(self) -> tuple[Participant, ...]:
        """Start everybody once, so that a subject that cannot start ends the run before a case is asked.

        Raises ConfigurationError, Interrupted.
        """
        self._start(lambda: self._news.put(tuple(member.describe() for member in self.lanes[0].members)))
        news = self._take()
        assert isinstance(news, tuple)  # noqa: S101 - nothing else is under way
        return news

    def work(self, cases: deque[Case]) -> Iterator[CaseResult]:
        """Share ``cases`` out and give the results as they come. Raises what a lane raised, and Interrupted."""
        for lane in self.lanes:
            self._start(lambda lane=lane: self._drive(lane, cases))  # type: ignore[misc] # mypy infers no type of a default
        open_lanes = len(self.lanes)
        while open_lanes:
            news = self._take()
            if isinstance(news, list):
                yield from news
            else:
                open_lanes -= 1

    def close(self) -> None:
        """End all processes: in good order where no case is under way, by a kill where one is."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_LAST_STEPS)
        until = time.monotonic() + _STOP_WITHIN
        while any(thread.is_alive() for thread in self._threads) and time.monotonic() < until:
            for lane in self.lanes:
                lane.kill()  # again: a process may just have been starting
            time.sleep(0.01)
        for lane in self.lanes:
            lane.close()

    def _take(self) -> News:
        news = self._news.get()
        if isinstance(news, BaseException):
            raise news
        return news

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._carry, args=(work,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _carry(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001 - carried to the main thread, which raises it
            self._news.put(problem)

    def _drive(self, lane: Lane, cases: deque[Case]) -> None:
        """Work through cases until there are no more."""
        while not self._stop.is_set() and (case := _next(cases)) is not None:
            self._news.put(lane.run(case))
        self._news.put(None)


def _next(cases: deque[Case]) -> Case | None:
    try:
        return cases.popleft()
    except IndexError:
        return None
