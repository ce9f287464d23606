"""The search for scale and minimum of a sub-block: codes 0 to ``top`` with ``x ~ scale * code + minimum``, minimum at most 0.

Source: ``make_qkx2_quants`` and ``make_qkx3_quants`` in ggml/src/ggml-quants.c, which are one where weights are given. See
``k_lanes`` for the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_lanes import LANES, Work, clear, level
from impl.blocks.kernel import inner, kernel

# Rows of the state. BASE is the minimum that codes are counted from. It moves each time something better is found, and with it the
# range that the next steps divide.
BASE, SUM_W, BEST_SCALE = 0, 1, 2
_GREATEST, _SUM_X, _INVERSE, _SUM_L, _SUM_LL, _SUM_LX, _SCALE, _MINIMUM, _ERROR = range(3, 12)
_BEST_ERROR, _BEST_INVERSE, _BEST_BASE, _SOLVED = range(12, 16)

_ZERO = np.float32(0)
_ONE = np.float32(1)
_NEVER = np.float32(-np.inf)
_LOWEST = np.int32(0)


class Search(NamedTuple):
    """Which codes are tried: those of ``top + first + step * t`` steps over the range, t from 0 to ``last``.

    ``absolute``: errors count by magnitude, not by square.
    """

    top: np.int32
    first: np.float32
    step: np.float32
    last: int
    absolute: bool


@kernel
def search_affine(work: Work, search: Search) -> None:
    """Find scale, minimum, sum of weights and codes of every sub-block in ``work``, whose weights are there."""
    for j in range(len(work.x)):
        fit_affine(work.x[j], work.w[j], work.levels[j], work.state, search)
        for lane in range(LANES):
            work.scales[j, lane] = work.state[BEST_SCALE, lane]
            work.minima[j, lane] = -work.state[BASE, lane]
            work.sums[j, lane] = work.state[SUM_W, lane]


@inner
def fit_affine(x: Floats, w: Floats, levels: Bytes, state: Floats, search: Search) -> None:
    """Search each lane's sub-block; give rows BEST_SCALE, BASE (its minimum) and SUM_W of ``state``, and its codes."""
    codes = np.empty_like(x)
    _measure(x, w, state)
    _start(x, w, codes, state, search)
    for t in range(search.last + 1):
        steps = np.float32(search.first + search.step * np.float32(t)) + np.float32(search.top)
        for lane in range(LANES):
            state[_INVERSE, lane] = steps / (state[_GREATEST, lane] - state[BASE, lane])
        _encode(x, w, codes, state, search.top)
        _solve(state)
        _measure_error(x, w, codes, state, search.absolute)
        _keep_better(state)
    for i in range(len(x)):
        for lane in range(LANES):
            scaled = state[_BEST_INVERSE, lane] * (x[i, lane] - state[_BEST_BASE, lane])
            levels[i, lane] = level(scaled, _LOWEST, search.top)


@inner
def _measure(x: Floats, w: Floats, state: Floats) -> None:
    """Find least and greatest element, and the sums of weights and of weighted elements."""
    for lane in range(LANES):
        state[BASE, lane] = x[0, lane]
        state[_GREATEST, lane] = x[0, lane]
        state[SUM_W, lane] = w[0, lane]
        state[_SUM_X, lane] = w[0, lane] * x[0, lane]
    for i in range(1, len(x)):
        for lane in range(LANES):
            v = x[i, lane]
            state[BASE, lane] = v if v < state[BASE, lane] else state[BASE, lane]
            state[_GREATEST, lane] = v if v > state[_GREATEST, lane] else state[_GREATEST, lane]
            state[SUM_W, lane] += w[i, lane]
            state[_SUM_X, lane] += w[i, lane] * v


