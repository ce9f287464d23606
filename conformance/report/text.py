"""Texts of reports: durations, what was compared, lines that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from conformance.printable import plural
from conformance.report.events import Counts

# The nouns of what was compared, in the order in which a reader looks for them.
COMPARED = ("files", "tensors", "blocks", "bytes", "values")


def seconds(value: float) -> str:
    """Give a duration: ``35 ms``, ``12.3 s``, ``2 min 05 s``, ``1 h 02 min``."""
    if 0 < value < 0.0005:
        return "under 1 ms"
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 99.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def compared(counts: Counts) -> str:
    """Say what was compared, leaving out what was not: ``4,102 blocks, 139,468 bytes compared``; empty if nothing was."""
    amounts = [(getattr(counts, noun), noun.removesuffix("s")) for noun in COMPARED]
    said = ", ".join(plural(amount, noun) for amount, noun in amounts if amount)
    return f"{said} compared" if said else ""


def ranges(indices: Sequence[int]) -> str:
    """Give ascending indices with runs joined: ``0-31, 64, 66``."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def wrap(text: str, width: int) -> list[str]:
    """Break prose into lines of at most ``width`` columns between words; an overlong word stays whole, so that it can be copied."""
    return textwrap.wrap(text, max(width, 20), break_long_words=False, break_on_hyphens=False) or [""]
