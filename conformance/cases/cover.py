"""Few patterns that fit exactly these cases and no others: what a list of many ids reads best as."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

# Where a name may be cut: `cut-17` after `cut-`.
_PART = re.compile(r"[^-]*-|[^-]+")
# Fewer cases are named one by one.
_FEWEST = 3


def cover(wanted: Collection[str], ids: Iterable[str]) -> list[str]:
    """Give patterns, in the order of ``ids``, that together fit all ``wanted`` of ``ids`` and none of the others.

    A pattern is an id, a suite's ``suite/*``, or the start of a name up to a hyphen, ``suite/cut-*``.
    """
    chosen = set(wanted)
    suites: dict[str, list[str]] = {}
    for name in ids:
        suite, _, key = name.rpartition("/")
        suites.setdefault(suite, []).append(key)
    return [
        f"{suite}/{pattern}"
        for suite, keys in suites.items()
        for pattern in _patterns("", keys, {key for key in keys if f"{suite}/{key}" in chosen})
    ]


def _patterns(start: str, keys: list[str], chosen: set[str]) -> Iterator[str]:
    """Give patterns for those of ``keys``, which all begin with ``start``, that are chosen."""
    here = [key for key in keys if key in chosen]
    if len(here) < _FEWEST:
        yield from here
    elif len(here) == len(keys):
        yield f"{start}*"
    else:
        for longer, below in _by_next_part(start, keys).items():
            yield from _patterns(longer, below, chosen)


def _by_next_part(start: str, keys: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        part = _PART.match(key, len(start))
        found.setdefault(start + (part[0] if part else ""), []).append(key)
    return found
