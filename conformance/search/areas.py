"""The two kinds of input that a search draws, files and numbers, and how a draw is put to both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from conformance.judge.headers import general_path
from conformance.search.clock import Clock
from conformance.search.files import FileBench, Pair
from conformance.search.hit import Hit, breaks
from conformance.search.hypotheses import draw
from conformance.search.numbers import NumberBench
from conformance.search.plan import FILE_OPS, NUMBER_OPS, Plan
from conformance.search.probe import FileProbe, NumberProbe

# Forms of one document that are put at a time.
_FORMS = 64
# Draws of a round: after it finds are made small, and the other kind of input has its turn.
_DOCUMENTS = 64
_PLANS = 24
_SEQUENCES = 8

# What counts as large: no reader needs seconds for so many of anything.
_LARGE = 2**20

OnHit = Callable[[Hit], None]


class FileArea:
    """Files: documents, and many broken forms of each."""

    planned = _DOCUMENTS

    def __init__(self, bench: FileBench, ops: Iterable[str], clock: Clock, on_hit: OnHit) -> None:
        self.bench = bench
        self.ops = frozenset(ops)
        self.clock = clock
        self.on_hit = on_hit
        # Fields of which a large number made a side wait or die: once is enough.
        self.sore: set[str] = set()

    def round(self, seed: int, examples: int) -> None:
        """Draw documents and put their forms; what the last ones show is noted before it ends."""
        from hypothesis import strategies as st  # noqa: PLC0415 - an extra

        from conformance.search.strategies import documents  # noqa: PLC0415 - the same

        try:
            draw(st.tuples(documents(), st.integers(0, 2**32 - 1)), self._put, seed=seed, examples=examples)
        finally:
            self._note(self.bench.take())

    def _put(self, drawn: tuple[dict[str, Any], int]) -> None:
        self.clock.tick()
        probes = list(self._probes(*drawn))
        # The answers to the batch before have come while these were made.
        self._note(self.bench.take())
        self.bench.put(probes)

    def _probes(self, recipe: dict[str, Any], seed: int) -> Iterator[FileProbe]:
        from conformance.search.variants import variants  # noqa: PLC0415 - its tables

        forms = variants(recipe, seed, _FORMS)
        first = next(forms)
        others = (first._replace(op=op) for op in ("tensor", "write"))
        return (probe for probe in chain([first], others, forms) if probe.op in self.ops and not self._is_sore(probe))

    def _is_sore(self, probe: FileProbe) -> bool:
        return bool(self.sore) and not self.sore.isdisjoint(_large_fields(probe))

    def _note(self, hits: Iterable[Hit]) -> None:
        for hit in hits:
            if breaks(hit.signature) and isinstance(hit.probe, FileProbe):
                self.sore.update(_large_fields(hit.probe))
            self.on_hit(hit)


def _large_fields(probe: FileProbe) -> Iterator[str]:
    """Name the fields that a large number was written into."""
    for path, value in probe.recipe.get("patch", {}).items():
        if isinstance(value, int) and abs(value) >= _LARGE:
            yield general_path(path)


class NumberArea:
    """Numbers: plans, each of many rows."""

    planned = _PLANS

    def __init__(self, bench: NumberBench, cells: Iterable[tuple[str, str]], clock: Clock, on_hit: OnHit) -> None:
        self.bench = bench
        self.cells = frozenset(cells)
        self.clock = clock
        self.on_hit = on_hit

    def round(self, seed: int, examples: int) -> None:
        """Draw plans and put their rows."""
        from conformance.search.strategies import number_plans  # noqa: PLC0415 - needs hypothesis

        try:
            draw(number_plans(*self._named()), self._put, seed=seed, examples=examples)
        finally:
            self._note(self.bench.take())

    def _put(self, plan: Any) -> None:
        self.clock.tick()
        self.put(plan.expand())

    def put(self, probe: NumberProbe) -> None:
        """Put one request, if both sides do it; the answers to the one before have come while it was made."""
        if probe.imatrix is not None and not self.bench.takes_imatrix:
            return
        if (probe.op, f"{probe.type}:{probe.variant}" if probe.variant else probe.type) in self.cells:
            answered = self.bench.finish()
            self.bench.put(probe)
            # What the last request's answers say is read while the next one is worked at.
            self._note(self.bench.hits(answered))

    def _named(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Give the types and the ops, with their variants, as the strategies name them."""
        split = [(op, *kind.partition(":")) for op, kind in self.cells]
        types = sorted({name for _, name, _, _ in split})
        return tuple(types), tuple(sorted({f"{op}{colon}{variant}" for op, _, colon, variant in split}))

    def _note(self, hits: Iterable[Hit]) -> None:
        for hit in hits:
            self.on_hit(hit)


class SequenceArea(NumberArea):
    """Numbers again, in small requests one after the other: what was asked before must not matter."""

    planned = _SEQUENCES

    def round(self, seed: int, examples: int) -> None:
        """Draw sequences and put their requests in order."""
        from conformance.search.strategies import number_sequences  # noqa: PLC0415 - needs hypothesis

        try:
            draw(number_sequences(*self._named()), self._put, seed=seed, examples=examples)
        finally:
            self._note(self.bench.take())

    def _put(self, sequence: Any) -> None:
        self.clock.tick()
        for probe in sequence:
            self.put(probe)


Area = FileArea | NumberArea


def file_ops(pair: Pair, plan: Plan) -> list[str]:
    """Give the file ops that both sides do and the plan asks for."""
    return [op for op in FILE_OPS if (not plan.ops or op in plan.ops) and all(side.does(op) for side in pair)]


def number_cells(pair: Pair, plan: Plan) -> list[tuple[str, str]]:
    """Give op and type (with variant) of all number ops that both sides do and the plan asks for."""
    return [
        (op, kind)
        for op in NUMBER_OPS
        if not plan.ops or op in plan.ops
        for kind in getattr(pair.subject.identity.ops, op)
        if pair.against.does(op, kind) and _wanted(kind, plan)
    ]


def _wanted(kind: str, plan: Plan) -> bool:
    name, _, variant = kind.partition(":")
    # Sums in another order are near, not equal: cases hold them to a bound.
    return variant != "simd" and (not plan.types or name in plan.types)
