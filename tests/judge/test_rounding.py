"""The bound on sums in another order: held against sums in float32 in many orders, and against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import impl
from conformance.ggml_types import BY_NAME
from conformance.judge.exact import EXACT_TYPES, exact_dequantize, exact_magnitudes
from conformance.judge.rounding import Product, Sums, compare_sums, gamma

Floats = npt.NDArray[np.float32]
COLS = 512


def product(tmp_path: Path, name: str = "Q4_K", rows: int = 6, x_rows: int = 6) -> tuple[Product, Floats]:
    """A product, and its sums in order."""
    rng = np.random.default_rng(7)
    weights = impl.quantize(name, rng.standard_normal((rows, COLS), np.float32))
    x = rng.standard_normal((x_rows, COLS), np.float32)
    path = tmp_path / "weights"
    path.write_bytes(weights.tobytes())
    sums = impl.dot(name, weights, np.broadcast_to(x, (rows, COLS)).copy())
    return Product(BY_NAME[name], path, rows, COLS, x), sums


def sums(expected: Floats, found: Floats) -> Sums:
    return Sums("dot:simd", "llama.cpp", expected, found)


def nudged(values: Floats, steps: int) -> Floats:
    return (values.view(np.int32) + np.int32(steps)).view(np.float32)


def test_equal_sums_and_sums_some_ulps_apart_are_near(tmp_path: Path) -> None:
    what, expected = product(tmp_path)
    assert compare_sums(what, sums(expected, expected)) == (None, 0, 0)
    assert compare_sums(what, sums(expected, nudged(expected, 3))) == (None, 3, 0)


@pytest.mark.parametrize("x_rows", [6, 1])
def test_one_wrong_sum_is_found_with_its_row_and_distance(tmp_path: Path, x_rows: int) -> None:
    what, expected = product(tmp_path, x_rows=x_rows)
    found = expected.copy()
    found[4] += np.float32(0.02)
    divergence, ulps, _ = compare_sums(what, sums(expected, found))
    assert divergence is not None
    assert (divergence.row, divergence.different, divergence.compared) == (4, 1, 6)
    assert divergence.signature == "dot:simd:Q4_K:rounding:value"
    assert divergence.bits is not None
    assert divergence.bits.ulps == ulps == abs(int(found[4].view(np.int32)) - int(expected[4].view(np.int32)))


def test_a_dropped_block_is_found_and_a_cancelled_sum_is_not_blamed(tmp_path: Path) -> None:
    """Rows of opposite halves: the sum nearly vanishes, its rounding does not."""
    rng = np.random.default_rng(3)
    half = rng.standard_normal((4, COLS // 2), np.float32)
    weights = impl.quantize("Q8_0", np.concatenate([half, -half], axis=1))
    x = np.ones((4, COLS), np.float32)
    path = tmp_path / "weights"
    path.write_bytes(weights.tobytes())
    what = Product(BY_NAME["Q8_0"], path, 4, COLS, x)
    terms = impl.dot("Q8_0", weights.reshape(-1, 34), x.reshape(-1, 32)).reshape(4, -1)
    forwards, backwards = (np.add.accumulate(order, axis=1)[:, -1] for order in (terms, terms[:, ::-1]))
    assert (forwards != backwards).any()
    assert np.abs(forwards).max() < 1e-3
    assert compare_sums(what, sums(forwards, backwards)).divergence is None
    dropped = np.add.accumulate(terms[:, :-1], axis=1)[:, -1]
    divergence = compare_sums(what, sums(forwards, dropped)).divergence
    assert divergence is not None
    assert divergence.different == 4
    assert sum(divergence.by_distance) == 4


@pytest.mark.parametrize("name", ["Q4_0", "Q8_0", "Q2_K", "Q6_K", "IQ4_XS", "TQ1_0", "NVFP4", "Q1_0"])
def test_no_order_of_additions_leaves_the_bound(tmp_path: Path, name: str) -> None:
    """Elementary products, added in float32 one by one in 20 orders: deeper than any order that the bound is made for.

    (Q4_1 and Q5_1 multiply their minimum by a sum that is stored rounded: element by element that is another number.)
    """
    what, expected = product(tmp_path, name)
    weights = impl.dequantize(name, what.weights.read_bytes(), (6, COLS))
    partner = "Q8_K" if BY_NAME[name].block == 256 else "Q8_0"
    x = what.x
    if partner == "Q8_0":
        x = impl.dequantize("Q8_0", impl.quantize("Q8_0", x), x.shape)
    else:
        x = impl.dequantize("Q8_K", impl.quantize("Q8_K", x), x.shape)
    terms = weights * x
    rng = np.random.default_rng(1)
    for _ in range(20):
        found = np.add.accumulate(terms[:, rng.permutation(COLS)], axis=1, dtype=np.float32)[:, -1]
        assert compare_sums(what, sums(expected, found)).divergence is None


def test_what_is_not_finite_has_no_bound_but_a_nan_from_finite_numbers_is_wrong(tmp_path: Path) -> None:
    what, expected = product(tmp_path)
    found = expected.copy()
    found[2] = np.nan
    divergence, _, _ = compare_sums(what, sums(expected, found))
    assert divergence is not None
    assert divergence.row == 2
    infinite = what._replace(x=what.x * np.float32(np.inf))
    assert compare_sums(infinite, sums(expected, found))._replace(ulps=0) == (None, 0, 1)


def test_both_nan_are_the_same(tmp_path: Path) -> None:
    what, expected = product(tmp_path)
    expected[1] = np.nan
    assert compare_sums(what, sums(expected, nudged(expected, 1))) == (None, 1, 0)


def ones(tmp_path: Path, name: str, x: Floats) -> Product:
    """Weights of 1, as many rows as ``x`` has."""
    path = tmp_path / name
    path.write_bytes(impl.quantize(name, np.ones(x.shape, np.float32)).tobytes())
    return Product(BY_NAME[name], path, len(x), COLS, x)


@pytest.mark.parametrize(("name", "near"), [("F16", False), ("BF16", False), ("Q8_0", True), ("Q4_0", True)])
def test_where_x_is_quantized_each_element_may_be_off_by_its_blocks_step(tmp_path: Path, name: str, near: bool) -> None:
    """One element of 1 in x: the magnitudes add up to 1, and quantized to as much as 1 + 32 / 254 and the scale's rounding."""
    x = np.zeros((1, COLS), np.float32)
    x[0, 3] = 1
    expected = np.ones(1, np.float32)
    found = expected + np.float32(2.18 * gamma(COLS))
    assert (compare_sums(ones(tmp_path, name, x), sums(expected, found)).divergence is None) == near


