"""Text put into a line of shell, so that the shell takes it for what it is wherever in the line it stands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

# A backslash and what it takes its meaning from, or one of the quotes.
_SIGN = re.compile(r"\\.|['\"]", re.DOTALL)
_MEANT_IN_DOUBLE = re.compile(r"([\\\"$`])")


def put_in(line: str, place: re.Pattern[str], value: Callable[[re.Match[str]], str]) -> str:
    """Replace what ``place`` finds in a line of shell by its value: between quotes as these need it, else quoted where need be."""
    pieces, end, quote = [], 0, ""
    for match in place.finditer(line):
        before = line[end : match.start()]
        quote = _quote_after(before, quote)
        pieces += [before, _escaped(value(match), quote)]
        end = match.end()
    return "".join([*pieces, line[end:]])


def _quote_after(text: str, quote: str) -> str:
    """Give the quote that is open at the end of ``text``, where ``quote`` is at its start; empty for none."""
    if quote == "'":
        _, closing, rest = text.partition("'")
        return _quote_after(rest, "") if closing else quote
    for match in _SIGN.finditer(text):
        sign = match[0]
        if sign == '"':
            quote = "" if quote else sign
        elif sign == "'" and not quote:
            return _quote_after(text[match.end() :], "'")
    return quote


def _escaped(text: str, quote: str) -> str:
    if quote == "'":
        return text.replace("'", "'\\''")
    return _MEANT_IN_DOUBLE.sub(r"\\\1", text) if quote else shlex.quote(text)
