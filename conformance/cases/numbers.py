"""Numbers that anyone can make again in any language: SplitMix64 and a stated way from its draws to float32.

docs/numbers.md is the specification. SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
F32 = NDArray[np.float32]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
# Three draws hold twelve 16-bit fields of mean 32767.5.
_NORMAL_CENTRE = 12 * 65535 // 2
# So many numbers share an exponent in `uneven`: the smallest sub-block of ggml's types.
_SHARE = 16


def draws(seed: int, count: int) -> U64:
    """Give the first ``count`` outputs (uint64) of SplitMix64 started with state ``seed``."""
    steps = np.arange(1, count + 1, dtype=np.uint64)
    state = np.uint64(seed) + steps * _GAMMA
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    mixed: U64 = state ^ (state >> np.uint64(31))
    return mixed


def draw_bytes(seed: int, count: int) -> NDArray[np.uint8]:
    """Give ``count`` bytes: those of the draws in order, each draw's lowest byte first."""
    return draws(seed, (count + 7) // 8).astype("<u8").view(np.uint8)[:count]


class Distribution(NamedTuple):
    """One way from draws to float32. ``default`` is the range (lo, hi) where it takes one, ``limits`` what the range may be."""

    make: Callable[[int, int, int, int], F32]
    default: tuple[int, int] | None = None
    limits: tuple[int, int] = (0, 0)


def random_floats(name: str, seed: int, count: int, bounds: tuple[int, int] | None = None) -> F32:
    """Give ``count`` float32 of the distribution ``name``; ``bounds`` is (lo, hi) for ``wide`` and ``half``."""
    distribution = DISTRIBUTIONS[name]
    low, high = bounds or distribution.default or (0, 0)
    return distribution.make(seed, count, low, high)


def _uniform(seed: int, count: int, _low: int, _high: int) -> F32:
    """[-1, 1): the upper 24 bits as an integer, times 2^-23, minus 1. Exact."""
    upper = (draws(seed, count) >> np.uint64(40)).astype(np.float32)
    return upper * np.float32(2**-23) - np.float32(1)


def _normal(seed: int, count: int, _low: int, _high: int) -> F32:
    """Near normal, variance 1: the sum of the twelve 16-bit fields of three draws, minus 393210, times 2^-16. Exact."""
    fields = draws(seed, 3 * count).astype("<u8").view("<u2").reshape(count, 12)
    centred = fields.sum(axis=1, dtype=np.int64) - _NORMAL_CENTRE
    numbers: F32 = centred.astype(np.float32) * np.float32(2**-16)
    return numbers


def _bits(seed: int, count: int, _low: int, _high: int) -> F32:
    """Any bit pattern, NaN and infinities among them: the upper 32 bits of a draw."""
    return (draws(seed, count) >> np.uint64(32)).astype(np.uint32).view(np.float32)


def _finite(seed: int, count: int, low: int, high: int) -> F32:
    """As ``bits``, but an exponent field of 255 becomes 127."""
    pattern = _bits(seed, count, low, high).view(np.uint32)
    special = (pattern & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
    return np.where(special, pattern & np.uint32(0xBFFFFFFF), pattern).view(np.float32)


def _wide(seed: int, count: int, low: int, high: int) -> F32:
    """Sign (bit 63), significand (bits 40 to 62) and an exponent of even chance in low..high from the lower 32 bits."""
    drawn = draws(seed, count)
    return _assembled(drawn, _in_range(drawn, low, high))


def _uneven(seed: int, count: int, low: int, high: int) -> F32:
    """As ``wide``, but each 16 numbers share the exponent of their first: sub-blocks of very different size."""
    drawn = draws(seed, count)
    return _assembled(drawn, np.repeat(_in_range(drawn[::_SHARE], low, high), _SHARE)[:count])


def _sparse(seed: int, count: int, low: int, high: int) -> F32:
    """As ``wide``, but a zero of that sign unless bits 32 to 34 are all 0: seven of eight."""
    kept = draws(seed, count) >> np.uint64(32) & np.uint64(7) == np.uint64(0)
    numbers = _wide(seed, count, low, high)
    return np.where(kept, numbers, np.copysign(np.float32(0), numbers))


def _assembled(drawn: U64, exponents: NDArray[np.int64]) -> F32:
    exponent = exponents + 127
    sign = (drawn >> np.uint64(63)).astype(np.uint32) << np.uint32(31)
    significand = ((drawn >> np.uint64(40)) & np.uint64(0x7FFFFF)).astype(np.uint32)
    return (sign | (exponent.astype(np.uint32) << np.uint32(23)) | significand).view(np.float32)


def _half(seed: int, count: int, low: int, high: int) -> F32:
    """Give an integer of even chance in low..high (from the lower 32 bits), plus 0.5. Exact."""
    return _in_range(draws(seed, count), low, high).astype(np.float32) + np.float32(0.5)


def _in_range(drawn: U64, low: int, high: int) -> NDArray[np.int64]:
    """Integers low..high from the lower 32 bits w: low + floor(w * (high - low + 1) / 2^32)."""
    lower = drawn & np.uint64(0xFFFFFFFF)
    return ((lower * np.uint64(high - low + 1)) >> np.uint64(32)).astype(np.int64) + low


DISTRIBUTIONS: dict[str, Distribution] = {
    "uniform": Distribution(_uniform),
    "normal": Distribution(_normal),
    "bits": Distribution(_bits),
    "finite": Distribution(_finite),
    "wide": Distribution(_wide, (-16, 16), (-127, 128)),
    "uneven": Distribution(_uneven, (-16, 16), (-127, 128)),
    "sparse": Distribution(_sparse, (-16, 16), (-127, 128)),
    "half": Distribution(_half, (-128, 127), (-(2**20), 2**20)),
}
