"""Measurements as a table for a person or as JSON for a machine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from conformance.bench.blocks import Measured

HEAD = (
    f"{'type':<8} {'op':<21} {'threads':>7} {'ours':>8} {'C':>8} {'ours/C':>7} {'lowest':>7} {'highest':>7} {'rounds':>6}  result"
)
NOTE = "ours and C in millions of elements a second; ours/C in time, the median of the rounds: below 1 the reference is faster"


def line(row: Measured) -> str:
    """Give one line of the table."""
    speeds = (row.elements / seconds / 1e6 for seconds in (row.ours, row.theirs))
    ours, theirs = (f"{speed:>8.1f}" for speed in speeds)
    ratios = f"{row.ratio:>7.2f} {row.lowest:>7.2f} {row.highest:>7.2f}"
    return (
        f"{row.type:<8} {row.op:<21} {row.threads:>7} {ours} {theirs} {ratios} {row.rounds:>6}  {'same' if row.same else 'DIFFERS'}"
    )


def to_json(rows: Iterable[Measured]) -> str:
    """Give an array of objects, times in seconds."""
    return json.dumps([asdict(row) for row in rows], indent=1)
