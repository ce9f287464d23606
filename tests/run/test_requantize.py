"""A file's values quantized again: to which types, from whose values, and judged live and golden."""

from pathlib import Path

import pytest

from conformance.cases.load import load_suites
from conformance.errors import ConfigurationError
from conformance.report.events import CaseResult
from tests.run.conftest import Bench

SUITE = """
suite: small/again
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  values:
    build:
      tensors:
        - {name: odd, type: F32, dims: [96, 3], data: {random: 1}}
        - {name: whole, type: Q4_0, dims: [512, 2], data: {random: 2}}
        - {name: halves, type: F16, dims: [64, 4], data: {fill: 60}}
    ask: [header, dequantize]
    requantize: [Q8_0, Q4_K]
"""
CASE = "small/again/values"


@pytest.fixture
def again(bench: Bench) -> Bench:
    bench.write("small/again", SUITE)
    bench.record()
    return bench


def of_subject(bench: Bench, name: str, *, live: bool) -> CaseResult:
    manifest = bench.impl if name == "impl" else bench.stored_scale
    ran = bench.run(manifest, live=live, select=CASE)
    (result,) = [event for event in ran.events if isinstance(event, CaseResult) and event.who == name]
    return result


@pytest.mark.parametrize("live", [True, False])
def test_values_are_quantized_to_each_type_that_fits_the_rows(again: Bench, *, live: bool) -> None:
    result = of_subject(again, "impl", live=live)
    assert result.verdict == "pass"
    assert {(count.type, count.op): count.blocks for count in result.by_op if count.op == "quantize"} == {
        ("Q8_0", "quantize"): 9 + 32 + 8,
        ("Q4_K", "quantize"): 4,
    }
    assert result.counts.blocks == 49 + 4 + (3 * 96 + 32 + 256)


def test_a_type_that_fits_no_row_is_told(again: Bench) -> None:
    again.write("small/again", SUITE.replace("[512, 2]", "[64, 16]"))
    again.record()
    result = of_subject(again, "impl", live=True)
    assert (result.verdict, result.not_asked) == ("pass", ("no row is a whole number of Q4_K blocks",))


@pytest.mark.parametrize("live", [True, False])
def test_a_fault_in_one_of_the_types_is_found(again: Bench, *, live: bool) -> None:
    result = of_subject(again, "q8_0-stored-scale", live=live)
    assert result.verdict == "diverge"
    assert {divergence.signature.split(":")[1] for divergence in result.divergences} == {"Q8_0"}
    assert result.divergences[0].summary.startswith("quantize[")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("requantize: [Q8_0, Q4_K]", "requantize: [Q8_0, Q8_0]"), "no type, or one twice"),
        (("requantize: [Q8_0, Q4_K]", "requantize: []"), "no type, or one twice"),
        (("requantize: [Q8_0, Q4_K]", "requantize: [I32]"), "I32"),
        (("ask: [header, dequantize]", "ask: [header, tensor]"), "ask `dequantize` of a file or a model"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "again.yaml").write_text(SUITE.replace(*change))
    with pytest.raises(ConfigurationError) as caught:
        load_suites(tmp_path)
    assert says in str(caught.value)
