"""Who says that nothing is quantized with importances is not asked to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.report.events import CaseResult
from conformance.search.engine import search
from conformance.search.plan import Plan
from conformance.subjects.manifest import Manifest, find_manifest, load_manifest
from tests.run.conftest import Bench

SUITE = """
suite: small/weighed
cases:
  q4_0: {type: Q4_0, rows: {random: {seed: 1, rows: 2, cols: 64}}, imatrix: {random: {seed: 2, rows: 1, cols: 64, distribution: uniform}}}
  plain: {type: Q4_0, rows: {random: {seed: 1, rows: 2, cols: 64}}, ask: [quantize]}
"""  # noqa: E501 - one case a line


@pytest.fixture
def plain(tmp_path: Path) -> Manifest:
    source = Path(__file__).with_name("plain_quantizer.py")
    (tmp_path / "adapter.yaml").write_text(f"name: plain\nlanguage: python\ncommand: ['{sys.executable}', '{source}']\n")
    return load_manifest(tmp_path)


def test_a_run_does_not_ask(bench: Bench, plain: Manifest) -> None:
    bench.write("small/weighed", SUITE)
    ran = bench.run(plain, select="small/weighed")
    results = {e.case: e for e in ran.events if isinstance(e, CaseResult) and e.who == "plain"}
    assert results["small/weighed/plain"].verdict == "pass"
    weighed = results["small/weighed/q4_0"]
    assert weighed.verdict == "skip"
    assert "quantize with an imatrix is not claimed" in weighed.not_asked


def test_a_search_does_not_ask(plain: Manifest) -> None:
    searched = search(Plan(subject=plain, against=find_manifest("impl"), examples=40, seed=1), lambda _: None)
    assert searched.blocks
    assert (searched.findings, searched.declined, searched.departs) == ((), {}, False)
