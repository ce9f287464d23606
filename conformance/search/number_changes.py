"""What might make one row of numbers or bytes simpler: many variants of it at once, shape (variants, width)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from conformance.ggml_types import BY_NAME
from conformance.search.block_families import one, scale_fields
from conformance.search.probe import Blocks, Floats

_Number = TypeVar("_Number", np.float32, np.uint8)
_KEPT_BITS = (0, 1, 2, 3, 4, 6, 8, 10, 11, 12, 16, 20, 22)
# Elements of all variants of one pass: of a long row not every place gets its variants before others are gone.
_MOST = 2**21
# How many significands are combined where one, two, three elements are left.
_COMBINED = (1024, 32, 8)


def segments(width: int) -> Iterator[tuple[int, int]]:
    """Give halves, quarters and so on, as (start, stop), the whole first: down to single places, of a long row not as far."""
    size = 1 << max(0, width - 1).bit_length()
    while size and 4 * width * width // size <= 2 * _MOST:
        yield from ((start, min(start + size, width)) for start in range(0, width, size))
        size //= 2


def filled(row: npt.NDArray[_Number], value: float) -> npt.NDArray[_Number]:
    """Write ``value`` over each segment, and over all but each segment."""
    spans = list(segments(len(row)))
    inside = np.zeros((len(spans), len(row)), dtype=np.bool_)
    for number, (start, stop) in enumerate(spans):
        inside[number, start:stop] = True
    chosen = np.concatenate([inside, ~inside])
    return np.where(chosen, np.asarray(value, dtype=row.dtype), row)


def whole_floats(row: Floats) -> Floats:
    """Change all elements alike: fewer bits, other powers of two, one sign, one value."""
    variants = [_rounded(row, kept) for kept in _KEPT_BITS]
    with np.errstate(all="ignore"):
        exponent = int(np.frexp(np.max(np.abs(row), where=np.isfinite(row), initial=0))[1])
        variants += [np.ldexp(row, shift) for shift in _towards_zero(exponent - 1)]
        variants += [np.rint(row), np.abs(row), np.where(row == 0, np.float32(0), np.copysign(np.float32(1), row))]
    values = row[row != 0]
    variants += [np.where(row == 0, row, value) for value in (np.float32(1), *values[:1], *values[-1:])]
    return np.stack([variant.astype(np.float32) for variant in variants])


def _towards_zero(exponent: int) -> list[int]:
    """Give shifts of an exponent: all the way to 0, then less and less of it."""
    shifts, step = [], -exponent
    while step:
        shifts.append(step)
        step = int(step / 2)
    return shifts


def _rounded(row: Floats, kept: int) -> Floats:
    """Keep ``kept`` bits of each significand behind the hidden one, cutting the others off; NaNs lose their payload."""
    mask = np.uint32(0xFFFFFFFF << (23 - kept) & 0xFFFFFFFF)
    bits = row.view(np.uint32)
    return np.where(np.isnan(row), np.uint32(0x7FC00000), bits & mask).view(np.float32)


def single_floats(row: Floats) -> Floats:
    """Change one element: to 1, a power of two, an integer, fewer bits, a smaller exponent, no sign, another's value."""
    places = _some(np.flatnonzero(row.view(np.uint32)), 30 * len(row))
    values = row[places]
    with np.errstate(all="ignore"):
        exponents = np.where(np.isfinite(values), np.frexp(values)[1] - 1, 0)
        simpler = [
            np.zeros_like(values),
            np.ones_like(values),
            np.copysign(np.float32(1), values),
            np.copysign(np.ldexp(np.float32(1), exponents), values),
            np.copysign(np.float32(2), values),
            np.rint(values),
            np.trunc(values),
            np.abs(values),
            *(_rounded(values, kept) for kept in _KEPT_BITS),
            *(np.ldexp(values, np.trunc(-exponents * part).astype(np.int32)) for part in (1, 0.5, 0.25)),
            np.ldexp(values, -np.sign(exponents)),
            _shorter(values),
            values - np.copysign(np.ldexp(np.float32(1), exponents), values),
            _lowest(values),
            *(np.full_like(values, value) for value in (values[:1].tolist() + values[-1:].tolist())),
        ]
    variants = np.tile(row, (len(simpler) * len(places), 1))
    variants[np.arange(len(variants)), np.tile(places, len(simpler))] = np.concatenate(simpler)
    return variants


