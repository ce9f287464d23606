"""The searches for one scale of either sign: codes -half to half - 1 with ``x ~ scale * code``, stored with half added.

Source: ``make_qx_quants`` (with weights, or with ``rmse_type`` 1, whose weights are the squares) and ``make_q3_quants`` in
ggml/src/ggml-quants.c. See ``k_lanes`` for the arrays.
"""

from __future__ import annotations

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_lanes import LANES, Work, clear, level
from impl.blocks.kernel import inner, kernel

# Rows of the state: SCALE is the result, the rest is the search's own.
SCALE = 0
_EXTREME, _MAGNITUDE, _INVERSE, _SUM_LX, _SUM_LL, _BEST, _BEST_INVERSE, _OTHER_LX, _OTHER_LL, _MOVES = range(1, 11)

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TENTH = np.float32(0.1)
_ALL_ZERO = np.float32(1e-15)
_FURTHEST = 9
_ROUNDS = 5


@kernel
def search_symmetric(work: Work, half: np.int32) -> None:
    """Find scale, sum of weights and codes of every sub-block in ``work``, whose weights are there."""
    for j in range(len(work.x)):
        fit_symmetric(work.x[j], work.w[j], work.levels[j], work.state, half)
        for lane in range(LANES):
            work.scales[j, lane] = work.state[SCALE, lane]
            work.sums[j, lane] = _ZERO
        for i in range(work.x.shape[1]):
            for lane in range(LANES):
                work.sums[j, lane] += work.w[j, i, lane]


@kernel
def search_by_descent(work: Work, half: np.int32) -> None:
    """Find scale and codes of every sub-block in ``work``; its weights are not looked at, and overwritten."""
    for j in range(len(work.x)):
        fit_by_descent(work.x[j], work.w[j], work.levels[j], work.state, half)
        for lane in range(LANES):
            work.scales[j, lane] = work.state[SCALE, lane]


@kernel
def fit_symmetric(x: Floats, w: Floats, levels: Bytes, state: Floats, half: np.int32) -> None:
    """Try 19 numbers of steps around ``half``; give row SCALE of ``state`` and the codes of each lane."""
    _find_extreme(x, state)
    _try_first(x, w, state, half)
    for t in range(-_FURTHEST, _FURTHEST + 1):
        if t != 0:
            _try_steps(x, w, state, half, np.float32(half) + _TENTH * np.float32(t))
    for lane in range(LANES):
        state[SCALE, lane] = _ZERO if state[_MAGNITUDE, lane] < _ALL_ZERO else state[SCALE, lane]
    for i in range(len(x)):
        for lane in range(LANES):
            code = half + level(state[_BEST_INVERSE, lane] * x[i, lane], np.int32(-half), np.int32(half - 1))
            levels[i, lane] = 0 if state[_MAGNITUDE, lane] < _ALL_ZERO else code


@inner
def _find_extreme(x: Floats, state: Floats) -> None:
    """Find the first element of greatest magnitude."""
    clear(state, _EXTREME, _MAGNITUDE)
    for i in range(len(x)):
        for lane in range(LANES):
            larger = abs(x[i, lane]) > state[_MAGNITUDE, lane]
            state[_EXTREME, lane] = x[i, lane] if larger else state[_EXTREME, lane]
            state[_MAGNITUDE, lane] = abs(x[i, lane]) if larger else state[_MAGNITUDE, lane]


@kernel
def _sum(x: Floats, w: Floats, state: Floats, half: np.int32) -> None:
    """Round to the codes of INVERSE, and add up what their best scale is made of."""
    lowest, highest = np.int32(-half), np.int32(half - 1)
    clear(state, _SUM_LX, _SUM_LL)
    for i in range(len(x)):
        for lane in range(LANES):
            code = np.float32(level(state[_INVERSE, lane] * x[i, lane], lowest, highest))
            state[_SUM_LX, lane] += w[i, lane] * x[i, lane] * code
            state[_SUM_LL, lane] += w[i, lane] * code * code


@inner
def _try_first(x: Floats, w: Floats, state: Floats, half: np.int32) -> None:
    for lane in range(LANES):
        state[_INVERSE, lane] = -np.float32(half) / state[_EXTREME, lane]
    _sum(x, w, state, half)
    for lane in range(LANES):
        ratio = state[_SUM_LX, lane] / state[_SUM_LL, lane]
        state[SCALE, lane] = _ZERO if state[_SUM_LL, lane] == _ZERO else ratio
        state[_BEST, lane] = state[SCALE, lane] * state[_SUM_LX, lane]
        state[_BEST_INVERSE, lane] = state[_INVERSE, lane]


