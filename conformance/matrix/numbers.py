"""Who computes other numbers, and by how much: by op and ggml type, over all cases."""

from __future__ import annotations

from typing import NamedTuple

from conformance.judge.divergence import Divergence
from conformance.judge.signature import Signature
from conformance.matrix.cell import Who
from conformance.matrix.findings import added
from conformance.matrix.matrix import Matrix
from conformance.report.events import CaseResult, OpCount


class Compared(NamedTuple):
    """A participant's numbers of one op and type: of ``answers``, ``different`` were not the authority's.

    Of those that differ: ``spread`` is how floats spread by distance, ``largest`` the largest distance in ulps (None: there is
    none), ``share`` how much of the blocks' bytes differs (0 to 1; None: these are no blocks).
    """

    answers: int
    blocks: int
    different: int
    spread: tuple[int, ...] = ()
    largest: int | None = None
    share: float | None = None


class NumberRow(NamedTuple):
    """An op on a type (``dequantize``, ``Q4_K``), and what was compared of whom."""

    op: str
    type: str
    by_who: dict[Who, Compared]

    @property
    def differs(self) -> bool:
        """Whether anybody computes other numbers."""
        return any(compared.different for compared in self.by_who.values())


Key = tuple[str, str]


def number_rows(matrix: Matrix) -> list[NumberRow]:
    """Give a row for each op and type that was compared, by op and type."""
    rows: dict[Key, dict[Who, Compared]] = {}
    for who, cells in matrix.by_who.items():
        counts: dict[Key, OpCount] = {}
        located: dict[Key, list[list[Divergence]]] = {}
        for cell in cells:
            for counted in cell.result.by_op:
                key = (counted.op, counted.type)
                counts[key] = counts[key] + counted if key in counts else counted
                located.setdefault(key, []).append(_of_op(cell.result, counted))
        for key, counted in counts.items():
            rows.setdefault(key, {})[who] = _compared(counted, located[key])
    return [NumberRow(op, kind, by_who) for (op, kind), by_who in sorted(rows.items())]


def _of_op(result: CaseResult, counted: OpCount) -> list[Divergence]:
    """Give a case's divergences of one op and type; a signature has no word for the imatrix that an op was given."""
    others = {one.op for one in result.by_op} - {counted.op}
    found = []
    for divergence in result.divergences:
        op, kind, _, _ = Signature.of(divergence.signature)
        same = op == counted.op or (op not in others and counted.op.startswith(f"{op} "))
        if same and kind == counted.type:
            found.append(divergence)
    return found


def _compared(counted: OpCount, cases: list[list[Divergence]]) -> Compared:
    every = [divergence for divergences in cases for divergence in divergences]
    largest = [one.largest_ulps for one in every if one.largest_ulps is not None]
    # Each divergence of an output counts all that differs in it: one tells of its case.
    blocks = [next((one for one in divergences if one.unit == "bytes"), None) for divergences in cases]
    wrong = sum(one.different or 0 for one in blocks if one)
    total = sum(one.compared or 0 for one in blocks if one)
    spread = added(one.by_distance for one in every)
    share = wrong / total if total else None
    return Compared(counted.requests, counted.blocks, counted.different, spread, max(largest, default=None), share)


def percent(share: float) -> str:
    """Give a share as it is read: ``12 %``, ``0.03 %``, and never none where there is some."""
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
