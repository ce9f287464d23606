"""In a whole run, the exact model says of a wrong float32 whose fault it is, whatever file the block came from."""

import msgspec
import pytest

from conformance.cases.rows import block_rows
from conformance.judge.divergence import Divergence
from conformance.judge.exact import explain
from conformance.report.events import CaseResult, Event
from conformance.subjects.manifest import Manifest
from tests.run.conftest import Bench

# The reference, but that the lowest bit of one value of each output is turned.
WRONG = """
import sys
from pathlib import Path

from impl.serve import main
from impl.subject import Subject


class WrongBit(Subject):
    def dequantize(self, request):
        answer = super().dequantize(request)
        out = bytearray(Path(request["out"]).read_bytes())
        out[4 * 300] ^= 1
        Path(request["out"]).write_bytes(out)
        return answer


sys.exit(main(WrongBit(), sys.argv[1:]))
"""
CASES = """
suite: small/blocks
cases:
  blocks: {type: Q4_K, blocks: {random: {seed: 2, rows: 1, cols: 512}}, ask: [dequantize]}
  rows: {type: Q4_0, rows: {random: {seed: 1, rows: 2, cols: 256, distribution: normal}}, ask: [quantize, dequantize]}
  tensor:
    build: {tensors: [{name: a, type: F32, dims: [512]}, {name: t, type: Q4_0, dims: [512], data: {random: 3}}]}
    ask: [header, dequantize]
    expect: {llama.cpp: accept, gguf-py: accept, spec: accept}
"""
RANDOM = {"random": {"seed": 2, "rows": 1, "cols": 512}}


@pytest.fixture
def wrong(bench: Bench) -> Manifest:
    bench.write("small/blocks", CASES)
    (bench.root / "small" / "files.yaml").unlink()
    return msgspec.structs.replace(bench.impl, name="wrong-bit", command=bench.keepable(WRONG))


def _divergence(events: list[Event], case: str, who: str) -> Divergence:
    (result,) = [e for e in events if isinstance(e, CaseResult) and (e.case, e.who) == (f"small/blocks/{case}", who)]
    return result.divergences[-1]


@pytest.mark.parametrize("live", [True, False])
def test_the_subject_is_wrong(bench: Bench, wrong: Manifest, live: bool) -> None:
    bench.record()
    events = bench.run(wrong, live=live).events
    for case in ("blocks", "rows", "tensor"):
        divergence = _divergence(events, case, "wrong-bit")
        assert divergence.bits is not None
        verdict, how = divergence.remarks
        assert verdict == f"exact model: {divergence.bits.expected}: llama.cpp is right, wrong-bit is not"
        assert how.endswith(f" -> {divergence.bits.expected}")
    blocks, _ = block_rows(RANDOM, "Q4_K")
    told = explain("Q4_K", blocks.reshape(-1, 144)[1].tobytes(), 300 - 256)
    assert _divergence(events, "blocks", "wrong-bit").remarks[1] == told


def test_an_authority_that_is_wrong_is_named(bench: Bench, wrong: Manifest) -> None:
    authorities = [msgspec.structs.replace(wrong, name="llama.cpp"), bench.authorities[1]]
    divergence = _divergence(bench.run(bench.impl, authorities=authorities).events, "blocks", "impl")
    assert divergence.bits is not None
    assert divergence.remarks[0] == f"exact model: {divergence.bits.found}: impl is right, llama.cpp is not"


def test_an_authority_that_drifted_into_an_error_is_told_so(bench: Bench, wrong: Manifest) -> None:
    bench.record()
    authorities = [msgspec.structs.replace(wrong, name="llama.cpp"), bench.authorities[1]]
    divergence = _divergence(bench.run(bench.impl, authorities=authorities).events, "blocks", "llama.cpp")
    assert divergence.bits is not None
    assert divergence.remarks[0] == f"exact model: {divergence.bits.expected}: recorded llama.cpp is right, llama.cpp is not"


def test_a_wrong_block_gets_no_word_on_floats(bench: Bench, wrong: Manifest) -> None:
    """The exact model dequantizes only."""
    bench.write("small/blocks", CASES.replace("Q4_0", "Q8_0"))
    divergence = _divergence(bench.run(bench.stored_scale).events, "rows", "q8_0-stored-scale")
    assert divergence.op == "quantize"
    assert divergence.remarks == ()
