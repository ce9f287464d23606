"""The strategies of numbers: what they draw fits the types, and others' tests can use them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from conformance.block_ops import NEEDING, SEARCHED, TYPES_OF
from conformance.errors import UsageError
from conformance.ggml_types import BY_NAME
from conformance.search.number_plans import NumberPlan
from conformance.search.probe import NumberProbe
from conformance.search.strategies import float_rows, imatrices, number_plans, number_sequences, raw_blocks

MANY = settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def drawn(strategy: st.SearchStrategy[NumberPlan], count: int = 600) -> list[NumberPlan]:
    plans: list[NumberPlan] = []

    @settings(MANY, max_examples=count, phases=[Phase.generate], derandomize=True)
    @given(strategy)
    def collect(plan: NumberPlan) -> None:
        plans.append(plan)

    collect()
    return plans


def check(probe: NumberProbe) -> None:
    kind = BY_NAME[probe.type]
    assert probe.n >= 1
    assert probe.cols % kind.block == 0
    if probe.op == "quantize":
        assert probe.rows is not None
        assert probe.rows.shape == (probe.n, probe.cols)
        assert probe.blocks is None
        assert probe.imatrix is None or probe.imatrix.shape == (probe.cols,)
    else:
        assert probe.blocks is not None
        assert probe.blocks.shape == (probe.n, kind.row_bytes(probe.cols))
        assert (probe.op == "dequantize") == (probe.x is None)
    if probe.x is not None:
        assert probe.x.shape in ((probe.n, probe.cols), (1, probe.cols))
        assert probe.op == "dot" or len(probe.x) == 1


@MANY
@given(number_plans(tame=False))
def test_what_a_plan_makes_has_the_shape_of_its_op(plan: NumberPlan) -> None:
    check(plan.expand(4000))


@MANY
@given(number_sequences(max_elements=1000))
def test_the_last_request_of_a_sequence_repeats_the_first(probes: list[NumberProbe]) -> None:
    assert len(probes) >= 3
    for probe in probes:
        check(probe)
    first, last = probes[0], probes[-1]
    assert (last.op, last.type, last.cols, last.variant) == (first.op, first.type, first.cols, first.variant)
    taken, again = (probe.rows if probe.blocks is None else probe.blocks for probe in (first, last))
    assert taken is not None
    assert again is not None
    assert again[-len(taken) :].tobytes() == taken.tobytes()


def test_all_ops_and_types_come_and_need_no_more_than_they_can() -> None:
    plans = drawn(number_plans())
    asked = Counter(f"{plan.op}:{plan.variant}" if plan.variant else plan.op for plan in plans)
    assert set(asked) == set(TYPES_OF)
    assert {plan.type for plan in plans if plan.op == "quantize" and not plan.variant} == set(TYPES_OF["quantize"])
    assert all(plan.type in TYPES_OF[f"{plan.op}:{plan.variant}" if plan.variant else plan.op] for plan in plans)
    assert all(plan.imatrix is not None for plan in plans if plan.op == "quantize" and plan.type in NEEDING)
    assert all(plan.imatrix is None for plan in plans if plan.variant == "ref")


def test_only_what_ggml_answers_is_asked_where_it_has_no_answer_for_all() -> None:
    plans = drawn(number_plans(ops=["quantize", "quantize:ref"]))
    assert all(plan.tame for plan in plans if plan.type in SEARCHED)
    assert all(plan.tame for plan in plans if (plan.type, plan.variant) == ("IQ4_NL", "ref"))
    wild = [plan.row.family for plan in plans if plan.row and plan.type not in SEARCHED]
    assert {"specials", "huge", "any"} <= set(wild)
    assert 0 < wild.count("specials") < len(wild) / 8
    assert all(plan.tame for plan in drawn(number_plans(tame=True), 200))
    assert not all(plan.tame for plan in drawn(number_plans(SEARCHED, ["quantize"], tame=False), 100))


def test_types_and_ops_can_be_chosen() -> None:
    plans = drawn(number_plans(["Q4_K", "Q8_1"], ["quantize", "quantize:ref"]), 200)
    assert {(plan.type, plan.variant) for plan in plans} == {("Q4_K", ""), ("Q8_1", "ref")}


@pytest.mark.parametrize(
    ("types", "ops", "message", "hint"),
    [
        (["Q4_k"], None, "'Q4_k'", "Q4_K"),
        (None, ["quantise"], "'quantise'", "quantize"),
        (["Q8_1"], ["dot"], "Q8_1", "Q8_0"),
    ],
)
def test_a_wrong_name_is_told_with_what_there_is(types: list[str] | None, ops: list[str] | None, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        number_plans(types, ops)
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("make", [float_rows, raw_blocks])
def test_a_type_without_blocks_is_refused(make: object) -> None:
    with pytest.raises(UsageError, match="'F64'"):
        make("F64")  # type: ignore[operator]


def test_an_imatrix_has_columns() -> None:
    with pytest.raises(UsageError, match="0 columns"):
        imatrices(0)


@MANY
@given(float_rows("Q4_K", max_rows=3), raw_blocks("Q5_0", max_rows=3), imatrices(512), imatrices(31, tame=True))
def test_arrays_fit_the_type(rows: np.ndarray, blocks: np.ndarray, weights: np.ndarray, tame: np.ndarray) -> None:
    assert (rows.dtype, rows.shape[1] % 256) == (np.float32, 0)
    assert 1 <= len(rows) <= 3
    assert (blocks.dtype, blocks.shape[1] % 22) == (np.uint8, 0)
    assert 1 <= len(blocks) <= 3
    assert (weights.dtype, weights.shape) == (np.float32, (512,))
    assert (tame >= 0).all()


def test_hypothesis_takes_rows_and_elements_away() -> None:
    """What fails for one element of more than 1 is shown with one row, and most of its elements are zeros."""
    many = settings(MANY, max_examples=1000)
    random = Random(1)  # noqa: S311 - so that the search is the same each time
    rows = find(float_rows("Q8_0"), lambda rows: bool((np.abs(rows) > 1).any()), settings=many, random=random)
    assert len(rows) == 1
    assert np.count_nonzero(rows) <= 8


def test_ordinary_rows_alone_where_that_is_asked_for() -> None:
    with pytest.raises(NoSuchExample):
        find(float_rows("IQ2_S", tame=True), lambda rows: not np.isfinite(rows).all(), settings=settings(MANY, max_examples=200))
    assert not np.isfinite(
        find(float_rows("IQ2_S"), lambda rows: not np.isfinite(rows).all(), settings=settings(MANY, max_examples=2000))
    ).all()


def test_all_but_the_strategies_works_without_hypothesis() -> None:
    modules = ("number_plans", "number_case", "shrink_numbers")
    script = "import sys; sys.modules['hypothesis'] = None; " + "; ".join(f"import conformance.search.{name}" for name in modules)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
