"""TQ1_0, TQ2_0, MXFP4, NVFP4, Q1_0 and Q2_0 by exact values: where elements stand, how they are rounded, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import impl
from impl import InputError
from impl.types import by_name


def one(kind: str, values: list[float]) -> list[int]:
    """Quantize one block, padded with zeros; give its bytes."""
    block = by_name(kind).block
    return impl.quantize(kind, np.array([*values, *[0.0] * (block - len(values))], np.float32)).tolist()


def values_of(kind: str, block: list[int]) -> list[float]:
    return impl.dequantize(kind, bytes(block), (by_name(kind).block,)).tolist()


@pytest.mark.parametrize("element", [0, 31, 32, 159, 160, 175, 176, 239, 240, 244, 255])
def test_tq1_0_digits_stand_where_the_layout_says(element: int) -> None:
    """32 bytes of five digits, 16 of five, 4 of four: a digit of 2 among ones is one power of 3 more."""
    x = [0.0] * 256
    x[element] = 1
    start, count, first = (0, 32, 0) if element < 160 else (160, 16, 32) if element < 240 else (240, 4, 48)
    digit, byte = divmod(element - start, count)
    zeros = 121 if first < 48 else 120  # 11111 and 11110 in base 3
    number = zeros + 3 ** (4 - digit)
    block = one("TQ1_0", x)
    assert block[first + byte] == -(-number * 256 // 243)
    assert sum(other != -(-(121 if i < 48 else 120) * 256 // 243) for i, other in enumerate(block[:52])) == 1
    assert values_of("TQ1_0", block) == x


def test_tq2_0_pairs_stand_32_elements_apart() -> None:
    block = one("TQ2_0", [-1.0] + [0.0] * 31 + [1.0] + [0.0] * 31 + [1.0] + [0.0] * 31 + [-1.0] + [0.0] * 31 + [1.0])
    assert block[:2] == [0b00_10_10_00, 0b01_01_01_01]
    assert block[32:34] == [0b01_01_01_10, 0b01_01_01_01]
    assert values_of("TQ2_0", [0b11_10_01_00, *[0x55] * 63, 0x00, 0x3C])[0:128:32] == [-1, 0, 1, 2]


def test_ternary_rounds_half_away_from_zero() -> None:
    below = float(np.nextafter(np.float32(0.5), np.float32(0)))
    assert values_of("TQ2_0", one("TQ2_0", [1, 0.5, -0.5, below, -below]))[:5] == [1, 1, -1, 0, 0]


def test_q2_0_four_elements_on_end_share_a_byte() -> None:
    block = one("Q2_0", [-1.0, 0.0, 1.0, 0.0] * 16)
    assert block == [0x00, 0x3C, *[0x64] * 16]
    assert values_of("Q2_0", [0x00, 0x3C, 0b11_10_01_00, *[0x55] * 15])[:5] == [-1, 0, 1, 2, 0]


def test_q1_0_stores_signs_and_the_mean_magnitude() -> None:
    block = one("Q1_0", [-1.0, 2.0, -0.0, 0.0, *[-1.0] * 4, *[1.0] * 120])
    assert block[2:4] == [0b0000_1110, 0xFF]
    assert np.array(block[:2], np.uint8).view(np.float16)[0] == np.float16(127 / 128)
    assert values_of("Q1_0", block)[:3] == [-127 / 128, 127 / 128, 127 / 128]


@pytest.mark.parametrize(("largest", "e", "back"), [(1.2, 125, 1.0), (2.7, 126, 3.0), (5, 127, 4.0), (6, 127, 6.0), (7, 127, 6.0)])
def test_mxfp4_takes_the_exponent_of_the_largest(largest: float, e: int, back: float) -> None:
    """Floor of log2, less 2, plus 127. 5 lies in the middle of 4 and 6 and goes down."""
    block = one("MXFP4", [largest])
    assert block[0] == e
    assert values_of("MXFP4", block)[0] == back


@pytest.mark.parametrize(("largest", "e"), [(2.0**-125, 0), (2.0**-126, 255), (2.0**-127, 254), (2.0**-149, 232)])
def test_mxfp4_exponents_of_tiny_numbers_wrap(largest: float, e: int) -> None:
    block = one("MXFP4", [largest])
    assert block[0] == e
    assert not any(values_of("MXFP4", block)[1:])


def test_mxfp4_nibbles() -> None:
    block = [128, *(i | (15 - i) << 4 for i in range(16))]
    numbers = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]
    assert values_of("MXFP4", block) == [*numbers, *numbers[::-1]]
    assert not np.signbit(values_of("MXFP4", [128, *[8] * 16])).any()


def test_nvfp4_each_sub_block_has_its_scale() -> None:
    scales = [0x38, 0x40, 0x01, 0x7E]  # 1, 2, 2**-9, 448
    low_high = [i | (15 - i) << 4 for i in range(8)]
    values = np.array(values_of("NVFP4", [*scales, *low_high * 4])).reshape(4, 16)
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -6, -4, -3, -2, -1.5, -1, -0.5, 0])
    assert (values == np.outer([1, 2, 2.0**-9, 448], numbers)).all()


@pytest.mark.parametrize("scale", [0x00, 0x7F, 0x80])
def test_nvfp4_scales_that_are_zero(scale: int) -> None:
    assert values_of("NVFP4", [scale, *[0] * 3, *[0x77] * 32])[:16] == [0.0] * 16


@pytest.mark.parametrize(
    ("largest", "scale"),
    [(2688, 0x7E), (1e30, 0x7E), (1536, 0x7E), (1488, 0x7E), (1487, 0x77), (6 * 2.0**-9, 1), (6 * 2.0**-10, 1), (2.0**-9, 0)],
)
def test_nvfp4_scales_at_the_ends(largest: float, scale: int) -> None:
    assert one("NVFP4", [largest])[0] == scale


@pytest.mark.parametrize("kind", ["TQ1_0", "TQ2_0", "Q2_0", "MXFP4"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_c_leaves_undefined_is_refused_with_its_place(kind: str, value: float) -> None:
    block = by_name(kind).block
    rows = np.ones((3, 64 * block), np.float32)
    rows[2, 40 * block + 5] = value
    if kind == "MXFP4" and np.isnan(value):
        assert impl.quantize(kind, rows)[2, 40 * 17 + 6] & 15 == 0
        return
    with pytest.raises(InputError, match=rf"row 2, block 40, element 5 is {value}: {kind} .*finite"):
        impl.quantize(kind, rows)
