"""Families of importances: what an imatrix may hold, and what none should, float32 of one number a column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.search.draws import Draws
from conformance.search.probe import Floats


def make_imatrix(family: str, cols: int, draws: Draws) -> Floats:
    """Give importances, float32 of shape (cols,)."""
    return IMATRIX_FAMILIES[family](draws, cols)


def _positive(draws: Draws, cols: int) -> Floats:
    """As measured ones: mean squares, from 1/16 to 1024."""
    return draws.sizes(-4, 9, cols)


def _ones(_draws: Draws, cols: int) -> Floats:
    return np.ones(cols, dtype=np.float32)


def _some_zero(draws: Draws, cols: int) -> Floats:
    """About every fourth is zero, and one whole run of 32."""
    numbers: Floats = _positive(draws, cols) * (draws.octets(cols) & 3 != 0)
    start = int(draws.below(max(1, cols // 32), 1)[0]) * 32
    numbers[start : start + 32] = 0
    return numbers


def _zero(_draws: Draws, cols: int) -> Floats:
    return np.zeros(cols, dtype=np.float32)


def _tiny(draws: Draws, cols: int) -> Floats:
    """From 2^-140, a subnormal, to 2^-30."""
    return draws.sizes(*sorted(draws.between(-140, -30, 2).tolist()), cols)


def _huge(draws: Draws, cols: int) -> Floats:
    """From 2^30 to 2^127."""
    return draws.sizes(*sorted(draws.between(30, 127, 2).tolist()), cols)


def _negative(draws: Draws, cols: int) -> Floats:
    """Of either sign."""
    return np.where(draws.octets(cols) & 1, np.float32(-1), np.float32(1)) * _positive(draws, cols)


def _one_big(draws: Draws, cols: int) -> Floats:
    """One counts for far more than all others."""
    numbers = _positive(draws, cols)
    numbers[draws.below(cols, 1)] = draws.sizes(12, 30, 1)
    return numbers


def _specials(draws: Draws, cols: int) -> Floats:
    """Ordinary ones, but for a NaN or an infinity."""
    numbers = _positive(draws, cols)
    numbers[draws.below(cols, 1)] = np.array((np.nan, np.inf), dtype=np.float32)[draws.below(2, 1)]
    return numbers


IMATRIX_FAMILIES: dict[str, Callable[[Draws, int], Floats]] = {
    "ones": _ones,
    "positive": _positive,
    "one_big": _one_big,
    "some_zero": _some_zero,
    "zero": _zero,
    "tiny": _tiny,
    "huge": _huge,
    "negative": _negative,
    "specials": _specials,
}
TAME_IMATRIX = ("ones", "positive", "some_zero", "one_big", "zero", "tiny")
"""Families that every quantizer of ggml has an answer for."""
