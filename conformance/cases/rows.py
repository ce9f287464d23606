"""Rows of floats and rows of raw blocks from their recipes (docs/cases.md has the grammar)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.cases.block_recipe import parse_block_rows
from conformance.cases.entry import Entry
from conformance.cases.float_recipe import names_of, parse_float_rows


def float_rows(recipe: Mapping[str, Any], type_name: str) -> NDArray[np.float32]:
    """Give the float32 rows of ``recipe``, shape (rows, cols); cols is a multiple of the block of ``type_name``.

    Raises ConfigurationError.
    """
    return parse_float_rows(Entry.of(recipe, "rows"), type_name).make()


def row_names(recipe: Mapping[str, Any]) -> tuple[str, ...]:
    """Give a name for each row of a float recipe; empty for rows that have none. Raises ConfigurationError."""
    return names_of(Entry.of(recipe, "rows"))


def block_rows(recipe: Mapping[str, Any], type_name: str) -> tuple[NDArray[np.uint8], int]:
    """Give the raw rows of ``recipe``, uint8 of shape (rows, row bytes), and cols, the elements a row.

    Raises ConfigurationError.
    """
    plan = parse_block_rows(Entry.of(recipe, "blocks"), type_name)
    return plan.make(), plan.cols
