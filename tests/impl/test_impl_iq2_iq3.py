"""IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S against the live library, bit for bit, and by exact values."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pytest
from impl_child import in_a_child
from impl_live import Live, bits
from impl_rows import rows_with_specials
from impl_weights import imatrices, searched_rows

import impl
from impl.types import by_name

KINDS = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"]
ALONE = ["IQ2_S", "IQ3_XXS", "IQ3_S"]  # quantized without an imatrix, too
COLS = 768
Floats = npt.NDArray[np.float32]
ROWS = dict(searched_rows(2, COLS))
IMATRICES = {**dict(imatrices(COLS)), "-0.0": np.full(COLS, -0.0, np.float32)}
SPECIAL = {name: rows[:2, :256].copy() for name, rows in rows_with_specials()}
FEW = ["normal", "blocks of very different size", "some blocks zero", "of size 1e-23", "half-integers"]


def check(live: Live, kind: str, rows: Floats, imatrix: Floats | None) -> None:
    """Compare block by block; where the reference refuses a row, the library is not asked, since it would abort."""
    nbytes = by_name(kind).nbytes
    for row in rows.reshape(len(rows), 1, -1):
        try:
            ours = impl.quantize(kind, row, imatrix).reshape(-1, nbytes)
        except impl.InputError:
            continue
        theirs = live.quantize_chunk(kind, row, imatrix).reshape(-1, nbytes)
        assert np.flatnonzero((ours != theirs).any(axis=1)).tolist() == []


@pytest.mark.parametrize("kind", ALONE)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    check(live, kind, ROWS[rows], None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", ROWS)
def test_with_an_imatrix_rows_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    check(live, kind, ROWS[rows], IMATRICES["positive"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("imatrix", IMATRICES)
@pytest.mark.parametrize("rows", FEW)
def test_an_imatrix_weighs_alike(live: Live, kind: str, imatrix: str, rows: str) -> None:
    check(live, kind, ROWS[rows], IMATRICES[imatrix])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_common_sizes_are_not_refused(kind: str) -> None:
    for rows in [*FEW, "0.0", "-0.0", "of size 1e-40", "each block constant", "one outlier a block"]:
        for imatrix in ("positive", "all zero", "-0.0", "zero for half of the columns", "tiny"):
            assert impl.quantize(kind, ROWS[rows], IMATRICES[imatrix]).shape == (2, by_name(kind).row_bytes(COLS))


@pytest.mark.parametrize("kind", KINDS)
def test_an_imatrix_changes_something(kind: str) -> None:
    one, other = IMATRICES["positive"], IMATRICES["zero for half of the columns"]
    assert (impl.quantize(kind, ROWS["normal"], one) != impl.quantize(kind, ROWS["normal"], other)).any()


@pytest.mark.parametrize("kind", ["IQ2_XXS", "IQ2_XS"])
def test_two_types_need_an_imatrix(kind: str) -> None:
    with pytest.raises(impl.InputError, match=rf"{kind} is quantized with an imatrix only: give one, float32 of shape \({COLS},\)"):
        impl.quantize(kind, ROWS["normal"])


@pytest.mark.parametrize("kind", ALONE)
@pytest.mark.parametrize("rows", FEW)
def test_the_reference_function_is_the_path_without_an_imatrix(live: Live, kind: str, rows: str) -> None:
    assert (impl.quantize(kind, ROWS[rows], reference=True).reshape(-1) == live.quantize(kind, ROWS[rows])).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [*SPECIAL, "huge", "of size 1e+19", "bits of finite floats"])
def test_refused_is_what_the_library_aborts_on(live: Live, monkeypatch: pytest.MonkeyPatch, kind: str, rows: str) -> None:
    monkeypatch.setenv("GGML_NO_BACKTRACE", "1")
    live.quantize_chunk(kind, ROWS["normal"][:1], IMATRICES["positive"])  # its grid is set up here, not in each child
    for row in {**SPECIAL, **ROWS}[rows][:, np.newaxis, :256].copy():
        theirs = in_a_child(live, kind, row, IMATRICES["positive"][:256].copy())
        if theirs is None:
            with pytest.raises(impl.InputError, match="ggml aborts"):
                impl.quantize(kind, row, IMATRICES["positive"][:256])
        else:
            assert (impl.quantize(kind, row, IMATRICES["positive"][:256]).reshape(-1) == theirs).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_says_where_and_what(kind: str) -> None:
    rows = np.concatenate([ROWS["normal"], ROWS["normal"]])
    rows[2, 256:512] *= 1e17
    rows[2, 256 + 77] = -(2.0**60)
    with pytest.raises(impl.InputError, match=r"row 2, block 1: ggml aborts, .*element 77 of the block is -1.15\d+e\+18") as caught:
        impl.quantize(kind, rows, IMATRICES["positive"])
    assert re.search(rf"{kind} takes finite numbers", str(caught.value))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_refusal_shows_what_is_no_number(kind: str) -> None:
    rows = ROWS["normal"].copy()
    rows[1, 512 + 3] = np.nan
    rows[1, 512 + 5] = 1e30
    with pytest.raises(impl.InputError, match=r"row 1, block 2: ggml aborts, .*element 3 of the block is nan"):
        impl.quantize(kind, rows, IMATRICES["positive"])


def test_iq3_s_stores_what_follows_zeros_in_their_place(live: Live) -> None:
    """ggml goes on to the next sub-block without moving on, except for the ninth bits: the second one is stored as the first."""
    row = np.zeros((1, 256), np.float32)
    row[0, 32:64] = -np.arange(1, 33)
    plain = np.zeros((1, 256), np.float32)
    plain[0, :32] = row[0, 32:64]
    moved, expected = impl.quantize("IQ3_S", row)[0], impl.quantize("IQ3_S", plain)[0]
    assert (moved == live.quantize_chunk("IQ3_S", row, None)).all()
    assert (moved[2:66] == expected[2:66]).all()  # low bytes of the indices
    assert (moved[74:106] == expected[74:106]).all()  # signs
    assert moved[66:68].tolist() == [0, int(expected[66])]  # ninth bits
    assert moved[106:].tolist() == [int(expected[106]) << 4, 0, 0, 0]  # scales


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    """With every f16 scale, zeros, subnormals, infinities and NaNs among them."""
    blocks = np.random.default_rng(3).integers(0, 256, (1 << 16, by_name(kind).nbytes), dtype=np.uint8)
    blocks[:, :2] = np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    for part in np.array_split(blocks, 8):
        ours = impl.dequantize(kind, part, (len(part), 256))
        assert (bits(ours) == bits(live.dequantize(kind, part.reshape(-1)))).all()


def block_of(kind: str, fields: dict[int, bytes]) -> npt.NDArray[np.uint8]:
    """Give a block with a scale of 1.0, the rest 0 but for the bytes given by their places."""
    block = np.zeros(by_name(kind).nbytes, np.uint8)
    for place, data in {0: b"\x00\x3c", **fields}.items():
        block[place : place + len(data)] = np.frombuffer(data, np.uint8)
    return block


# The points by hand are from the tables in ggml/src/ggml-common.h.
def test_iq2_xxs_by_hand() -> None:
    """Four indices; in the second word 7 bits of signs each, their eighth added, and on top the scale's code, here 5."""
    block = block_of("IQ2_XXS", {2: bytes([0, 255, 0, 1]), 6: (1 | 3 << 7 | 5 << 28).to_bytes(4, "little")})
    values = impl.dequantize("IQ2_XXS", block, (256,)).reshape(8, 32) * 8
    assert values[0, :8].tolist() == [11 * v for v in [-8, 8, 8, 8, 8, 8, 8, -8]]
    assert values[0, 8:16].tolist() == [11 * v for v in [-8, -25, 8, 8, 25, 43, 43, 43]]
    assert values[0, 16:].tolist() == [11 * v for v in [8] * 8 + [43] + [8] * 7]
    assert values[1].tolist() == [8] * 32


