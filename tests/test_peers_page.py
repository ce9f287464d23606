"""docs/peers.md: its cases exist, as large as it says; each adapter that is built stands in it; its links lead somewhere."""

import re

import pytest

from conformance.cases.load import load_suites
from conformance.cases.size import input_size
from conformance.places import cases_root
from conformance.subjects.manifest import find_manifest, known_names
from tests.test_cli import ROOT

TEXT = (ROOT / "docs" / "peers.md").read_text("utf-8")
CASES = {case.id: case for case in load_suites(cases_root())}
NAMED = re.findall(r"`((?:container|blocks|write|models)/[^`*]+)`(?:, ([\d,]*\d))?", TEXT)


def test_it_names_cases() -> None:
    assert len(NAMED) > 40


@pytest.mark.parametrize("name", sorted({name for name, _ in NAMED}))
def test_each_case_exists(name: str) -> None:
    assert name in CASES


@pytest.mark.parametrize(("name", "size"), sorted({(name, size) for name, size in NAMED if size}))
def test_an_input_has_as_many_bytes_as_it_says(name: str, size: str) -> None:
    assert input_size(CASES[name]) == int(size.replace(",", ""))


def test_each_adapter_that_is_built_stands_in_its_table() -> None:
    built = {name for name in known_names() if find_manifest(name, check_command=False).build}
    assert set(re.findall(r"^\| \[([^\]]+)\]", TEXT, re.MULTILINE)) == built


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)", TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / "docs" / link).exists()
