"""Recipes of raw block bytes: what a dequantizer or a dot product is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.cases.entry import Entry
from conformance.cases.numbers import draw_bytes
from conformance.cases.shape import MAX_SIZE, common_cols, parse_seed, parse_shape
from conformance.ggml_types import BY_NAME, GgmlType

U8 = NDArray[np.uint8]


class BlockPlan(NamedTuple):
    """Parsed rows of blocks: rows, cols (elements a row), and what makes them (uint8, (rows, row bytes))."""

    rows: int
    cols: int
    make: Callable[[], U8]


def parse_block_rows(entry: Entry, type_name: str) -> BlockPlan:
    """Parse and check a recipe of raw blocks without making them. Raises ConfigurationError."""
    form, body = entry.one_of((*_FORMS, "concat"))
    return _concatenated(body, type_name) if form == "concat" else _FORMS[form](body, BY_NAME[type_name])


def _concatenated(entry: Entry, type_name: str) -> BlockPlan:
    plans = [parse_block_rows(item, type_name) for item in entry.sequence()]
    cols = common_cols(entry, [plan.cols for plan in plans])
    return BlockPlan(sum(plan.rows for plan in plans), cols, lambda: np.concatenate([plan.make() for plan in plans]))


def _random(entry: Entry, kind: GgmlType) -> BlockPlan:
    """Raw random bytes: every scale can come, NaN and infinity among them."""
    parts = entry.mapping(("seed", "blocks", "rows", "cols"))
    seed = parse_seed(entry, parts)
    rows, cols = parse_shape(entry, parts, kind)
    size = kind.row_bytes(cols)
    return BlockPlan(rows, cols, lambda: draw_bytes(seed, rows * size).reshape(rows, size))


def _hex(entry: Entry, kind: GgmlType) -> BlockPlan:
    rows = [_row(item, kind) for item in entry.sequence()]
    cols = common_cols(entry, [_cols(row, kind) for row in rows])
    return BlockPlan(len(rows), cols, lambda: np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1).copy())


def _repeat(entry: Entry, kind: GgmlType) -> BlockPlan:
    """``{hex: row, rows: N}``: the same row N times."""
    parts = entry.mapping(("hex", "rows"))
    if parts.keys() != {"hex", "rows"}:
        raise entry.error("no such repeat", "write {hex: one row, rows: N}")
    raw = _row(parts["hex"], kind)
    rows = parts["rows"].integer(1, MAX_SIZE // len(raw))
    return BlockPlan(rows, _cols(raw, kind), lambda: np.tile(np.frombuffer(raw, dtype=np.uint8), (rows, 1)))


def _sweep(entry: Entry, kind: GgmlType) -> BlockPlan:
    """``{hex: row, at: 0, width: 2}``: the row once for each value (little-endian) of the ``width`` bytes at byte ``at``."""
    parts = entry.mapping(("hex", "at", "width"))
    if parts.keys() != {"hex", "at", "width"}:
        raise entry.error("no such sweep", "write {hex: one row, at: 0, width: 2}")
    raw = _row(parts["hex"], kind)
    width = parts["width"].integer(1, 2)
    at = parts["at"].integer(0, len(raw) - width)
    rows = 256**width

    def make() -> U8:
        table = np.tile(np.frombuffer(raw, dtype=np.uint8), (rows, 1))
        table[:, at : at + width] = np.arange(rows, dtype=f"<u{width}").view(np.uint8).reshape(rows, width)
        return table

    return BlockPlan(rows, _cols(raw, kind), make)


def _row(entry: Entry, kind: GgmlType) -> bytes:
    raw = entry.hexadecimal()
    if not raw or len(raw) % kind.nbytes:
        raise entry.error(f"a row of {len(raw)} bytes", f"a {kind.name} block has {kind.nbytes} bytes; write a multiple")
    return raw


def _cols(row: bytes, kind: GgmlType) -> int:
    return len(row) // kind.nbytes * kind.block


_FORMS: dict[str, Callable[[Entry, GgmlType], BlockPlan]] = {"random": _random, "hex": _hex, "repeat": _repeat, "sweep": _sweep}
