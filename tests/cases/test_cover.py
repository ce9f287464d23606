from __future__ import annotations

import numpy as np
import pytest

from conformance.cases.cover import cover
from conformance.cases.select import matches
from tests.corpus import corpus

CUTS = [f"c/cuts/cut-{n}" for n in range(4)]
IDS = [*CUTS, "c/cuts/whole", "c/cuts/cut", "c/kinds/a-b-1", "c/kinds/a-b-2", "c/kinds/a-b-3", "c/kinds/a-c", "d/one/x"]


@pytest.mark.parametrize(
    ("wanted", "patterns"),
    [
        (IDS[:6], ["c/cuts/*"]),
        (CUTS, ["c/cuts/cut-*"]),
        (CUTS[:2], CUTS[:2]),
        ([*CUTS, "c/cuts/cut"], ["c/cuts/cut-*", "c/cuts/cut"]),
        (IDS[6:9], ["c/kinds/a-b-*"]),
        (["d/one/x"], ["d/one/x"]),
        ([], []),
        (IDS, ["c/cuts/*", "c/kinds/*", "d/one/x"]),
    ],
)
def test_patterns_for_sets_of_cases(wanted: list[str], patterns: list[str]) -> None:
    assert cover(wanted, IDS) == patterns


def test_patterns_fit_what_is_wanted_and_nothing_else() -> None:
    ids = [case.id for case in corpus()]
    drawn = np.random.default_rng(6)
    suites = sorted({name.rpartition("/")[0] for name in ids})
    for share in (0.02, 0.5, 0.98):
        whole = set(drawn.choice(suites, 40, replace=False))
        wanted = {name for name in ids if name.rpartition("/")[0] in whole or drawn.random() < share}
        patterns = cover(wanted, ids)
        assert {name for name in ids if any(matches(pattern, name) for pattern in patterns)} == wanted
        assert len(patterns) < len(wanted)
