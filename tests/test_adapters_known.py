"""What each adapter's divergences.yaml says of the corpus: real cases, a reason each, and the smallest of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from conformance.cases.select import matches
from conformance.places import adapters_root
from conformance.run.known import KnownEntry, load_entries
from conformance.run.update_known import Corpus
from tests.corpus import corpus

FILES = sorted(adapters_root().glob("*/divergences.yaml"))


@cache
def known_corpus() -> Corpus:
    return Corpus(corpus())


@cache
def _fitting(pattern: str) -> tuple[str, ...]:
    """Give what a pattern fits; the files of many adapters have it, and the corpus is large."""
    return tuple(case for case in known_corpus().ids if matches(pattern, case))


def _entries(path: Path) -> list[tuple[KnownEntry, list[str]]]:
    entries = load_entries(path)
    return [(entry, [name for p in entry.patterns for name in _fitting(p)]) for entry in entries]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_entries_name_cases_and_say_why(path: Path) -> None:
    entries = load_entries(path)
    assert [entry.patterns for entry in entries if not entry.reason.strip()] == []
    patterns = {pattern for entry in entries for pattern in entry.patterns}
    assert [p for p in sorted(patterns) if not _fitting(p)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_the_smallest_case_is_the_smallest(path: Path) -> None:
    size = known_corpus().size
    wrong = {
        entry.smallest: smallest
        for entry, cases in _entries(path)
        if entry.smallest and size(entry.smallest) > size(smallest := known_corpus().smallest(cases))
    }
    assert wrong == {}
