"""``write`` through a whole run: what is given, what is compared, and how a wrong byte is told."""

import sys
from pathlib import Path

import msgspec
import pytest

from conformance.cases.build import build
from conformance.cases.load import load_suites
from conformance.errors import ConfigurationError
from conformance.report.events import CaseResult
from conformance.run.outputs import take_output
from conformance.run.prepare import prepare
from conformance.subjects.manifest import Manifest
from conformance.values import Header
from tests.run.conftest import Bench

SUITE = """
suite: small/written
defaults: {ask: [write], expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  sound:
    build:
      kv: [{key: general.architecture, str: llama}, {key: general.alignment, u32: 64}]
      tensors: [{name: t, type: Q8_0, dims: [32, 2]}, {name: u, type: F32, dims: [3]}]
  long: {build: {kv: [{key: a, array: {u32: {fill: 7, count: 1000}}}]}}
  refused:
    build: {kv: [{key: a, u8: 1}, {key: a, u8: 2}]}
    expect: {llama.cpp: {reject: duplicate-key}, gguf-py: {reject: duplicate-key}, spec: {reject: duplicate-key}}
"""


@pytest.fixture
def written(bench: Bench) -> Bench:
    bench.write("small/written", SUITE)
    return bench


def spoiling(bench: Bench, at: int) -> Manifest:
    command = (sys.executable, str(Path(__file__).with_name("writing_subject.py")), str(at))
    return msgspec.structs.replace(bench.impl, name="writing", command=command)


def only(bench: Bench, manifest: Manifest, case: str, *, live: bool) -> CaseResult:
    ran = bench.run(manifest, live=live, select=f"small/written/{case}")
    (result,) = [event for event in ran.events if isinstance(event, CaseResult) and event.who == manifest.name]
    return result


def test_what_a_file_says_and_its_tensors_bytes_are_given(written: Bench, tmp_path: Path) -> None:
    (case,) = [case for case in load_suites(written.root) if case.id == "small/written/sound"]
    assert case.ask == ("write",)
    described = prepare(case, tmp_path, lambda _: tmp_path).described
    assert described is not None
    header = msgspec.json.decode(described.header.read_bytes(), type=Header)
    assert [tensor.dims for tensor in header.tensors] == [["32", "2"], ["3"]]
    fields = build(case.input.recipe).fields  # type: ignore[union-attr] # the case is a built file
    data = build(case.input.recipe).data  # type: ignore[union-attr] # the same
    parts = [fields.find(f"data[{index}]") for index in range(2)]
    assert described.data.read_bytes() == b"".join(data[part.offset : part.end] for part in parts if part)


def test_it_is_judged_live_and_golden(written: Bench) -> None:
    written.record()
    for live in (True, False):
        ran = written.run(written.impl, live=live, select="small/written")
        assert ran.code == 0
        assert {verdict for (_, who), verdict in ran.verdicts.items() if who == "impl"} == {"pass"}
        assert ran.finished.counts["impl"].files == 3


@pytest.mark.parametrize("live", [True, False])
def test_a_wrong_byte_is_located(written: Bench, *, live: bool) -> None:
    written.record()
    result = only(written, spoiling(written, 100), "sound", live=live)
    (divergence,) = result.divergences
    assert result.verdict == "diverge"
    assert (divergence.signature, divergence.field) == ("write:-:bytes:data[*].padding", "data[0].padding")
    data = build({**load_suites(written.root)[-1].input.recipe}).data  # type: ignore[union-attr] # built files all
    assert divergence.at == len(data) - 100
    assert {line.field for line in result.input_hexdump if line.mark} == {"data[0].padding"}


def test_of_a_long_file_a_golden_run_tells_the_range(written: Bench) -> None:
    written.record()
    (divergence,) = only(written, spoiling(written, 1), "long", live=False).divergences
    assert divergence.signature == "write:-:digest:blocks"
    (divergence,) = only(written, spoiling(written, 1), "long", live=True).divergences
    assert divergence.signature == "write:-:bytes:padding"


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ("{byteorder: big, kv: [{key: a, u8: 1}]}", "or is big-endian"),
        ("{kv: [{key: a, u8: 1}], cut: 30}", "ends at 30, within kv[0].key.length"),
        ("{tensors: [{name: t, type: F32, dims: [4], data: none}]}", "16 bytes of tensor 't' are not all there"),
        ("{kv: [{key: a, raw: {type: 13, hex: '00'}}]}", "value type 13"),
    ],
)
def test_a_file_that_cannot_be_described_is_an_error_of_the_case(bench: Bench, tmp_path: Path, recipe: str, says: str) -> None:
    bench.write("small/written", SUITE.partition("  sound")[0] + f"  bad: {{build: {recipe}}}\n")
    (case,) = [case for case in load_suites(bench.root) if case.id == "small/written/bad"]
    with pytest.raises(ConfigurationError, match=r"described|all there") as problem:
        prepare(case, tmp_path, lambda _: tmp_path)
    assert says in str(problem.value)
    assert only(bench, bench.impl, "bad", live=True).verdict == "error"


def test_a_file_of_any_size_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for size in (0, 1, 70000):
        path.write_bytes(bytes(size))
        taken = take_output(path, None)
        assert getattr(taken, "nbytes", None) == size


def test_a_file_that_is_too_large_is_not(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as file:
        file.truncate(2**31 + 1)
    assert "has 2147483649 bytes, expected 2147483648" in str(take_output(path, None))
