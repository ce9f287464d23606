"""IQ4_NL and IQ4_XS against the live library, bit for bit, and by exact values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from impl_live import Live, bits
from impl_rows import rows_with_specials
from impl_weights import imatrices, searched_rows

import impl
from impl.blocks.api import COMPILED_PIECE
from impl.types import by_name

KINDS = ["IQ4_NL", "IQ4_XS"]
COLS = 768
ROWS = dict(searched_rows(2, COLS))
IMATRICES = dict(imatrices(COLS))
SPECIAL = dict(rows_with_specials())
LEVELS = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def check(live: Live, kind: str, rows: npt.NDArray[np.float32], imatrix: npt.NDArray[np.float32] | None = None) -> None:
    nbytes = by_name(kind).nbytes
    ours = impl.quantize(kind, rows, imatrix).reshape(-1, nbytes)
    assert np.flatnonzero((ours != live.quantize_chunk(kind, rows, imatrix).reshape(-1, nbytes)).any(axis=1)).tolist() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    check(live, kind, ROWS[rows])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", SPECIAL)
def test_specials_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    """Nothing here is turned into an integer by C's own conversion, so that NaN and infinities have defined answers."""
    check(live, kind, SPECIAL[rows])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("imatrix", IMATRICES)
@pytest.mark.parametrize("rows", ["normal", "blocks of very different size", "some blocks zero", "of size 1e-23", "huge"])
def test_an_imatrix_weighs_alike(live: Live, kind: str, imatrix: str, rows: str) -> None:
    check(live, kind, ROWS[rows], IMATRICES[imatrix])


@pytest.mark.parametrize("kind", KINDS)
def test_an_imatrix_changes_something(kind: str) -> None:
    assert (impl.quantize(kind, ROWS["normal"], IMATRICES["positive"]) != impl.quantize(kind, ROWS["normal"])).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [1, 63, 64, 65])
def test_any_number_of_blocks(live: Live, kind: str, blocks: int) -> None:
    """64 blocks of 32 are worked on side by side."""
    cols = blocks * by_name(kind).block
    rows = np.random.default_rng(blocks).standard_normal((3, cols)).astype(np.float32)
    check(live, kind, rows)
    check(live, kind, rows, dict(imatrices(cols + 32))["positive"][:cols])


def test_iq4_nl_middles_belong_to_the_level_above(live: Live) -> None:
    """Numbers at and beside the middles, in blocks whose best scale is exactly 1."""
    levels = np.array(LEVELS, np.float32)
    middles = (levels[1:] + levels[:-1]) / 2
    rng = np.random.default_rng(0)
    near = (rng.choice(middles, (200, 32)).view(np.int32) + rng.integers(-1, 2, (200, 32), dtype=np.int32)).view(np.float32)
    rows = np.where(np.arange(32) < 12, rng.choice(levels, (200, 32)), near)
    rows[:, 0] = -127
    check(live, "IQ4_NL", rows)
    imatrix = np.where(np.arange(32) < 12, 1, 0).astype(np.float32)
    check(live, "IQ4_NL", rows, imatrix)
    assert (impl.quantize("IQ4_NL", rows, imatrix)[:, :2].copy().view(np.float16) == 1).all()


@pytest.mark.parametrize("rows", ROWS)
def test_iq4_nl_reference_function(live: Live, rows: str) -> None:
    x = np.concatenate([ROWS["normal"][:1], ROWS[rows]])  # a block with something in it comes first
    assert (impl.quantize("IQ4_NL", x, reference=True).reshape(-1) == live.quantize("IQ4_NL", x)).all()


def test_iq4_nl_reference_function_differs_from_the_normal_path() -> None:
    blocks = np.random.default_rng(1).standard_normal((4000, 32)).astype(np.float32)
    differ = (impl.quantize("IQ4_NL", blocks, reference=True) != impl.quantize("IQ4_NL", blocks)).any(axis=1)
    assert 0.55 < differ.mean() < 0.75


def test_iq4_nl_reference_function_repeats_codes_in_an_empty_block(live: Live) -> None:
    """ggml does not clear its buffer; also where a piece that is worked on at a time starts with such a block."""
    blocks = np.random.default_rng(2).standard_normal((COMPILED_PIECE // 32 + 3, 32)).astype(np.float32)
    blocks[[1, 2, COMPILED_PIECE // 32 - 1, COMPILED_PIECE // 32]] = 0
    ours = impl.quantize("IQ4_NL", blocks, reference=True)
    assert (ours.reshape(-1) == live.quantize("IQ4_NL", blocks)).all()
    assert (ours[2, 2:] == ours[0, 2:]).all()


def test_iq4_nl_reference_function_of_a_first_block_without_anything_is_refused() -> None:
    with pytest.raises(impl.InputError, match=r"block 0 .*1e-15"):
        impl.quantize("IQ4_NL", np.zeros((1, 32), np.float32), reference=True)


def test_iq4_xs_reference_function_is_the_normal_path(live: Live) -> None:
    rows = ROWS["normal"]
    assert (impl.quantize("IQ4_XS", rows, reference=True).reshape(-1) == live.quantize("IQ4_XS", rows)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    """With every f16 scale, zeros, subnormals, infinities and NaNs among them."""
    blocks = np.random.default_rng(3).integers(0, 256, (1 << 16, by_name(kind).nbytes), dtype=np.uint8)
    blocks[:, :2] = np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    for part in np.array_split(blocks, 8):
        ours = impl.dequantize(kind, part, (len(part), by_name(kind).block))
        assert (bits(ours) == bits(live.dequantize(kind, part.reshape(-1)))).all()


def test_iq4_nl_low_nibbles_first() -> None:
    block = np.array([0, 0x3C, *(i | (15 - i) << 4 for i in range(16))], np.uint8)  # 0x3C00 is 1.0
    assert impl.dequantize("IQ4_NL", block, (32,)).tolist() == [*LEVELS, *LEVELS[::-1]]


def test_iq4_xs_every_block_has_its_own_scale() -> None:
    scales = [0, 63, 33, 18, 47, 5, 60, 30]
    low = [scales[i] & 15 | (scales[i + 1] & 15) << 4 for i in range(0, 8, 2)]
    high = sum((scale >> 4) << 2 * i for i, scale in enumerate(scales))
    block = np.array([0, 0x3C, *high.to_bytes(2, "little"), *low, *[0xF8] * 128], np.uint8)  # codes 8 and 15: levels 1 and 113
    values = impl.dequantize("IQ4_XS", block, (256,)).reshape(8, 32)
    assert values[:, 0].tolist() == [scale - 32 for scale in scales]
    assert values[:, 31].tolist() == [113 * (scale - 32) for scale in scales]


@pytest.mark.parametrize(("kind", "partner"), [("IQ4_NL", "Q8_0"), ("IQ4_XS", "Q8_K")])
@pytest.mark.parametrize("rows", [*ROWS, *SPECIAL])
def test_dot_products_have_the_same_bits(live: Live, kind: str, partner: str, rows: str) -> None:
    x = {**ROWS, **SPECIAL}[rows]
    w = np.random.default_rng(5).integers(0, 256, (len(x), by_name(kind).row_bytes(x.shape[1])), dtype=np.uint8)
    for weights in (w, impl.quantize(kind, x[::-1].copy())):
        theirs = [live.dot(kind, partner, weights[i], live.quantize(partner, x[i]), x.shape[1]) for i in range(len(x))]
        assert (bits(impl.dot(kind, weights, x)) == bits(np.array(theirs))).all()
