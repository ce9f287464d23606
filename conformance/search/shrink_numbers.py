"""From a request on numbers, or a sequence of them, that shows a divergence to the simplest one that still does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from conformance.search.probe import NumberProbe
from conformance.search.shrink_steps import AT_ONCE, Descent, Flags, Shows

BUDGET = 60


def shrink(probe: NumberProbe, shows: Shows, budget: int = BUDGET, at_once: int = AT_ONCE) -> NumberProbe:
    """Give the simplest request found that shows the divergence, within about ``budget`` calls of ``shows``.

    Each call is of up to ``at_once`` rows: few where ``shows`` takes long over a row, such as one that ends the process.
    It is asked once more by itself at the end. Where ``probe`` does not show it (any more), ``probe`` itself is given.
    """
    return Descent(shows, budget, at_once).simplest(probe)


def shrink_sequence(
    probes: Sequence[NumberProbe], shows: Callable[[Sequence[NumberProbe]], bool], budget: int = BUDGET
) -> list[NumberProbe]:
    """Give the shortest and simplest sequence found whose last request shows the divergence, within about ``budget`` calls.

    ``shows`` puts a sequence to a fresh process and tells whether the last request shows it. Requests before the last are dropped,
    then each one is made simpler, in exchanges of its own: one row rarely stands for itself here. Where ``probes`` do not show it
    (any more), they come back as they are.
    """
    left = list(probes)
    if not shows(left):
        return left
    spent = _drop_requests(left, shows, budget // 3)
    share = max(2, (budget - spent) // len(left))
    for number in range(len(left)):
        left[number] = _simpler_within(left, number, shows, share)
    return left


def _drop_requests(left: list[NumberProbe], shows: Callable[[Sequence[NumberProbe]], bool], budget: int) -> int:
    """Take from ``left`` what is not needed before the last, halves first; give the number of exchanges."""
    spent, size = 0, max(1, len(left) - 1)
    while size and spent < budget:
        start = 0
        while start < len(left) - 1 and spent < budget:
            shorter = left[:start] + left[min(start + size, len(left) - 1) :]
            spent += 1
            if shows(shorter):
                left[:] = shorter
            else:
                start += size
        size //= 2
    return spent


def _simpler_within(
    probes: Sequence[NumberProbe], number: int, shows: Callable[[Sequence[NumberProbe]], bool], budget: int
) -> NumberProbe:
    def shows_with(probe: NumberProbe) -> Flags:
        return np.array([shows([*probes[:number], probe, *probes[number + 1 :]])])

    return Descent(shows_with, budget, at_once=1).simplest(probes[number])
