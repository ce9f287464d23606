"""Who takes too long for a case is not asked for the rest of it."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from conformance.report.events import CaseResult
from conformance.subjects.manifest import load_manifest
from tests.run.conftest import Bench

SUITE = """
suite: small/many
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  tensors:
    build: {tensors: [TENSORS]}
    ask: [header, dequantize, tensor]
""".replace("TENSORS", ", ".join(f"{{name: t{n}, type: Q8_0, dims: [32]}}" for n in range(9)))


def _run(bench: Bench, folder: Path, limits: str) -> dict[str, CaseResult]:
    bench.write("small/many", SUITE)
    source = Path(__file__).with_name("slow_subject.py")
    (folder / "starts").touch()
    (folder / "adapter.yaml").write_text(
        f"name: slow\nlanguage: python\ncommand: ['{sys.executable}', '{source}', '{folder}/starts']\nlimits: {{{limits}}}\n"
    )
    ran = bench.run(load_manifest(folder), bench.impl, select="small/many")
    return {e.who: e for e in ran.events if isinstance(e, CaseResult) and e.role == "subject"}


@pytest.mark.parametrize(("limits", "told", "room"), [("time: 0.3, case: 0.9", "0.9", 3), ("time: 0.1", "1", 10)])
def test_the_rest_of_a_case_is_not_asked(bench: Bench, tmp_path: Path, limits: str, told: str, room: int) -> None:
    results = _run(bench, tmp_path, limits)
    assert (results["slow"].verdict, results["impl"].verdict) == ("diverge", "pass")
    shown = Counter(d.signature.split(":")[2] for d in results["slow"].divergences)
    assert shown["timeout"] >= 1
    # Each request that ran out of time cost a process, and there was room for so many; none was started for the rest.
    assert len((tmp_path / "starts").read_text()) <= 1 + room
    assert results["slow"].not_asked == (f"the case took longer than {told} s: the rest was not asked",)
    assert results["slow"].counts.tensors < results["impl"].counts.tensors == 9
    assert "tensor" in results["slow"].undecided
    assert results["impl"].undecided == ()


def test_a_request_ends_with_the_time_for_its_case(bench: Bench, tmp_path: Path) -> None:
    """Which is no divergence: one request alone may take longer."""
    slow = _run(bench, tmp_path, "time: 60, case: 4")["slow"]
    assert (slow.verdict, slow.divergences) == ("pass", ())
    assert slow.not_asked == ("the case took longer than 4 s: the rest was not asked",)
    assert slow.undecided == ("dequantize", "tensor")
