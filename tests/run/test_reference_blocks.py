"""What a case dequantizes are the blocks of the op itself, though the reference function's were asked for in between."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.report.events import CaseResult
from conformance.subjects.manifest import load_manifest
from tests.run.conftest import Bench

SUITE = """
suite: small/both
cases:
  iq4_nl:
    type: IQ4_NL
    ask: [quantize, "quantize:ref", dequantize]
    rows: {random: {seed: 3, rows: 16, cols: 1024, distribution: normal}}
"""


@pytest.mark.parametrize("live", [True, False])
def test_who_has_no_reference_function_is_judged_by_the_same_blocks(bench: Bench, tmp_path: Path, *, live: bool) -> None:
    bench.write("small/both", SUITE)
    bench.record()
    (tmp_path / "adapter.yaml").write_text(
        f"name: plain\nlanguage: python\ncommand: ['{sys.executable}', '{Path(__file__).with_name('no_reference.py')}']\n"
    )
    ran = bench.run(load_manifest(tmp_path), bench.impl, live=live, select="small/both")
    results = {e.who: e for e in ran.events if isinstance(e, CaseResult) and e.role == "subject"}
    assert [results[who].verdict for who in ("plain", "impl")] == ["pass", "pass"]
    assert results["plain"].counts.values == results["impl"].counts.values == 16 * 1024
