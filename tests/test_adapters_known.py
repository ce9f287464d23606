"""What each adapter's divergences.yaml says of the corpus: real cases, a reason each, and the smallest of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from conformance.cases.load import load_suites
from conformance.cases.select import matches
from conformance.places import adapters_root, cases_root
from conformance.run.known import KnownEntry, load_entries
from conformance.run.update_known import Corpus

FILES = sorted(adapters_root().glob("*/divergences.yaml"))


@cache
def corpus() -> Corpus:
    return Corpus(load_suites(cases_root()))


def _entries(path: Path) -> list[tuple[KnownEntry, list[str]]]:
    entries = load_entries(path)
    fits = {p: [name for name in corpus().ids if matches(p, name)] for entry in entries for p in entry.patterns}
    return [(entry, [name for p in entry.patterns for name in fits[p]]) for entry in entries]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_entries_name_cases_and_say_why(path: Path) -> None:
    entries = load_entries(path)
    assert [entry.patterns for entry in entries if not entry.reason.strip()] == []
    patterns = {pattern for entry in entries for pattern in entry.patterns}
    assert [p for p in sorted(patterns) if not any(matches(p, name) for name in corpus().ids)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_the_smallest_case_is_the_smallest(path: Path) -> None:
    size = corpus().size
    wrong = {
        entry.smallest: smallest
        for entry, cases in _entries(path)
        if entry.smallest and size(entry.smallest) > size(smallest := corpus().smallest(cases))
    }
    assert wrong == {}
