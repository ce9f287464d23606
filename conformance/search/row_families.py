"""Families of float rows, each worth trying for a reason of its own, by vectorised numpy: a batch of 2^20 numbers in milliseconds.

A family takes (draws, number of rows, cols, recipe, type) and gives float32 of shape (rows, cols), where cols is a multiple of 256.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from conformance.cases.float_recipe import SIGNIFICANDS
from conformance.search.draws import Draws, Words
from conformance.search.levels import HALF, LEVELS, Format, Levels
from conformance.search.probe import Floats

_PAD = 256
_SIGN, _EXPONENT = np.uint32(0x80000000), np.uint32(0x7F800000)
# Not finite, or at the ends of what is.
_SPECIALS = np.array(
    (0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 0x7F7FFFFF, 0xFF7FFFFF), dtype=np.uint32
)


class RowRecipe(msgspec.Struct, frozen=True):
    """``family``: a key of FAMILIES; ``low``, ``high``: exponents of its numbers; ``width``: elements of a sub-block, up to 256."""

    family: str
    low: int = -4
    high: int = 4
    width: int = 32


class _Shape(NamedTuple):
    """What a family fills: ``n`` rows of ``cols`` for the type ``kind``, by ``recipe``."""

    n: int
    cols: int
    recipe: RowRecipe
    kind: str

    @property
    def width(self) -> int:
        """Elements that share a scale in the type, or the recipe's where the type has none."""
        return LEVELS[self.kind].width if self.kind in LEVELS else self.recipe.width

    def split(self, width: int) -> tuple[int, int, int]:
        """Give the shape with each row cut into sub-blocks of ``width``."""
        return self.n, self.cols // width, width


