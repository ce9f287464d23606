from __future__ import annotations

from conformance.bench.turns import LEAST_ROUNDS, Times, take_turns


class Clock:
    """Goes on when work is done, never by itself."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[tuple[str, int]] = []

    def __call__(self) -> float:
        return self.now

    def work(self, who: str, seconds: float, number: int) -> None:
        self.done.append((who, number))
        self.now += seconds


def test_both_do_each_round_and_who_begins_changes() -> None:
    clock = Clock()
    take_turns(lambda n: clock.work("a", 1, n), lambda n: clock.work("b", 2, n), 0, clock)
    assert clock.done[:4] == [("b", 0), ("a", 0), ("a", 1), ("b", 1)]
    assert [number for _, number in clock.done] == [n for n in range(LEAST_ROUNDS) for _ in range(2)]


def test_it_ends_with_the_round_in_which_the_time_is_over() -> None:
    clock = Clock()
    times = take_turns(lambda n: clock.work("a", 1, n), lambda n: clock.work("b", 2, n), 20.5, clock)
    assert times == Times((1.0,) * 7, (2.0,) * 7)


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    times = Times((1.0, 30.0, 2.0), (2.0, 3.0, 2.0))
    assert times.ratios == (0.5, 10.0, 1.0)
    assert times.ratio == 1.0
