"""Shrinking of requests on numbers, held to predicates whose simplest input is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from conformance.ggml_types import BY_NAME
from conformance.search.number_plans import NumberPlan
from conformance.search.probe import NumberProbe
from conformance.search.row_families import RowRecipe
from conformance.search.shrink_numbers import BUDGET, shrink, shrink_sequence
from conformance.search.simpler import complexity

Flags = npt.NDArray[np.bool_]


class Counted:
    """A predicate on requests that counts how often it is asked, and refuses requests that no subject could answer."""

    def __init__(self, shows: Callable[[NumberProbe], Flags]) -> None:
        self.shows = shows
        self.calls = 0

    def __call__(self, probe: NumberProbe) -> Flags:
        self.calls += 1
        kind = BY_NAME[probe.type]
        assert probe.cols % kind.block == 0
        assert probe.rows is None or probe.rows.shape == (probe.n, probe.cols)
        assert probe.blocks is None or probe.blocks.shape == (probe.n, kind.row_bytes(probe.cols))
        assert probe.imatrix is None or probe.imatrix.shape == (probe.cols,)
        assert probe.x is None or probe.x.shape in ((1, probe.cols), (probe.n, probe.cols))
        flags = self.shows(probe)
        assert flags.shape == (probe.n,)
        return flags


def quantized(type_name: str = "Q8_0", family: str = "straddle", cols: int = 256, rows: int = 500, **given: object) -> NumberProbe:
    plan = NumberPlan(op="quantize", type=type_name, cols=cols, rows=rows, seed=7, row=RowRecipe(family), **given)  # type: ignore[arg-type]
    return plan.expand()


def blocks(type_name: str = "Q8_0", cols: int = 256, rows: int = 500) -> NumberProbe:
    return NumberPlan(op="dequantize", type=type_name, cols=cols, rows=rows, seed=7, blocks="bytes").expand()


def shrunk(probe: NumberProbe, shows: Callable[[NumberProbe], Flags], budget: int = BUDGET) -> NumberProbe:
    counted = Counted(shows)
    small = shrink(probe, counted, budget)
    assert counted.calls <= budget + 3
    assert shows(small).any()
    assert complexity(small) <= complexity(probe)
    return small


def some_tie(probe: NumberProbe) -> Flags:
    return (np.abs(probe.rows) % 1 == 0.5).any(axis=1)


def test_a_tie_alone_is_left_of_a_row() -> None:
    small = shrunk(quantized("Q8_0", "ties"), some_tie)
    assert (small.n, small.cols) == (1, 32)
    assert small.rows[0].tolist() == [0.5] + [0.0] * 31


def test_a_place_that_matters_keeps_it() -> None:
    small = shrunk(quantized("Q4_K", "bell", cols=512), lambda probe: np.abs(probe.rows[:, -3]) > 0.3)
    assert small.cols == 256
    assert np.flatnonzero(small.rows[0]).tolist() == [253]
    assert small.rows[0, 253] == 1.0


def test_two_elements_that_depend_on_each_other() -> None:
    """Neither can be zero, nor both equal: what is left has no bit to spare."""
    small = shrunk(quantized("Q8_0", "bell"), lambda probe: (probe.rows[:, 1] > probe.rows[:, 0]) & (probe.rows[:, 0] > 0))
    assert sorted(small.rows[0, :2].tolist()) == [0.5, 1.0] or small.rows[0, :2].tolist() == [1.0, 2.0]
    assert not small.rows[0, 2:].any()


def test_two_elements_with_a_ratio_get_the_shortest_numbers_that_have_it() -> None:
    """Five to three: no change of one of them alone keeps that."""
    rows = np.zeros((1, 32), dtype=np.float32)
    rows[0, [3, 20]] = np.float32(0.37109375) * np.array((5, 3), dtype=np.float32)
    probe = NumberProbe("quantize", "Q8_0", 32, rows=rows)

    def ratio(probe: NumberProbe) -> Flags:
        ordered = np.sort(np.abs(probe.rows.astype(np.float64)), axis=1)
        return (ordered[:, -1] * 3 == ordered[:, -2] * 5) & (ordered[:, -1] > 0)

    assert shrunk(probe, ratio).rows[0, :3].tolist() == [1.25, 0.75, 0]


def test_no_block_of_a_reference_function_that_keeps_old_codes_loses_its_numbers() -> None:
    """In a block of zeros IQ4_NL's repeats what was there before, so that any two libraries differ in it."""
    small = shrunk(quantized("IQ4_NL", "bell", cols=64, rows=9, variant="ref"), lambda probe: np.full(probe.n, probe.cols == 64))
    assert [block[block != 0].tolist() for block in small.rows.reshape(2, 32)] == [[1.0], [1.0]]


