"""The K types quantized: float32 of shape (super-blocks, 256) to bytes of shape (super-blocks, block bytes).

64 super-blocks at a time: a search finds each sub-block's scale, these are coded by the super-block's, and the elements are rounded
once more to the scales as they are stored. The steps are compiled each on its own, since types share them.

Every float has an answer, infinities and NaN too, and it is the library's. One thing is open: where a NaN with a payload meets
another NaN, the payload that goes on, and with it a code, depends on the order in which a compiler puts the operands.

Source: ``quantize_row_q*_K_ref`` and ``quantize_row_q*_K_impl`` (with an imatrix) in ggml/src/ggml-quants.c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from impl.blocks.codec import Bytes, Floats
from impl.blocks.k_affine import Search, search_affine
from impl.blocks.k_finish import finish_q2_k, finish_q3_k, finish_q4_k, finish_q5_k, finish_q6_k
from impl.blocks.k_lanes import LANES, Work, gather, make_work, scatter
from impl.blocks.k_positive import fit_positive
from impl.blocks.k_scales import code_by_largest, code_signed, code_signed_bytes
from impl.blocks.k_symmetric import SCALE, fit_symmetric, search_by_descent, search_symmetric
from impl.blocks.k_weights import (
    multiply_by_power,
    weigh_by_imatrix,
    weigh_by_magnitude,
    weigh_by_mean_and_magnitude,
    weigh_by_square,
)


class _Affine(NamedTuple):
    """How a type with scales and minima is made. ``power``: the factor of the mean square in weights with an imatrix.

    Codes of scales and minima go up to ``top``; after they have wrapped as bytes they are capped, otherwise with an imatrix.
    """

    sub_block: int
    plain: Search
    weighted: Search
    weigh: Callable[[Floats, Floats], None]
    power: np.float32
    top: np.int32
    cap: np.uint8
    weighted_cap: np.uint8
    finish: Callable[[Work], None]


def _search(top: int, first: float, step: float, last: int, *, absolute: bool = False) -> Search:
    return Search(np.int32(top), np.float32(first), np.float32(step), last, absolute)


_ONE, _TWO = np.float32(1), np.float32(2)
_TOP_4, _TOP_6, _CAP_6, _NO_CAP = np.int32(15), np.int32(63), np.uint8(63), np.uint8(255)
_Q2 = _Affine(
    sub_block=16,
    plain=_search(3, -0.5, 0.1, 15, absolute=True),
    weighted=_search(3, -0.9, 0.05, 36),
    weigh=weigh_by_magnitude,
    power=_ONE,
    top=_TOP_4,
    cap=_NO_CAP,
    weighted_cap=_NO_CAP,
    finish=finish_q2_k,
)
_Q4 = _Affine(
    sub_block=32,
    plain=_search(15, -1, 0.1, 20),
    weighted=_search(15, -0.9, 0.05, 36),
    weigh=weigh_by_mean_and_magnitude,
    power=_TWO,
    top=_TOP_6,
    cap=_CAP_6,
    weighted_cap=_NO_CAP,
    finish=finish_q4_k,
)
_Q5 = _Q4._replace(plain=_search(31, -0.5, 0.1, 15), weighted=_search(31, -0.9, 0.05, 36), weighted_cap=_CAP_6, finish=finish_q5_k)
_Q3_HALF, _Q6_HALF, _SCALE_HALF = np.int32(4), np.int32(32), np.int32(32)


def _groups(x: Floats, raw: Bytes, work: Work) -> Iterator[int]:
    """Put 64 super-blocks after the other into ``work``; afterwards take their bytes out. Gives the number of the first."""
    for first in range(0, len(x), LANES):
        gather(x[first : first + LANES], work.x)
        yield first
        scatter(work.rows, raw[first : first + LANES])


def _quantize_affine(kind: _Affine, x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    work = make_work(kind.sub_block, raw.shape[1])
    for first in _groups(x, raw, work):
        if imatrix is None:
            kind.weigh(work.x, work.w)
            search_affine(work, kind.plain)
            code_by_largest(work.scales, work.codes, work.d, np.float32(kind.top), kind.cap)
            code_by_largest(work.minima, work.minimum_codes, work.dmin, np.float32(kind.top), kind.cap)
        else:
            weigh_by_imatrix(imatrix, first, work.w)
            multiply_by_power(work.x, kind.power, work.w)
            search_affine(work, kind.weighted)
            fit_positive(work.scales, work.sums, work.codes, work.d, work.state, kind.top)
            fit_positive(work.minima, work.sums, work.minimum_codes, work.dmin, work.state, kind.top)
            np.minimum(work.codes, kind.weighted_cap, out=work.codes)
            np.minimum(work.minimum_codes, kind.weighted_cap, out=work.minimum_codes)
        kind.finish(work)


def quantize_q2_k(x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    """Quantize to Q2_K; ``imatrix`` of shape (cols,) belongs to each row of ``x``."""
    _quantize_affine(_Q2, x, imatrix, raw)


def quantize_q4_k(x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    """Quantize to Q4_K; ``imatrix`` of shape (cols,) belongs to each row of ``x``."""
    _quantize_affine(_Q4, x, imatrix, raw)


def quantize_q5_k(x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    """Quantize to Q5_K; ``imatrix`` of shape (cols,) belongs to each row of ``x``."""
    _quantize_affine(_Q5, x, imatrix, raw)


def quantize_q3_k(x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    """Quantize to Q3_K; ``imatrix`` of shape (cols,) belongs to each row of ``x``."""
    work = make_work(16, raw.shape[1])
    for first in _groups(x, raw, work):
        if imatrix is None:
            search_by_descent(work, _Q3_HALF)
            code_signed(work.scales, work.codes, work.d)
        else:
            weigh_by_imatrix(imatrix, first, work.w)
            multiply_by_power(work.x, _TWO, work.w)
            search_symmetric(work, _Q3_HALF)
            fit_symmetric(work.scales, work.sums, work.codes, work.state, _SCALE_HALF)
            work.d[:] = work.state[SCALE]
        finish_q3_k(work)


def quantize_q6_k(x: Floats, imatrix: Floats | None, raw: Bytes) -> None:
    """Quantize to Q6_K; ``imatrix`` of shape (cols,) belongs to each row of ``x``."""
    work = make_work(16, raw.shape[1])
    for first in _groups(x, raw, work):
        if imatrix is None:
            weigh_by_square(work.x, work.w)
        else:
            weigh_by_imatrix(imatrix, first, work.w)
        search_symmetric(work, _Q6_HALF)
        code_signed_bytes(work.scales, work.levels, work.codes, work.d)
        finish_q6_k(work)
