"""IQ1_S and IQ1_M against the live library, bit for bit, and by exact values."""

from __future__ import annotations

import numpy as np
import pytest
from impl_child import in_a_child
from impl_live import Live, bits
from impl_rows import rows_with_specials
from impl_weights import Floats, imatrices, searched_rows

import impl
from impl.types import by_name

KINDS = ["IQ1_S", "IQ1_M"]
SIZE = {"IQ1_S": 32, "IQ1_M": 16}
COLS = 768
ROWS = dict(searched_rows(2, COLS))
IMATRICES = dict(imatrices(COLS))
SPECIAL = {name: rows[:4] for name, rows in rows_with_specials()}
# Squares or weights of these overflow; the library aborts on some, and would end these tests.
LARGE = ("of size 1e+19", "huge", "bits of finite floats", "all sizes within a block")
FEW = ["normal", "blocks of very different size", "some blocks zero", "of size 1e-23", "few values"]


def check(live: Live, kind: str, rows: Floats, imatrix: Floats | None) -> None:
    nbytes = by_name(kind).nbytes
    ours = impl.quantize(kind, rows, imatrix).reshape(-1, nbytes)
    assert np.flatnonzero((ours != live.quantize_chunk(kind, rows, imatrix).reshape(-1, nbytes)).any(axis=1)).tolist() == []


@pytest.mark.parametrize("rows", [name for name in ROWS if name not in LARGE])
def test_iq1_m_without_an_imatrix(live: Live, rows: str) -> None:
    check(live, "IQ1_M", ROWS[rows], None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [name for name in ROWS if name not in LARGE])
