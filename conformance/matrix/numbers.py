"""Who computes other numbers, and by how much: by op and ggml type, over all cases."""

from __future__ import annotations

from typing import NamedTuple

from conformance.judge.divergence import Divergence
from conformance.judge.signature import Signature
from conformance.matrix.cell import Who
from conformance.matrix.findings import added
from conformance.matrix.matrix import Matrix
from conformance.report.events import OpCount


class Compared(NamedTuple):
    """A participant's numbers of one op and type: of ``answers``, ``different`` were not the authority's.

    ``spread`` is how the floats at odds spread by distance, ``largest`` the largest distance in ulps (None: none was seen).
    """

    answers: int
    blocks: int
    different: int
    spread: tuple[int, ...] = ()
    largest: int | None = None


class NumberRow(NamedTuple):
    """An op on a type (``dequantize``, ``Q4_K``), and what was compared of whom."""

    op: str
    type: str
    by_who: dict[Who, Compared]

    @property
    def differs(self) -> bool:
        """Whether anybody computes other numbers."""
        return any(compared.different for compared in self.by_who.values())


def number_rows(matrix: Matrix) -> list[NumberRow]:
    """Give a row for each op and type that was compared, by op and type."""
    rows: dict[tuple[str, str], dict[Who, Compared]] = {}
    for who, cells in matrix.by_who.items():
        counts: dict[tuple[str, str], OpCount] = {}
        for counted in (counted for cell in cells for counted in cell.result.by_op):
            key = (counted.op, counted.type)
            counts[key] = counts[key] + counted if key in counts else counted
        distances = _distances([divergence for cell in cells for divergence in cell.result.divergences])
        for key, counted in counts.items():
            spread, largest = distances.get(key, ((), None))
            rows.setdefault(key, {})[who] = Compared(counted.requests, counted.blocks, counted.different, spread, largest)
    return [NumberRow(op, kind, by_who) for (op, kind), by_who in sorted(rows.items())]


def _distances(divergences: list[Divergence]) -> dict[tuple[str, str], tuple[tuple[int, ...], int | None]]:
    """Give, by op and type, the spread of distances and the largest one."""
    found: dict[tuple[str, str], list[Divergence]] = {}
    for one in divergences:
        if one.by_distance or one.largest_ulps is not None:
            signature = Signature.of(one.signature)
            found.setdefault((signature.op, signature.type), []).append(one)
    return {
        key: (added(one.by_distance for one in members), max(one.largest_ulps or 0 for one in members))
        for key, members in found.items()
    }
