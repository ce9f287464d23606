"""How far two float32 sums of the same products can be apart, if all that differs is the order in which they were added.

docs/judging.md, "Sums in another order", derives the bound. Source of the general theorem: Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd edition, sections 3.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from conformance.ggml_types import GgmlType
from conformance.judge.divergence import Divergence, FloatBits
from conformance.judge.exact import exact_magnitudes
from conformance.judge.numbers import by_distance, float_text, hex_bits, ulp_distances

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

# Half the distance from 1 to the next float32.
_U = 2.0**-24
# A sum adds to one accumulator at most once for so many elements: the smallest sub-block that has a scale.
_STRIDE = 16
# Additions of at most 16 lanes to one another, and products and conversions that a term goes through.
_FIXED = 24
# x is quantized first. An element moves by half a step, a 254th of its block's largest, and by the rounding of the stored scale.
_GROWTH = 1 / 254 + 2.0**-10
_X_BLOCK = {32: 32, 64: 32, 128: 32, 256: 256}
_TINIEST = 2.0**-149
_LEAST_SCALE = 127 * 2.0**-25
# Float types are multiplied by x as it is.
_FLOAT_TYPES = ("F16", "BF16")


class Product(NamedTuple):
    """What was multiplied: a file of ``rows`` rows of ``cols`` weights, blocks of ``kind``, and float32 ``x``.

    ``x`` has shape (rows, cols), or (1, cols) where all rows are multiplied by one.
    """

    kind: GgmlType
    weights: Path
    rows: int
    cols: int
    x: Floats


class Sums(NamedTuple):
    """The measure's sums and the ones found, float32 (rows,), and who gave the measure; ``op`` is the op that gave ``found``."""

    op: str
    authority: str
    expected: Floats
    found: Floats


class Distance(NamedTuple):
    """What was found: the divergence, if sums are too far apart, and the largest distance in ulps of any two numbers.

    ``unbounded`` rows differ and were not judged: what they add up is not finite, or too large for float32.
    """

    divergence: Divergence | None
    ulps: int
    unbounded: int = 0


def gamma(cols: int) -> float:
    """Give the relative error that a sum over ``cols`` elements can have, of the sum of its terms' magnitudes."""
    depth = cols / _STRIDE + _FIXED
    return depth * _U / (1 - depth * _U)


def compare_sums(product: Product, sums: Sums) -> Distance:
    """Compare sums that may have been added in another order; each side may be as far from the exact sum as rounding takes it."""
    expected, found = (each.astype(np.float64) for each in (sums.expected, sums.found))
    with np.errstate(all="ignore"):
        apart = np.abs(found - expected)
        # The terms' magnitudes are at least the sum's: most rows need no more than that.
        near = apart <= gamma(product.cols) * np.abs(expected)
    same = (sums.expected.view(np.uint32) == sums.found.view(np.uint32)) | (np.isnan(expected) & np.isnan(found))
    doubtful: list[int] = np.flatnonzero(~(near | same)).tolist()
    allowed = {row: _radius(product, row) for row in doubtful}
    far = {row: most for row, most in allowed.items() if np.isfinite(most) and not apart[row] <= most}
    ulps = int(ulp_distances(sums.expected, sums.found).max(initial=0))
    unbounded = sum(not np.isfinite(most) for most in allowed.values())
    return Distance(_divergence(product, sums, far, ulps) if far else None, ulps, unbounded)


def _radius(product: Product, row: int) -> float:
    """Give how far the row's sums may be apart; infinity or NaN where a weight or the sum of magnitudes is none a float32 holds."""
    x = product.x[row if len(product.x) > 1 else 0].astype(np.float64)
    with np.errstate(all="ignore"):
        magnitudes = _weights(product, row) * _quantized(np.abs(x), product.kind)
        total = float(magnitudes.sum())
    if not total < float(np.finfo(np.float32).max):
        return float("inf")
    return 2 * gamma(product.cols) * total * (1 + 2.0**-20) + product.cols * _TINIEST


def _weights(product: Product, row: int) -> Doubles:
    kind, size = product.kind, product.kind.row_bytes(product.cols)
    with product.weights.open("rb") as file:
        file.seek(row * size)
        raw = file.read(size)
    blocks = (raw[at : at + kind.nbytes] for at in range(0, size, kind.nbytes))
    return np.array([value for block in blocks for value in exact_magnitudes(kind.name, block)])


def _quantized(x: Doubles, kind: GgmlType) -> Doubles:
    """Give a bound on each element of ``x`` once it is quantized."""
    if kind.name in _FLOAT_TYPES:
        return x
    blocks = x.reshape(-1, _X_BLOCK[kind.block])
    larger: Doubles = blocks + blocks.max(axis=1, keepdims=True) * _GROWTH + _LEAST_SCALE
    return larger.reshape(-1)


def _divergence(product: Product, sums: Sums, far: Mapping[int, float], ulps: int) -> Divergence:
    row, most = next(iter(far.items()))
    expected, found = sums.expected[row], sums.found[row]
    apart = abs(float(found) - float(expected))
    distance = int(ulp_distances(sums.expected[row : row + 1], sums.found[row : row + 1])[0])
    return Divergence(
        signature=f"{sums.op}:{product.kind.name}:rounding:value",
        op=sums.op,
        authority=sums.authority,
        summary=f"row {row}: {apart:.3g} apart; another order of additions explains {most:.3g} at most",
        expected=f"{float_text(expected)}, or at most {most:.3g} from it",
        found=float_text(found),
        at=row * 4,
        row=row,
        bits=FloatBits(hex_bits(expected), hex_bits(found), distance if distance >= 0 else None),
        different=len(far),
        compared=product.rows,
        unit="values",
        largest_ulps=ulps,
        by_distance=by_distance(ulp_distances(sums.expected[list(far)], sums.found[list(far)])),
    )
