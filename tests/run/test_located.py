"""Where a report says that an output differs: in the output, not in the file that it was made from."""

from pathlib import Path

import pytest

from conformance.judge.divergence import Divergence
from conformance.report.events import CaseResult
from conformance.report.facts import place_of
from conformance.subjects.manifest import Manifest, find_manifest
from tests.run.conftest import Bench

# Two tensors of one file; the second one's bytes and floats are wrong from the output's byte 8 on, or it is refused.
WRONG = """
import sys
from pathlib import Path
from impl.errors import GgufError
from impl.serve import main
from impl.subject import Subject
class Wrong(Subject):
    def _turn(self, request):
        out = bytearray(Path(request["out"]).read_bytes())
        if out[0] == MARK:
            out[8] ^= 1
        Path(request["out"]).write_bytes(out)
        return {}
    def tensor(self, request):
        super().tensor(request)
        if REFUSE and request["index"] == 1:
            raise GgufError("bad-size", "not this one", field="version", at=4)
        return self._turn(request)
    def dequantize(self, request):
        super().dequantize(request)
        return self._turn(request)
sys.exit(main(Wrong(), sys.argv[1:]))
"""
# The tensors' bytes start at 96 and 128 of the file.
FILE = """
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  two:
    build:
      tensors:
        - {name: t, type: F32, dims: [4], data: [1, 2, 3, 4]}
        - {name: u, type: F32, dims: [4], data: 4d000000 01000000 02000000 03000000}
    ask: [header, tensor, dequantize]
"""


def _subject(folder: Path, *, refuse: bool = False) -> Manifest:
    folder.mkdir(exist_ok=True)
    (folder / "a.py").write_text(WRONG.replace("MARK", "0x4d").replace("REFUSE", str(refuse)))
    (folder / "adapter.yaml").write_text('name: wrong\nlanguage: python\ncommand: ["{python}", "{dir}/a.py"]\n')
    return find_manifest(folder)


def _result(bench: Bench, subject: Manifest, *, live: bool) -> CaseResult:
    bench.write("small/files", FILE)
    bench.record()
    ran = bench.run(subject, live=live, select="small/files")
    (result,) = [e for e in ran.events if isinstance(e, CaseResult) and e.who == "wrong"]
    return result


def _of(result: CaseResult, op: str) -> Divergence:
    (divergence,) = [d for d in result.divergences if d.op == op]
    return divergence


@pytest.mark.parametrize("live", [True, False])
def test_an_output_is_located_in_itself_and_marked_in_the_file(bench: Bench, tmp_path: Path, live: bool) -> None:
    result = _result(bench, _subject(tmp_path), live=live)
    tensor = _of(result, "tensor")
    assert (tensor.at, tensor.field, tensor.block) == (8, "data[1]", 2)
    assert "output byte 8 (0x8)" in place_of(tensor)
    values = _of(result, "dequantize")
    assert (values.at, values.field, values.elements) == (8, None, (2,))
    assert "output byte 8 (0x8)" in place_of(values)
    assert [(line.offset, line.field) for line in result.input_hexdump if line.mark] == [(128, "data[1]")]


def test_the_place_that_a_refusal_names_is_not_one_of_the_output(bench: Bench, tmp_path: Path) -> None:
    tensor = _of(_result(bench, _subject(tmp_path, refuse=True), live=True), "tensor")
    assert tensor.signature == "tensor:F32:reject-for-ok:-"
    assert (tensor.at, tensor.field) == (None, "data[1]")
    assert "output byte" not in place_of(tensor)
    assert [line.field for line in tensor.hexdump if line.mark] == ["data[1]"]
