"""The extremes of a block as ggml's loops find them: the first of equals, and each loop's own way with NaN."""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Floats

_FLT_MAX = np.finfo(np.float32).max


def largest_magnitude(x: Floats) -> Floats:
    """Give amax of each row of ``x``, as the Q8 types find it.

    Their loop takes ``MAX(amax, |v|)``, which gives the second where either is NaN: a NaN wipes out what came before it, and
    is itself wiped out by what follows.
    """
    magnitude = np.abs(x)
    amax: Floats = magnitude.max(axis=1)
    lost = np.isnan(amax)
    if lost.any():
        amax[lost] = _after_last_nan(magnitude[lost])
    return amax


def _after_last_nan(magnitude: Floats) -> Floats:
    """Give the largest element behind the last NaN of each row, or NaN where that ends the row. Every row has a NaN."""
    cols = magnitude.shape[1]
    last = cols - 1 - np.isnan(magnitude)[:, ::-1].argmax(axis=1)
    behind = np.arange(cols) > last[:, np.newaxis]
    amax: Floats = np.where(behind, magnitude, np.float32(0)).max(axis=1)
    amax[last == cols - 1] = np.nan
    return amax


def signed_extreme(x: Floats) -> Floats:
    """Give the element of greatest magnitude of each row, with its sign, the first of equals; NaNs do not count.

    A row of zeros, of either sign, gives +0.
    """
    magnitude = np.abs(x)
    if np.isnan(magnitude).any():
        magnitude[np.isnan(magnitude)] = 0
    first = magnitude.argmax(axis=1)
    rows = np.arange(len(x))
    found: Floats = np.where(magnitude[rows, first] > 0, x[rows, first], np.float32(0))
    return found


def minimum_and_maximum(x: Floats) -> tuple[Floats, Floats]:
    """Give each row's least and greatest element, NaNs not counted, starting from FLT_MAX and -FLT_MAX as ggml's loop does.

    Of zeros of both signs the first one counts, which is seen in the sign of a stored minimum.
    """
    least = np.fmin.reduce(x, axis=1, initial=_FLT_MAX)
    greatest = np.fmax.reduce(x, axis=1, initial=-_FLT_MAX)
    return _first_zero(x, least), _first_zero(x, greatest)


def _first_zero(x: Floats, extreme: Floats) -> Floats:
    zero = extreme == 0
    if zero.any():
        rows = x[zero]
        extreme[zero] = rows[np.arange(len(rows)), (rows == 0).argmax(axis=1)]
    return extreme
