"""Blocks by exact values: layouts, rounding, the edges, and what is refused."""

from __future__ import annotations

import importlib
import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import impl
from impl import InputError, UnsupportedError
from impl.blocks import FAMILIES, SUPPORTED
from impl.blocks.api import PIECE, codec
from impl.blocks.rounding import rounded, to_f16, truncated
from impl.types import by_name

f16 = np.float16


def q8_0(values: list[float]) -> tuple[np.float16, list[int], list[float]]:
    """Quantize one block; give its scale, its quants and what they stand for."""
    block = impl.quantize("Q8_0", np.array(values, np.float32))
    return block[:2].view(f16)[0], block[2:].view(np.int8).tolist(), impl.dequantize("Q8_0", block, (32,)).tolist()


def ramp(step: float) -> list[float]:
    return [step * i for i in range(32)]


def test_q8_0_zeros() -> None:
    assert q8_0([0.0] * 32) == (0, [0] * 32, [0.0] * 32)


def test_q8_0_tiny_loses_its_scale_and_keeps_its_quants() -> None:
    d, quants, back = q8_0(ramp(1e-9))
    assert (d, quants[:5], back) == (0, [0, 4, 8, 12, 16], [0.0] * 32)


def test_q8_0_huge_has_an_infinite_scale() -> None:
    d, quants, back = q8_0(ramp(1e7))
    assert (d, quants[:5]) == (np.inf, [0, 4, 8, 12, 16])
    assert math.isnan(back[0])
    assert back[1:] == [math.inf] * 31


def test_q8_0_one_infinity_takes_its_block_along_and_not_the_next() -> None:
    values = np.array([*ramp(1), *ramp(1)], np.float32)
    values[3] = np.inf
    blocks = impl.quantize("Q8_0", values)
    assert blocks[:2].view(f16)[0] == np.inf
    assert not blocks[2:34].any()
    back = impl.dequantize("Q8_0", blocks, (64,))
    assert np.isnan(back[:32]).all()
    assert np.abs(back[32:] - np.array(ramp(1))).max() < 0.13


def test_q8_0_a_nan_becomes_0_and_the_scale_comes_from_the_others() -> None:
    values = ramp(1)
    values[3] = math.nan
    d, quants, back = q8_0(values)
    assert (d, quants[:5], back[3]) == (f16(0.24414063), [0, 4, 8, 0, 16], 0.0)


def test_q8_0_rounds_half_away_from_zero() -> None:
    d, quants, _ = q8_0([127.0, *(i + 0.5 for i in range(1, 32))])
    assert (d, quants[:4]) == (1, [127, 2, 3, 4])
    assert q8_0([127.0, *(-i - 0.5 for i in range(1, 32))])[1][:4] == [127, -2, -3, -4]


def test_q8_0_never_gives_minus_128() -> None:
    rng = np.random.default_rng(0)
    quants = impl.quantize("Q8_0", rng.standard_normal((4096, 32)).astype(np.float32))[:, 2:].view(np.int8)
    assert (quants.min(), quants.max()) == (-127, 127)


def test_q8_0_divides_by_the_scale_before_it_is_stored() -> None:
    """With d = 1.0003 stored as 1.0, 63.519 over d is 63.49995 and over the stored scale 63.519."""
    d = Fraction(1.0003)
    assert q8_0([float(127 * d), 63.519, *[0.0] * 30])[1][1] == 63


def test_q4_0_low_nibbles_first() -> None:
    """Byte i holds element i below and element i + 16 above, both less 8."""
    block = np.array([0, 0x3C, *(j | (15 - j) << 4 for j in range(16))], np.uint8)  # 0x3C00 is 1.0
    assert impl.dequantize("Q4_0", block, (32,)).tolist() == [*range(-8, 8), *range(7, -9, -1)]


def test_q4_1_scale_then_minimum_then_codes() -> None:
    block = np.array([0, 0x3C, 0, 0x38, *(j | (15 - j) << 4 for j in range(16))], np.uint8)  # 0x3800 is 0.5
    assert impl.dequantize("Q4_1", block, (32,)).tolist() == [*(j + 0.5 for j in range(16)), *(15.5 - j for j in range(16))]