def _lowest(values: Floats) -> Floats:
    """Keep only the last bit that is set in each significand, the hidden one being the first."""
    mantissa, exponent = np.frexp(values)
    whole = np.where(np.isfinite(values), np.ldexp(mantissa, 24), 0).astype(np.int64)
    last = np.copysign((np.abs(whole) & -np.abs(whole)).astype(np.float32), values)
    return np.where(np.isfinite(values), np.ldexp(last, exponent - 24), values)


def _some(places: npt.NDArray[np.intp], each: int) -> npt.NDArray[np.intp]:
    """Give the first places, as many as a pass has room for where each takes ``each`` elements; at least one."""
    return places[: max(1, _MOST // each)]


def _shorter(values: Floats) -> Floats:
    """Clear the last bit that is set in each significand."""
    bits = values.view(np.uint32)
    fraction = bits & np.uint32(0x7FFFFF)
    return np.where(np.isfinite(values), bits & ~(fraction & (~fraction + np.uint32(1))), bits).view(np.float32)


def together(row: Floats) -> Floats:
    """Where no more than three elements are left: all combinations of short significands, about at their exponents or near 0.

    What two numbers must have in common is not found by changing one at a time.
    """
    places = np.flatnonzero(row.view(np.uint32))
    if not 0 < len(places) <= len(_COMBINED) or not np.isfinite(row).all():
        return row[None]
    odd = 2 * np.arange(_COMBINED[len(places) - 1]) + 1
    short = (odd / np.exp2(np.floor(np.log2(odd)))).astype(np.float32)
    short = np.concatenate([short, short / np.float32(2)])
    combined = np.stack(np.meshgrid(*[short] * len(places), indexing="ij"), axis=-1).reshape(-1, len(places))
    exponents = np.frexp(row[places])[1] - 1
    variants = np.tile(row, (2 * len(combined), 1))
    for part, shift in enumerate((exponents.max(), 0)):
        values = np.copysign(np.ldexp(combined, exponents - shift), row[places])
        variants[part * len(combined) : (part + 1) * len(combined), places] = values
    return variants


def moved_floats(row: Floats) -> Floats:
    """Move what is not zero to the front: all of it as it stands, or one beside the other."""
    places = np.flatnonzero(row.view(np.uint32))
    if not len(places):
        return row[None]
    packed = np.zeros_like(row)
    packed[: len(places)] = row[places]
    return np.stack([np.roll(row, -int(places[0])), packed])


def blocks_by_field(row: Blocks, type_name: str) -> Blocks:
    """Zero each scale field, or let it say 1, one at a time and in all blocks."""
    size = BY_NAME[type_name].nbytes
    variants = []
    for field in scale_fields(type_name):
        for start in range(field.offset, field.offset + field.nbytes, field.width):
            places = (np.arange(0, len(row), size)[:, None] + np.arange(start, start + field.width)).tolist()
            for bytes_ in (one(field, type_name), (0,) * field.width):
                variants += [_with(row, at, bytes_) for at in places]
                variants.append(_with(row, [byte for at in places for byte in at], bytes_ * len(places)))
    return np.stack(variants) if variants else row[None]


def _with(row: Blocks, places: list[int], octets: tuple[int, ...]) -> Blocks:
    changed = row.copy()
    changed[places] = octets
    return changed


def single_bits(row: Blocks) -> Blocks:
    """Clear one bit, keep one bit of a byte, or keep the upper or lower half of a byte."""
    places = _some(np.flatnonzero(row), 18 * len(row))
    masks = [0xFF ^ (1 << bit) for bit in range(8)] + [1 << bit for bit in range(8)] + [0x0F, 0xF0]
    variants = np.tile(row, (len(masks) * len(places), 1))
    variants[np.arange(len(variants)), np.tile(places, len(masks))] &= np.repeat(np.array(masks, dtype=np.uint8), len(places))
    return variants
