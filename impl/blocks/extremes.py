"""The extremes of a block as ggml's loops find them: the first of equals, and each loop's own way with NaN.

Floats are compared as integers, whose greatest can be found in any order, so that the loops vectorise: the bits of magnitudes are
in the order of the magnitudes, with NaNs above infinity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Floats
from impl.blocks.kernel import inner, kernel

Ints = npt.NDArray[np.int32]

_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITE = np.int32(0x7F800000)
_LARGEST = np.int32(0x7F7FFFFF)
_LEAST = np.int32(~0x7F7FFFFF)  # -FLT_MAX, as ``_ordered`` has it
_NOTHING = np.int32(0)


def largest_magnitude(x: Floats) -> Floats:
    """Give amax of each row of ``x``, as the Q8 types find it.

    Their loop takes ``MAX(amax, |v|)``, which gives the second where either is NaN: a NaN wipes out what came before it, and
    is itself wiped out by what follows.
    """
    out = np.empty(len(x), np.float32)
    _largest_magnitude(x.view(np.int32), out.view(np.int32))
    return out


def signed_extreme(x: Floats) -> Floats:
    """Give the element of greatest magnitude of each row, with its sign, the first of equals; NaNs do not count.

    A row of zeros, of either sign, gives +0.
    """
    out = np.empty(len(x), np.float32)
    _signed_extreme(x.view(np.int32), out.view(np.int32))
    return out


def minimum_and_maximum(x: Floats) -> tuple[Floats, Floats]:
    """Give each row's least and greatest element, NaNs not counted, starting from FLT_MAX and -FLT_MAX as ggml's loop does.

    Of zeros of both signs the first one counts, which is seen in the sign of a stored minimum.
    """
    least, greatest = np.empty(len(x), np.float32), np.empty(len(x), np.float32)
    _minimum_and_maximum(x.view(np.int32), least.view(np.int32), greatest.view(np.int32))
    return least, greatest


@kernel
def _largest_magnitude(bits: Ints, out: Ints) -> None:
    cols = bits.shape[1]
    for i in range(len(bits)):
        greatest = _NOTHING
        for j in range(cols):
            magnitude = bits[i, j] & _MAGNITUDE
            greatest = magnitude if magnitude > greatest else greatest
        if greatest > _INFINITE:
            greatest = _NOTHING
            for j in range(cols):
                magnitude = bits[i, j] & _MAGNITUDE
                greatest = greatest if greatest > magnitude and greatest <= _INFINITE >= magnitude else magnitude
        out[i] = greatest


@kernel
def _signed_extreme(bits: Ints, out: Ints) -> None:
    cols = bits.shape[1]
    for i in range(len(bits)):
        positive = negative = _NOTHING
        for j in range(cols):
            magnitude = np.int32(bits[i, j] & _MAGNITUDE)
            above = bits[i, j] if magnitude <= _INFINITE else _NOTHING
            below = magnitude if (bits[i, j] < _NOTHING) & (magnitude <= _INFINITE) else _NOTHING
            positive, negative = max(positive, above), max(negative, below)
        if positive == negative:
            out[i] = _first(bits[i], positive)
        else:
            out[i] = max(positive, negative) | np.int32(negative > positive) << 31  # without a branch: it goes either way


@kernel
def _first(bits: Ints, magnitude: np.int32) -> np.int32:
    """Give the first element of a row with the row's greatest magnitude; 0 where that is 0."""
    if magnitude == _NOTHING:
        return _NOTHING
    j = 0
    while bits[j] & _MAGNITUDE != magnitude:
        j += 1
    return np.int32(bits[j])


@kernel
def _ordered(bits: np.int32) -> np.int32:
    """Give an integer in the order of the float with these bits, -0 below 0; it is its own inverse."""
    return np.int32(bits ^ (bits >> np.int32(31) & _MAGNITUDE))


@kernel
def _minimum_and_maximum(bits: Ints, least: Ints, greatest: Ints) -> None:
    cols = bits.shape[1]
    for i in range(len(bits)):
        low, high = _LARGEST, _LEAST
        for j in range(cols):
            key = _ordered(bits[i, j])
            is_nan = np.int32(bits[i, j] & _MAGNITUDE) > _INFINITE
            below, above = (_LARGEST if is_nan else key), (_LEAST if is_nan else key)
            low = below if below < low else low
            high = above if above > high else high
        least[i] = _first_zero(bits[i], _ordered(low))
        greatest[i] = _first_zero(bits[i], _ordered(high))


@inner
def _first_zero(bits: Ints, extreme: np.int32) -> np.int32:
    """Give the first zero of a row whose extreme is a zero, else the extreme."""
    if extreme & _MAGNITUDE != _NOTHING:
        return extreme
    j = 0
    while bits[j] & _MAGNITUDE != _NOTHING:
        j += 1
    return np.int32(bits[j])
