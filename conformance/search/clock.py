"""What a search has done and how long it took, and whether that is enough."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# Of a search by time, so much may go into making finds small while there is more to find.
_SHRINKING_SHARE = 0.5
# When its time is over, what is still to be made small may take this share of it again.
_OVERTIME = 0.25


class Enough(BaseException):
    """Raised out of a draw when the search is over."""


class Clock:
    """Counts draws, and the seconds of searching and of shrinking."""

    def __init__(self, seconds: float | None, examples: int | None) -> None:
        self.limit = seconds
        self.most = examples
        self.examples = 0
        self.shrinking = 0.0
        self._started = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self._started

    @property
    def over(self) -> bool:
        """Whether there is to be no further draw. The first one always is."""
        if not self.examples:
            return False
        too_many = self.most is not None and self.examples >= self.most
        return too_many or (self.limit is not None and self.elapsed >= self.limit)

    def tick(self) -> None:
        """Count a draw. Raises Enough where there is to be none."""
        if self.over:
            raise Enough
        self.examples += 1

    def left(self, planned: int) -> int:
        """Give how many of ``planned`` draws there may still be, at least one."""
        return planned if self.most is None else max(1, min(planned, self.most - self.examples))

    @property
    def may_shrink(self) -> bool:
        """Whether there is time to make a find small: always where draws are counted, a share of the time else."""
        if self.limit is None:
            return True
        if self.elapsed < self.limit:
            return self.shrinking <= _SHRINKING_SHARE * self.elapsed
        return self.elapsed < self.limit * (1 + _OVERTIME)

    @contextmanager
    def shrinks(self) -> Iterator[None]:
        """Count what happens within as shrinking."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.shrinking += time.monotonic() - began
