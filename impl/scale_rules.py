"""What scale each type will store for a block, and how far off it will come out: known before anything is quantized.

Three kinds of types. Where the scale is a quotient of the block's extremes, its stored value is computed and the error is the
true one. Where ggml searches for the scale (the K and IQ types), the quotient that the search starts from is the estimate; the
error is the greatest that float16 can make of it. The rest have rules of their own. A row of ``RULES`` is one type's rule.

Source: the ``quantize_row_*`` functions, ggml/src/ggml-quants.c; ``ggml_fp32_to_ue4m3``, ggml/src/ggml-impl.h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from impl.blocks.codec import Floats
from impl.blocks.products import sum_in_order

F16_MAX = 65504.0
# Half the distance between subnormal float16 numbers: the most that rounding can move one.
_HALF_STEP = np.float32(2.0**-25)
_DIRECT = 0.01
_F16 = "float16, whose largest number is 65504"


class Prediction(NamedTuple):
    """For each block: the scale, what is stored of it, and how far that moves the block's largest value, relative to it.

    ``error`` is not finite where the scale does not fit, and 0 for a block of zeros.
    """

    scale: Floats
    stored: Floats
    error: Floats


class Rule(NamedTuple):
    """One type's rule. ``predict`` takes finite float32 of shape (blocks, block); errors above ``tolerance`` are refused."""

    text: str
    predict: Callable[[Floats], Prediction]
    tolerance: float = _DIRECT
    stored_as: str = _F16


def _largest(x: Floats) -> Floats:
    amax: Floats = np.abs(x).max(axis=1)
    return amax


def _as_f16(scale: Floats) -> Floats:
    return scale.astype(np.float16).astype(np.float32)


def _over(part: Floats, whole: Floats) -> Floats:
    """Give ``part / whole``: 0 where both are 0, infinite where the part is."""
    ratio: Floats = np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)
    return ratio


def _direct(scale: Callable[[Floats], Floats], x: Floats) -> Prediction:
    """One scale a block, a quotient of its elements."""
    d = scale(x)
    stored = _as_f16(d)
    return Prediction(d, stored, _over(np.abs(stored - d), d))


def _quotient(steps: int) -> Callable[[Floats], Prediction]:
    return partial(_direct, lambda x: _largest(x) / np.float32(steps))


def _mean(x: Floats) -> Floats:
    mean: Floats = sum_in_order(np.abs(x)) / np.float32(x.shape[1])
    return mean


def _with_minimum(steps: int, x: Floats) -> Prediction:
    """Store a scale and a minimum: what the block's least and greatest element come back as counts, relative to the larger one."""
    least, greatest = x.min(axis=1), x.max(axis=1)
    d = (greatest - least) / np.float32(steps)
    least_back = _as_f16(least)
    greatest_back = _as_f16(d) * np.float32(steps) + least_back
    error = _over(np.maximum(np.abs(least_back - least), np.abs(greatest_back - greatest)), _largest(x))
    told = np.where(d > 0, d, np.abs(least))
    told = np.where(np.isinf(least_back), np.abs(least), told)
    return Prediction(told, _as_f16(told), np.where(np.isfinite(error), error, np.float32(np.inf)))


def _with_sum(x: Floats) -> Prediction:
    """Store the scale of Q8_0, and the block's sum, which has to fit but may cancel to anything small."""
    found = _quotient(127)(x)
    codes = np.rint(_over(x, np.broadcast_to(found.scale[:, np.newaxis], x.shape)))
    total: Floats = np.abs(codes.sum(axis=1)) * found.scale
    lost = np.isinf(_as_f16(total)) & np.isfinite(found.error)
    error = np.where(lost, np.float32(np.inf), found.error)
    return Prediction(np.where(lost, total, found.scale), np.where(lost, np.float32(np.inf), found.stored), error)


def _searched(x: Floats, *, steps: int, slack: int = 2) -> Prediction:
    """Estimate a scale as amax over ``steps``; the search may make it up to ``slack`` times as large."""
    amax = _largest(x)
    return _estimated(amax / np.float32(steps), amax / np.float32(steps), amax, steps, slack)


def _searched_with_minimum(x: Floats, *, sub_block: int, codes: int, scales: int) -> Prediction:
    """Sub-blocks from their minimum, at most 0, in ``codes`` steps; scales and minima in ``scales`` steps of d and dmin."""
    parts = x.reshape(len(x), -1, sub_block)
    least = np.minimum(parts.min(axis=2), np.float32(0))
    d = (parts.max(axis=2) - least).max(axis=1) / np.float32(codes * scales)
    largest = np.maximum(d, (-least).max(axis=1) / np.float32(scales))
    return _estimated(largest, d, _largest(x), codes * scales, 2)


def _estimated(largest: Floats, d: Floats, amax: Floats, steps: int, slack: int) -> Prediction:
    fits = largest * np.float32(slack) <= np.float32(F16_MAX)
    error = np.float32(steps) * np.minimum(_HALF_STEP, d)
    stored = np.where(fits, _as_f16(d), np.float32(np.inf))
    return Prediction(np.where(fits, d, largest), stored, np.where(fits, _over(error, amax), np.float32(np.inf)))


