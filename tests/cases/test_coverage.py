"""docs/spec-coverage.md is what the cases make it, and nothing that gguf.md asks for is without a case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.cases.coverage import PAGE, ROOT, differ, files, page, standing_for
from conformance.cases.load import load_suite
from conformance.cases.model import Case
from conformance.cases.requirements import REQUIREMENTS, Requirement

CASES = files(ROOT / "cases")


def kinds(case: Case, who: str) -> set[str]:
    return {expect.kind for expects in case.expect[who].values() for expect in expects}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(CASES), "run: python -m conformance.cases.coverage"


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.text)
def test_a_requirement_has_a_case_for_each_of_its_labels(requirement: Requirement) -> None:
    assert requirement.labels
    for label in requirement.labels:
        assert standing_for(requirement._replace(labels=(label,)), CASES), label


@pytest.mark.parametrize("requirement", [each for each in REQUIREMENTS if each.strength == "must"], ids=lambda each: each.text)
def test_what_must_be_is_decided_by_a_case(requirement: Requirement) -> None:
    """At least one of both: a layout that no byte contradicts can only be kept, a removed type only be refused."""
    said = {kind for case in standing_for(requirement, CASES) for kind in kinds(case, "spec")}
    assert said & {"accept", "reject"}


@pytest.mark.parametrize("requirement", [each for each in REQUIREMENTS if each.strength == "silent"], ids=lambda each: each.text)
def test_where_the_text_is_silent_a_case_admits_both(requirement: Requirement) -> None:
    assert any("either" in kinds(case, "spec") for case in standing_for(requirement, CASES))


def test_every_rule_of_the_text_stands_among_the_requirements() -> None:
    rules = re.findall(r"^\| (S[0-9]+) \|", (ROOT / "docs/reader-rules.md").read_text("utf-8"), re.MULTILINE)
    assert len(rules) >= 17
    assert {*rules} <= {label for requirement in REQUIREMENTS for label in requirement.labels}


def case_of(tmp_path: Path, expect: str) -> Case:
    (tmp_path / "container").mkdir(exist_ok=True)
    path = tmp_path / "container/f.yaml"
    path.write_text(f"suite: container/f\ncases:\n  a: {{build: {{}}, expect: {expect}}}\n")
    return load_suite(path, tmp_path)[0]


@pytest.mark.parametrize(
    ("expect", "differing"),
    [
        ("{llama.cpp: accept, gguf-py: accept, spec: accept}", False),
        ("{llama.cpp: accept, gguf-py: accept, spec: either}", False),
        ("{llama.cpp: {reject: truncated}, gguf-py: {reject: bad-key}, spec: {reject: other}}", False),
        ("{llama.cpp: accept, gguf-py: {reject: bad-key}, spec: either}", True),
        ("{llama.cpp: accept, gguf-py: accept, spec: {reject: other}}", True),
        ("{llama.cpp: {header: accept, load: {reject: missing-data}}, gguf-py: accept, spec: accept}", True),
        ("{llama.cpp: {fault: accept}, gguf-py: accept, spec: accept}", True),
        ("{llama.cpp: {header: accept, load: crash}, gguf-py: accept, spec: accept}", True),
    ],
)
def test_a_case_on_which_somebody_parts_is_listed(tmp_path: Path, expect: str, differing: bool) -> None:
    case = case_of(tmp_path, expect)
    assert differ(case) == differing
    assert ("| container/f | a |" in page([case])) == differing


def test_keys_with_consecutive_numbers_are_shown_as_a_range(tmp_path: Path) -> None:
    (tmp_path / "container").mkdir()
    path = tmp_path / "container/f.yaml"
    expect = "{llama.cpp: accept, gguf-py: {reject: truncated}, spec: either}"
    each = "{n: [1, 2, 3, 9, 10, 20]}"
    path.write_text(f"suite: container/f\ncases:\n  cut-<n>: {{each: {each}, build: {{}}, cut: <n>, expect: {expect}}}\n")
    assert "| cut-1 to cut-3, cut-9, cut-10, cut-20 |" in page(load_suite(path, tmp_path))