def test_with_an_imatrix_rows_are_quantized_to_the_same_bytes(live: Live, kind: str, rows: str) -> None:
    check(live, kind, ROWS[rows], IMATRICES["positive"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("imatrix", IMATRICES)
@pytest.mark.parametrize("rows", FEW)
def test_an_imatrix_weighs_alike(live: Live, kind: str, imatrix: str, rows: str) -> None:
    check(live, kind, ROWS[rows], IMATRICES[imatrix])


@pytest.mark.parametrize("kind", KINDS)
def test_an_imatrix_changes_something(kind: str) -> None:
    one, other = IMATRICES["positive"], IMATRICES["zero for half of the columns"]
    assert (impl.quantize(kind, ROWS["normal"], one) != impl.quantize(kind, ROWS["normal"], other)).any()


def test_iq1_s_needs_an_imatrix() -> None:
    with pytest.raises(impl.InputError, match="IQ1_S is quantized with an imatrix only"):
        impl.quantize("IQ1_S", ROWS["normal"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cols", [256, 512, 2816])
def test_any_number_of_blocks(live: Live, kind: str, cols: int) -> None:
    """16 sub-blocks are worked on side by side: one super-block of IQ1_M, two of IQ1_S."""
    rows = np.random.default_rng(cols).standard_normal((3, cols)).astype(np.float32)
    check(live, kind, rows, dict(imatrices(cols))["positive"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("imatrix", [None, "positive", "huge"])
@pytest.mark.parametrize("rows", [*SPECIAL, *LARGE, "positive"])
def test_refused_is_what_the_library_aborts_on(
    live: Live, monkeypatch: pytest.MonkeyPatch, kind: str, imatrix: str | None, rows: str
) -> None:
    monkeypatch.setenv("GGML_NO_BACKTRACE", "1")
    x = {**SPECIAL, **ROWS}[rows][:, :256]
    weights = None if imatrix is None else IMATRICES[imatrix][:256].copy()
    if kind == "IQ1_S" and weights is None:
        weights = np.ones(256, np.float32)
    live.quantize_chunk(kind, ROWS["normal"], IMATRICES["positive"])  # its grid is set up here, not in each child
    for row in x[:, np.newaxis].copy():
        theirs = in_a_child(live, kind, row, weights)
        if theirs is None:
            with pytest.raises(impl.InputError, match=r"row 0, block 0, elements .*: ggml "):
                impl.quantize(kind, row, weights)
        else:
            assert (impl.quantize(kind, row, weights).reshape(-1) == theirs).all()


def balanced(kind: str, rng: np.random.Generator) -> Floats:
    """A sub-block of as many large numbers above zero as below, so large that distances are infinite; all else is small."""
    size, large = SIZE[kind], {"IQ1_S": 2.0**43, "IQ1_M": 2.0**33}[kind]
    rows = rng.standard_normal((6, 1024)).astype(np.float32)
    for row in rows[:2]:
        start = 256 * rng.integers(0, 4)
        row[start : start + size] = rng.permutation(np.repeat([-large, large], size // 2))
    return rows


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_near_point_the_whole_grid_is_searched_with_the_wrong_numbers(live: Live, kind: str) -> None:
    """There ggml takes a number by the index of the grid's point, not of the element: from later blocks and rows, too."""
    rng = np.random.default_rng(7)
    imatrix = None if kind == "IQ1_M" else np.full(1024, 1 / np.sqrt(1.25), np.float32)  # weights come out as powers of two
    for _ in range(5):
        check(live, kind, balanced(kind, rng), imatrix)


@pytest.mark.parametrize("kind", KINDS)
def test_what_ggml_reads_behind_its_input_is_refused(kind: str) -> None:
    rng = np.random.default_rng(7)
    imatrix = None if kind == "IQ1_M" else np.full(1024, 1 / np.sqrt(1.25), np.float32)
    rows = balanced(kind, rng)[[3, 4, 1]]  # less than the grid's 2048 numbers follow
    with pytest.raises(impl.InputError, match=r"row 2, block \d, elements 0 to \d+: .*reads on beyond its input") as caught:
        for _ in range(5):
            impl.quantize(kind, rows, imatrix)
            rows = balanced(kind, rng)[[3, 4, 1]]
    assert "the greatest is 8" in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_says_where(kind: str) -> None:
    rows = np.concatenate([ROWS["normal"], ROWS["normal"]])
    rows[2, 256 + 64 : 256 + 64 + SIZE[kind]] = 2.0**100
    with pytest.raises(impl.InputError, match=rf"row 2, block 1, elements 64 to {63 + SIZE[kind]}: .*ggml aborts; .* 1.26765e\+30"):
        impl.quantize(kind, rows, IMATRICES["positive"])


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_are_dequantized_to_the_same_floats(live: Live, kind: str) -> None:
    """With every f16 scale, zeros, subnormals, infinities and NaNs among them."""
    blocks = np.random.default_rng(3).integers(0, 256, (1 << 16, by_name(kind).nbytes), dtype=np.uint8)
    d = np.arange(1 << 16, dtype=np.uint16)
    if kind == "IQ1_S":
        blocks[:, :2] = d.astype("<u2").view(np.uint8).reshape(-1, 2)
    else:
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (d >> 4 * i & 15) << 4
    for part in np.array_split(blocks, 8):
        ours = impl.dequantize(kind, part, (len(part), 256))
        assert (bits(ours) == bits(live.dequantize(kind, part.reshape(-1)))).all()


# The first and last points of ``iq1s_grid`` in ggml/src/ggml-common.h.
POINTS = {0: [-1] * 8, 1: [1, *[-1] * 7], 2: [0, 0, *[-1] * 6], 2047: [1] * 8}


def test_iq1_s_index_code_and_shift() -> None:
    """Upper index bits stand 3 by 3 in each word, the code of 32 elements above, the shift on top."""
    low, high = [0, 1, 2, 255], [0, 0, 0, 7]
    words = [sum(high[i] << 3 * i for i in range(4)) | code << 12 | (code % 2) << 15 for code in range(8)]
    block = np.array([0, 0x3C, *low * 8, *(byte for word in words for byte in word.to_bytes(2, "little"))], np.uint8)
    values = impl.dequantize("IQ1_S", block, (256,)).reshape(8, 4, 8)
    points = np.array([POINTS[index] for index in (0, 1, 2, 2047)])
    for code in range(8):
        assert (values[code] == (2 * code + 1) * (points + (-0.125 if code % 2 else 0.125))).all()


def test_iq1_m_index_codes_and_shifts() -> None:
    """A nibble for each 8 elements: upper index bits, shift on top. Words: four codes of 16 elements, 4 bits of d on top."""
    low, nibbles = [0, 1, 2, 255], [0, 8, 0, 15]
    high = [nibbles[0] | nibbles[1] << 4, nibbles[2] | nibbles[3] << 4]
    codes = [(3 * i + 1) % 8 for i in range(16)]
    d = [0, 0, 0xC, 0x3]  # 0x3C00 is 1.0
    words = [sum(codes[4 * i + j] << 3 * j for j in range(4)) | d[i] << 12 for i in range(4)]
    block = np.array([*low * 8, *high * 8, *(byte for word in words for byte in word.to_bytes(2, "little"))], np.uint8)
    values = impl.dequantize("IQ1_M", block, (256,)).reshape(8, 4, 8)
    moved = np.array([POINTS[index] for index in (0, 1, 2, 2047)]) + np.array([[0.125], [-0.125], [0.125], [-0.125]])
    factors = np.array([2 * code + 1 for code in codes]).reshape(8, 2)
    assert (values == np.repeat(factors, 2, axis=1)[:, :, np.newaxis] * moved).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [*ROWS, *SPECIAL])
def test_dot_products_have_the_same_bits(live: Live, kind: str, rows: str) -> None:
    x = {**ROWS, **SPECIAL}[rows]
    w = np.random.default_rng(5).integers(0, 256, (len(x), by_name(kind).row_bytes(x.shape[1])), dtype=np.uint8)
    theirs = [live.dot(kind, "Q8_K", w[i], live.quantize("Q8_K", x[i]), x.shape[1]) for i in range(len(x))]
    assert (bits(impl.dot(kind, w, x)) == bits(np.array(theirs))).all()