def _float16(x: Floats) -> Prediction:
    """Store an element alone: a number near 0 loses nothing that matters beside its neighbours, so only its size counts."""
    amax = _largest(x)
    stored = _as_f16(amax)
    return Prediction(amax, stored, np.where(np.isinf(stored), stored, np.float32(0)))


def _bfloat16(x: Floats) -> Prediction:
    """As ``_float16``; what rounds up past the largest finite number becomes infinite."""
    amax = _largest(x)
    lost = amax.view(np.uint32) >= 0x7F7F8000
    stored = np.where(lost, np.float32(np.inf), amax)
    return Prediction(amax, stored, np.where(lost, stored, np.float32(0)))


def _float32(x: Floats) -> Prediction:
    amax = _largest(x)
    return Prediction(amax, amax, np.zeros_like(amax))


def _q8_k(x: Floats) -> Prediction:
    """Store a float32 scale, but made from its reciprocal, which the smallest numbers make infinite."""
    amax = _largest(x)
    inverse = _over(np.full_like(amax, 127), amax)
    stored = np.where(np.isinf(inverse), np.float32(0), amax / np.float32(127))
    return Prediction(amax / np.float32(127), stored, np.where(np.isinf(inverse), np.float32(1), np.float32(0)))


def _mxfp4(x: Floats) -> Prediction:
    """Store a power of two: below 2^-125 its 8 bits pass 0 and come round to the largest ones, and the codes are all 0."""
    amax = _largest(x)
    lost = (amax > 0) & (amax < np.float32(2.0**-125))
    scale = np.exp2(np.floor(np.log2(np.where(amax > 0, amax, np.float32(1)))) - np.float32(2)) * (amax > 0)
    return Prediction(scale, np.where(lost, np.float32(0), scale), lost.astype(np.float32))


def _nvfp4(x: Floats) -> Prediction:
    """Store scales of 8 bits for each 16 elements, a block counting by its largest: 0 below 2^-10, and at most 448.

    Between them the codes are chosen for the scale as it is stored, so that its own error is none of the block's.
    """
    scale = _largest(x) / np.float32(6)
    stored = np.where(scale < np.float32(2.0**-10), np.float32(0), np.minimum(scale, np.float32(448)))
    return Prediction(scale, stored, _over(scale - stored, scale))


def _iq(steps: int, tolerance: float, text: str, slack: int = 2) -> Rule:
    return Rule(text, partial(_searched, steps=steps, slack=slack), tolerance)


_IQ1 = _iq(15, 1 / 2, "d = amax / 15", slack=16)
_IQ2 = _iq(155, 2 / 5, "d = amax / 155")
_IQ3 = _iq(465, 2 / 15, "d = amax / 465")
_AMAX = Rule("d = amax", _quotient(1))

RULES: dict[str, Rule] = {
    "F32": Rule("the number itself", _float32, stored_as="float32"),
    "F16": Rule("the number itself", _float16),
    "BF16": Rule("the number itself", _bfloat16, stored_as="bfloat16"),
    "Q1_0": Rule("d = the mean magnitude", partial(_direct, _mean)),
    "Q2_0": _AMAX,
    "Q4_0": Rule("d = amax / 8", _quotient(8)),
    "Q4_1": Rule("d = (max - min) / 15, m = min", partial(_with_minimum, 15)),
    "Q5_0": Rule("d = amax / 16", _quotient(16)),
    "Q5_1": Rule("d = (max - min) / 31, m = min", partial(_with_minimum, 31)),
    "Q8_0": Rule("d = amax / 127", _quotient(127)),
    "Q8_1": Rule("d = amax / 127, s = d times the sum of the codes", _with_sum),
    "Q8_K": Rule("d = amax / 127", _q8_k, stored_as="float32, by its reciprocal"),
    "TQ1_0": _AMAX,
    "TQ2_0": _AMAX,
    "MXFP4": Rule("e = floor(log2(amax)) + 125", _mxfp4, stored_as="an exponent from 0 to 254"),
    "NVFP4": Rule("d = amax / 6", _nvfp4, 1 / 16, "UE4M3, from 2^-9 to 448"),
    "Q2_K": Rule("d = range / 45, dmin = -min / 15", partial(_searched_with_minimum, sub_block=16, codes=3, scales=15), 1 / 3),
    "Q3_K": Rule("d = amax / 128", partial(_searched, steps=128), 1 / 4),
    "Q4_K": Rule("d = range / 945, dmin = -min / 63", partial(_searched_with_minimum, sub_block=32, codes=15, scales=63), 1 / 15),
    "Q5_K": Rule("d = range / 1953, dmin = -min / 63", partial(_searched_with_minimum, sub_block=32, codes=31, scales=63), 1 / 31),
    "Q6_K": Rule("d = amax / 4096", partial(_searched, steps=4096), 1 / 32),
    "IQ4_NL": _iq(127, 24 / 127, "d = amax / 127"),
    "IQ4_XS": _iq(4064, 24 / 127, "d = amax / 4064"),
    **dict.fromkeys(("IQ2_XXS", "IQ2_XS", "IQ2_S"), _IQ2),
    **dict.fromkeys(("IQ3_XXS", "IQ3_S"), _IQ3),
    **dict.fromkeys(("IQ1_S", "IQ1_M"), _IQ1),
}