@inner
def _try_steps(x: Floats, w: Floats, state: Floats, half: np.int32, steps: np.float32) -> None:
    for lane in range(LANES):
        state[_INVERSE, lane] = -steps / state[_EXTREME, lane]
    _sum(x, w, state, half)
    for lane in range(LANES):
        sum_lx, sum_ll = state[_SUM_LX, lane], state[_SUM_LL, lane]
        better = (sum_ll > _ZERO) & (sum_lx * sum_lx > state[_BEST, lane] * sum_ll)
        scale = sum_lx / sum_ll
        state[SCALE, lane] = scale if better else state[SCALE, lane]
        state[_BEST, lane] = scale * sum_lx if better else state[_BEST, lane]
        state[_BEST_INVERSE, lane] = state[_INVERSE, lane] if better else state[_BEST_INVERSE, lane]


@inner
def fit_by_descent(x: Floats, codes: Floats, levels: Bytes, state: Floats, half: np.int32) -> None:
    """Start from the plain codes and improve one at a time; give row SCALE of ``state`` and the codes. ``codes`` is room."""
    _find_extreme(x, state)
    _start_descent(x, codes, state, half)
    for _ in range(_ROUNDS):
        if _descend(x, codes, state, half) == 0:
            break
    for lane in range(LANES):
        ratio = state[_SUM_LX, lane] / state[_SUM_LL, lane]
        found = (state[_SUM_LL, lane] > _ZERO) & ~(state[_MAGNITUDE, lane] < _ALL_ZERO)
        state[SCALE, lane] = ratio if found else _ZERO
    for i in range(len(x)):
        for lane in range(LANES):
            levels[i, lane] = 0 if state[_MAGNITUDE, lane] < _ALL_ZERO else np.int32(codes[i, lane]) + half


@inner
def _start_descent(x: Floats, codes: Floats, state: Floats, half: np.int32) -> None:
    lowest, highest = np.int32(-half), np.int32(half - 1)
    for lane in range(LANES):
        state[_INVERSE, lane] = -np.float32(half) / state[_EXTREME, lane]
    clear(state, _SUM_LX, _SUM_LL)
    for i in range(len(x)):
        for lane in range(LANES):
            v = x[i, lane]
            code = np.float32(level(state[_INVERSE, lane] * v, lowest, highest))
            codes[i, lane] = code
            state[_SUM_LX, lane] += v * v * v * code
            state[_SUM_LL, lane] += v * v * code * code


@inner
def _descend(x: Floats, codes: Floats, state: Floats, half: np.int32) -> int:
    """Move each code to the best one for the scale that the others give, where that helps; count the moves of all lanes."""
    clear(state, _MOVES, _MOVES)
    for i in range(0, len(x), 2):
        _move(x, codes, state, half, i, _SUM_LX, _OTHER_LX)
        _move(x, codes, state, half, i + 1, _OTHER_LX, _SUM_LX)
    moves = 0
    for lane in range(LANES):
        moves += int(state[_MOVES, lane])
    return moves


@inner
def _move(x: Floats, codes: Floats, state: Floats, half: np.int32, i: int, source: int, target: int) -> None:
    """Move element ``i`` of each lane. The sums go from rows ``source`` and the next one to ``target`` and the next one.

    Were they kept in their place, they would be stored where there is a move only, and waiting for such a store to be read again
    takes longer than all the rest.
    """
    lowest, highest = np.int32(-half), np.int32(half - 1)
    for lane in range(LANES):
        v, old = x[i, lane], codes[i, lane]
        weight, sum_lx, sum_ll = v * v, state[source, lane], state[source + 1, lane]
        lx, ll = sum_lx - weight * v * old, sum_ll - weight * old * old
        code = np.float32(level(v * ll / lx, lowest, highest))
        new_lx, new_ll = lx + weight * v * code, ll + weight * code * code
        gain = new_lx * new_lx * sum_ll > sum_lx * sum_lx * new_ll
        move = (lx > _ZERO) & (code != old) & (new_ll > _ZERO) & gain
        codes[i, lane] = code if move else old
        state[target, lane] = new_lx if move else sum_lx
        state[target + 1, lane] = new_ll if move else sum_ll
        state[_MOVES, lane] += _ONE if move else _ZERO