@pytest.mark.parametrize(("kind", "shift", "head"), [("Q5_0", -16, [0, 0x3C]), ("Q5_1", 0.5, [0, 0x3C, 0, 0x38])])
def test_q5_fifth_bits_are_in_element_order(kind: str, shift: float, head: list[int]) -> None:
    codes = [(7 * i) % 32 for i in range(32)]
    high = sum((code >> 4) << i for i, code in enumerate(codes)).to_bytes(4, "little")
    low = [codes[i] & 15 | (codes[i + 16] & 15) << 4 for i in range(16)]
    block = np.array([*head, *high, *low], np.uint8)
    assert impl.dequantize(kind, block, (32,)).tolist() == [code + shift for code in codes]


def k_scales(scales: list[int], minima: list[int]) -> list[int]:
    """Pack eight 6-bit scales and minima into 12 bytes: the definition, bit by bit, written independently."""
    packed = [0] * 12
    for j in range(4):
        packed[j] = scales[j] | (scales[j + 4] >> 4) << 6
        packed[j + 4] = minima[j] | (minima[j + 4] >> 4) << 6
        packed[j + 8] = scales[j + 4] & 15 | (minima[j + 4] & 15) << 4
    return packed


SCALES, MINIMA = [1, 18, 35, 63, 2, 17, 33, 62], [0, 21, 40, 63, 5, 16, 47, 61]


