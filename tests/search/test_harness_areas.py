"""Each area of the harness's self-search, with a small budget and a fixed seed: nothing breaks. `tox -e conformance` does more."""

import pytest

from conformance.search.harness.areas import AREAS, Area
from conformance.search.harness.engine import hunt, search_areas

BUDGETS = {
    "case-files": 80,
    "manifests": 40,
    "known": 50,
    "golden": 100,
    "event-streams": 50,
    "protocol-lines": 60,
    "subject-runs": 8,
    "command-lines": 40,
}


def test_each_area_has_a_budget():
    assert [area.name for area in AREAS] == list(BUDGETS)


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_no_rule_breaks(area: Area):
    hunted = hunt(area, None, BUDGETS[area.name], 20261201)
    assert hunted.broken is None
    assert hunted.tried >= BUDGETS[area.name] // 2  # hypothesis draws no document twice


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_a_seed_draws_the_same_documents_again(area: Area):
    def drawn(seed: int) -> list[bytes]:
        documents: list[bytes] = []
        hunt(area._replace(check=lambda document, _: documents.append(area.show(document))), None, 25, seed)
        return documents

    first = drawn(5)
    assert len(first) > 10
    assert drawn(5) == first
    assert drawn(6) != first


def test_the_examples_are_shared_out_and_each_area_is_told():
    tried = {"a": 0, "b": 0}

    def counting(name: str, share: float) -> Area:
        def check(_document: object, _folder: object) -> None:
            tried[name] += 1

        return AREAS[0]._replace(name=name, check=check, share=share)

    told: list[str] = []
    assert search_areas([counting("a", 3.0), counting("b", 1.0)], None, 80, 1, told.append) == []
    assert 30 <= tried["a"] <= 60
    assert 10 <= tried["b"] <= 20
    assert [line.partition(":")[0] for line in told] == ["a", "b"]
    assert f"{tried['a']} examples" in told[0]
    assert told[0].endswith("nothing broke")


def test_a_time_that_is_over_ends_the_search():
    assert hunt(AREAS[0]._replace(check=lambda _document, _folder: None), 0.0, None, 1).tried == 0