def make_rows(recipe: RowRecipe, kind: str, n: int, cols: int, draws: Draws) -> Floats:
    """Give float32 rows of shape (n, cols) for the ggml type named ``kind``."""
    padded = -(-cols // _PAD) * _PAD
    with np.errstate(all="ignore"):
        rows = FAMILIES[recipe.family](draws, _Shape(n, padded, recipe, kind)).reshape(n, padded)
    return np.ascontiguousarray(rows[:, :cols], dtype=np.float32)


def _floats(bits: Words | npt.NDArray[np.int32]) -> Floats:
    numbers: Floats = bits.view(np.float32)
    return numbers


def _signs(draws: Draws, *shape: int) -> Floats:
    """Give 1 or -1."""
    return _floats(draws.words(*shape) & _SIGN | np.uint32(0x3F800000))


def _unit_bell(draws: Draws, *shape: int) -> Floats:
    """Give numbers within (-1, 1), the small ones more often: a sum of two 16-bit fields, exact."""
    fields = draws.words(*shape).view(np.int16)
    numbers = fields[..., ::2].astype(np.float32)
    numbers += fields[..., 1::2]
    numbers *= np.float32(2**-16)
    return numbers


def _bell(draws: Draws, shape: _Shape) -> Floats:
    """Weights as they are: one size a row."""
    return _unit_bell(draws, shape.n, shape.cols) * draws.sizes(shape.recipe.low, shape.recipe.high, shape.n, 1)


def _exponents(draws: Draws, shape: _Shape) -> Floats:
    """Exponent classes with significand patterns: of one class in every other row, of any between low and high in the rest."""
    low, high = (min(max(bound + 127, 0), 254) for bound in (shape.recipe.low, shape.recipe.high))
    words = draws.words(shape.n, shape.cols)
    significands = np.array(SIGNIFICANDS, dtype=np.uint32)[(words >> np.uint32(27)) & np.uint32(15)]
    fields = ((words & np.uint32(0xFFFF)) * np.uint32(high - low + 1) >> np.uint32(16)) + np.uint32(low)
    fields[::2] = fields[::2, :1]
    return _floats(words & _SIGN | fields << np.uint32(23) | significands)


def _ties(draws: Draws, shape: _Shape) -> Floats:
    """Numbers in the middle of two levels of the type; the greatest of a sub-block makes its scale a power of two, or about so."""
    if shape.kind not in LEVELS:
        return _midpoints(draws, shape)
    levels = LEVELS[shape.kind]
    n, parts, width = shape.split(levels.width)
    middles = levels.midpoints
    numbers = middles[draws.below(len(middles), n, parts, width)]
    shift = draws.between(-16, 16, n, parts, 1).astype(np.float32) if levels.affine else np.float32(0)
    _put(numbers, draws, np.float32(levels.extreme))
    if levels.affine:
        _put(numbers, draws, np.float32(levels.levels[0]))
    signs = _signs(draws, n, parts, 1)
    return (numbers + shift) * (signs * draws.sizes(shape.recipe.low, shape.recipe.high, n, parts, 1))


def _put(numbers: Floats, draws: Draws, value: Floats | np.float32) -> None:
    """Write ``value`` to one place of each sub-block (the last axis)."""
    places = draws.below(numbers.shape[-1], *numbers.shape[:-1], 1)
    np.put_along_axis(numbers, places, np.asarray(value, dtype=np.float32), axis=-1)


def _straddle(draws: Draws, shape: _Shape) -> Floats:
    """Ties moved by up to two units in the last place: on which side they fall hangs on each rounding before."""
    return _moved(_ties(draws, shape).reshape(shape.n, shape.cols), draws)


def _moved(numbers: Floats, draws: Draws) -> Floats:
    """Move each number by -2 to 2 units in the last place; the least and the greatest stay."""
    bits = np.ascontiguousarray(numbers).view(np.uint32)
    steps = (draws.octets(*bits.shape) % np.uint8(5)).astype(np.uint32) - np.uint32(2)
    magnitude = bits & ~_SIGN
    movable = (magnitude > np.uint32(2)) & (magnitude < np.uint32(0x7F7FFFFD))
    return _floats(bits + np.where(movable, steps, np.uint32(0)))


def _midpoints(draws: Draws, shape: _Shape) -> Floats:
    """Middles of two neighbouring f16 (for BF16: bf16), its subnormals and its overflow included, and their neighbours."""
    if shape.kind == "BF16":
        bits = draws.words(shape.n, shape.cols) & np.uint32(0xFFFF0000) | np.uint32(0x8000)
        return _nudged(_finite(bits), draws)
    return _nudged(_middles(draws, HALF, shape.n, shape.cols), draws)


def _middles(draws: Draws, form: Format, *shape: int) -> Floats:
    """Middles of two neighbouring numbers of a float format, of either sign: all exponents as often, half the least among them."""
    words = draws.words(*shape)
    return _floats(_positive_middles(form)[words >> np.uint32(16)].view(np.uint32) | words << np.uint32(31))


@cache
def _positive_middles(form: Format) -> Floats:
    """Give 2^16 middles of a format, each exponent in turn with one significand after the other."""
    span = form.high - form.low + 1
    turn, exponents = np.divmod(np.arange(2**16), span)
    exponents += form.low
    # Below the normal numbers fewer digits are left, and below the least of all none, nor a leading 1.
    digits = np.minimum(exponents - form.least, form.digits)
    ones = np.where(digits < 0, 0, np.left_shift(1, np.maximum(digits, 0)))
    codes = turn % np.maximum(ones, 1) + ones
    # Beyond the middle of the two highest numbers lies what overflows.
    codes = np.where((exponents == form.high) & (turn % 4 == 0), 2 * ones - 1, codes)
    middles = np.ldexp(codes.astype(np.float32) + np.float32(0.5), (exponents - np.maximum(digits, 0)).clip(form.least))
    return np.asarray(middles, dtype=np.float32)


def _nudged(numbers: Floats, draws: Draws) -> Floats:
    """Move every other number by one unit in the last place, up or down."""
    steps = np.array((0, 0, 1, -1), dtype=np.int32)[draws.octets(*numbers.shape) & 3]
    return _floats(numbers.view(np.int32) + steps)


def _scales(draws: Draws, shape: _Shape) -> Floats:
    """Rows whose scales lie in the middle of two that can be stored, or at the ends of their range."""
    if shape.kind not in LEVELS:
        return _midpoints(draws, shape)
    levels = LEVELS[shape.kind]
    n, parts, width = shape.split(levels.width)
    tops = _middles(draws, levels.stored, n, parts, 1) * np.float32(levels.extreme)
    tops = _nudged(tops * _fine(draws, levels, n, parts), draws)
    numbers = _unit_bell(draws, n, parts, width) * np.abs(tops)
    _put(numbers, draws, tops)
    return numbers


def _fine(draws: Draws, levels: Levels, n: int, parts: int) -> Floats:
    """Every other sub-block's scale is as many times the stored one as it can be."""
    return np.where(draws.words(n, parts, 1) & np.uint32(1), np.float32(1), np.float32(levels.fine))


def _outlier(draws: Draws, shape: _Shape) -> Floats:
    """One number of a sub-block is far greater than the others: by up to 2^30."""
    n, parts, width = shape.split(shape.recipe.width)
    sizes = draws.sizes(shape.recipe.low, shape.recipe.high, n, 1, 1)
    numbers = _unit_bell(draws, n, parts, width) * sizes
    signs = _signs(draws, n, parts, 1)
    _put(numbers, draws, draws.sizes(1, 30, n, parts, 1) * signs * sizes)
    return numbers


def _uneven(draws: Draws, shape: _Shape) -> Floats:
    """Sub-blocks of very different size."""
    n, parts, width = shape.split(shape.recipe.width)
    return _unit_bell(draws, n, parts, width) * draws.sizes(shape.recipe.low, shape.recipe.high, n, parts, 1)


def _gaps(draws: Draws, shape: _Shape) -> Floats:
    """Sub-blocks of very different size, every fourth about being nothing but zeros."""
    n, parts, _ = shape.split(shape.recipe.width)
    kept = draws.words(n, parts, 1) & np.uint32(3) != 0
    rows: Floats = _uneven(draws, shape) * kept
    return rows


def _sparse(draws: Draws, shape: _Shape) -> Floats:
    """Of eight numbers about seven are zeros."""
    kept = draws.octets(shape.n, shape.cols) < 32
    rows: Floats = _bell(draws, shape) * kept
    return rows


def _zeros(draws: Draws, shape: _Shape) -> Floats:
    """Rows in turn: zeros; zeros of both signs; these and subnormals; subnormals and the least normal number."""
    bits = draws.words(shape.n, shape.cols) & np.uint32(0x80FFFFFF)
    bits[0::4] = 0
    bits[1::4] &= _SIGN
    bits[2::4] &= np.where(draws.octets(*bits[2::4].shape) & 3, _SIGN, np.uint32(0x807FFFFF))
    last = bits[3::4]
    bits[3::4] = np.where(last & np.uint32(0x800000), last & np.uint32(0x80800000), last & np.uint32(0x807FFFFF))
    return bits.view(np.float32)


def _constant(draws: Draws, shape: _Shape) -> Floats:
    """One number throughout each sub-block, or with another sign in places."""
    n, parts, width = shape.split(shape.recipe.width)
    numbers = np.repeat(draws.sizes(shape.recipe.low, shape.recipe.high, n, parts, 1), width, axis=2)
    flips = draws.words(n, parts, width) & draws.words(n, 1, 1) & _SIGN
    return _floats(numbers.view(np.uint32) | flips)


def _nearly(draws: Draws, shape: _Shape) -> Floats:
    """Numbers of a sub-block that differ in the last bits only: which is the greatest, and where comes it first."""
    return _moved(_constant(draws, shape).reshape(shape.n, shape.cols), draws)


def _ramp(draws: Draws, shape: _Shape) -> Floats:
    """Element i is a step times i, with a shift in every other row."""
    steps = draws.sizes(shape.recipe.low, shape.recipe.high, shape.n, 1) / np.float32(32)
    shifts = steps * draws.between(-300, 300, shape.n, 1).astype(np.float32) * np.float32(0.5)
    shifts[::2] = 0
    rows: Floats = np.arange(shape.cols, dtype=np.float32) * steps + shifts
    return rows


def _huge(draws: Draws, shape: _Shape) -> Floats:
    """Numbers whose sums or squares leave float32: exponents of 60 to 127, one sign a row."""
    exponents = draws.between(60, 127, shape.n, 1).astype(np.uint32) + np.uint32(127)
    signs = draws.words(shape.n, 1) & _SIGN
    return _floats(draws.words(shape.n, shape.cols) & np.uint32(0x7FFFFF) | exponents << np.uint32(23) | signs)


def _any(draws: Draws, shape: _Shape) -> Floats:
    """Any bits but those of infinities and NaN."""
    return _finite(draws.words(shape.n, shape.cols))


def _finite(bits: Words) -> Floats:
    return _floats(np.where(bits & _EXPONENT == _EXPONENT, bits & np.uint32(0xBFFFFFFF), bits))


def _specials(draws: Draws, shape: _Shape) -> Floats:
    """Ordinary ones, but for a NaN, an infinity or the greatest number in about one of three sub-blocks."""
    n, parts, width = shape.split(shape.recipe.width)
    bits = _bell(draws, shape).reshape(n, parts, width).view(np.uint32)
    hit = draws.below(3, n, parts, 1) == 0
    places = draws.below(width, n, parts, 1)
    chosen = _SPECIALS[draws.below(len(_SPECIALS), n, parts, 1)]
    np.put_along_axis(bits, places, np.where(hit, chosen, np.take_along_axis(bits, places, axis=-1)), axis=-1)
    return bits.view(np.float32)


def _mixed(draws: Draws, shape: _Shape) -> Floats:
    """Rows of all plain families in turn: what a row leaves behind meets a row of another kind."""
    rows = np.empty((shape.n, shape.cols), dtype=np.float32)
    for start, name in enumerate(_PLAIN):
        part = rows[start :: len(_PLAIN)]
        if len(part):
            part[:] = FAMILIES[name](draws, shape._replace(n=len(part))).reshape(part.shape)
    return rows


FAMILIES: dict[str, Callable[[Draws, _Shape], Floats]] = {
    "bell": _bell,
    "exponents": _exponents,
    "ties": _ties,
    "straddle": _straddle,
    "scales": _scales,
    "midpoints": _midpoints,
    "outlier": _outlier,
    "uneven": _uneven,
    "gaps": _gaps,
    "sparse": _sparse,
    "zeros": _zeros,
    "constant": _constant,
    "nearly": _nearly,
    "ramp": _ramp,
    "huge": _huge,
    "any": _any,
    "specials": _specials,
    "mixed": _mixed,
}
_PLAIN = ("bell", "exponents", "ties", "straddle", "outlier", "uneven", "constant", "nearly", "ramp")
WITHOUT_GAPS = (*_PLAIN, "mixed")
"""Families of which every block has numbers of ordinary size, with exponents of -8 to 8."""
TAME = (*WITHOUT_GAPS, "gaps", "sparse", "zeros", "scales", "midpoints")
"""Families that every quantizer of ggml has an answer for, with exponents of -8 to 8 (docs/block-rules.md, N10 and P6)."""
TAME_EXPONENTS = (-8, 8)
FINITE = tuple(name for name in FAMILIES if name != "specials")
