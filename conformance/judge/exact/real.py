"""Extended reals with both zeros, exact in integer arithmetic, and the one rounding to float32.

Every number that a block can hold is an integer times a power of two, and products, sums and differences of such numbers
are again of that form. So nothing is lost until ``float32_bits`` rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, NamedTuple

CANONICAL_NAN = 0x7FC00000
_INFINITY = 0x7F800000
# An exact text longer than this many places behind the point, or this many integer digits, is given as m*2^e.
_LONGEST = 16


class Real(NamedTuple):
    """``mantissa * 2**exponent`` (mantissa >= 0) and its sign, or, where ``special`` says so, infinite or NaN."""

    negative: bool
    mantissa: int
    exponent: int = 0
    special: Literal["", "inf", "nan"] = ""


NAN = Real(negative=False, mantissa=0, special="nan")


def infinite(*, negative: bool) -> Real:
    """Give an infinity."""
    return Real(negative, 1, special="inf")


@lru_cache(maxsize=1024)  # a block's integers and scales come again and again
def real(value: float) -> Real:
    """Give an integer, or a finite constant such as 0.125, as it is; an integer's zero is positive."""
    numerator, denominator = value.as_integer_ratio()
    return Real(numerator < 0, abs(numerator), 1 - denominator.bit_length())


def times(a: Real, b: Real) -> Real:
    """Multiply. The sign of a product, also of a zero, is that of its factors together; zero times infinity is NaN."""
    negative = a.negative != b.negative
    if a.special or b.special:
        if "nan" in (a.special, b.special) or 0 in (a.mantissa, b.mantissa):
            return NAN
        return infinite(negative=negative)
    return Real(negative, a.mantissa * b.mantissa, a.exponent + b.exponent)


def plus(a: Real, b: Real) -> Real:
    """Add. Infinities of both signs give NaN; a sum of zero is negative only where both parts are."""
    if a.special or b.special:
        opposed = a.special == b.special and a.negative != b.negative
        if opposed or "nan" in (a.special, b.special):
            return NAN
        return a if a.special else b
    exponent = min(a.exponent, b.exponent)
    total = _scaled(a, exponent) + _scaled(b, exponent)
    return Real(total < 0 or (total == 0 and a.negative and b.negative), abs(total), exponent)


def _scaled(x: Real, exponent: int) -> int:
    magnitude = x.mantissa << (x.exponent - exponent)
    return -magnitude if x.negative else magnitude


def minus(a: Real, b: Real) -> Real:
    """Subtract: add with the sign of ``b`` turned, whatever ``b`` is."""
    return plus(a, b._replace(negative=not b.negative))


def double(x: Real) -> float:
    """Give the nearest double; what a block holds, and sums and products of it, are far within its range."""
    if x.special:
        return float(x.special) * (-1 if x.negative else 1)
    return float(-x.mantissa if x.negative else x.mantissa) * 2.0**x.exponent


def float32_bits(x: Real) -> int:
    """Round to the nearest float32, ties to even; beyond the largest one, by half a step or more, it is infinity.

    Gives the 32 bits; every NaN is 0x7FC00000.
    """
    sign = 0x80000000 if x.negative else 0
    if x.special:
        return CANONICAL_NAN if x.special == "nan" else sign | _INFINITY
    if not x.mantissa:
        return sign
    # The last bit that is kept stands for 2**last: 24 bits are kept, fewer where the number is subnormal.
    last = max(x.mantissa.bit_length() + x.exponent - 24, -149)
    kept = _nearest(x.mantissa, last - x.exponent)
    # With its leading bit, `kept` adds one to the exponent field; after a carry to 2**24, two. A subnormal has none to add.
    return sign | min(((last + 149) << 23) + kept, _INFINITY)


def _nearest(mantissa: int, drop: int) -> int:
    """Divide by ``2**drop`` and round to the nearest integer, ties to even."""
    if drop <= 0:
        return mantissa << -drop
    quotient, rest = mantissa >> drop, mantissa & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    return quotient + (rest > half or (rest == half and quotient & 1))


class Format(NamedTuple):
    """How a stored number is read: ``digits`` hex digits of bits, and the function that gives its value."""

    digits: int
    read: Callable[[int], Real]


@lru_cache(maxsize=64)
def _ieee(bits: int, *, exponent_bits: int, fraction_bits: int) -> Real:
    """Read a binary interchange format of IEEE 754."""
    fraction = bits & ((1 << fraction_bits) - 1)
    field = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    negative = bits >> (fraction_bits + exponent_bits) & 1 == 1
    bias = (1 << (exponent_bits - 1)) - 1
    if field == (1 << exponent_bits) - 1:
        return NAN if fraction else infinite(negative=negative)
    leading = 1 << fraction_bits if field else 0
    return Real(negative, leading + fraction, max(field, 1) - bias - fraction_bits)


def _e8m0_half(bits: int) -> Real:
    """Read half of an E8M0 scale, a bare power of two; 255 is one too (``ggml_e8m0_to_fp32_half``, ggml/src/ggml-impl.h)."""
    return Real(negative=False, mantissa=1, exponent=bits - 128)


def _ue4m3_half(bits: int) -> Real:
    """Read half of an unsigned E4M3 scale: the top bit means nothing, 0x7F is zero (``ggml_ue4m3_to_fp32``, ggml-impl.h)."""
    if bits == 0x7F:
        return real(0)
    field, fraction = bits >> 3 & 15, bits & 7
    return Real(negative=False, mantissa=fraction + (8 if field else 0), exponent=max(field, 1) - 11)


F16 = Format(4, partial(_ieee, exponent_bits=5, fraction_bits=10))
BF16 = Format(4, partial(_ieee, exponent_bits=8, fraction_bits=7))
F32 = Format(8, partial(_ieee, exponent_bits=8, fraction_bits=23))
E8M0_HALF = Format(2, _e8m0_half)
UE4M3_HALF = Format(2, _ue4m3_half)


def text(x: Real) -> str:
    """Give the exact value in decimal or, where that is long, as ``m*2^e`` or ``2^e``."""
    sign = "-" if x.negative else ""
    if x.special:
        return "NaN" if x.special == "nan" else f"{sign}infinity"
    if not x.mantissa:
        return f"{sign}0"
    zeros = (x.mantissa & -x.mantissa).bit_length() - 1
    odd, exponent = x.mantissa >> zeros, x.exponent + zeros
    if exponent < -_LONGEST or odd.bit_length() + exponent > 3 * _LONGEST:
        return f"{sign}{f'{odd}*' if odd > 1 else ''}2^{exponent}"
    if exponent >= 0:
        return f"{sign}{odd << exponent}"
    digits = str(odd * 5**-exponent).rjust(1 - exponent, "0")
    return f"{sign}{digits[:exponent]}.{digits[exponent:]}"
