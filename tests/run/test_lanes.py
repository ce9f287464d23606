"""What a lane asks, by which limits, with which input; what it leaves behind: no old output, no process."""

from pathlib import Path

import msgspec
import numpy as np
import psutil
import pytest

import impl
from conformance.errors import ConfigurationError
from conformance.report.events import CaseResult
from conformance.run import engine
from conformance.run.participants import Member
from conformance.subjects.manifest import Manifest
from tests.run.conftest import CASES, Bench

SCRIPT = """
import sys, time
from pathlib import Path
from impl.serve import main
from impl.subject import Subject
class Own(Subject):
{body}
sys.exit(main(Own(), sys.argv[1:]))
"""


def _own(bench: Bench, name: str, body: str) -> Manifest:
    """The reference but for the methods in ``body``."""
    script = SCRIPT.format(body="\n".join(f"    {line}" for line in body.splitlines()))
    return msgspec.structs.replace(bench.impl, name=name, command=bench.keepable(script))


def _result(events: list[object], case: str, who: str) -> CaseResult:
    (result,) = [e for e in events if isinstance(e, CaseResult) and (e.case, e.who) == (case, who)]
    return result


TWO_TENSORS = """
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  two: {build: {tensors: [{name: a, type: F32, dims: [8]}, {name: b, type: F32, dims: [8]}]}, ask: [header, tensor]}
"""
LAZY = """
def tensor(self, request):
    return super().tensor(request) if request["index"] == 0 else {}
"""


def test_the_output_of_an_earlier_step_is_not_taken_for_this_ones(bench: Bench) -> None:
    """Both tensors hold the same bytes, so that an output that stayed would be right."""
    bench.write("small/files", TWO_TENSORS)
    ran = bench.run(_own(bench, "lazy", LAZY), select="small/files")
    result = _result(ran.events, "small/files/two", "lazy")
    assert result.verdict == "diverge"
    assert [divergence.signature for divergence in result.divergences] == ["tensor:F32:protocol:-"]


LIMITED = """
suite: small/files
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}, ask: [header]}
cases:
  free: {build: {kv: [{key: a, u32: 7}]}}
  time: {build: {kv: [{key: a, u32: 7}]}, limits: {time: 0.2}}
  memory: {build: {kv: [{key: a, u32: 7}]}, limits: {memory: 1MiB}}
"""
SLOW = """
def header(self, request):
    time.sleep(0.6)
    return super().header(request)
"""


def test_a_cases_own_limits_count(bench: Bench) -> None:
    bench.write("small/files", LIMITED)
    bench.authorities = []
    slow = _own(bench, "slow", SLOW)
    fast = [msgspec.structs.replace(bench.impl, name=name) for name in ("llama.cpp", "gguf-py")]
    ran = bench.run(slow, select="small/files", authorities=fast)
    signatures = {
        case: [divergence.signature for divergence in _result(ran.events, f"small/files/{case}", "slow").divergences]
        for case in ("free", "time", "memory")
    }
    assert signatures == {"free": [], "time": ["header:-:timeout:-"], "memory": ["header:-:memory:-"]}


KEEPS = """
def dequantize(self, request):
    Path(__file__).with_suffix(".kept").write_bytes(Path(request["in"]).read_bytes())
    return super().dequantize(request)
"""
OTHER = """
def quantize(self, request):
    answer = super().quantize(request)
    out = bytearray(Path(request["out"]).read_bytes())
    out[5] ^= 1
    Path(request["out"]).write_bytes(out)
    return answer
"""
ROWS = """
suite: small/blocks
cases:
  q8_0:
    type: Q8_0
    rows: {values: [%s]}
    expect: {llama.cpp: %s, gguf-py: accept}
"""


def _keeping(bench: Bench, body: str) -> tuple[Manifest, Path]:
    """Give a subject that keeps what it takes in, and where; nothing is there yet."""
    subject = _own(bench, "keeps", body)
    kept = Path(subject.command[-1]).with_suffix(".kept")
    kept.unlink(missing_ok=True)
    return subject, kept


@pytest.mark.parametrize(
    ("stated", "leader"), [("accept", "llama.cpp"), ("{quantize: unsupported, dequantize: accept}", "gguf-py")]
)
def test_whose_blocks_everybody_takes_in(bench: Bench, stated: str, leader: str) -> None:
    """llama.cpp's; where it quantizes none, gguf-py's; never a subject's own in a live run."""
    bench.write("small/blocks", ROWS % (list(range(1, 33)), stated))
    blocks = impl.quantize("Q8_0", np.arange(1, 33, dtype=np.float32)).tobytes()
    other = bytearray(blocks)
    other[5] ^= 1
    refuses = 'def quantize(self, request):\n    raise __import__("impl").UnsupportedError("not this")'
    first = bench.authorities[0] if leader == "llama.cpp" else _own(bench, "llama.cpp", refuses)
    subject, kept = _keeping(bench, KEEPS)
    bench.run(subject, select="small/blocks", authorities=[first, _own(bench, "gguf-py", OTHER)])
    assert kept.read_bytes() == (blocks if leader == "llama.cpp" else bytes(other))


def test_a_subject_held_to_the_second_authority_takes_in_the_firsts_blocks_too(bench: Bench) -> None:
    """Its own, equal to the second's, would do: but everybody is to take in the same bytes."""
    bench.write("small/blocks", ROWS % (list(range(1, 33)), "accept"))
    subject, kept = _keeping(bench, OTHER + KEEPS)
    other = _own(bench, "gguf-py", OTHER)
    bench.run(subject, select="small/blocks", authorities=[bench.authorities[0], other], profile="gguf-py")
    assert kept.read_bytes() == impl.quantize("Q8_0", np.arange(1, 33, dtype=np.float32)).tobytes()


def test_a_case_that_joined_a_recorded_suite_is_not_recorded(bench: Bench) -> None:
    bench.record()
    bench.write("small/files", CASES + "  fresh: {build: {kv: [{key: a, u32: 9}]}}\n")
    with pytest.raises(ConfigurationError, match=r"no recorded answers of llama\.cpp for small/files/fresh\n") as raised:
        bench.run(bench.impl, live=False, select="small/files")
    assert "gguf-conformance record --select" in raised.value.hint


def test_an_op_that_joined_a_recorded_case_is_not_recorded(bench: Bench) -> None:
    bench.write("small/files", CASES.replace("{key: a, u32: 7}]}}", "{key: a, u32: 7}]}, ask: [header]}"))
    bench.record()
    bench.write("small/files", CASES)
    with pytest.raises(ConfigurationError, match=r"no recorded answers of llama\.cpp for small/files/plain"):
        bench.run(bench.impl, live=False, select="small/files")


def test_a_run_ends_the_processes_of_all_its_lanes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "Member", Member)  # not one whose process stays
    before = set(psutil.Process().children())
    ran = bench.run(bench.impl, jobs=3, select="small/files")
    assert ran.code == 0
    left = [child.cmdline() for child in set(psutil.Process().children()) - before if child.status() != psutil.STATUS_ZOMBIE]
    assert [words for words in left if "sh" not in words[0]] == []
