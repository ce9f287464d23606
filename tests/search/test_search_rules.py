"""What a search does not hold against the subject, rule by rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conformance.block_ops import UNDEFINED
from conformance.cases.build import Built, build
from conformance.cases.load import load_suites
from conformance.cases.model import RowsInput
from conformance.cases.rows import float_rows
from conformance.cases.walk import walk
from conformance.ggml_types import BY_NAME
from conformance.judge.numbers import Shape
from conformance.outcomes import Crash, Reject, Unsupported
from conformance.places import cases_root
from conformance.report.events import Answered, CaseResult
from conformance.search.asking import Side
from conformance.search.declared import load_one
from conformance.search.files import FileBench, Pair
from conformance.search.hit import unanswered
from conformance.search.numbers import any_nan, nan_rows
from conformance.search.observe import forms
from conformance.search.probe import FileProbe, NumberProbe
from conformance.search.rows import differing_rows, rows_showing
from conformance.search.sizes import beyond_size, wrong_size
from conformance.subjects.manifest import find_manifest
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
    assert found[0] == 0


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


WRAPPING = {"tensors": [{"name": "t", "type": "Q4_0", "dims": ["2^60"], "data": "none"}, {"name": "u", "type": "F32", "dims": [1]}]}


def at(built: Built, path: str) -> int:
    field = built.fields.find(path)
    assert field is not None
    return field.offset


@pytest.mark.parametrize(
    ("blamed", "instead", "against"),
    [
        ("tensors[0].type", Reject("bad-dims", at=None), False),  # nobody knows what the measure blames
        ("tensors[0].type", "tensors[1].n_dims", True),
        ("tensors[0].type", "tensors[0].n_dims", False),  # it refused before it came to the size
        ("tensors[0].type", Reject("bad-offset"), True),
        ("tensors[1].type", "tensors[1].n_dims", False),  # the subject, too, went past the size
        ("n_kv", "tensors[1].n_dims", False),
    ],
)
def test_only_who_refuses_the_size_itself_is_spared(blamed: str, instead: str | Reject, against: bool) -> None:
    built = build(WRAPPING)
    expected = Reject("bad-dims", at=at(built, instead)) if isinstance(instead, str) else instead
    found = Reject("bad-size", at=at(built, blamed))
    with Side(find_manifest("impl")) as subject, Side(find_manifest("impl-spec")) as measure:
        hits = list(
            FileBench(Pair(subject, measure), Path())._judged(FileProbe("header", built.data, WRAPPING, ""), found, expected)
        )
    assert [hit.against for hit in hits] == [against]


def test_a_measure_without_an_answer_does_not_hide_that_the_subject_fails() -> None:
    probe = FileProbe("header", b"", {}, "")
    died, declined = Crash("SIGABRT"), Unsupported("no")
    both = list(unanswered(probe, "header", "-", "a", (died, died)))
    assert [(hit.against, hit.signature) for hit in both] == [
        (True, "header:-:crash-SIGABRT:-"),
        (False, "header:-:crash-SIGABRT:-"),
    ]
    assert [hit.against for hit in unanswered(probe, "header", "-", "a", (Reject(), died))] == [True]
    assert [hit.against for hit in unanswered(probe, "header", "-", "a", (died, declined))] == [False]


def scaled(bits: int, quant: int) -> np.ndarray:
    return np.frombuffer(bits.to_bytes(2, "little") + bytes([quant]) * 32, np.uint8)


def test_where_nans_meet_a_scale_may_be_any_nan_and_nothing_else() -> None:
    bits = np.full((5, 32), 0x3F800000, np.uint32)
    bits[:, 3], bits[:, 9] = NAN, MINUS_NAN
    bits[3, 9] = NAN
    probe = NumberProbe("quantize", "Q8_0", 32, rows=bits.view(np.float32))
    expected = np.concatenate([*[scaled(0x7E00, 1)] * 4, scaled(0x3C00, 1)])
    found = np.concatenate([scaled(0xFE00, 1), scaled(0x3C00, 1), scaled(0xFE01, 2), scaled(0xFE00, 1), scaled(0xFE00, 1)])
    settled = any_nan(probe, expected, found).reshape(5, 34)
    assert [np.array_equal(row, right) for row, right in zip(settled, expected.reshape(5, 34), strict=True)] == [
        True,
        False,
        False,
        False,
        False,
    ]
    assert np.array_equal(settled[2, 2:], found.reshape(5, 34)[2, 2:])
    assert found[1] == 0xFE  # what a side wrote is not changed


def test_types_of_which_cases_observe_what_is_not_finite() -> None:
    observed = set()
    for case in load_suites(cases_root()):
        if isinstance(case.input, RowsInput) and "quantize" in case.ask:
            kinds = {expect.kind for expect in case.expect["llama.cpp"]["quantize"]}
            if "observe" in kinds and not np.isfinite(float_rows(case.input.recipe, case.input.type)).all():
                observed.add(case.input.type)
    assert set(UNDEFINED) == observed
