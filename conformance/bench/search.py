"""How much a search puts to both sides in a second: made, written, answered twice, compared."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count

import msgspec

from conformance.run.scratch import scratch_folder
from conformance.search.areas import FileArea
from conformance.search.asking import Side
from conformance.search.clock import Clock, Enough
from conformance.search.files import FileBench, Pair
from conformance.search.hit import Hit
from conformance.search.number_plans import NumberPlan
from conformance.search.numbers import NumberBench
from conformance.search.row_families import RowRecipe
from conformance.subjects.manifest import Manifest

# Types whose blocks are cheap to make and to take apart, and what is measured of them.
CHEAP = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
_SEED = 20261201


class Rate(msgspec.Struct, frozen=True):
    """Of ``what`` so many ``inputs`` (files or blocks) were put to both sides in ``seconds``; ``different`` should be 0."""

    what: str
    inputs: int
    seconds: float
    different: int

    @property
    def per_second(self) -> float:
        """Inputs a second."""
        return self.inputs / self.seconds


def rates(subject: Manifest, against: Manifest, types: tuple[str, ...], seconds: float) -> Iterator[Rate]:
    """Measure files, then quantize and dequantize of each type, ``seconds`` each. Raises ConfigurationError."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(in_memory=True))
        pair = Pair(*(stack.enter_context(Side(manifest)) for manifest in (subject, against)))
        if ops := tuple(op for op in ("header", "load") if all(side.does(op) for side in pair)):
            yield _files(FileBench(pair, folder), ops, seconds)
        bench = NumberBench(pair, folder)
        for op in ("dequantize", "quantize"):
            for name in types:
                if all(side.does(op, name) for side in pair):
                    yield _blocks(bench, op, name, seconds)


def _files(bench: FileBench, ops: tuple[str, ...], seconds: float) -> Rate:
    hits: list[Hit] = []
    # The first round loads what both sides load once.
    FileArea(bench, ops, Clock(None, 8), hits.append).round(_SEED, 8)
    before, clock = bench.count, Clock(seconds, None)
    area = FileArea(bench, ops, clock, hits.append)
    with suppress(Enough):
        for number in count(1):
            area.round(_SEED + number, area.planned)
    return Rate(f"files ({', '.join(ops)})", bench.count - before, clock.elapsed, sum(not hit.against for hit in hits))


def _blocks(bench: NumberBench, op: str, name: str, seconds: float) -> Rate:
    bench.put(_plan(op, name, 0).expand())
    hits = list(bench.take())
    before, started = bench.blocks, time.perf_counter()
    for number in count(1):
        probe = _plan(op, name, number).expand()
        answered, over = bench.finish(), time.perf_counter() - started >= seconds
        if not over:
            bench.put(probe)
        hits += bench.hits(answered)
        if over:
            break
    return Rate(f"{op} {name}", bench.blocks - before, time.perf_counter() - started, len(hits))


def _plan(op: str, name: str, number: int) -> NumberPlan:
    plan = NumberPlan(op="dequantize", type=name, cols=256, rows=2**20, seed=_SEED + number, blocks="bytes")
    if op == "dequantize":
        return plan
    return msgspec.structs.replace(plan, op="quantize", blocks="", row=RowRecipe("bell", -4, 4))