def test_q4_k_every_sub_block_has_its_own_scale_and_minimum() -> None:
    codes = [(5 * i + i // 32) % 16 for i in range(256)]
    qs = [codes[64 * (j // 32) + j % 32] | codes[64 * (j // 32) + 32 + j % 32] << 4 for j in range(128)]
    block = np.array([0, 0x3C, 0, 0x38, *k_scales(SCALES, MINIMA), *qs], np.uint8)
    expected = [SCALES[i // 32] * code - 0.5 * MINIMA[i // 32] for i, code in enumerate(codes)]
    assert impl.dequantize("Q4_K", block, (256,)).tolist() == expected


def test_q5_k_has_the_fifth_bits_of_eight_sub_blocks_in_each_byte() -> None:
    codes = [(11 * i + i // 32) % 32 for i in range(256)]
    qh = [sum((codes[32 * sub + j] >> 4) << sub for sub in range(8)) for j in range(32)]
    qs = [codes[64 * (j // 32) + j % 32] & 15 | (codes[64 * (j // 32) + 32 + j % 32] & 15) << 4 for j in range(128)]
    block = np.array([0, 0x3C, 0, 0x38, *k_scales(SCALES, MINIMA), *qh, *qs], np.uint8)
    expected = [SCALES[i // 32] * code - 0.5 * MINIMA[i // 32] for i, code in enumerate(codes)]
    assert impl.dequantize("Q5_K", block, (256,)).tolist() == expected


def test_q6_k_codes_and_sixteen_signed_scales() -> None:
    codes = [(13 * i + i // 16) % 64 for i in range(256)]
    scales = [(37 * j) % 256 - 128 for j in range(16)]
    ql, qh = [0] * 128, [0] * 64
    for i, code in enumerate(codes):
        half, group, j = i // 128, i % 128 // 32, i % 32
        ql[64 * half + 32 * (group % 2) + j] |= (code & 15) << 4 * (group // 2)
        qh[32 * half + j] |= (code >> 4) << 2 * group
    block = np.array([*ql, *qh, *(s % 256 for s in scales), 0, 0x38], np.uint8)
    assert impl.dequantize("Q6_K", block, (256,)).tolist() == [0.5 * scales[i // 16] * (code - 32) for i, code in enumerate(codes)]


def test_q8_1_stores_the_sum_of_its_quants_times_its_scale() -> None:
    block = impl.quantize("Q8_1", np.array([127, 1, 2, -3, *[0] * 28], np.float32))
    assert block[:4].view(f16).tolist() == [1, 127]
    assert block[4:].view(np.int8).tolist() == [127, 1, 2, -3, *[0] * 28]


def test_dot_adds_the_blocks_in_order() -> None:
    """From left to right each 1 is lost on 2^24, the exact sum being 2^24 + 15; added in pairs they would not all be."""
    x = np.tile(np.array([127, *[1] * 31], np.float32), 16)  # each block: scale 1, quants as they are
    blocks = np.zeros((16, 34), np.uint8)
    blocks[:, :2] = np.array([1.0], f16).view(np.uint8)
    blocks[1:, 3] = 1
    blocks[0, :2] = np.array([1024.0], f16).view(np.uint8)
    blocks[0, 2:6] = [127, 127, 127, 1]  # 127 * 127 + 127 + 127 + 1 = 2^14
    assert impl.dot("Q8_0", blocks, x) == 2**24
    assert impl.dot("Q8_0", blocks[::-1], x) == 2**24 + 16  # the ones first: 15 is added at once, and rounded to even


def test_the_dot_of_nothing_negative_is_plus_zero() -> None:
    blocks = impl.quantize("Q8_0", np.full(32, -1.0, np.float32))
    assert not np.signbit(impl.dot("Q8_0", blocks, np.zeros(32, np.float32)))


@settings(max_examples=300, derandomize=True)
@given(st.floats(-127.25, 127.25, width=32))
def test_rounding_is_half_away_from_zero(x: float) -> None:
    exact = math.floor(abs(Fraction(x)) + Fraction(1, 2))
    assert rounded(np.float32(x)) == math.copysign(exact, x)


def test_rounding_at_every_tie_and_beside_it() -> None:
    ties = np.arange(-127, 127, dtype=np.float32) + np.float32(0.5)
    for x in (ties, np.nextafter(ties, np.float32(-999)), np.nextafter(ties, np.float32(999))):
        exact = [int(math.copysign(math.floor(abs(Fraction(float(v))) + Fraction(1, 2)), v)) for v in x]
        assert [rounded(v) for v in x] == exact
    assert rounded(np.float32(0.49999997)) == rounded(np.float32(-0.49999997)) == 0


def test_conversions_that_c_leaves_open_give_the_low_byte_or_0() -> None:
    x = np.array([300.7, -300.7, 2.0**31, -(2.0**31), np.nan, np.inf, -np.inf, 15.99], np.float32)
    assert [truncated(v) for v in x] == [300 - 256, 256 - 300, 0, 0, 0, 0, 0, 15]


def test_f16_nan_is_the_quiet_one_with_its_sign() -> None:
    nan = np.array([0x7F800001, 0xFFC12345, 0x7FFFFFFF], np.uint32).view(np.float32)
    assert to_f16(nan).view(np.uint16).tolist() == [0x7E00, 0xFE00, 0x7E00]


def test_bf16_nan_keeps_its_upper_half_and_is_quiet() -> None:
    nan = np.array([0x7F800001, 0xFFC12345], np.uint32).view(np.float32)
    assert impl.quantize("BF16", nan).view("<u2").tolist() == [0x7FC0, 0xFFC1]


def test_f32_is_copied_bit_for_bit() -> None:
    bits = np.array([0x7F800001, 0x80000000, 1], np.uint32)
    out = impl.quantize("F32", bits.view(np.float32))
    assert out.view(np.uint32).tolist() == bits.tolist()
    assert impl.dequantize("F32", out, (3,)).view(np.uint32).tolist() == bits.tolist()


@pytest.mark.parametrize("kind", SUPPORTED["quantize"])
def test_whole_arrays_are_their_blocks_one_by_one(kind: str) -> None:
    """More than two pieces, and a last one that is not full."""
    rows = np.random.default_rng(6).standard_normal((3, PIECE - 256)).astype(np.float32)
    imatrix = np.ones(PIECE - 256, np.float32) if codec(kind).needs_imatrix else None
    whole = impl.quantize(kind, rows, imatrix)
    assert (whole == np.stack([impl.quantize(kind, row, imatrix) for row in rows])).all()
    assert (impl.quantize(kind, rows[::-1], imatrix) == whole[::-1]).all()


@pytest.mark.parametrize("kind", SUPPORTED["dequantize"])
def test_dequantizing_whole_arrays(kind: str) -> None:
    sizes = by_name(kind)
    count = 2 * PIECE // sizes.block + 3
    data = np.random.default_rng(7).integers(0, 256, (count, sizes.nbytes), dtype=np.uint8)
    whole = impl.dequantize(kind, data.tobytes(), (count, sizes.block)).view(np.uint32)
    for i in (0, 1, PIECE // sizes.block, count - 1):
        assert (whole[i] == impl.dequantize(kind, memoryview(data[i]), (sizes.block,)).view(np.uint32)).all()


REGISTERED = {
    "quantize": ("quantize", "quantize_rows"),
    "ref": ("quantize_ref",),  # of the other types the _ref function is the normal path
    "dequantize": ("dequantize",),
    "dot": ("dot", "dot_rows"),
}


@pytest.mark.parametrize("op", SUPPORTED)
def test_what_is_said_to_be_done_is_what_the_families_register(op: str) -> None:
    codecs = [found for module in FAMILIES for found in importlib.import_module(module).CODECS]
    registered = {found.type.name for found in codecs if any(getattr(found, name) for name in REGISTERED[op])}
    assert registered == set(SUPPORTED[op]) if op != "ref" else registered <= set(SUPPORTED[op])
    assert {module: tuple(c.type.name for c in importlib.import_module(module).CODECS) for module in FAMILIES} == FAMILIES


def test_a_layout_of_the_wrong_size_does_not_get_in() -> None:
    found = codec("Q8_0")
    with pytest.raises(ValueError, match="Q8_1: a layout of 34 bytes, ggml's has 36"):
        type(found)(by_name("Q8_1"), found.layout)


ROW = np.zeros((2, 64), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: impl.quantize("Q8_0", ROW.astype(np.float64)), InputError, "rows must be a numpy array of float32, not float64"),
        (lambda: impl.quantize("Q8_0", ROW.tolist()), InputError, "float32, not list"),
        (lambda: impl.quantize("Q8_0", np.float32(1)), InputError, "float32, not float32|at least one dimension|not float"),
        (lambda: impl.quantize("Q8_0", ROW[:, :48]), InputError, "48 elements is no multiple of 32, the block of Q8_0"),
        (lambda: impl.quantize("Q8_2", ROW), UnsupportedError, "unknown ggml type 'Q8_2': the known ones are F32, "),
        (lambda: impl.quantize("I8", ROW), UnsupportedError, "I8 is not done here; these are: BF16, F16, F32"),
        (lambda: impl.dequantize("Q8_1", b"", (0,)), UnsupportedError, "dequantize of Q8_1 is not done here; it is for: F32, "),
        (lambda: impl.dot("Q8_1", b"", ROW), UnsupportedError, "dot of Q8_1 is not done here"),
        (
            lambda: impl.quantize("Q8_0", ROW, np.zeros(63, np.float32)),
            InputError,
            r"float32 of shape \(64,\), not float32 of shape \(63,\)",
        ),
        (lambda: impl.quantize("Q8_0", ROW, np.zeros(64)), InputError, "not float64"),
        (
            lambda: impl.dequantize("Q8_0", bytes(67), (2, 32)),
            InputError,
            "67 bytes of Q8_0, but the shape needs 2 blocks, 68 bytes",
        ),
        (lambda: impl.dequantize("Q8_0", bytes(34), (1, 2)), InputError, "row of 2 elements"),
        (lambda: impl.dequantize("Q8_0", bytes(34), ()), InputError, "row of 1 elements"),
        (lambda: impl.dot("Q8_0", bytes(34), ROW), InputError, "34 bytes of Q8_0, but the shape needs 4 blocks"),
        (
            lambda: impl.dot("Q8_0", bytes(136), ROW.astype(np.float16)),
            InputError,
            "x must be a numpy array of float32, not float16",
        ),
    ],
)
def test_what_does_not_fit_is_said(call: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_no_rows_are_no_rows() -> None:
    none = np.zeros((0, 64), np.float32)
    assert impl.quantize("Q4_0", none).shape == (0, 36)
    assert impl.dequantize("Q4_0", b"", (0, 64)).shape == (0, 64)
    assert impl.dot("Q4_0", b"", none).shape == (0,)
    assert impl.dot("Q4_0", b"", np.zeros((2, 0), np.float32)).tolist() == [0, 0]


def test_numbers_without_dimensions() -> None:
    assert impl.dequantize("F32", np.array(2.5, "<f4"), ()).shape == ()
    with pytest.raises(InputError, match="at least one dimension"):
        impl.quantize("F32", np.array(2.5, np.float32))


def test_nothing_warns(recwarn: pytest.WarningsRecorder) -> None:
    rows = np.array([[np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, *[0.0] * 250]] * 2, np.float32)
    for kind in SUPPORTED["quantize"]:
        with suppress(InputError):  # what some types say of NaN and infinities
            impl.quantize(kind, rows, np.ones(256, np.float32) if codec(kind).needs_imatrix else None)
    for kind in SUPPORTED["dot"]:
        with suppress(InputError):
            impl.dot(kind, np.full((2, by_name(kind).row_bytes(256)), 255, np.uint8), rows)
    for kind in SUPPORTED["dequantize"]:
        impl.dequantize(kind, np.full(by_name(kind).nbytes, 255, np.uint8), (by_name(kind).block,))
    assert not recwarn.list
