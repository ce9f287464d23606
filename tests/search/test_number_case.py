"""A request on numbers written as a case: the loader takes it, and builds the very same bytes again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.cases.load import load_suite
from conformance.cases.model import BlocksInput, DotInput, RowsInput
from conformance.cases.rows import block_rows, float_rows
from conformance.search.number_case import case_of, float_value
from conformance.search.probe import NumberProbe
from conformance.search.strategies import number_plans


def loaded(probe: NumberProbe, folder: Path) -> tuple[RowsInput | BlocksInput | DotInput, tuple[str, ...]]:
    document = {"suite": "found", "cases": {"one": case_of(probe)}}
    (folder / "found.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    case = load_suite(folder / "found.yaml", folder)[0]
    return case.input, case.ask


def built(probe: NumberProbe, folder: Path) -> tuple[NumberProbe, tuple[str, ...]]:
    given, ask = loaded(probe, folder)
    back = NumberProbe(probe.op, given.type, probe.cols, variant=probe.variant, label=probe.label)
    match given:
        case RowsInput():
            imatrix = None if given.imatrix is None else float_rows(given.imatrix, given.type)[0]
            return back._replace(rows=float_rows(given.recipe, given.type), imatrix=imatrix), ask
        case BlocksInput():
            return back._replace(blocks=block_rows(given.recipe, given.type)[0]), ask
        case DotInput():
            return back._replace(blocks=block_rows(given.weights, given.type)[0], x=float_rows(given.x, given.type)), ask


def same(left: np.ndarray | None, right: np.ndarray | None) -> bool:
    if left is None or right is None:
        return left is right
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=number_plans(tame=False))
def test_a_case_builds_the_very_bytes(plan, tmp_path: Path) -> None:
    probe = plan.expand(600)
    back, ask = built(probe, tmp_path)
    assert ask == (f"{plan.op}:{plan.variant}" if plan.variant else plan.op,)
    for field in ("rows", "blocks", "x", "imatrix"):
        assert same(getattr(back, field), getattr(probe, field)), field


@given(st.integers(0, 2**32 - 1))
def test_any_float_reads_back_to_its_bits(bits: int) -> None:
    row = np.array([[bits]], dtype=np.uint32)
    recipe = yaml.safe_load(yaml.safe_dump({"values": [[float_value(bits)]]}))
    text = {"values": [[str(value) for value in row] for row in recipe["values"]]}
    assert float_rows(text, "F32").view(np.uint32).tolist() == row.tolist()


def values(*given: float | int, bits: tuple[int, ...] = ()) -> NumberProbe:
    rows = np.zeros((1, 32), dtype=np.float32)
    rows[0, : len(given)] = given
    rows.view(np.uint32)[0, len(given) : len(given) + len(bits)] = bits
    return NumberProbe("quantize", "Q8_0", 32, rows=rows)


@pytest.mark.parametrize(
    ("probe", "recipe"),
    [
        (values(), {"fill": 0}),
        (values(0, 0.5), {"fill": 0, "set": {1: 0.5}}),
        (values(*range(32)), {"ramp": 1}),
        (values(*(0.25 * i for i in range(31)), 127), {"ramp": 0.25, "set": {31: 127}}),
        (values(-1e-9, bits=(0x80000000, 0x7F800001)), {"fill": 0, "set": {0: -1e-9, 1: -0.0, 2: "0x7f800001"}}),
    ],
)
def test_a_simple_row_is_said_in_few_words(probe: NumberProbe, recipe: dict) -> None:
    assert repr(case_of(probe)["rows"]["special"]["row-0"]) == repr(recipe)


@pytest.mark.parametrize(
    ("bits", "value"),
    [
        (0x3DCCCCCD, 0.1),
        (0x42FE0000, 127),
        (0x80000000, -0.0),
        (0x7FC00000, "nan"),
        (0xFF800000, "-inf"),
        (0xFFC00001, "0xffc00001"),
        (0x00000001, 1e-45),
        (0x7F7FFFFF, 3.4028235e38),
    ],
)
def test_a_float_is_said_by_its_shortest_decimal(bits: int, value: object) -> None:
    assert repr(float_value(bits)) == repr(value)


def test_blocks_are_hex_with_a_blank_between_fields() -> None:
    block = np.arange(20, dtype=np.uint8)[None]
    probe = NumberProbe("dequantize", "Q4_1", 32, blocks=np.concatenate([block, block + 1]))
    assert case_of(probe)["blocks"]["hex"][0] == "0001 0203 0405060708090a0b0c0d0e0f10111213"
    alike = NumberProbe("dequantize", "Q4_1", 32, blocks=np.repeat(block, 3, axis=0))
    assert case_of(alike)["blocks"] == {"repeat": {"hex": "0001 0203 0405060708090a0b0c0d0e0f10111213", "rows": 3}}
