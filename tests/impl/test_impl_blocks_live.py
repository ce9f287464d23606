"""Blocks against the live library, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from impl_live import Live, bits
from impl_rows import COLS, ROWS, finite_rows, rows_with_specials

import impl
from impl.types import by_name

QUANTIZE = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1"]
DEQUANTIZE = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
DOT = {"Q4_0": "Q8_0", "Q4_1": "Q8_1", "Q5_0": "Q8_0", "Q5_1": "Q8_1", "Q8_0": "Q8_0"}
FINITE = dict(finite_rows())
SPECIAL = dict(rows_with_specials())


@pytest.mark.parametrize("kind", QUANTIZE)
@pytest.mark.parametrize("rows", FINITE)
def test_finite_numbers_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    assert (impl.quantize(kind, FINITE[rows]).reshape(-1) == live.quantize(kind, FINITE[rows])).all()


@pytest.mark.parametrize("kind", QUANTIZE)
@pytest.mark.parametrize("rows", SPECIAL)
def test_specials_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    """Also where C leaves the result open: the library is built for x86-64, and that machine's answer is the rule here."""
    assert (impl.quantize(kind, SPECIAL[rows]).reshape(-1) == live.quantize(kind, SPECIAL[rows])).all()


@pytest.mark.parametrize("kind", [kind for kind in QUANTIZE if kind != "Q8_1"])
def test_the_normal_path_is_the_reference_function(live: Live, kind: str) -> None:
    rows = FINITE["random"]
    assert (impl.quantize(kind, rows).reshape(-1) == live.quantize_chunk(kind, rows, None)).all()


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0"])
def test_where_ggml_ignores_an_imatrix_so_does_this(live: Live, kind: str) -> None:
    rows, imatrix = FINITE["random"], np.linspace(0, 9, COLS, dtype=np.float32)
    assert (impl.quantize(kind, rows, imatrix).reshape(-1) == live.quantize_chunk(kind, rows, imatrix)).all()


@pytest.mark.parametrize("kind", DEQUANTIZE)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    rng = np.random.default_rng(3)
    blocks = rng.integers(0, 256, (2000, by_name(kind).nbytes), dtype=np.uint8)
    ours = impl.dequantize(kind, blocks, (2000, by_name(kind).block))
    assert (bits(ours) == bits(live.dequantize(kind, blocks.reshape(-1)))).all()


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"])
def test_every_f16_scale_is_taken_alike(live: Live, kind: str) -> None:
    """All 65,536 scales, zeros, subnormals, infinities and NaNs among them, over blocks of random codes."""
    rng = np.random.default_rng(4)
    place = -2 if kind == "Q6_K" else 0  # Q6_K has its scale last
    blocks = rng.integers(0, 256, (1 << 16, by_name(kind).nbytes), dtype=np.uint8)
    blocks[:, place : place + 2 or None] = np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    for part in np.array_split(blocks, 8):
        ours = impl.dequantize(kind, part, (len(part), by_name(kind).block))
        assert (bits(ours) == bits(live.dequantize(kind, part.reshape(-1)))).all()


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_every_16_bit_float_comes_back(live: Live, kind: str) -> None:
    data = np.arange(1 << 16, dtype="<u2").view(np.uint8)
    ours = impl.dequantize(kind, data, (1 << 16,))
    assert (bits(ours) == bits(live.dequantize(kind, data))).all()


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_rounding_to_16_bits_at_every_tie(live: Live, kind: str) -> None:
    """Each 16-bit float, the float32 halfway to the next, and the float32 on either side of both."""
    exact = impl.dequantize(kind, np.arange(1 << 16, dtype="<u2").view(np.uint8), (1 << 16,))
    numbers = exact[np.isfinite(exact)].astype(np.float64)
    halfway = (numbers[:-1] + numbers[1:]) / 2
    near = np.concatenate([np.nextafter(np.float32(x), np.float32(to)) for x in (numbers, halfway) for to in (-np.inf, np.inf)])
    rows = np.concatenate([numbers.astype(np.float32), halfway.astype(np.float32), near])
    assert (impl.quantize(kind, rows) == live.quantize(kind, rows)).all()


@pytest.mark.parametrize("kind", DOT)
@pytest.mark.parametrize("cols", [32, 64, 4096])
def test_dot_products_have_the_same_bits(live: Live, kind: str, cols: int) -> None:
    rng = np.random.default_rng(cols)
    x = (rng.standard_normal((40, cols)) * 10.0 ** rng.integers(-6, 7, (40, 1))).astype(np.float32)
    w = impl.quantize(kind, rng.standard_normal((40, cols)).astype(np.float32))
    check_dot(live, kind, w, x)


@pytest.mark.parametrize("kind", DOT)
def test_dot_products_whose_integer_sums_are_large(live: Live, kind: str) -> None:
    """All of one sign: a block's sum times one scale passes 24 bits, so that the order of the two products shows."""
    rng = np.random.default_rng(6)
    x, weights = rng.uniform(0.5, 1, (2, 200, 128)).astype(np.float32)
    check_dot(live, kind, impl.quantize(kind, weights), x)


@pytest.mark.parametrize("kind", DOT)
@pytest.mark.parametrize("rows", [*FINITE, *SPECIAL])
def test_dot_products_with_every_kind_of_row(live: Live, kind: str, rows: str) -> None:
    x = {**FINITE, **SPECIAL}[rows]
    w = np.random.default_rng(5).integers(0, 256, (ROWS, by_name(kind).row_bytes(COLS)), dtype=np.uint8)
    check_dot(live, kind, w, x)


def check_dot(live: Live, kind: str, w: np.ndarray, x: np.ndarray) -> None:
    theirs = [live.dot(kind, DOT[kind], w[i], live.quantize(DOT[kind], x[i]), x.shape[1]) for i in range(len(x))]
    assert (bits(impl.dot(kind, w, x)) == bits(np.array(theirs))).all()
