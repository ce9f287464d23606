"""TQ1_0, TQ2_0, MXFP4, NVFP4, Q1_0 and Q2_0 against the live library, bit for bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from impl_live import Live, bits
from impl_rows import finite_rows, rows_with_specials
from impl_weights import searched_rows

import impl
from impl.types import by_name

F16_SCALE = {"TQ1_0": 52, "TQ2_0": 64, "Q1_0": 0, "Q2_0": 0}
"""Where the f16 scale stands in a block."""
KINDS = [*F16_SCALE, "MXFP4", "NVFP4"]
PARTNERS = {"TQ1_0": "Q8_K", "TQ2_0": "Q8_K", "Q1_0": "Q8_0", "Q2_0": "Q8_0", "MXFP4": "Q8_0", "NVFP4": "Q8_0"}
FINITE = {**dict(finite_rows()), **dict(searched_rows(2, 768))}
SPECIAL = dict(rows_with_specials())
NANS = [name for name, rows in SPECIAL.items() if not np.isinf(rows).any()]


def check(live: Live, kind: str, rows: npt.NDArray[np.float32], imatrix: npt.NDArray[np.float32] | None = None) -> None:
    nbytes = by_name(kind).nbytes
    ours = impl.quantize(kind, rows, imatrix).reshape(-1, nbytes)
    assert np.flatnonzero((ours != live.quantize_chunk(kind, rows, imatrix).reshape(-1, nbytes)).any(axis=1)).tolist() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", FINITE)
def test_finite_numbers_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    check(live, kind, FINITE[rows])


@pytest.mark.parametrize(
    ("kind", "rows"), [*((kind, rows) for kind in ("Q1_0", "NVFP4") for rows in SPECIAL), *(("MXFP4", rows) for rows in NANS)]
)
def test_specials_are_quantized_to_the_same_bytes_where_that_is_defined(live: Live, kind: str, rows: str) -> None:
    check(live, kind, SPECIAL[rows])


@pytest.mark.parametrize("kind", KINDS)
def test_an_imatrix_is_ignored_as_in_ggml(live: Live, kind: str) -> None:
    rows = FINITE["normal"]
    check(live, kind, rows, np.linspace(0, 9, rows.shape[1], dtype=np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_function_is_the_normal_path(live: Live, kind: str) -> None:
    rows = FINITE["normal"]
    assert (impl.quantize(kind, rows, reference=True).reshape(-1) == live.quantize(kind, rows)).all()


@pytest.mark.parametrize("kind", ["TQ1_0", "TQ2_0", "Q2_0"])
def test_numbers_beside_half_the_scale(live: Live, kind: str) -> None:
    rng = np.random.default_rng(1)
    greatest = rng.uniform(1, 2, (500, 1)).astype(np.float32)
    near = (rng.choice([-0.5, 0.5], (500, 256)).astype(np.float32) * greatest).view(np.int32)
    rows = (near + rng.integers(-2, 3, near.shape, dtype=np.int32)).view(np.float32)
    rows[:, ::64] = greatest
    check(live, kind, rows)


def test_mxfp4_at_every_power_of_two(live: Live) -> None:
    """Just below one, log2f is rounded up to it, the farther the larger the exponent is."""
    powers = np.append(np.ldexp(np.float32(1), np.arange(-149, 128)), np.inf).astype(np.float32).view(np.int32)
    greatest = (powers[:, np.newaxis] + np.arange(-100, 101, dtype=np.int32)).reshape(-1)
    greatest = greatest[(greatest > 0) & (greatest < 0x7F800000)].view(np.float32)
    rows = np.random.default_rng(2).uniform(-1, 1, (len(greatest), 32)).astype(np.float32) * greatest[:, np.newaxis]
    rows[:, 7] = greatest
    check(live, "MXFP4", rows)


@pytest.mark.parametrize("kind", ["MXFP4", "NVFP4"])
def test_numbers_beside_the_middles_of_fp4(live: Live, kind: str) -> None:
    rng = np.random.default_rng(3)
    scale = np.ldexp(np.float32(1), rng.integers(-9, 8, (2000, 1))).astype(np.float32)
    middles = rng.choice(
        np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.25, -0.75, -1.25, -1.75, -2.5, -3.5, -5], np.float32), (2000, 64)
    )
    rows = ((middles * scale).view(np.int32) + rng.integers(-2, 3, (2000, 64), dtype=np.int32)).view(np.float32)
    rows[:, ::16] = 6 * scale
    check(live, kind, rows)


def test_nvfp4_scales_beside_every_tie(live: Live) -> None:
    """Each UE4M3 scale, the middle to the next, and the float32 around both; below the smallest and above the largest too."""
    codes = np.arange(127, dtype=np.uint8)
    blocks = np.zeros((127, 36), np.uint8)
    blocks[:, 0], blocks[:, 4:] = codes, 7
    numbers = live.dequantize("NVFP4", blocks.reshape(-1)).reshape(127, 64)[:, 0]  # six times the scale
    places = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, [2688, 1e4, 1e6, 3e38, 1e-12]]).astype(np.float32)
    near = (places.view(np.int32)[:, np.newaxis] + np.arange(-8, 9, dtype=np.int32)).reshape(-1)
    greatest = near[near > 0].view(np.float32)[:, np.newaxis]
    rows = np.random.default_rng(4).uniform(-1, 1, (len(greatest), 64)).astype(np.float32) * greatest
    rows[:, ::16] = greatest
    check(live, "NVFP4", rows)


def test_nvfp4_far_above_its_largest_scale(live: Live) -> None:
    """Differences to the magnitudes are rounded, at last all to the same."""
    rng = np.random.default_rng(5)
    rows = (rng.standard_normal((4000, 64)) * 10.0 ** rng.uniform(2, 38, (4000, 1))).clip(-3e38, 3e38)
    check(live, "NVFP4", rows.astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    """With every f16 scale where there is one, zeros, subnormals, infinities and NaNs among them."""
    blocks = np.random.default_rng(3).integers(0, 256, (1 << 16, by_name(kind).nbytes), dtype=np.uint8)
    if kind in F16_SCALE:
        blocks[:, F16_SCALE[kind] : F16_SCALE[kind] + 2] = np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    for part in np.array_split(blocks, 8):
        ours = impl.dequantize(kind, part, (len(part), by_name(kind).block))
        assert (bits(ours) == bits(live.dequantize(kind, part.reshape(-1)))).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [*FINITE, *SPECIAL])
def test_dot_products_have_the_same_bits(live: Live, kind: str, rows: str) -> None:
    x = {**FINITE, **SPECIAL}[rows]
    w = np.random.default_rng(5).integers(0, 256, (len(x), by_name(kind).row_bytes(x.shape[1])), dtype=np.uint8)
    check_dot(live, kind, w, x)


@pytest.mark.parametrize("kind", KINDS)
def test_dot_products_of_long_rows(live: Live, kind: str) -> None:
    """All of one sign, so that sums pass 24 bits and the order of products and sums shows."""
    rng = np.random.default_rng(6)
    x, weights = rng.uniform(0.5, 1, (2, 40, 4096)).astype(np.float32)
    check_dot(live, kind, impl.quantize(kind, weights), x)


def check_dot(live: Live, kind: str, w: npt.NDArray[np.uint8], x: npt.NDArray[np.float32]) -> None:
    partner = PARTNERS[kind]
    theirs = [live.dot(kind, partner, w[i], live.quantize(partner, x[i]), x.shape[1]) for i in range(len(x))]
    assert (bits(impl.dot(kind, w, x)) == bits(np.array(theirs))).all()