@inner
def _start(x: Floats, w: Floats, codes: Floats, state: Floats, search: Search) -> None:
    """Begin with codes over the whole range. Where there is no range, nothing is ever better than a scale of 0."""
    for lane in range(LANES):
        greatest, least = state[_GREATEST, lane], state[BASE, lane]
        least = _ZERO if least > _ZERO else least
        state[BASE, lane] = least
        state[_MINIMUM, lane] = least
        state[_BEST_BASE, lane] = least
        state[_SOLVED, lane] = _ZERO if greatest == least else _ONE
        state[_INVERSE, lane] = np.float32(search.top) / (greatest - least)
        state[_SCALE, lane] = _ONE / state[_INVERSE, lane]
    _encode(x, w, codes, state, search.top)
    _measure_error(x, w, codes, state, search.absolute)
    for lane in range(LANES):
        flat = state[_SOLVED, lane] == _ZERO
        state[_BEST_ERROR, lane] = _NEVER if flat else state[_ERROR, lane]
        state[_BEST_INVERSE, lane] = _ZERO if flat else state[_INVERSE, lane]
        state[BEST_SCALE, lane] = _ZERO if flat else state[_SCALE, lane]


@inner
def _encode(x: Floats, w: Floats, codes: Floats, state: Floats, top: np.int32) -> None:
    """Round each element to its code, and add up what the best scale and minimum for these codes are made of."""
    clear(state, _SUM_L, _SUM_LX)
    for i in range(len(x)):
        for lane in range(LANES):
            v = x[i, lane]
            code = np.float32(level(state[_INVERSE, lane] * (v - state[BASE, lane]), _LOWEST, top))
            codes[i, lane] = code
            weighted = w[i, lane] * code
            state[_SUM_L, lane] += weighted
            state[_SUM_LL, lane] += weighted * code
            state[_SUM_LX, lane] += weighted * v


@inner
def _solve(state: Floats) -> None:
    """Give the least squares for the codes; a minimum above 0 is taken as 0. SOLVED is 0 where there is no solution."""
    for lane in range(LANES):
        sum_w, sum_x, sum_l = state[SUM_W, lane], state[_SUM_X, lane], state[_SUM_L, lane]
        sum_ll, sum_lx = state[_SUM_LL, lane], state[_SUM_LX, lane]
        determinant = sum_w * sum_ll - sum_l * sum_l
        scale = (sum_w * sum_lx - sum_x * sum_l) / determinant
        minimum = (sum_ll * sum_x - sum_l * sum_lx) / determinant
        state[_SCALE, lane] = sum_lx / sum_ll if minimum > _ZERO else scale
        state[_MINIMUM, lane] = _ZERO if minimum > _ZERO else minimum
        state[_SOLVED, lane] = _ONE if determinant > _ZERO else _ZERO


@inner
def _measure_error(x: Floats, w: Floats, codes: Floats, state: Floats, absolute: bool) -> None:
    """Add up the weighted errors of the codes with SCALE and MINIMUM."""
    clear(state, _ERROR, _ERROR)
    for i in range(len(x)):
        for lane in range(LANES):
            off = state[_SCALE, lane] * codes[i, lane] + state[_MINIMUM, lane] - x[i, lane]
            state[_ERROR, lane] += w[i, lane] * (abs(off) if absolute else off * off)


@inner
def _keep_better(state: Floats) -> None:
    """Take over what has a smaller error; the next codes are then counted from the new minimum."""
    for lane in range(LANES):
        better = (state[_SOLVED, lane] > _ZERO) & (state[_ERROR, lane] < state[_BEST_ERROR, lane])
        state[_BEST_ERROR, lane] = state[_ERROR, lane] if better else state[_BEST_ERROR, lane]
        state[BEST_SCALE, lane] = state[_SCALE, lane] if better else state[BEST_SCALE, lane]
        state[_BEST_INVERSE, lane] = state[_INVERSE, lane] if better else state[_BEST_INVERSE, lane]
        state[_BEST_BASE, lane] = state[BASE, lane] if better else state[_BEST_BASE, lane]
        state[BASE, lane] = state[_MINIMUM, lane] if better else state[BASE, lane]
