"""The shape of rows in a recipe: what float rows and raw blocks have in common."""

from __future__ import annotations

from conformance.cases.entry import Entry
from conformance.ggml_types import GgmlType

# Elements (floats) or bytes (blocks) that one recipe may make.
MAX_SIZE = 2**28


def parse_shape(entry: Entry, parts: dict[str, Entry], kind: GgmlType) -> tuple[int, int]:
    """Give rows and cols: ``blocks: N`` is one row of N blocks, else ``cols`` and ``rows`` (1 if left out).

    Raises ConfigurationError.
    """
    if ("blocks" in parts) == ("cols" in parts) or ("blocks" in parts and "rows" in parts):
        raise entry.error("the shape is not clear", "write either blocks: N, or cols: N with rows: M")
    if "blocks" in parts:
        return 1, parts["blocks"].integer(1, MAX_SIZE // kind.block) * kind.block
    cols = parts["cols"].integer(1, MAX_SIZE)
    check_cols(parts["cols"], cols, kind)
    return (parts["rows"].integer(1, MAX_SIZE // cols) if "rows" in parts else 1), cols


def parse_seed(entry: Entry, parts: dict[str, Entry]) -> int:
    """Give the seed, which has no default: a case says what it is made of. Raises ConfigurationError."""
    if "seed" not in parts:
        raise entry.error("`seed` is missing", "write {seed: 1, blocks: 16} or {seed: 1, rows: 4, cols: 256}")
    return parts["seed"].integer(0, 2**64 - 1)


def check_cols(entry: Entry, cols: int, kind: GgmlType) -> None:
    """Refuse a row that is no whole number of blocks. Raises ConfigurationError."""
    if cols % kind.block:
        raise entry.error(f"a row of {cols} is no multiple of the block", f"{kind.name} has blocks of {kind.block}")


def common_cols(entry: Entry, cols: list[int]) -> int:
    """Give the cols that all parts share. Raises ConfigurationError."""
    if len(set(cols)) != 1:
        raise entry.error(f"the parts have rows of {cols} elements", "give all parts the same cols")
    return cols[0]