def test_each_row_is_bounded_by_its_own_x(tmp_path: Path) -> None:
    x = np.zeros((2, COLS), np.float32)
    x[:, 0] = expected = np.array([1, 1000], np.float32)
    apart = np.array([0, 1500 * gamma(COLS)], np.float32)
    assert compare_sums(ones(tmp_path, "BF16", x), sums(expected, expected + apart)).divergence is None
    divergence = compare_sums(ones(tmp_path, "BF16", x), sums(expected, expected + apart[::-1])).divergence
    assert divergence is not None
    assert divergence.row == 0


@pytest.mark.parametrize(("steps", "near"), [(COLS, True), (COLS + 1, False)])
def test_products_that_underflow_may_be_off_by_the_least_float_each(tmp_path: Path, steps: int, near: bool) -> None:
    x = np.zeros((1, COLS), np.float32)
    found = np.array([steps], np.uint32).view(np.float32)
    assert (compare_sums(ones(tmp_path, "BF16", x), sums(np.zeros(1, np.float32), found)).divergence is None) == near


def test_gamma_grows_with_the_additions() -> None:
    assert gamma(16) == pytest.approx(25 * 2.0**-24, rel=1e-5)
    assert gamma(4096) == pytest.approx(280 * 2.0**-24, rel=1e-4)


@pytest.mark.parametrize("name", EXACT_TYPES)
def test_magnitudes_are_at_least_the_values_and_no_more_than_the_formula_says(name: str) -> None:
    """Of types whose formula has one product and no difference the two are equal, but for the rounding of the value."""
    kind = BY_NAME[name]
    raw = np.random.default_rng(5).integers(0, 255, (20, kind.nbytes), dtype=np.uint8)
    for block in (row.tobytes() for row in raw):
        values = np.array(exact_dequantize(name, block), np.uint32).view(np.float32).astype(np.float64)
        magnitudes = np.array(exact_magnitudes(name, block))
        known = np.isfinite(values)
        assert (magnitudes[known] * (1 + 2.0**-24) >= np.abs(values[known])).all()
        if name in {"Q8_0", "IQ4_NL", "IQ2_XXS", "IQ3_S", "MXFP4", "F16"}:
            assert np.allclose(magnitudes, np.abs(values), rtol=2.0**-24, atol=0, equal_nan=True)


def test_a_magnitude_adds_what_the_value_subtracts() -> None:
    """Q4_0: 2 * (3 - 8) is -10; the terms are 6 and 16. Q2_K: d * sc * q - dmin * m."""
    block = np.float16(2).tobytes() + bytes([0x33] * 16)
    assert exact_magnitudes("Q4_0", block) == [22.0] * 32
    q2_k = bytes([0x21] * 16) + bytes([0b11] * 64) + np.float16(0.5).tobytes() + np.float16(4).tobytes()
    value, size = Fraction(1, 2) * 1 * 3 - 4 * 2, Fraction(1, 2) * 1 * 3 + 4 * 2
    bits = exact_dequantize("Q2_K", q2_k)[0]
    assert np.uint32(bits).view(np.float32) == float(value)
    assert math.isclose(exact_magnitudes("Q2_K", q2_k)[0], float(size))
