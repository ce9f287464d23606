"""Q2_K to Q6_K against the live library, bit for bit, and their layouts by exact values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from impl_live import Live, bits
from impl_rows import finite_rows, rows_with_specials

import impl
from impl.types import by_name

KINDS = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
HALVES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
ONE = np.float16(1).view(np.uint16)


def random_blocks(kind: str, count: int, seed: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, by_name(kind).nbytes), dtype=np.uint8)


def check_dequantize(live: Live, kind: str, blocks: npt.NDArray[np.uint8]) -> None:
    ours = impl.dequantize(kind, blocks, (len(blocks), 256))
    assert (bits(ours) == bits(live.dequantize(kind, blocks.reshape(-1)))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    check_dequantize(live, kind, random_blocks(kind, 3000, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_every_f16_scale_is_taken_alike(live: Live, kind: str) -> None:
    """All 65,536 patterns at each place, zeros, subnormals, infinities and NaNs among them, over random codes."""
    for at in HALVES[kind]:
        for part in range(0, 1 << 16, 1 << 14):
            blocks = random_blocks(kind, 1 << 14, 4)
            blocks[:, at : at + 2] = np.arange(part, part + (1 << 14)).astype("<u2").view(np.uint8).reshape(-1, 2)
            check_dequantize(live, kind, blocks)


def block(kind: str, **fields: list[int]) -> npt.NDArray[np.uint8]:
    """Give one block of zeros with the given bytes at the start of the named fields, and d = dmin = 1."""
    starts = {"Q2_K": {"scales": 0, "qs": 16}, "Q3_K": {"hmask": 0, "qs": 32, "scales": 96}}[kind]
    made = np.zeros(by_name(kind).nbytes, np.uint8)
    for at in HALVES[kind]:
        made[at : at + 2].view(np.uint16)[:] = ONE
    for name, values in fields.items():
        made[starts[name] : starts[name] + len(values)] = values
    return made


def test_q2_k_has_scale_in_the_low_nibble_and_four_runs_a_byte() -> None:
    y = impl.dequantize("Q2_K", block("Q2_K", scales=[0x52, 0, 0x01, 0, 0x03], qs=[0b11100100]), (256,))
    assert y[[0, 1, 32, 64, 96]].tolist() == [2 * 0 - 5, -5, 1, 3 * 2, 0]


def test_q3_k_subtracts_4_where_the_high_bit_is_clear() -> None:
    y = impl.dequantize("Q3_K", block("Q3_K", hmask=[1], qs=[0b00001010], scales=[1, *[0] * 7, 2]), (256,))
    assert y[[0, 1, 32]].tolist() == [2 * (1 + 2 * 16 - 32), -4 * (1 + 2 * 16 - 32), (2 - 4) * -32]


FINITE = {name: rows.reshape(-1, 512) for name, rows in finite_rows()}
SPECIAL = {name: rows.reshape(-1, 512) for name, rows in rows_with_specials()}
IMATRICES: dict[str, Callable[[np.random.Generator, int], npt.NDArray[np.float64]]] = {
    "positive": lambda rng, cols: rng.random(cols),
    "all zero": lambda _, cols: np.zeros(cols),
    "zero for one sub-block": lambda rng, cols: np.where(np.arange(cols) // 32 == 3, 0, rng.random(cols)),
    "zero for one column": lambda rng, cols: np.where(np.arange(cols) == 5, 0, rng.random(cols)),
    "tiny": lambda rng, cols: rng.random(cols) * 1e-10,
    "huge": lambda rng, cols: rng.random(cols) * 1e30,
    "of all sizes": lambda rng, cols: 10.0 ** rng.uniform(-20, 20, cols),
    "of both signs": lambda rng, cols: rng.standard_normal(cols),
}


def imatrix_of(name: str, cols: int) -> npt.NDArray[np.float32]:
    return IMATRICES[name](np.random.default_rng(8), cols).astype(np.float32)


def unlike_sub_blocks(rows: int, cols: int) -> npt.NDArray[np.float32]:
    """Sub-blocks of very different size: among others, such whose own scale is stored as 0."""
    rng = np.random.default_rng(9)
    sizes = np.repeat(10.0 ** rng.uniform(-6, 2, (rows, cols // 16)), 16, axis=1)
    return (rng.standard_normal((rows, cols)) * sizes).astype(np.float32)


def check_quantize(live: Live, kind: str, rows: npt.NDArray[np.float32], imatrix: npt.NDArray[np.float32] | None = None) -> None:
    assert (impl.quantize(kind, rows, imatrix).reshape(-1) == live.quantize_chunk(kind, rows, imatrix)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [*FINITE, *SPECIAL])
def test_rows_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    check_quantize(live, kind, {**FINITE, **SPECIAL}[rows])


@pytest.mark.parametrize("kind", KINDS)
def test_sub_blocks_of_very_different_size(live: Live, kind: str) -> None:
    rows = unlike_sub_blocks(40, 1024)
    check_quantize(live, kind, rows)
    check_quantize(live, kind, rows, imatrix_of("positive", 1024))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", IMATRICES)
def test_with_an_imatrix(live: Live, kind: str, name: str) -> None:
    imatrix = imatrix_of(name, 512)
    for name_of_rows in (
        "random",
        "half-integers",
        "huge",
        "subnormal",
        "bits of finite floats",
        "constant",
        "both zeros, the rest negative",
    ):
        check_quantize(live, kind, FINITE[name_of_rows], imatrix)
    for rows in SPECIAL.values():
        check_quantize(live, kind, rows, imatrix)


@pytest.mark.parametrize("kind", KINDS)
def test_the_imatrix_starts_anew_with_each_row(live: Live, kind: str) -> None:
    """71 rows of three super-blocks: groups of 64 are worked on together, and begin in the midst of rows; the last is short."""
    rows = np.random.default_rng(10).standard_normal((71, 768)).astype(np.float32)
    check_quantize(live, kind, rows, imatrix_of("positive", 768))
    assert (impl.quantize(kind, rows) != impl.quantize(kind, rows, imatrix_of("positive", 768))).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_function_is_the_path_without_an_imatrix(live: Live, kind: str) -> None:
    rows = FINITE["random"]
    assert (impl.quantize(kind, rows, reference=True).reshape(-1) == live.quantize(kind, rows)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_give_no_bytes(kind: str) -> None:
    assert impl.quantize(kind, np.zeros((0, 256), np.float32)).shape == (0, by_name(kind).nbytes)


def check_dot(live: Live, kind: str, w: npt.NDArray[np.uint8], x: npt.NDArray[np.float32]) -> None:
    theirs = [live.dot(kind, "Q8_K", w[i], live.quantize("Q8_K", x[i]), x.shape[1]) for i in range(len(x))]
    assert (bits(impl.dot(kind, w, x)) == bits(np.array(theirs))).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cols", [256, 512, 4096])
def test_dot_products_have_the_same_bits(live: Live, kind: str, cols: int) -> None:
    rng = np.random.default_rng(cols)
    x = (rng.standard_normal((40, cols)) * 10.0 ** rng.integers(-6, 7, (40, 1))).astype(np.float32)
    check_dot(live, kind, impl.quantize(kind, rng.standard_normal((40, cols)).astype(np.float32)), x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [*FINITE, *SPECIAL])
def test_dot_products_with_every_kind_of_row(live: Live, kind: str, rows: str) -> None:
    """Weights are random bytes: scales of all sizes, and all codes and sub-block scales."""
    x = {**FINITE, **SPECIAL}[rows]
    check_dot(live, kind, random_blocks(kind, 2 * len(x), 5).reshape(len(x), -1), x)


@pytest.mark.parametrize("kind", KINDS)
def test_dot_products_of_one_sign_round_their_sums(live: Live, kind: str) -> None:
    """A super-block's integer sums pass 24 bits, or nearly: all codes, scales and quants are large."""
    rng = np.random.default_rng(6)
    w = rng.integers(0xF0, 0x100, (60, 3 * by_name(kind).nbytes), dtype=np.uint8)
    for at in HALVES[kind]:
        w.reshape(60, 3, -1)[:, :, at : at + 2] = rng.uniform(1, 2, (60, 3, 1)).astype("<f2").view(np.uint8)
    check_dot(live, kind, w, rng.uniform(0.9, 1, (60, 768)).astype(np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_about_the_size_that_counts_as_zero(live: Live, kind: str) -> None:
    """1e-15 is where ggml takes a sub-block, or a Q6_K's greatest scale, for zero; codes under a scale stored as 0 show it."""
    rng = np.random.default_rng(12)
    rows = (rng.standard_normal((64, 512)) * 10.0 ** rng.uniform(-17, -12, (64, 1))).astype(np.float32)
    check_quantize(live, kind, rows)
    check_quantize(live, kind, rows, imatrix_of("positive", 512))