def test_iq2_xs_by_hand() -> None:
    """Words of 9 bits of index and 7 of signs; two scales a byte, the low nibble first."""
    block = block_of("IQ2_XS", {2: (256 | 2 << 9).to_bytes(2, "little"), 6: (511).to_bytes(2, "little"), 66: b"\x31"})
    values = impl.dequantize("IQ2_XS", block, (256,)).reshape(16, 16) * 8
    assert values[0].tolist() == [3 * v for v in [43, -25, 8, 8, 8, 8, 8, -25] + [8] * 8]
    assert values[1].tolist() == [7 * v for v in [43] * 8 + [8] * 8]
    assert values[2].tolist() == [8] * 16


def test_iq2_s_by_hand() -> None:
    """Low bytes, signs, 8 for 8 elements, upper bit pairs, low pair first, and two scales a byte."""
    block = block_of("IQ2_S", {2: b"\x00\x00\x00\xff", 34: b"\x01", 66: bytes([1 | 2 << 2 | 3 << 4 | 3 << 6]), 74: b"\x20"})
    values = impl.dequantize("IQ2_S", block, (256,)).reshape(16, 16) * 8
    assert values[0].tolist() == [-25, 25, 25, 25, 25, 8, 25, 8, 25, 25, 43, 8, 25, 8, 8, 25]
    assert values[1].tolist() == [5 * v for v in [8, 43, 8, 25, 8, 8, 43, 25] + [43] * 8]


