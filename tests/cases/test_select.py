from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.model import Case, FileInput
from conformance.cases.select import matches, select
from conformance.errors import UsageError

IDS = [
    "blocks/q8_0/random",
    "blocks/q8_0/ties",
    "container/alignment/24",
    "container/alignment/zero",
    "container/kv/deep.nest",
    "top/one",
]
CASES = [Case(id=each, source=Path("x"), line=1, input=FileInput({}), ask=(), expect={}) for each in IDS]


def chosen(*patterns: str) -> list[str]:
    return [case.id for case in select(CASES, patterns)]


@pytest.mark.parametrize(
    ("patterns", "indices"),
    [
        ((), [0, 1, 2, 3, 4, 5]),
        (("container/alignment/zero",), [3]),
        (("container/alignment",), [2, 3]),
        (("container/",), [2, 3, 4]),
        (("*",), [0, 1, 2, 3, 4, 5]),
        (("container/*",), [2, 3, 4]),
        (("*/*/zero",), [3]),
        (("**/zero",), [3]),
        (("**/*e*",), [1, 2, 3, 4, 5]),
        (("**",), [0, 1, 2, 3, 4, 5]),
        (("blocks/**",), [0, 1]),
        (("blocks/q?_0/t*",), [1]),
        (("container/**/deep.nest",), [4]),
        (("top/one", "blocks/q8_0/random"), [0, 5]),
        (("!container",), [0, 1, 5]),
        (("container", "!container/alignment"), [4]),
        (("!blocks", "!top"), [2, 3, 4]),
    ],
)
def test_patterns_choose(patterns: tuple[str, ...], indices: list[int]) -> None:
    assert chosen(*patterns) == [IDS[index] for index in sorted(indices)]


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("blocks/q8", False),
        ("blocks/*/q8_0/random", False),
        ("q8_0", False),
        ("blocks*random", False),
        ("blocks?q8_0", False),
        ("blocks/q8_0/rando", False),
        ("blocks.q8_0.random", False),
        ("blocks", True),
    ],
)
def test_a_pattern_fits_whole_parts_only(pattern: str, fits: bool) -> None:
    assert matches(pattern, "blocks/q8_0/random") is fits


def test_a_pattern_that_fits_nothing_names_near_ids() -> None:
    with pytest.raises(UsageError) as caught:
        chosen("container/alignment/zer0", "top")
    assert "`container/alignment/zer0` selects no case" in caught.value.message
    assert "container/alignment/zero" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        chosen("!qqqqqqq")
    assert "blocks, container, top" in caught.value.hint


def test_patterns_that_leave_nothing_are_an_error() -> None:
    with pytest.raises(UsageError, match="leave no case"):
        chosen("top", "!top/one")
