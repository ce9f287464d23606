"""The search for one positive scale of numbers that are not negative, here a super-block's scales or minima, with weights.

Source: ``make_qp_quants`` in ggml/src/ggml-quants.c. Its codes are unsigned bytes: one of a negative number wraps, as it does
there. See ``k_lanes`` for the arrays.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_lanes import LANES, clear
from impl.blocks.kernel import inner, kernel
from impl.blocks.nearest import nearest

_LARGEST, _INVERSE, _SCALE, _ERROR, _BEST_ERROR, _BEST_INVERSE, _SUM_LX, _SUM_LL = range(8)

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TENTH = np.float32(0.1)
_ALL_ZERO = np.float32(1e-15)
_ROUNDS = 5


@kernel
def fit_positive(x: Floats, w: Floats, codes: Bytes, d: Floats, state: Floats, top: np.int32) -> None:
    """Give the scale ``d`` of each lane and its codes, at most ``top``, for values and weights of shape (n, LANES)."""
    levels = np.empty_like(x)
    _find_largest(x, state)
    _try_steps(x, w, state, top)
    _encode(x, w, levels, state, top)
    for _ in range(_ROUNDS):
        if _descend(x, w, levels, state, top) == 0:
            break
    for lane in range(LANES):
        empty = state[_LARGEST, lane] < _ALL_ZERO
        scale = state[_SUM_LX, lane] / state[_SUM_LL, lane] if state[_SUM_LL, lane] > _ZERO else _ZERO
        d[lane] = _ZERO if empty else scale
        for i in range(len(x)):
            codes[i, lane] = np.uint8(0) if empty else np.uint8(levels[i, lane])


@kernel
def _byte(code: np.int32) -> np.float32:
    return np.float32(np.int32(code & 255))


@inner
def _code(x: np.float32, top: np.int32) -> np.int32:
    return np.int32(min(nearest(x), top))


@inner
def _find_largest(x: Floats, state: Floats) -> None:
    """Find the largest value. A NaN wipes out what came before it."""
    clear(state, _LARGEST, _LARGEST)
    for i in range(len(x)):
        for lane in range(LANES):
            so_far = state[_LARGEST, lane]
            state[_LARGEST, lane] = so_far if so_far > x[i, lane] else x[i, lane]


@inner
def _try_steps(x: Floats, w: Floats, state: Floats, top: np.int32) -> None:
    """Find which of nine numbers of steps up to the largest value has the smallest error."""
    for t in (0, -4, -3, -2, -1, 1, 2, 3, 4):
        steps = _TENTH * np.float32(t) + np.float32(top)
        for lane in range(LANES):
            state[_INVERSE, lane] = steps / state[_LARGEST, lane]
            state[_SCALE, lane] = _ONE / state[_INVERSE, lane]
        _measure_error(x, w, state, t == 0, top)
        for lane in range(LANES):
            better = (t == 0) | (state[_ERROR, lane] < state[_BEST_ERROR, lane])
            state[_BEST_ERROR, lane] = state[_ERROR, lane] if better else state[_BEST_ERROR, lane]
            state[_BEST_INVERSE, lane] = state[_INVERSE, lane] if better else state[_BEST_INVERSE, lane]


@inner
def _measure_error(x: Floats, w: Floats, state: Floats, as_bytes: bool, top: np.int32) -> None:
    """Add up the weighted squares of the errors. The first codes of all are kept as bytes and have no upper bound."""
    clear(state, _ERROR, _ERROR)
    for i in range(len(x)):
        for lane in range(LANES):
            scaled = state[_INVERSE, lane] * x[i, lane]
            code = _byte(nearest(scaled)) if as_bytes else np.float32(_code(scaled, top))
            off = x[i, lane] - state[_SCALE, lane] * code
            state[_ERROR, lane] += w[i, lane] * off * off


@inner
def _encode(x: Floats, w: Floats, levels: Floats, state: Floats, top: np.int32) -> None:
    clear(state, _SUM_LX, _SUM_LL)
    for i in range(len(x)):
        for lane in range(LANES):
            code = _code(state[_BEST_INVERSE, lane] * x[i, lane], top)
            levels[i, lane] = _byte(code)
            value = np.float32(code)
            state[_SUM_LX, lane] += w[i, lane] * x[i, lane] * value
            state[_SUM_LL, lane] += w[i, lane] * value * value


@inner
def _descend(x: Floats, w: Floats, levels: Floats, state: Floats, top: np.int32) -> int:
    """Move each code to the best one for the scale that the others give, where that helps; count the moves of all lanes."""
    moves = 0
    for i in range(len(x)):
        for lane in range(LANES):
            weight, v, old = w[i, lane], x[i, lane], levels[i, lane]
            sum_lx, sum_ll = state[_SUM_LX, lane], state[_SUM_LL, lane]
            lx, ll = sum_lx - weight * v * old, sum_ll - weight * old * old
            code = _code(v * ll / lx, top)
            value = np.float32(code)
            new_lx, new_ll = lx + weight * v * value, ll + weight * value * value
            gain = new_lx * new_lx * sum_ll > sum_lx * sum_lx * new_ll
            move = (lx > _ZERO) & (ll > _ZERO) & (value != old) & gain
            levels[i, lane] = _byte(code) if move else old
            state[_SUM_LX, lane] = new_lx if move else sum_lx
            state[_SUM_LL, lane] = new_ll if move else sum_ll
            moves += move
    return moves
