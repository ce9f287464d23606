"""Which of two inputs on numbers is the simpler one: a strict order, in which shrinking only ever goes down.

A cost is a row of non-negative integers, compared from the left. There is no endless way down: each step lowers one of them and may
raise only those to its right, which then start from values that are bounded by the size of the input.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from conformance.ggml_types import BY_NAME
from conformance.search.block_families import one, scale_fields
from conformance.search.probe import Blocks, Floats, NumberProbe

Costs = npt.NDArray[np.int64]
"""Shape (candidates, parts of the cost)."""

_SIGN, _MAGNITUDE = np.uint32(0x80000000), np.uint32(0x7FFFFFFF)
_INFINITY, _NAN = np.uint32(0x7F800000), np.uint32(0x7FC00000)
_ONE = np.uint32(0x3F800000)


def float_costs(rows: Floats) -> Costs:
    """Give what each row costs, shape (rows, 6).

    Elements that are not +0; bits of significands, of which an infinity has more than any number, and a NaN more still; distances
    of exponents from 0; minus signs; changes of value between neighbours in ascending order; places of what is not 0.
    """
    bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
    nonzero = bits != 0
    ordered = np.sort(bits, axis=1)
    distinct = (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    places = (nonzero * np.arange(bits.shape[1])).sum(axis=1)
    parts = (nonzero, significand_bits(bits), _exponent_distances(bits), bits & _SIGN != 0)
    return np.stack([*(part.sum(axis=1) for part in parts), distinct, places], axis=1).astype(np.int64)


def significand_bits(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Give the bits from the first to the last one that is set, the hidden one included; 25 for infinities, more for NaN."""
    magnitude = bits & _MAGNITUDE
    fraction = magnitude & np.uint32(0x7FFFFF)
    whole = (fraction | np.where(magnitude >> np.uint32(23), np.uint32(0x800000), np.uint32(0))).astype(np.int64)
    lowest = whole & -whole
    count = np.log2(np.maximum(whole, 1)).astype(np.int64) - np.log2(np.maximum(lowest, 1)).astype(np.int64) + (whole > 0)
    special = np.where(magnitude == _INFINITY, 25, np.where(bits == _NAN, 26, 27))
    return np.where(magnitude >= _INFINITY, special, count)


def _exponent_distances(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    magnitude = (bits & _MAGNITUDE).astype(np.int64)
    field, fraction = magnitude >> 23, magnitude & 0x7FFFFF
    subnormal = 126 + 23 - np.log2(np.maximum(fraction, 1)).astype(np.int64)
    distance = np.where(field == 0, subnormal, np.abs(field - 127))
    return np.where((magnitude == 0) | (field == 255), 0, distance)


def imatrix_costs(rows: Floats) -> Costs:
    """Give of each row of importances: those that are not 1, then the cost of these."""
    bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
    others = bits != _ONE
    costs = float_costs(np.where(others, bits, np.uint32(0)).view(np.float32))
    return np.concatenate([others.sum(axis=1, dtype=np.int64)[:, None], costs], axis=1)


def block_costs(type_name: str) -> Callable[[Blocks], Costs]:
    """Give what tells the costs of rows of blocks: entries that are not zero, their bits, their places.

    A scale is one entry, and one that says 1 has one bit.
    """
    size = BY_NAME[type_name].nbytes

    def costs(rows: Blocks) -> Costs:
        blocks = np.array(rows, dtype=np.uint8).reshape(len(rows), -1, size)
        entries, bits = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        for field in scale_fields(type_name):
            part = blocks[:, :, field.offset : field.offset + field.nbytes].reshape(len(rows), -1, field.width)
            used = part.any(axis=2)
            plain = (part == np.array(one(field, type_name), dtype=np.uint8)).all(axis=2)
            entries += used.sum(axis=1)
            bits += np.where(plain, 1, used + _popcounts(part).sum(axis=2)).sum(axis=1)
            blocks[:, :, field.offset : field.offset + field.nbytes] = 0
        rest = blocks.reshape(len(rows), -1)
        places = ((rest != 0) * np.arange(rest.shape[1])).sum(axis=1)
        return np.stack([entries + (rest != 0).sum(axis=1), bits + _popcounts(rest).sum(axis=1), places], axis=1)

    return costs


def _popcounts(octets: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    return _POPCOUNT[octets]


_POPCOUNT = np.array([number.bit_count() for number in range(256)], dtype=np.int64)


def complexity(probe: NumberProbe) -> tuple[int, ...]:
    """Give the whole cost of a request: rows, blocks a row, imatrix, float rows, blocks, ``x``."""
    cost = [probe.n, probe.cols // BY_NAME[probe.type].block]
    if probe.imatrix is not None:
        cost += [1, *imatrix_costs(probe.imatrix[None])[0].tolist()]
    elif probe.op == "quantize":
        cost += [0] * (1 + imatrix_costs(np.ones((1, 1), dtype=np.float32)).shape[1])
    for floats in (probe.rows, probe.x):
        if floats is not None:
            cost += float_costs(floats.reshape(1, -1))[0].tolist()
    if probe.blocks is not None:
        cost += block_costs(probe.type)(probe.blocks.reshape(1, -1))[0].tolist()
    return tuple(cost)
