"""Choosing cases by shell-style patterns on their ids."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Protocol, TypeVar

from conformance.errors import UsageError

# The folder of the cases about the protocol.
PLUMBING = "protocol"


class _HasId(Protocol):
    """A case, or anything that stands for one and bears its id."""

    @property
    def id(self) -> str: ...


_C = TypeVar("_C", bound=_HasId)


def select(cases: Sequence[_C], patterns: Iterable[str]) -> list[_C]:
    """Give the cases that ``patterns`` choose, in their order; all of them where there is no pattern.

    ``*`` and ``?`` stay within one part of an id, ``**`` goes through any number of parts. A pattern that fits a folder
    or a file chooses all below it. ``!pattern`` takes cases away. Raises UsageError for a pattern that fits nothing and
    where nothing is left.
    """
    given = list(patterns)
    wanted = [pattern for pattern in given if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in given if pattern.startswith("!")]
    ids = [case.id for case in cases]
    chosen = set().union(*(_matching(pattern, ids) for pattern in wanted)) if wanted else set(ids)
    chosen = chosen.difference(*(_matching(pattern, ids) for pattern in unwanted))
    if not chosen:
        raise UsageError(f"the patterns {' '.join(given)} leave no case", hint="take one of the `!` patterns away")
    return [case for case in cases if case.id in chosen]


def is_plumbing(case_id: str) -> bool:
    """Tell whether a case is about the protocol alone: it asks what an adapter does, not what its library thinks of GGUF."""
    return case_id.startswith(f"{PLUMBING}/")


def matches(pattern: str, case_id: str) -> bool:
    """Tell whether ``pattern`` fits an id, whole or up to one of its parts."""
    return _fits(pattern).fullmatch(case_id) is not None


@cache
def _fits(pattern: str) -> re.Pattern[str]:
    return re.compile(_regex(pattern.rstrip("/")) + r"(/.*)?")


def _matching(pattern: str, ids: Sequence[str]) -> set[str]:
    """Give the ids that ``pattern`` fits, whole or up to one of their parts."""
    fits = _fits(pattern)
    found = {each for each in ids if fits.fullmatch(each)}
    if not found:
        raise UsageError(f"`{pattern}` selects no case", hint=_near(pattern, ids))
    return found


def _regex(pattern: str) -> str:
    """Translate a pattern: ``**/`` any parts, ``**`` anything, ``*`` and ``?`` within a part."""
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    table = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(table.get(piece) or re.escape(piece) for piece in pieces)


def _near(pattern: str, ids: Sequence[str]) -> str:
    """Name the ids, files and folders whose spelling is nearest."""
    names = dict.fromkeys("/".join(each.split("/")[:depth]) for each in ids for depth in range(1, each.count("/") + 2))
    close = difflib.get_close_matches(pattern, names, n=3, cutoff=0.5)
    folders = ", ".join(dict.fromkeys(each.split("/")[0] for each in ids))
    return f"near it: {', '.join(close)}" if close else f"folders: {folders}; `gguf-conformance list` shows all ids"
