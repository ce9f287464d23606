"""The project's own cases, for tests that only look at them, and a part of them in a folder, for commands that need no more.

To read all of them takes most of a second.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from conformance.cases.load import load_suites
from conformance.cases.model import Case
from conformance.places import cases_root


@cache
def corpus() -> list[Case]:
    """Give all cases, which are not to be changed."""
    return load_suites(cases_root())


def part_of_corpus(root: Path, suites: Iterable[str]) -> Path:
    """Copy these suites (``container/magic``), and the answers recorded of them, into a root of cases; give it."""
    for suite in suites:
        for file in (f"{suite}.yaml", f"golden/{suite}.json"):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cases_root() / file, root / file)
    return root
