"""What a hello declares holds op by op, and what an authority's recorded interface hides is not asked of a subject."""

import json
from pathlib import Path

import pytest

from conformance.report.events import CaseResult
from conformance.subjects.manifest import find_manifest
from tests.run.conftest import Bench

# Declares that one op loses the order, and loses that of TURNED.
TURNS = """
import sys
from impl.serve import main
from impl.subject import Subject
class Turns(Subject):
    def hello(self, request):
        hello = super().hello(request)
        hello["ops"]["DECLARED"] = {"ordered": False}
        return hello
    def TURNED(self, request):
        answer = super().TURNED(request)
        answer["kv"].reverse()
        return answer
sys.exit(main(Turns(), sys.argv[1:]))
"""
FILES = r"""
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  pairs: {build: {kv: [{key: a, u32: 7}, {key: b, str: {hex: 610062}}]}}
"""


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("declared", ["header", "load"])
@pytest.mark.parametrize("turned", ["header", "load"])
def test_each_op_is_judged_by_its_own_view(bench: Bench, tmp_path: Path, declared: str, turned: str, live: bool) -> None:
    bench.write("small/files", FILES)
    bench.record()
    (tmp_path / "a.py").write_text(TURNS.replace("DECLARED", declared).replace("TURNED", turned))
    (tmp_path / "adapter.yaml").write_text('name: turns\nlanguage: python\ncommand: ["{python}", "{dir}/a.py"]\n')
    ran = bench.run(find_manifest(tmp_path), live=live, select="small/files")
    (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.who == "turns"]
    assert {divergence.op for divergence in result.divergences} == (set() if declared == turned else {turned})


@pytest.mark.parametrize(("view", "code"), [({"strings": "c"}, 0), ({}, 1)])
def test_a_golden_answer_is_compared_within_its_recorded_view(bench: Bench, view: dict[str, str], code: int) -> None:
    bench.write("small/files", FILES)
    bench.record()
    path = bench.store.path("small/files")
    text = path.read_text()
    assert r"a\u0000b" in text
    document = json.loads(text.replace(r"a\u0000b", "a"))
    document["authorities"]["llama.cpp"]["view"] = view
    path.write_text(json.dumps(document))
    assert bench.run(bench.impl, live=False, select="small/files").code == code
