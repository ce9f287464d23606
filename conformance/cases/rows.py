"""Rows of floats and rows of raw blocks from their recipes (docs/cases.md has the grammar)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.cases.entry import Entry
from conformance.cases.numbers import DISTRIBUTIONS, draw_bytes, random_floats
from conformance.ggml_types import BY_NAME, GgmlType

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]

FLOAT_FORMS = ("random", "special", "values", "concat")
BLOCK_FORMS = ("random", "hex", "repeat", "sweep", "concat")
# Elements (floats) or bytes of one recipe.
MAX_SIZE = 2**28


class FloatPlan(NamedTuple):
    """Parsed rows: their shape, and what makes them (float32, (rows, cols))."""

    rows: int
    cols: int
    make: Callable[[], F32]


class BlockPlan(NamedTuple):
    """Parsed rows of blocks: rows, cols (elements a row), and what makes them (uint8, (rows, row bytes))."""

    rows: int
    cols: int
    make: Callable[[], U8]


def float_rows(recipe: Mapping[str, Any], type_name: str) -> F32:
    """Give the float32 rows of ``recipe``, shape (rows, cols); cols is a multiple of the block of ``type_name``.

    Raises ConfigurationError.
    """
    return parse_float_rows(Entry.of(recipe, "rows"), type_name).make()


def block_rows(recipe: Mapping[str, Any], type_name: str) -> tuple[U8, int]:
    """Give the raw rows of ``recipe``, uint8 of shape (rows, row bytes), and cols, the elements a row.

    Raises ConfigurationError.
    """
    plan = parse_block_rows(Entry.of(recipe, "blocks"), type_name)
    return plan.make(), plan.cols


def row_names(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """Give a name for each row of a float recipe; empty for rows that have none. Raises ConfigurationError."""
    return _names(Entry.of(recipe, "rows"))


def _names(entry: Entry) -> tuple[str, ...]:
    form, body = entry.one_of(FLOAT_FORMS)
    match form:
        case "special":
            return tuple(body.mapping())
        case "concat":
            return tuple(name for part in body.sequence() for name in _names(part))
        case "values":
            return ("",) * len(body.sequence())
        case _:
            parts = body.mapping()
            return ("",) * (parts["rows"].integer(1, MAX_SIZE) if "rows" in parts else 1)


def parse_float_rows(entry: Entry, type_name: str) -> FloatPlan:
    """Parse and check a float recipe without making its numbers. Raises ConfigurationError."""
    kind = BY_NAME[type_name]
    form, body = entry.one_of(FLOAT_FORMS)
    match form:
        case "random":
            return _random_rows(body, kind)
        case "special":
            return _special_rows(body, kind)
        case "values":
            return _value_rows(body, kind)
        case _:
            return _concat_rows(body, type_name)


def _random_rows(entry: Entry, kind: GgmlType) -> FloatPlan:
    parts = entry.mapping(("seed", "blocks", "rows", "cols", "distribution", "scale", "lo", "hi"))
    rows, cols = _shape(entry, parts, kind)
    name = parts["distribution"].choice(DISTRIBUTIONS) if "distribution" in parts else "uniform"
    bounds = _bounds(entry, parts, name)
    scale = np.uint32(parts["scale"].float_bits("f32")).view(np.float32) if "scale" in parts else None
    seed = parts["seed"].integer(0, 2**64 - 1)

    def make() -> F32:
        numbers = random_floats(name, seed, rows * cols, bounds).reshape(rows, cols)
        with np.errstate(all="ignore"):
            return numbers if scale is None else numbers * scale

    return FloatPlan(rows, cols, make)


def _shape(entry: Entry, parts: dict[str, Entry], kind: GgmlType) -> tuple[int, int]:
    """Rows and cols: ``blocks: N`` is one row of N blocks, else ``rows`` (1 if left out) and ``cols``."""
    if "seed" not in parts:
        raise entry.error("`seed` is missing", "write {seed: 1, blocks: 16} or {seed: 1, rows: 4, cols: 256}")
    if ("blocks" in parts) == ("cols" in parts) or ("blocks" in parts and "rows" in parts):
        raise entry.error("the shape is not clear", "write either blocks: N, or cols: N with rows: M")
    if "blocks" in parts:
        return 1, parts["blocks"].integer(1, MAX_SIZE // kind.block) * kind.block
    cols = parts["cols"].integer(1, MAX_SIZE)
    _check_cols(parts["cols"], cols, kind)
    return (parts["rows"].integer(1, MAX_SIZE // cols) if "rows" in parts else 1), cols


def _check_cols(entry: Entry, cols: int, kind: GgmlType) -> None:
    if cols % kind.block:
        raise entry.error(f"a row of {cols} is no multiple of the block", f"{kind.name} has blocks of {kind.block}")


def _bounds(entry: Entry, parts: dict[str, Entry], name: str) -> tuple[int, int] | None:
    """Give the range of ``wide`` and ``half``."""
    distribution = DISTRIBUTIONS[name]
    if distribution.default is None:
        if "lo" in parts or "hi" in parts:
            raise entry.error(f"`{name}` takes no range", "leave lo and hi out, or use wide or half")
        return None
    low = parts["lo"].integer(*distribution.limits) if "lo" in parts else distribution.default[0]
    high = parts["hi"].integer(*distribution.limits) if "hi" in parts else distribution.default[1]
    if low > high:
        raise entry.error(f"the range {low} to {high} is empty", "lo must not be above hi")
    return low, high


def _special_rows(entry: Entry, kind: GgmlType) -> FloatPlan:
    """One row of one block each, in order of the names."""
    parts = entry.mapping()
    if not parts:
        raise entry.error("no rows", "name one: {zeros: {fill: 0}}")
    makers = [_special_row(part, kind.block) for part in parts.values()]
    return FloatPlan(len(makers), kind.block, lambda: np.stack([make() for make in makers]))


def _special_row(entry: Entry, size: int) -> Callable[[], F32]:
    """``{fill: x}``, ``{ramp: step, add: x}`` or ``{values: [...]}``, each with ``set: {index: x}``."""
    parts = entry.mapping(("fill", "ramp", "add", "values", "set"))
    bases = [key for key in ("fill", "ramp", "values") if key in parts]
    if len(bases) != 1 or ("add" in parts and bases != ["ramp"]):
        raise entry.error("no such row", "write one of fill, ramp (with or without add) or values, and set if needed")
    base = _BASES[bases[0]](parts, size)
    changes = {int(_index(part, key, size)): part.float_bits("f32") for key, part in _changes(parts).items()}

    def make() -> F32:
        row = base().view(np.uint32)
        for index, bits in changes.items():
            row[index] = bits
        return row.view(np.float32)

    return make


def _changes(parts: dict[str, Entry]) -> dict[str, Entry]:
    return parts["set"].mapping() if "set" in parts else {}


def _index(entry: Entry, key: str, size: int) -> int:
    if not key.isdigit() or int(key) >= size:
        raise entry.error(f"there is no element `{key}`", f"a row has elements 0 to {size - 1}")
    return int(key)


def _fill(parts: dict[str, Entry], size: int) -> Callable[[], F32]:
    bits = parts["fill"].float_bits("f32")
    return lambda: np.full(size, bits, dtype=np.uint32).view(np.float32)


def _ramp(parts: dict[str, Entry], size: int) -> Callable[[], F32]:
    """Element i: the f64 product of step and i, rounded to f32; then ``add``, in f32."""
    step = parts["ramp"].float64()
    shift = np.uint32(parts["add"].float_bits("f32")).view(np.float32) if "add" in parts else np.float32(0)

    def make() -> F32:
        with np.errstate(over="ignore", invalid="ignore"):
            row: F32 = (np.float64(step) * np.arange(size, dtype=np.float64)).astype(np.float32)
            return row + shift if "add" in parts else row

    return make


def _listed(parts: dict[str, Entry], size: int) -> Callable[[], F32]:
    bits = [item.float_bits("f32") for item in parts["values"].sequence()]
    if len(bits) != size:
        raise parts["values"].error(f"{len(bits)} values for a block of {size}", f"write {size} values")
    return lambda: np.array(bits, dtype=np.uint32).view(np.float32)


_BASES: dict[str, Callable[[dict[str, Entry], int], Callable[[], F32]]] = {"fill": _fill, "ramp": _ramp, "values": _listed}


def _value_rows(entry: Entry, kind: GgmlType) -> FloatPlan:
    """Rows written out: a list of lists of equal length."""
    bits = [[item.float_bits("f32") for item in row.sequence()] for row in entry.sequence()]
    lengths = {len(row) for row in bits}
    if len(lengths) != 1 or 0 in lengths:
        raise entry.error("the rows are empty or of different lengths", "write [[...], [...]] with equal lengths")
    _check_cols(entry, len(bits[0]), kind)
    return FloatPlan(len(bits), len(bits[0]), lambda: np.array(bits, dtype=np.uint32).view(np.float32))


def _concat_rows(entry: Entry, type_name: str) -> FloatPlan:
    plans = [parse_float_rows(item, type_name) for item in entry.sequence()]
    cols = _same_cols(entry, [plan.cols for plan in plans])
    return FloatPlan(sum(plan.rows for plan in plans), cols, lambda: np.concatenate([plan.make() for plan in plans]))


def _same_cols(entry: Entry, cols: list[int]) -> int:
    if len(set(cols)) != 1:
        raise entry.error(f"the parts have rows of {cols} elements", "give all parts the same cols")
    return cols[0]


def parse_block_rows(entry: Entry, type_name: str) -> BlockPlan:
    """Parse and check a recipe of raw blocks without making them. Raises ConfigurationError."""
    kind = BY_NAME[type_name]
    form, body = entry.one_of(BLOCK_FORMS)
    match form:
        case "random":
            return _random_blocks(body, kind)
        case "hex":
            return _hex_blocks(body, kind)
        case "repeat":
            return _repeated_blocks(body, kind)
        case "sweep":
            return _swept_blocks(body, kind)
        case _:
            plans = [parse_block_rows(item, type_name) for item in body.sequence()]
            cols = _same_cols(body, [plan.cols for plan in plans])
            return BlockPlan(sum(plan.rows for plan in plans), cols, lambda: np.concatenate([plan.make() for plan in plans]))


def _random_blocks(entry: Entry, kind: GgmlType) -> BlockPlan:
    """Raw random bytes: every scale can come, NaN and infinity among them."""
    parts = entry.mapping(("seed", "blocks", "rows", "cols", "distribution"))
    rows, cols = _shape(entry, parts, kind)
    if "distribution" in parts:
        parts["distribution"].choice(("bytes",))
    seed, size = parts["seed"].integer(0, 2**64 - 1), kind.row_bytes(cols)
    return BlockPlan(rows, cols, lambda: draw_bytes(seed, rows * size).reshape(rows, size))


def _hex_blocks(entry: Entry, kind: GgmlType) -> BlockPlan:
    rows = [_row_bytes(item, kind) for item in entry.sequence()]
    cols = _same_cols(entry, [len(row) // kind.nbytes * kind.block for row in rows])
    return BlockPlan(len(rows), cols, lambda: np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1).copy())


def _row_bytes(entry: Entry, kind: GgmlType) -> bytes:
    raw = entry.hexadecimal()
    if not raw or len(raw) % kind.nbytes:
        raise entry.error(f"a row of {len(raw)} bytes", f"a {kind.name} block has {kind.nbytes} bytes; write a multiple")
    return raw


def _repeated_blocks(entry: Entry, kind: GgmlType) -> BlockPlan:
    """``{hex: row, rows: N}``: the same row N times."""
    parts = entry.mapping(("hex", "rows"))
    if parts.keys() != {"hex", "rows"}:
        raise entry.error("no such repeat", "write {hex: one row, rows: N}")
    raw = _row_bytes(parts["hex"], kind)
    rows = parts["rows"].integer(1, MAX_SIZE // len(raw))
    return BlockPlan(rows, len(raw) // kind.nbytes * kind.block, lambda: np.tile(np.frombuffer(raw, dtype=np.uint8), (rows, 1)))


def _swept_blocks(entry: Entry, kind: GgmlType) -> BlockPlan:
    """``{hex: block, at: 0, width: 2}``: the block once for each value (little-endian) of ``width`` bytes at byte ``at``."""
    parts = entry.mapping(("hex", "at", "width"))
    if parts.keys() != {"hex", "at", "width"}:
        raise entry.error("no such sweep", "write {hex: one row, at: 0, width: 2}")
    raw = _row_bytes(parts["hex"], kind)
    width = parts["width"].integer(1, 2)
    at = parts["at"].integer(0, len(raw) - width)
    rows = 256**width

    def make() -> U8:
        table = np.tile(np.frombuffer(raw, dtype=np.uint8), (rows, 1))
        table[:, at : at + width] = np.arange(rows, dtype=f"<u{width}").view(np.uint8).reshape(rows, width)
        return table

    return BlockPlan(rows, len(raw) // kind.nbytes * kind.block, make)
