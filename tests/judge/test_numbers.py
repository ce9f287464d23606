"""Comparison of blocks and floats: what differs is found, counted and located."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from conformance.ggml_types import BY_NAME
from conformance.judge.numbers import Shape, compare_outputs, ulp_distances
from conformance.judge.output import Digests, Kept, condense, kept_bytes

Q8_0 = BY_NAME["Q8_0"]
BLOCKS = Shape("quantize", Q8_0, 64, "llama.cpp", floats=False, width=0, row_names=("first", "second"))
FLOATS = Shape("dequantize", Q8_0, 64, "llama.cpp", floats=True, width=64)


def _blocks(count: int) -> np.ndarray:
    return np.arange(count * Q8_0.nbytes, dtype=np.uint64).astype(np.uint8)


def test_equal_blocks_do_not_diverge() -> None:
    assert compare_outputs(BLOCKS, _blocks(4), _blocks(4)) == []


def test_a_quant_is_located_by_row_block_byte_and_element() -> None:
    found = _blocks(4)
    found[3 * 34 + 2 + 5] ^= 1
    (divergence,) = compare_outputs(BLOCKS, _blocks(4), found)
    assert divergence.signature == "quantize:Q8_0:bytes:qs"
    assert (divergence.row, divergence.row_name, divergence.block, divergence.byte) == (1, "second", 3, 7)
    assert (divergence.field, divergence.elements) == ("qs[5]", (32 + 5,))
    assert (divergence.different, divergence.compared, divergence.unit) == (1, 4 * 34, "bytes")
    marked = [line for line in divergence.hexdump if line.mark]
    assert [line.field for line in marked] == ["qs expected", "qs found"]


def test_each_block_field_that_differs_is_one_divergence_in_order() -> None:
    found = _blocks(4)
    found[[2, 3, 34]] += 1
    divergences = compare_outputs(BLOCKS, _blocks(4), found)
    assert [divergence.signature for divergence in divergences] == ["quantize:Q8_0:bytes:qs", "quantize:Q8_0:bytes:d"]
    assert divergences[0].by_field == {"qs": 2, "d": 1}


def test_the_input_stands_beside_a_wrong_quant() -> None:
    inputs = np.arange(128, dtype=np.float32).reshape(2, 64)
    found = _blocks(4)
    found[-1] ^= 1
    (divergence,) = compare_outputs(BLOCKS._replace(inputs=inputs), _blocks(4), found)
    assert divergence.input == "x[63] = 127 (0x42fe0000)"


def test_an_output_of_the_wrong_size_is_one_divergence() -> None:
    (divergence,) = compare_outputs(BLOCKS, _blocks(4), _blocks(3))
    assert divergence.signature == "quantize:Q8_0:size:output"


def _floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32).view(np.uint8)


@pytest.mark.parametrize(
    ("expected", "found", "kind", "ulps"),
    [
        (1.0, float(np.nextafter(np.float32(1), np.float32(2))), "value", 1),
        (0.0, -0.0, "zero-sign", 0),
        (1.0, float("nan"), "nan", None),
        (float("inf"), 1.0, "infinite", 0x7F800000 - 0x3F800000),
    ],
)
def test_float_differences_are_told_apart(expected: float, found: float, kind: str, ulps: int | None) -> None:
    (divergence,) = compare_outputs(FLOATS, _floats(5, expected), _floats(5, found))
    assert divergence.signature == f"dequantize:Q8_0:bits:{kind}"
    assert divergence.bits is not None
    assert divergence.bits.ulps == ulps
    assert (divergence.elements, divergence.block, divergence.at) == ((1,), 0, 4)


def test_nan_payloads_count_only_where_the_case_says_so() -> None:
    ours = np.array([0x7FC00000], np.uint32).view(np.uint8)
    theirs = np.array([0xFFC12345], np.uint32).view(np.uint8)
    assert compare_outputs(FLOATS, ours, theirs) == []
    assert compare_outputs(FLOATS._replace(nan_payload=True), ours, theirs) != []


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(FINITE, FINITE)
def test_ulps_count_the_representable_values_between(a: float, b: float) -> None:
    left, right = np.array([a], np.float32), np.array([b], np.float32)
    distance = int(ulp_distances(left, right)[0])
    assert distance == int(ulp_distances(right, left)[0])
    assert (distance == 0) == (a == b)
    if distance and a < b:
        stepped = np.nextafter(left, np.float32(np.inf))
        assert int(ulp_distances(stepped, right)[0]) == distance - 1


@given(npst.arrays(np.uint8, st.integers(1, 400).map(lambda n: n * 34)), st.data())
def test_digests_find_the_range_that_differs(data: np.ndarray, draw: st.DataObject) -> None:
    kept = condense(data, 34)
    if isinstance(kept, Kept):
        assert np.array_equal(kept_bytes(kept), data)
        return
    assert isinstance(kept, Digests)
    assert compare_outputs(BLOCKS, kept, data) == []
    at = draw.draw(st.integers(0, data.nbytes - 1))
    changed = data.copy()
    changed[at] ^= 0x10
    (divergence,) = compare_outputs(BLOCKS, kept, changed)
    assert divergence.block is not None
    assert divergence.block <= at // 34 < divergence.block + kept.range