def test_many_elements_that_must_not_be_zero_become_one() -> None:
    small = shrunk(quantized("Q8_0", "bell", cols=32), lambda probe: (probe.rows != 0).sum(axis=1) >= 20)
    assert (small.rows != 0).sum() == 20
    assert set(small.rows[small.rows != 0].tolist()) == {1.0}


def test_a_nan_becomes_the_plain_one_and_stays_where_no_number_will_do() -> None:
    small = shrunk(quantized("Q4_0", "specials"), lambda probe: np.isnan(probe.rows).any(axis=1))
    assert small.rows.view(np.uint32)[0].tolist() == [0x7FC00000] + [0] * 31


def test_significand_bits_that_matter_stay() -> None:
    """More than 1 + 2^-10, which needs eleven bits behind the point at least or another exponent."""
    small = shrunk(quantized("Q8_0", "any"), lambda probe: ((probe.rows > 1 + 2**-10) & (probe.rows < 1 + 2**-8)).any(axis=1))
    value = float(small.rows[0, 0])
    assert value == 1 + 2**-9
    assert not small.rows[0, 1:].any()


def test_a_row_shorter_than_all_its_blocks_is_found_wherever_they_stand() -> None:
    def two_neighbours(probe: NumberProbe) -> Flags:
        sums = np.abs(probe.rows).reshape(probe.n, -1, 32).max(axis=2) > 0
        return (sums[:, 1:] & sums[:, :-1]).any(axis=1)

    small = shrunk(quantized("Q8_0", "bell", cols=256), two_neighbours)
    assert small.cols == 64
    assert small.rows[small.rows != 0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("imatrix", ["positive", "some_zero"])
def test_an_imatrix_that_plays_no_part_goes(imatrix: str) -> None:
    small = shrunk(quantized("Q4_K", "ties", imatrix=imatrix), some_tie)
    assert small.imatrix is None
    assert small.rows[0].tolist() == [0.5] + [0.0] * 255


def test_of_a_type_that_needs_an_imatrix_it_becomes_ones() -> None:
    small = shrunk(quantized("IQ2_XXS", "ties", rows=8, imatrix="positive"), lambda probe: (np.abs(probe.rows) > 0).any(axis=1))
    assert small.imatrix.tolist() == [1.0] * 256
    assert small.rows[0].tolist() == [1.0] + [0.0] * 255


def test_an_imatrix_that_matters_gets_simple() -> None:
    def zero_weighted(probe: NumberProbe) -> Flags:
        flag = probe.imatrix is not None and bool((probe.imatrix == 0).any())
        return np.full(probe.n, flag) & (probe.rows != 0).any(axis=1)

    small = shrunk(quantized("Q4_0", "bell", cols=64, imatrix="some_zero"), zero_weighted)
    assert small.cols == 32
    assert set(small.imatrix.tolist()) <= {0.0, 1.0}
    assert small.rows[0].tolist() == [1.0] + [0.0] * 31


def test_a_byte_alone_is_left_of_a_row_of_blocks() -> None:
    def byte_three(probe: NumberProbe) -> Flags:
        return (probe.blocks.reshape(probe.n, -1, 34)[:, :, 3] == 0x7F).any(axis=1)

    small = shrunk(blocks("Q8_0"), byte_three)
    assert small.cols == 32
    assert small.blocks[0].tolist() == [0, 0, 0, 0x7F] + [0] * 30


def test_a_scale_becomes_one_and_a_byte_one_bit() -> None:
    def decoded(probe: NumberProbe) -> Flags:
        scale = np.ascontiguousarray(probe.blocks[:, :2]).view(np.float16)
        return (scale[:, 0] > 0.75) & (probe.blocks[:, 17] >= 64)

    small = shrunk(blocks("Q4_0", cols=32, rows=5000), decoded)
    assert small.blocks[0].tolist() == [0x00, 0x3C] + [0] * 15 + [0x40]


def test_both_sides_of_a_product_shrink() -> None:
    plan = NumberPlan(op="dot", type="Q8_0", cols=256, rows=200, seed=3, blocks="sane", row=RowRecipe("bell"))

    def shows(probe: NumberProbe) -> Flags:
        return (probe.blocks[:, 5] != 0) & (np.broadcast_to(probe.x, (probe.n, probe.cols)) < 0).any(axis=1)

    small = shrunk(plan.expand(), shows)
    assert small.cols == 32
    assert np.flatnonzero(small.blocks[0]).tolist() == [5]
    assert int(small.blocks[0, 5]).bit_count() == 1
    assert small.x.tolist() == [[-1.0] + [0.0] * 31]


def test_one_x_for_all_rows_goes_with_the_row() -> None:
    plan = NumberPlan(op="matvec", type="Q8_0", cols=64, rows=200, seed=3, blocks="sane", row=RowRecipe("bell"))
    small = shrunk(plan.expand(), lambda probe: (probe.blocks[:, 5] == 9) & (np.abs(probe.x) > 0).any())
    assert (small.n, small.cols, small.x.shape) == (1, 32, (1, 32))
    assert np.flatnonzero(small.blocks[0]).tolist() == [5]
    assert np.count_nonzero(small.x) <= 2


def test_what_needs_the_row_before_keeps_two() -> None:
    """A row that shows it only after a row with a negative first element."""

    def after_a_negative(probe: NumberProbe) -> Flags:
        negative = probe.rows[:, 0] < 0
        return np.concatenate([[False], negative[:-1] & ~negative[1:] & (probe.rows[1:, 0] > 0)])

    small = shrunk(quantized("Q8_0", "bell", cols=32), after_a_negative)
    assert small.n == 2
    assert small.rows[0, 0] < 0 < small.rows[1, 0]
    assert np.count_nonzero(small.rows) <= 8


def test_what_shows_among_others_only_is_not_believed() -> None:
    """Each shrunk row showed it in a request of many; alone only those with eight elements do."""

    def shows(probe: NumberProbe) -> Flags:
        return (probe.rows != 0).sum(axis=1) >= (8 if probe.n == 1 else 1)

    small = shrunk(quantized("Q8_0", "bell", cols=32), shows)
    assert (small.rows != 0).sum() >= 8


def test_what_does_not_show_it_any_more_comes_back_as_it_is() -> None:
    probe = quantized()
    assert shrink(probe, lambda asked: np.zeros(asked.n, dtype=np.bool_)) is probe


def test_a_budget_is_kept_and_what_was_reached_is_given() -> None:
    small = shrunk(quantized("Q8_0", "ties"), some_tie, budget=4)
    assert small.n == 1


@pytest.mark.parametrize("at_once", [4, 16, 200])
def test_no_request_has_more_rows_than_may_be_asked_at_once(at_once: int) -> None:
    asked = []

    def shows(probe: NumberProbe) -> Flags:
        asked.append(probe.n)
        return some_tie(probe)

    small = shrink(quantized("Q8_0", "ties"), shows, at_once=at_once)
    assert asked[0] == 500
    assert max(asked[1:]) <= at_once
    assert np.count_nonzero(small.rows) <= (1 if at_once > 4 else 12)


def test_the_same_request_shrinks_to_the_same() -> None:
    first, second = (shrunk(quantized("Q4_K", "bell"), lambda probe: probe.rows.sum(axis=1) > 1) for _ in range(2))
    assert first.rows.tobytes() == second.rows.tobytes()
    assert first.rows[0].tolist() == [2.0] + [0.0] * 255 or float(first.rows.sum()) > 1


def sequence(*kinds: str) -> list[NumberProbe]:
    return [quantized(kind, "bell", cols=256, rows=6) for kind in kinds]


def test_requests_before_the_last_that_play_no_part_go() -> None:
    """The last request goes wrong after a Q4_0 request that holds a negative number."""

    def shows(probes: Sequence[NumberProbe]) -> bool:
        return any(probe.type == "Q4_0" and (probe.rows < 0).any() for probe in probes[:-1]) and (probes[-1].rows > 0).any()

    left = shrink_sequence(sequence("Q8_0", "Q5_0", "Q4_0", "Q8_0", "Q4_1"), shows)
    assert [(probe.type, probe.n, probe.cols) for probe in left] == [("Q4_0", 1, 32), ("Q4_1", 1, 32)]
    assert shows(left)
    assert all(np.count_nonzero(probe.rows) <= 4 for probe in left)


def test_a_divergence_that_needs_no_request_before_it_is_left_alone() -> None:
    left = shrink_sequence(sequence("Q8_0", "Q5_0", "Q4_0"), lambda probes: bool((probes[-1].rows > 0).any()))
    assert [probe.type for probe in left] == ["Q4_0"]


def test_a_sequence_that_does_not_show_it_any_more_comes_back() -> None:
    probes = sequence("Q8_0", "Q5_0")
    assert shrink_sequence(probes, lambda _: False) == probes


def test_the_calls_for_a_sequence_are_counted() -> None:
    calls = []

    def shows(probes: Sequence[NumberProbe]) -> bool:
        calls.append(len(probes))
        return any(probe.type == "Q4_0" for probe in probes[:-1])

    shrink_sequence(sequence(*["Q8_0"] * 7, "Q4_0", "Q8_0"), shows, budget=30)
    assert len(calls) <= 30 + 4
