"""Recipes of float rows: what a quantizer is given, an imatrix, or the other side of a dot product."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.cases.entry import Entry
from conformance.cases.numbers import DISTRIBUTIONS, random_floats
from conformance.cases.shape import MAX_SIZE, check_cols, common_cols, parse_seed, parse_shape
from conformance.ggml_types import BY_NAME, GgmlType

F32 = NDArray[np.float32]

# Significands that `exponents` pairs with each exponent: ends, neighbours of the middle, single bits, alternations.
SIGNIFICANDS = (
    *(0x000000, 0x000001, 0x000002, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF),
    *(0x555555, 0x2AAAAA, 0x200000, 0x600000, 0x100000, 0x000FFF, 0x001000, 0x1FFFFF),
)


class FloatPlan(NamedTuple):
    """Parsed rows: their shape, and what makes them (float32, (rows, cols))."""

    rows: int
    cols: int
    make: Callable[[], F32]


def parse_float_rows(entry: Entry, type_name: str) -> FloatPlan:
    """Parse and check a float recipe without making its numbers. Raises ConfigurationError."""
    form, body = entry.one_of((*_FORMS, "concat"))
    return _concatenated(body, type_name) if form == "concat" else _FORMS[form](body, BY_NAME[type_name])


def names_of(entry: Entry) -> tuple[str, ...]:
    """Give a name for each row; empty for rows that have none. Raises ConfigurationError."""
    form, body = entry.one_of((*_FORMS, "concat"))
    match form:
        case "special":
            return tuple(body.mapping())
        case "concat":
            return tuple(name for part in body.sequence() for name in names_of(part))
        case "values":
            return ("",) * len(body.sequence())
        case "exponents":
            low, high = _exponents(body)
            return tuple(f"exponent {number}" for number in range(low, high + 1))
        case "outlier":
            return tuple(f"outlier at {place.value}" for place in body.mapping()["at"].sequence())
        case _:
            parts = body.mapping()
            return ("",) * (parts["rows"].integer(1, MAX_SIZE) if "rows" in parts else 1)


def _concatenated(entry: Entry, type_name: str) -> FloatPlan:
    plans = [parse_float_rows(item, type_name) for item in entry.sequence()]
    cols = common_cols(entry, [plan.cols for plan in plans])
    return FloatPlan(sum(plan.rows for plan in plans), cols, lambda: np.concatenate([plan.make() for plan in plans]))


def _random(entry: Entry, kind: GgmlType) -> FloatPlan:
    parts = entry.mapping(("seed", "blocks", "rows", "cols", "distribution", "scale", "lo", "hi"))
    seed = parse_seed(entry, parts)
    rows, cols = parse_shape(entry, parts, kind)
    name = parts["distribution"].choice(DISTRIBUTIONS) if "distribution" in parts else "uniform"
    bounds = _bounds(entry, parts, name)
    scale = _float32(parts["scale"]) if "scale" in parts else None

    def make() -> F32:
        numbers = random_floats(name, seed, rows * cols, bounds).reshape(rows, cols)
        with np.errstate(all="ignore"):
            return numbers if scale is None else numbers * scale

    return FloatPlan(rows, cols, make)


def _bounds(entry: Entry, parts: dict[str, Entry], name: str) -> tuple[int, int] | None:
    """Give the range of ``wide`` and ``half``."""
    distribution = DISTRIBUTIONS[name]
    if distribution.default is None:
        if "lo" in parts or "hi" in parts:
            raise entry.error(f"`{name}` takes no range", "leave lo and hi out, or use wide or half")
        return None
    return _range(entry, parts, distribution.default, distribution.limits)


def _range(entry: Entry, parts: dict[str, Entry], default: tuple[int, int], limits: tuple[int, int]) -> tuple[int, int]:
    low = parts["lo"].integer(*limits) if "lo" in parts else default[0]
    high = parts["hi"].integer(*limits) if "hi" in parts else default[1]
    if low > high:
        raise entry.error(f"the range {low} to {high} is empty", "lo must not be above hi")
    return low, high


def _special(entry: Entry, kind: GgmlType) -> FloatPlan:
    """One row of one block each, in order of the names."""
    parts = entry.mapping()
    if not parts:
        raise entry.error("no rows", "name one: {zeros: {fill: 0}}")
    makers = [_special_row(part, kind.block) for part in parts.values()]
    return FloatPlan(len(makers), kind.block, lambda: np.stack([make() for make in makers]))


def _special_row(entry: Entry, size: int) -> Callable[[], F32]:
    """``{fill: x}``, ``{ramp: step, add: x}`` or ``{values: [...]}``, each with ``set: {index: x}``."""
    parts = entry.mapping((*_BASE_KEYS, "set"))
    base = _base(entry, parts, size)
    changes = parts["set"].mapping() if "set" in parts else {}
    bits = {_index(part, key, size): part.float_bits("f32") for key, part in changes.items()}

    def make() -> F32:
        row = base().view(np.uint32)
        row[list(bits)] = list(bits.values())
        return row.view(np.float32)

    return make


def _index(entry: Entry, key: str, size: int) -> int:
    if not key.isdecimal() or int(key) >= size:
        raise entry.error(f"there is no element `{key}`", f"a row has elements 0 to {size - 1}")
    return int(key)


_BASE_KEYS = ("fill", "ramp", "add", "values")


def _base(entry: Entry, parts: dict[str, Entry], size: int) -> Callable[[], F32]:
    """Give what makes a row from ``fill``, ``ramp`` (with or without ``add``) or ``values``."""
    bases = [key for key in ("fill", "ramp", "values") if key in parts]
    if len(bases) != 1 or ("add" in parts and bases != ["ramp"]):
        raise entry.error("no such row", "write one of fill, ramp (with or without add) or values")
    if bases == ["ramp"]:
        return _ramp(parts, size)
    if bases == ["fill"]:
        bits = [parts["fill"].float_bits("f32")] * size
    else:
        bits = [item.float_bits("f32") for item in parts["values"].sequence()]
        if len(bits) != size:
            raise parts["values"].error(f"{len(bits)} values for a block of {size}", f"write {size} values")
    return lambda: np.array(bits, dtype=np.uint32).view(np.float32)


def _ramp(parts: dict[str, Entry], size: int) -> Callable[[], F32]:
    """Element i: the f64 product of step and i, rounded to f32; then ``add``, in f32."""
    step = parts["ramp"].float64()
    shift = _float32(parts["add"]) if "add" in parts else None

    def make() -> F32:
        with np.errstate(over="ignore", invalid="ignore"):
            row: F32 = (np.float64(step) * np.arange(size, dtype=np.float64)).astype(np.float32)
            return row if shift is None else row + shift

    return make


def _values(entry: Entry, kind: GgmlType) -> FloatPlan:
    """Rows written out: a list of lists of equal length."""
    bits = [[item.float_bits("f32") for item in row.sequence()] for row in entry.sequence()]
    lengths = {len(row) for row in bits}
    if len(lengths) != 1 or 0 in lengths:
        raise entry.error("the rows are empty or of different lengths", "write [[...], [...]] with equal lengths")
    check_cols(entry, len(bits[0]), kind)
    return FloatPlan(len(bits), len(bits[0]), lambda: np.array(bits, dtype=np.uint32).view(np.float32))


def _structured(entry: Entry, kind: GgmlType) -> FloatPlan:
    """One block for each exponent field lo..hi: element j has SIGNIFICANDS[j // 2 mod 16] and, where j is odd, the sign."""
    low, high = _exponents(entry)

    def make() -> F32:
        element = np.arange(kind.block, dtype=np.uint32)
        significand = np.array(SIGNIFICANDS, dtype=np.uint32)[element // 2 % len(SIGNIFICANDS)]
        exponent = np.arange(low, high + 1, dtype=np.uint32)[:, None] << np.uint32(23)
        return (exponent | significand | (element % 2 << np.uint32(31))).view(np.float32)

    return FloatPlan(high - low + 1, kind.block, make)


def _exponents(entry: Entry) -> tuple[int, int]:
    return _range(entry, entry.mapping(("lo", "hi")), (0, 255), (0, 255))


def _outlier(entry: Entry, kind: GgmlType) -> FloatPlan:
    """One block for each place in ``at``: ``fill``, ``ramp`` or ``values`` with ``value`` at that place."""
    parts = entry.mapping((*_BASE_KEYS, "at", "value"))
    if not {"at", "value"} <= parts.keys() or not parts["at"].sequence():
        raise entry.error("an outlier needs `at` and `value`", "write {ramp: 0.01, at: [0, 31], value: 100}")
    places = [place.integer(0, kind.block - 1) for place in parts["at"].sequence()]
    base, bits = _base(entry, parts, kind.block), parts["value"].float_bits("f32")

    def make() -> F32:
        table = np.tile(base().view(np.uint32), (len(places), 1))
        table[np.arange(len(places)), places] = bits
        return table.view(np.float32)

    return FloatPlan(len(places), kind.block, make)


def _float32(entry: Entry) -> np.float32:
    value: np.float32 = np.uint32(entry.float_bits("f32")).view(np.float32)
    return value


_FORMS: dict[str, Callable[[Entry, GgmlType], FloatPlan]] = {
    "random": _random,
    "special": _special,
    "values": _values,
    "exponents": _structured,
    "outlier": _outlier,
}
