"""The exact model's numbers: held to Python's own floats where those are exact, and to the definition of rounding beyond."""

import math
import operator
import struct
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.judge.exact.real import (
    BF16,
    CANONICAL_NAN,
    E8M0_HALF,
    F16,
    F32,
    UE4M3_HALF,
    Real,
    float32_bits,
    minus,
    plus,
    real,
    text,
    times,
)

SPECIAL = (0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan)
LARGEST = 0x7F7FFFFF


def _bits(value: float) -> int:
    """The bits of a float that float32 holds exactly."""
    return CANONICAL_NAN if math.isnan(value) else struct.unpack("<I", struct.pack("<f", value))[0]


def _float(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


@pytest.mark.parametrize("a", SPECIAL)
@pytest.mark.parametrize("b", SPECIAL)
@pytest.mark.parametrize(("ours", "pythons"), [(times, operator.mul), (plus, operator.add), (minus, operator.sub)])
def test_zeros_infinities_and_nan_follow_ieee(a: float, b: float, ours, pythons) -> None:
    assert float32_bits(ours(F32.read(_bits(a)), F32.read(_bits(b)))) == _bits(pythons(a, b))


@given(st.integers(-4095, 4095), st.integers(-9, 9), st.integers(-4095, 4095), st.integers(-9, 9))
def test_products_and_sums_are_exact(a: int, a_exponent: int, b: int, b_exponent: int) -> None:
    """Small enough that a float64 is exact, and that most fit a float32; what does not is rounded once on both sides."""
    ours = [Real(m < 0, abs(m), e) for m, e in ((a, a_exponent), (b, b_exponent))]
    left, right = a * 2.0**a_exponent, b * 2.0**b_exponent
    assert float32_bits(plus(*ours)) == _bits(left + right)
    assert float32_bits(minus(*ours)) == _bits(left - right)
    if a and b:
        assert float32_bits(times(*ours)) == _bits(left * right)


@given(st.integers(0, 2**32 - 1))
def test_each_float32_rounds_to_itself(bits: int) -> None:
    expected = CANONICAL_NAN if math.isnan(_float(bits)) else bits
    assert float32_bits(F32.read(bits)) == expected


@given(st.booleans(), st.integers(1, 2**90), st.integers(-260, 60))
@example(False, 0x1FFFFFF, 103)  # half a step beyond the largest: infinity
@example(False, 0x3FFFFFD, 102)  # just below that
@example(False, 1, -150)  # half the smallest subnormal: zero
@example(True, 3, -150)  # a tie between two subnormals
@example(False, 0xFFFFFF, -150)  # a subnormal that becomes normal
@example(False, 0x1FFFFFF, 0)  # a carry into the exponent
def test_rounding_gives_the_nearest_and_the_even_one_of_two(negative: bool, mantissa: int, exponent: int) -> None:
    exact = mantissa * Fraction(2) ** exponent
    bits = float32_bits(Real(negative, mantissa, exponent))
    assert bits >> 31 == negative
    magnitude = bits & 0x7FFFFFFF
    assert magnitude <= LARGEST + 1
    distance = abs(exact - _magnitude(magnitude))
    for neighbour in (max(magnitude - 1, 0), min(magnitude + 1, LARGEST + 1)):
        if neighbour == magnitude:
            continue
        other = abs(exact - _magnitude(neighbour))
        assert distance < other or (distance == other and magnitude % 2 == 0)


def _magnitude(bits: int) -> Fraction:
    """What the bits stand for; infinity as the number that would come after the largest one, as IEEE 754 rounds to it."""
    return Fraction(2) ** 128 if bits == LARGEST + 1 else Fraction(_float(bits))


def test_each_half_is_read_as_struct_reads_it() -> None:
    for bits in range(1 << 16):
        (half,) = struct.unpack("<e", struct.pack("<H", bits))
        assert float32_bits(F16.read(bits)) == _bits(half)


def test_each_bfloat16_is_the_upper_half_of_a_float32() -> None:
    for bits in range(1 << 16):
        assert float32_bits(BF16.read(bits)) == _bits(_float(bits << 16))


def test_each_e8m0_is_a_power_of_two_halved() -> None:
    for bits in range(256):
        assert float32_bits(E8M0_HALF.read(bits)) == _bits(math.ldexp(1, bits - 127) / 2)


def test_the_ue4m3_numbers_that_its_definition_names() -> None:
    """One, the largest, the smallest normal and subnormal, all halved; the pattern of NaN is zero, the top bit is ignored."""
    values = {0x38: 0.5, 0x7E: 224, 0x08: 2**-7, 0x01: 2**-10, 0x00: 0, 0x7F: 0, 0x80: 0, 0xB8: 0.5, 0xFF: 240}
    assert {bits: _float(float32_bits(UE4M3_HALF.read(bits))) for bits in values} == values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (real(0), "0"),
        (times(real(0), real(-1)), "-0"),
        (real(-10), "-10"),
        (real(0.125), "0.125"),
        (real(-2.5), "-2.5"),
        (Real(False, 4, -2), "1"),
        (Real(False, 6, -24), "3*2^-23"),
        (Real(True, 1, -24), "-2^-24"),
        (Real(False, 1, 100), "2^100"),
        (F16.read(0xFC00), "-infinity"),
        (F16.read(0xFE00), "NaN"),
    ],
)
def test_texts_are_exact(value: Real, expected: str) -> None:
    assert text(value) == expected
