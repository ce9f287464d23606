"""Text that is safe to show: data escaped, numbers grouped, counts with their nouns."""

from __future__ import annotations

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
