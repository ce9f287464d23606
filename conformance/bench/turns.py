"""Two functions that take turns: what disturbs a machine then disturbs both, and their ratio stands."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

Turn = Callable[[int], object]
"""Does the work of one round, whose number it is given."""

LEAST_ROUNDS = 5


class Times(NamedTuple):
    """Seconds of each round, by the clock on the wall."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ours over theirs, round by round."""
        return tuple(mine / other for mine, other in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        """The median of the ratios: one disturbed round does not move it."""
        return statistics.median(self.ratios)


def take_turns(ours: Turn, theirs: Turn, seconds: float, clock: Callable[[], float] = time.perf_counter) -> Times:
    """Run both, round after round, until ``seconds`` have passed, at least five times. Who begins changes each round."""
    mine: list[float] = []
    other: list[float] = []
    turns = [(ours, mine), (theirs, other)]
    end = clock() + seconds
    while clock() < end or len(mine) < LEAST_ROUNDS:
        number = len(mine)
        for work, times in turns if number % 2 else reversed(turns):
            start = clock()
            work(number)
            times.append(clock() - start)
    return Times(tuple(mine), tuple(other))
