"""Measurements as a table for a person or as JSON for a machine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from conformance.bench.blocks import Measured
from conformance.bench.compiling import FirstUse

HEAD = (
    f"{'type':<8} {'op':<21} {'threads':>7} {'ours':>8} {'C':>8} {'ours/C':>7} {'lowest':>7} {'highest':>7} {'rounds':>6}  result"
)
NOTE = "ours and C in millions of elements a second; ours/C in time, the median of the rounds: below 1 the reference is faster"

FIRST_HEAD = f"{'type':<8} {'op':<21} {'first':>7} {'again':>7}"
FIRST_NOTE = (
    "processor seconds of an op's first use in a fresh process: with nothing compiled, and with the loops that are kept on disk"
)


def line(row: Measured) -> str:
    """Give one line of the table."""
    speeds = (row.elements / seconds / 1e6 for seconds in (row.ours, row.theirs))
    ours, theirs = (f"{speed:>8.1f}" for speed in speeds)
    ratios = f"{row.ratio:>7.2f} {row.lowest:>7.2f} {row.highest:>7.2f}"
    return (
        f"{row.type:<8} {row.op:<21} {row.threads:>7} {ours} {theirs} {ratios} {row.rounds:>6}  {'same' if row.same else 'DIFFERS'}"
    )


def first_line(row: FirstUse) -> str:
    """Give one line of the table of first uses."""
    return f"{row.type:<8} {row.op:<21} {row.first:>7.2f} {row.again:>7.2f}"


def to_json(rows: Iterable[Measured] | Iterable[FirstUse]) -> str:
    """Give an array of objects, times in seconds."""
    return json.dumps([asdict(row) for row in rows], indent=1)
