"""``matvec`` through a whole run: what is asked, what is judged, and that a vector is not made into rows."""

import base64
import re
from pathlib import Path

from conformance.cases.load import load_suites
from conformance.report.events import CaseResult
from conformance.run.prepare import prepare
from conformance.run.steps import block_steps, request
from conformance.subjects.protocol import DotRequest, MatvecRequest
from tests.run.conftest import Bench

SUITE = """
suite: small/products
cases:
  vector:
    type: Q8_0
    rows: {random: {seed: 1, rows: 5, cols: 64, distribution: normal}}
    x: {random: {seed: 2, cols: 64, distribution: normal}}
    ask: [quantize, matvec, dot]
"""


def test_the_vector_is_given_as_it_is_and_dot_gets_a_row_for_each(bench: Bench, tmp_path: Path) -> None:
    bench.write("small/products", SUITE)
    (case,) = [case for case in load_suites(bench.root) if case.id == "small/products/vector"]
    prepared = prepare(case, tmp_path, lambda _: tmp_path)
    quantize, matvec, dot = block_steps(case, prepared)
    assert (quantize.after, matvec.after, dot.after) == (None, "quantize", "quantize")
    messages = [request(step, None, tmp_path / "w", tmp_path / "out") for step in (matvec, dot)]
    assert [type(message) for message in messages] == [MatvecRequest, DotRequest]
    assert [Path(message.x).stat().st_size for message in messages] == [4 * 64, 5 * 4 * 64]
    assert [step.numbers.output_bytes for step in (matvec, dot) if step.numbers] == [20, 20]
    assert Path(messages[0].x).read_bytes() * 5 == Path(messages[1].x).read_bytes()


def test_matvec_is_judged_live_and_golden(bench: Bench) -> None:
    bench.write("small/products", SUITE)
    bench.record()
    for live in (True, False):
        ran = bench.run(bench.impl, live=live, select="small/products")
        assert (ran.code, ran.verdicts["small/products/vector", "impl"]) == (0, "pass")
        assert ran.finished.counts["impl"].values == 10


def test_a_wrong_product_is_located(bench: Bench) -> None:
    """The recorded answer is changed in its last byte: that of the fifth product."""
    bench.write("small/products", SUITE)
    bench.record()
    path = bench.store.path("small/products")
    recorded = re.search(r'"matvec":{"outcome":{"outcome":"ok"},"output":{"kind":"bytes","base64":"([^"]+)"', path.read_text())
    assert recorded is not None
    products = base64.b64decode(recorded[1])
    changed = base64.b64encode(products[:-1] + bytes([products[-1] ^ 1])).decode()
    path.write_text(path.read_text().replace(f'"{recorded[1]}"', f'"{changed}"', 1))
    ran = bench.run(bench.impl, live=False, select="small/products")
    (result,) = [e for e in ran.events if isinstance(e, CaseResult)]
    (divergence,) = [one for one in result.divergences if one.op == "matvec"]
    assert divergence.signature.startswith("matvec:Q8_0:")
    assert (divergence.row, divergence.different, divergence.compared) == (4, 1, 5)
