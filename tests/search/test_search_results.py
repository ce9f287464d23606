"""What a search writes about a subject that is held to another adapter: confirmed like any other, and told how to repeat."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest

from conformance.search.engine import search
from conformance.search.plan import Plan, Searched
from conformance.search.results import write_results
from conformance.subjects.manifest import find_manifest
from tests.test_cli import command


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Searched]:
    folder = tmp_path_factory.mktemp("results")
    subject = msgspec.structs.replace(find_manifest("impl-gguf-py"), name="unheard-of")
    plan = Plan(subject=subject, against=find_manifest("impl"), ops=("header",), examples=8)
    return folder, write_results(plan, search(plan, lambda _: None), folder)


def test_outcomes_that_differ_are_seen_again(written: tuple[Path, Searched]) -> None:
    findings = written[1].divergences
    assert any("-for-" in finding.signature for finding in findings)
    assert [finding.signature for finding in findings if finding.unstable] == []


def test_the_command_that_repeats_a_case_does(written: tuple[Path, Searched]) -> None:
    page = next((written[0] / "cases").rglob("*.md")).read_text("utf-8")
    words = shlex.split(next(line for line in page.splitlines() if line.startswith("gguf-conformance run")))
    ended = command(*words[1:], "--no-report")
    assert ended.code in {0, 1}, ended.err
