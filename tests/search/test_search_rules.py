"""What a search does not hold against the subject, rule by rule."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.cases.build import build
from conformance.cases.walk import walk
from conformance.ggml_types import BY_NAME
from conformance.judge.numbers import Shape
from conformance.report.events import Answered, CaseResult
from conformance.search.declared import load_one
from conformance.search.numbers import nan_rows
from conformance.search.observe import forms
from conformance.search.probe import NumberProbe
from conformance.search.rows import differing_rows, rows_showing
from conformance.search.sizes import beyond_size, wrong_size
from conformance.values import Header, TensorInfo

NAN, MINUS_NAN, OTHER_NAN = 0x7FC00000, 0xFFC00000, 0x7F800001


def header(kind: str, dims: list[int], nbytes: int) -> Header:
    info = TensorInfo("t", BY_NAME[kind].id, [str(dim) for dim in dims], "0", str(nbytes))
    return Header(3, 32, 64, [], [info])


@pytest.mark.parametrize(
    ("kind", "dims", "nbytes"),
    [("F32", [], 4), ("Q8_0", [64, 3], 204), ("Q4_K", [512], 288), ("F32", [7, 0], 0), ("F64", [2**40, 2**10], 2**53)],
)
def test_a_right_size_is_no_contradiction(kind: str, dims: list[int], nbytes: int) -> None:
    assert wrong_size(header(kind, dims, nbytes)) is None
    assert beyond_size(header(kind, dims, nbytes)) is None


def test_a_size_that_wrapped_is_one() -> None:
    dims = [1024819115206086208]
    assert wrong_size(header("Q4_0", dims, 4)) == ("tensors[0].nbytes", "4 bytes for a tensor that takes 576460752303423492")
    found = beyond_size(header("Q4_0", dims, 4))
    assert found is not None
    assert found[0] == "tensors[0].nbytes"


def test_what_passes_64_bits_before_it_is_divided_is_beyond_them() -> None:
    assert beyond_size(header("Q4_0", [2**60], 0)) is not None  # 2^60 * 18, though its bytes are 2^60 / 32 * 18
    assert beyond_size(header("Q4_0", [2**59], 0)) is None
    data = build({"tensors": [{"name": "t", "type": "IQ4_XS", "dims": ["2^62"], "data": "none"}]}).data
    assert beyond_size(walk(data).header) is not None


def test_rows_in_which_nans_of_different_bits_meet() -> None:
    bits = np.full((5, 32), 0x3F800000, np.uint32)
    bits[1, 3] = NAN
    bits[2, 3:5] = NAN
    bits[3, 3], bits[3, 9] = NAN, MINUS_NAN
    bits[4, 0], bits[4, 31] = OTHER_NAN, NAN
    probe = NumberProbe("quantize", "Q8_0", 32, rows=bits.view(np.float32))
    assert nan_rows(probe).tolist() == [False, False, False, True, True]
    blocks = NumberProbe("dequantize", "Q8_0", 32, blocks=np.zeros((2, 34), np.uint8))
    assert nan_rows(blocks).tolist() == [False, False]


@pytest.mark.parametrize(("kind", "rows", "width"), [("Q8_0", 3, 34), ("Q4_0", 4, 18), ("Q6_K", 5, 210)])
def test_the_rows_that_differ_are_told_whatever_their_length(kind: str, rows: int, width: int) -> None:
    shape = Shape("quantize", BY_NAME[kind], BY_NAME[kind].block, "llama.cpp", floats=False, width=1)
    expected = np.arange(rows * width, dtype=np.int64).astype(np.uint8)
    found = expected.copy()
    assert not differing_rows(shape, rows, expected, found).any()
    found[2 * width + 5] ^= 1
    assert differing_rows(shape, rows, expected, found).tolist() == [row == 2 for row in range(rows)]


def test_rows_are_told_apart_by_what_they_show() -> None:
    shape = Shape("quantize", BY_NAME["Q8_0"], 32, "llama.cpp", floats=False, width=1)
    expected = np.zeros(3 * 34, np.uint8)
    found = expected.copy()
    found[0] = 1  # the scale of row 0
    found[34 + 9] = 1  # a quant of row 1
    assert rows_showing(shape, 3, expected, found, "quantize:Q8_0:bytes:d").tolist() == [True, False, False]
    assert rows_showing(shape, 3, expected, found, "quantize:Q8_0:bytes:qs").tolist() == [False, True, False]


def test_nans_of_any_bits_are_one_value() -> None:
    shape = Shape("dequantize", BY_NAME["Q8_0"], 32, "llama.cpp", floats=True, width=32)
    expected, found = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    expected[40], found[40] = NAN, MINUS_NAN
    assert not differing_rows(shape, 2, expected.view(np.uint8), found.view(np.uint8)).any()


@pytest.mark.parametrize(
    ("outcomes", "form"),
    [
        (("ok", "ok"), "accept"),
        (("reject bad-dims", "reject bad-dims"), {"reject": "bad-dims"}),
        (("ok", "crash SIGABRT"), {"header": "accept", "load": {"crash": "SIGABRT"}}),
        (("timeout", "memory"), {"header": "timeout", "load": "memory"}),
        (("protocol", "ok"), {"header": "observe", "load": "accept"}),
        (("ok",), {"header": "accept", "load": "unsupported"}),
    ],
)
def test_what_was_seen_is_declared(outcomes: tuple[str, ...], form: object) -> None:
    case = load_one({"build": {}, "ask": ["header", "load"]})
    answers = tuple(Answered("llama.cpp", op, outcome) for op, outcome in zip(case.ask, outcomes, strict=False))
    result = CaseResult(case=case.id, who="llama.cpp", role="authority", verdict="pass", profile="llama.cpp", answers=answers)
    assert forms(case, result) == form
