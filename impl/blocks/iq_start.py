"""The scale that IQ2_XXS starts from: the best for magnitudes rounded to 0 to 4, without a grid.

Source: ``make_qp_quants`` in ggml/src/ggml-quants.c, of which only the scale is used here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from impl.blocks.codec import Floats
from impl.blocks.kernel import inner
from impl.blocks.nearest import nearest

_MOST = np.int32(4)
_MOST_F = np.float32(4)
_STEP = np.float32(0.1)
_ONE = np.float32(1)
_ROUNDS = 5


@inner
def fitted_scale(x: Floats, weight: Floats) -> np.float32:
    """Give the scale for ``x``, whose greatest element is positive, weighted by ``weight``; 0 where no weight is positive."""
    codes = np.empty(len(x), np.uint8)
    greatest = np.float32(0)
    for i in range(len(x)):
        greatest = greatest if greatest > x[i] else x[i]
    inverse = _best_inverse(x, weight, greatest)
    products = squares = np.float32(0)
    for i in range(len(x)):
        code = min(nearest(inverse * x[i]), _MOST)
        codes[i] = code  # a negative one, of an element that bears the odd sign, wraps as in C
        products += weight[i] * x[i] * np.float32(code)
        squares += weight[i] * np.float32(code) * np.float32(code)
    for _ in range(_ROUNDS):
        products, squares, changed = _improve(x, weight, codes, products, squares)
        if not changed:
            break
    return products / squares if squares > 0 else np.float32(0)


@inner
def _best_inverse(x: Floats, weight: Floats, greatest: np.float32) -> np.float32:
    """Try nine scales, the middle one first; of those with the smallest weighted error give the first."""
    inverse, scale, error = np.empty(16, np.float32), np.empty(16, np.float32), np.zeros(16, np.float32)
    for lane in range(16):
        away = np.float32(0) if lane == 0 else np.float32(lane - 5 if lane < 5 else lane - 4)
        inverse[lane] = (_STEP * away + _MOST_F) / greatest
        scale[lane] = _ONE / inverse[lane]
    for i in range(len(x)):
        for lane in range(16):
            code = nearest(inverse[lane] * x[i])
            code = code & np.int32(255) if lane == 0 else min(code, _MOST)
            apart = x[i] - scale[lane] * np.float32(code)
            error[lane] += weight[i] * apart * apart
    best = 0
    for lane in range(1, 9):
        if error[lane] < error[best]:
            best = lane
    return np.float32(inverse[best])


@inner
def _improve(
    x: Floats, weight: Floats, codes: npt.NDArray[np.uint8], products: np.float32, squares: np.float32
) -> tuple[np.float32, np.float32, bool]:
    """Change each code to what fits the other ones best, where that fits better in all."""
    changed = False
    for i in range(len(x)):
        w, code = weight[i], np.float32(codes[i])
        other_products = products - w * x[i] * code
        other_squares = squares - w * code * code
        if not (other_products > 0 and other_squares > 0):
            continue
        new = min(nearest(x[i] * other_squares / other_products), _MOST)
        if new == np.int32(codes[i]):
            continue
        other_products += w * x[i] * np.float32(new)
        other_squares += w * np.float32(new) * np.float32(new)
        if other_products * other_products * squares > products * products * other_squares:
            codes[i] = new
            products, squares, changed = other_products, other_squares, True
    return products, squares, changed
