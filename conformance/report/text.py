"""Text that is safe to show: data escaped, numbers grouped, counts with their nouns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from conformance.report.events import Counts

# The nouns of what was compared, in the order in which a reader looks for them.
COMPARED = ("files", "tensors", "blocks", "bytes", "values")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def one_line(text: str, limit: int | None = None) -> str:
    r"""Give ``text`` as one printable line: whatever would move a cursor, hide or reorder text becomes ``\x1b``, ``\u202e``.

    Beyond ``limit`` characters the rest is left out and counted.
    """
    shown = text if limit is None else text[:limit]
    if not shown.isprintable():
        shown = "".join(character if character.isprintable() else _escape(character) for character in shown)
    left_out = len(text) - limit if limit is not None else 0
    return f"{shown}… ({number(left_out)} more characters)" if left_out > 0 else shown


def lines_of(text: str, limit: int | None = None) -> list[str]:
    """Give the lines of ``text``, each made printable as by one_line; tabs become spaces, and a line may end in CR LF."""
    lines = text.strip("\n").split("\n") if text.strip("\n") else []
    return [one_line(line.removesuffix("\r").expandtabs(4), limit) for line in lines]


def tail_of(text: str, count: int, limit: int | None = None) -> list[str]:
    """Give the last ``count`` lines of ``text`` made printable, led by a count of those left out."""
    lines = lines_of(text, limit)
    left_out = len(lines) - count
    return lines if left_out <= 0 else [f"({plural(left_out, 'earlier line')} left out)", *lines[-count:]]


def number(value: int) -> str:
    """Give an integer with its thousands grouped: ``139,468``."""
    return f"{value:,}"


def plural(count: int, noun: str) -> str:
    """Give a count with its noun, the noun in the singular as it comes in: ``1 case``, ``2 cases``."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


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