def test_iq3_xxs_by_hand() -> None:
    block = block_of("IQ3_XXS", {2: bytes([255, 1]), 66: (64 | 15 << 28).to_bytes(4, "little")})
    values = impl.dequantize("IQ3_XXS", block, (256,)).reshape(8, 32) * 4
    assert values[0, :8].tolist() == [31 * v for v in [4, 28, 52, 62, 20, 4, -4, -4]]
    assert values[0, 8:].tolist() == [31 * 4] * 24


def test_iq3_s_by_hand() -> None:
    """A scale's code c stands for 1 + 2 * c; the ninth bits are in element order."""
    block = block_of("IQ3_S", {2: bytes([0, 1, 255]), 66: bytes([0b110]), 74: bytes([0b10000]), 106: b"\xf0"})
    values = impl.dequantize("IQ3_S", block, (256,)).reshape(8, 32)
    assert values[0, :16].tolist() == [1, 1, 1, 1, -5, 7, 9, 5, 1, 1, 15, 15, 1, 1, 1, 1]
    assert values[1].tolist() == [31] * 32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [*ROWS, *SPECIAL])
def test_dot_products_have_the_same_bits(live: Live, kind: str, rows: str) -> None:
    x = {**ROWS, **SPECIAL}[rows]
    w = np.random.default_rng(5).integers(0, 256, (len(x), by_name(kind).row_bytes(x.shape[1])), dtype=np.uint8)
    some = impl.quantize(kind, ROWS["normal"][:, : x.shape[1]].copy(), IMATRICES["positive"][: x.shape[1]].copy())
    for weights in (w, some):
        theirs = [live.dot(kind, "Q8_K", weights[i], live.quantize("Q8_K", x[i]), x.shape[1]) for i in range(len(x))]
        assert (bits(impl.dot(kind, weights, x)) == bits(np.array(theirs))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_dot_products_whose_integer_sums_are_large(live: Live, kind: str) -> None:
    """All signs alike and all scales at their greatest: the integer sum of a block passes 24 bits, and is rounded as float32."""
    w = np.full((1, by_name(kind).row_bytes(512)), 0xFF, np.uint8)
    w.reshape(2, -1)[:, :2] = [0x34, 0x2E]
    x = np.where(np.random.default_rng(6).random((1, 512)) < 0.5, 1, 0.9).astype(np.float32)
    for signed in (x, -x):
        theirs = live.dot(kind, "Q8_K", w[0], live.quantize("Q8_K", signed[0]), 512)
        assert (bits(impl.dot(kind, w, signed)) == bits(np.array([theirs]))).all()
