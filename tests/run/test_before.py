"""What a case puts to a process before its own requests: it reaches the subject, and only what comes after it is judged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.cases.load import load_suite
from conformance.errors import ConfigurationError
from conformance.report.events import CaseResult
from conformance.subjects.manifest import Manifest, load_manifest

ZERO = "{type: Q8_0, blocks: {hex: [003c " + 64 * "0" + "]}}"
ALONE = f"suite: small/state\ncases:\n  zero: {ZERO}\n"
AFTER = """
suite: small/state
cases:
  zero:
    before: [{type: Q8_0, blocks: {random: {seed: 1, cols: 32}}}, {type: Q4_0, blocks: {random: {seed: 1, cols: 32}}}]
    type: Q8_0
    blocks: {hex: [003c 0000000000000000000000000000000000000000000000000000000000000000]}
"""


@pytest.fixture
def remembering(tmp_path: Path) -> Manifest:
    script = Path(__file__).parent / "remembering_subject.py"
    (tmp_path / "adapter.yaml").write_text(f"name: remembering\nlanguage: python\ncommand: [{sys.executable}, {script}]\n")
    return load_manifest(tmp_path)


@pytest.mark.parametrize(("text", "verdict"), [(ALONE, "pass"), (AFTER, "diverge")])
def test_a_subject_that_remembers_departs_only_after_what_it_remembers(bench, remembering, text, verdict) -> None:
    bench.write("small/state", text)
    ran = bench.run(remembering, select="small/state")
    assert ran.verdicts["small/state/zero", "remembering"] == verdict
    (result,) = [event for event in ran.events if isinstance(event, CaseResult) and event.who == "remembering"]
    assert result.counts.blocks == 1
    assert ("before:" in result.recipe) == (text is AFTER)


def test_what_comes_before_may_be_a_file(bench) -> None:
    bench.write("small/state", f"suite: small/state\ncases:\n  zero: {ZERO[:-1]}, before: [{{build: {{}}, ask: [load]}}]}}\n")
    assert bench.run(bench.impl, select="small/state").verdicts["small/state/zero", "impl"] == "pass"


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("{type: Q8_0, rows: {values: [[1]]}}", "before[0]"),
        ("{build: {}, ask: [tensor]}", "`tensor` is not put before a case"),
        ("{model: {package: a, version: 1, archive: wheel, member: m, sha256: " + 64 * "0" + ", size: 1}}", "a model is not put"),
        ("{build: {}, note: x}", "unknown key `note`"),
    ],
)
def test_what_cannot_come_before_is_told(tmp_path: Path, before: str, told: str) -> None:
    path = tmp_path / "small" / "state.yaml"
    path.parent.mkdir()
    path.write_text(f"suite: small/state\ncases:\n  zero: {ZERO[:-1]}, before: [{before}]}}\n")
    with pytest.raises(ConfigurationError) as error:
        load_suite(path, tmp_path)
    assert told in str(error.value)
