"""What a search writes about a subject that is held to another adapter: confirmed like any other, and told how to repeat."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from conformance.search.engine import search
from conformance.search.plan import Plan, Searched
from conformance.search.results import write_results
from conformance.subjects.manifest import find_manifest, load_manifest
from tests.test_cli import command


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Searched]:
    folder = tmp_path_factory.mktemp("results")
    (folder / "adapter.yaml").write_text(
        'name: unheard-of\nlanguage: python\ncommand: ["{python}", "-m", "impl", "--profile", "gguf-py"]\n'
        'env: {PYTHONSAFEPATH: "1"}\n'
    )
    plan = Plan(subject=load_manifest(folder), against=find_manifest("impl"), ops=("header",), examples=3)
    return folder, write_results(plan, search(plan, lambda _: None), folder)


def test_outcomes_that_differ_are_seen_again(written: tuple[Path, Searched]) -> None:
    findings = written[1].divergences
    assert any("-for-" in finding.signature for finding in findings)
    assert [finding.signature for finding in findings if finding.unstable] == []


def test_the_command_that_repeats_a_find_does(written: tuple[Path, Searched], tmp_path: Path) -> None:
    page = next((written[0] / "cases").rglob("*.md")).read_text("utf-8")
    words = shlex.split(next(line for line in page.splitlines() if line.startswith("gguf-conformance search")))
    ended = command(*words[1:], "--report", str(tmp_path / "again"), "--json")
    assert ended.code == 1, ended.err
    again = [(one["signature"], one["focus"]) for one in json.loads(ended.out)["findings"]]
    assert again == [finding.key for finding in written[1].findings]
