"""``near`` through whole runs: sums in another order pass, a lost term does not, live and golden."""

import sys
from pathlib import Path

import msgspec
import pytest

from conformance.report.events import CaseResult
from conformance.subjects.manifest import Manifest
from tests.run.conftest import KEEPABLE, Bench

SUITE = """
suite: small/products
defaults:
  ask: [quantize, dot, "dot:simd"]
  expect:
    llama.cpp: {quantize: accept, dot: accept, "dot:simd": near}
cases:
  vectors:
    type: Q8_0
    rows: {random: {seed: 1, rows: 5, cols: 4096, distribution: normal}}
    x: {random: {seed: 2, rows: 5, cols: 4096, distribution: normal}}
"""
CASE = "small/products/vectors"


def vector(bench: Bench, *arguments: str) -> Manifest:
    source = Path(__file__).with_name("vector_subject.py")
    KEEPABLE.add((sys.executable, str(source), *arguments))
    return msgspec.structs.replace(bench.impl, name="vector", command=(sys.executable, str(source), *arguments))


@pytest.fixture
def products(bench: Bench) -> Bench:
    bench.write("small/products", SUITE)
    bench.authorities[0] = msgspec.structs.replace(vector(bench), name="llama.cpp")
    bench.record()
    return bench


def the_result(events: list[object], who: str) -> CaseResult:
    (found,) = [event for event in events if isinstance(event, CaseResult) and event.who == who]
    return found


@pytest.mark.parametrize("live", [True, False])
def test_another_order_passes_and_is_compared(products: Bench, *, live: bool) -> None:
    ran = products.run(vector(products), live=live, select=CASE)
    result = the_result(list(ran.events), "vector")
    assert (ran.code, result.verdict) == (0, "pass")
    assert {(count.op, count.different) for count in result.by_op} == {("quantize", 0), ("dot", 0), ("dot:simd", 0)}
    (answer,) = [answer for answer in result.answers if answer.op == "dot:simd" and answer.who == "vector"]
    assert answer.value.endswith("ulps from the sums in order")
    assert " 0 ulps" not in answer.value


@pytest.mark.parametrize("live", [True, False])
def test_a_lost_block_is_a_divergence(products: Bench, *, live: bool) -> None:
    ran = products.run(vector(products, "drop"), live=live, select=CASE)
    result = the_result(list(ran.events), "vector")
    assert (ran.code, result.verdict) == (1, "diverge")
    (divergence,) = result.divergences
    assert divergence.signature == "dot:simd:Q8_0:rounding:value"
    assert divergence.different == 5


def test_an_authority_that_loses_a_block_is_drift(products: Bench) -> None:
    products.authorities[0] = msgspec.structs.replace(vector(products, "drop"), name="llama.cpp")
    ran = products.run(products.impl, select=CASE)
    assert the_result(list(ran.events), "llama.cpp").verdict == "authority-drift"


def test_recorded_digests_are_no_sums_to_be_near_to(products: Bench) -> None:
    """Of more than 512 rows golden files keep digests: what cannot be compared is told, and nothing passes by it."""
    products.write("small/products", SUITE.replace("rows: 5", "rows: 600").replace("4096", "32"))
    products.record()
    result = the_result(list(products.run(vector(products), live=False, select=CASE).events), "vector")
    assert any("no sums of llama.cpp in order" in reason for reason in result.not_asked)
    assert {count.op for count in result.by_op} == {"quantize", "dot"}
