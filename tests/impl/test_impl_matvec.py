"""A matrix times a vector: the two ways to do it, against the live library, against exact sums, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from impl_live import Live, bits

import impl
from impl.blocks import SUPPORTED
from impl.blocks.api import codec
from impl.types import by_name

PARTNERS = {"Q4_0": "Q8_0", "Q4_1": "Q8_1", "Q5_0": "Q8_0", "Q5_1": "Q8_1", "Q8_0": "Q8_0"}


def _matrix(kind: str, rows: int, cols: int, seed: int = 31) -> tuple[np.ndarray, np.ndarray]:
    """Random blocks with ordinary scales, and a vector."""
    rng = np.random.default_rng(seed)
    return impl.quantize(kind, rng.standard_normal((rows, cols)).astype(np.float32)), rng.standard_normal(cols).astype(np.float32)


@pytest.mark.parametrize("kind", PARTNERS)
def test_each_product_is_the_librarys_scalar_one(live: Live, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("impl.blocks.matvec.PIECE", 7 * 576)
    w, x = _matrix(kind, 40, 576)
    x[100:120] *= 1e-30
    y = live.quantize(PARTNERS[kind], x)
    expected = np.array([live.dot(kind, PARTNERS[kind], row, y, 576) for row in w])
    assert (bits(impl.matvec(kind, w, x)) == bits(expected)).all()
    assert len(set(expected.tolist())) > 35


@pytest.mark.parametrize("kind", [kind for kind in SUPPORTED["dot"] if kind in SUPPORTED["quantize"]])
def test_each_product_is_the_dot_of_its_row(kind: str) -> None:
    rng = np.random.default_rng(32)
    w = rng.integers(0, 64, (5, 2 * by_name(kind).nbytes), dtype=np.uint8)
    x = rng.standard_normal(2 * by_name(kind).block).astype(np.float32)
    if x.size % by_name(codec(kind).partner).block == 0:
        rows = np.broadcast_to(x, (5, x.size))
        assert (bits(impl.matvec(kind, w, x)) == bits(impl.dot(kind, w, rows))).all()


def test_of_q8_0_quantizing_the_input_costs_four_orders_of_magnitude() -> None:
    """From the studies, 576 outputs of a 576 x 576 tensor: 8.5e-2 off with the input quantized, 1.8e-6 with it kept."""
    w, x = _matrix("Q8_0", 576, 576)
    exact = impl.dequantize("Q8_0", w, (576, 576)).astype(np.float64) @ x.astype(np.float64)
    quantized = np.abs(impl.matvec("Q8_0", w, x) - exact).max()
    kept = np.abs(impl.matvec("Q8_0", w, x, keep_input=True) - exact).max()
    print(f"576 x 576 of Q8_0, largest error against float64: input quantized {quantized:.2e}, kept {kept:.2e}")  # noqa: T201 - the numbers
    assert 0.1 < quantized < 1
    assert kept < 5e-5
    assert quantized / kept > 5_000


def test_a_nan_in_the_input_vanishes_where_it_is_quantized(live: Live) -> None:
    """Q8_0's block loses it: the library's maximum passes over a NaN that is not the last, and the cast makes it 0."""
    w, x = _matrix("Q8_0", 8, 576)
    x[70] = np.nan
    y = live.quantize("Q8_0", x)
    expected = np.array([live.dot("Q8_0", "Q8_0", row, y, 576) for row in w])
    assert np.isfinite(expected).all()
    assert (bits(impl.matvec("Q8_0", w, x)) == bits(expected)).all()
    assert np.isnan(impl.matvec("Q8_0", w, x, keep_input=True)).all()


@pytest.mark.parametrize("kind", ["Q4_1", "Q8_0", "F32", "F16"])
def test_with_the_input_kept_products_are_added_from_left_to_right(kind: str) -> None:
    w, x = _matrix(kind, 6, 96)
    weights = impl.dequantize(kind, w, (6, 96))
    expected = []
    for row in weights:
        total = np.float32(0)
        for a, b in zip(row, x, strict=True):
            total = np.float32(total + np.float32(a * b))
        expected.append(total)
    assert impl.matvec(kind, w, x, keep_input=True).tolist() == [float(total) for total in expected]


def test_no_rows_give_no_products() -> None:
    assert impl.matvec("Q8_0", b"", np.ones(32, np.float32)).shape == (0,)


@pytest.mark.parametrize(
    ("weights", "x", "says"),
    [
        (bytes(35), np.ones(32, np.float32), "35 bytes are no whole rows of 32 elements of Q8_0, which take 34 bytes each"),
        (
            bytes(34),
            np.ones((1, 32), np.float32),
            r"x must be one row that is not empty: float32 of shape \(cols,\), not \(1, 32\)",
        ),
        (bytes(34), np.ones(0, np.float32), "x must be one row that is not empty"),
        (bytes(34), np.ones(33, np.float32), "a row of 33 elements is no multiple of 32"),
        (bytes(34), np.ones(32), "x must be a numpy array of float32, not float64"),
    ],
)
@pytest.mark.parametrize("keep_input", [True, False])
def test_what_does_not_fit_is_refused(weights: bytes, x: np.ndarray, says: str, keep_input: bool) -> None:
    with pytest.raises(impl.InputError, match=says):
        impl.matvec("Q8_0", weights, x, keep_input=keep_input)


def test_a_type_without_a_dot_product_can_be_multiplied_with_the_input_kept() -> None:
    w, x = _matrix("F16", 2, 32)
    with pytest.raises(impl.UnsupportedError, match="dot of F16 is not done here"):
        impl.matvec("F16", w, x)
    assert impl.matvec("F16", w, x, keep_input=True).shape == (2,)
