"""Rows of a request on numbers: taken, put together, cut to some of their blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from conformance.ggml_types import BY_NAME
from conformance.search.probe import Floats, NumberProbe

Index = npt.NDArray[np.intp] | slice | Sequence[int]


def take(probe: NumberProbe, index: Index) -> NumberProbe:
    """Give the rows that ``index`` chooses; an ``x`` that is for all rows stays."""
    rows, blocks, x = probe.rows, probe.blocks, probe.x
    return probe._replace(
        rows=None if rows is None else rows[index],
        blocks=None if blocks is None else blocks[index],
        x=x if x is None or _shared(probe, x) else x[index],
    )


def _shared(probe: NumberProbe, x: Floats) -> bool:
    return probe.op == "matvec" or (len(x) == 1 and probe.n != 1)


def own_x(probe: NumberProbe) -> NumberProbe:
    """Give each row of a ``dot`` an ``x`` of its own."""
    if probe.op != "dot" or probe.x is None:
        return probe
    return probe._replace(x=np.broadcast_to(probe.x, (probe.n, probe.cols)))


def stack(probes: Sequence[NumberProbe]) -> NumberProbe:
    """Give one request with the rows of all ``probes``.

    They have op, type, cols, imatrix and, for ``matvec``, ``x`` in common; what else they say is taken from the last.
    """
    last = probes[-1]
    rows = [probe.rows for probe in probes if probe.rows is not None]
    blocks = [probe.blocks for probe in probes if probe.blocks is not None]
    each = [probe.x for probe in map(own_x, probes) if probe.x is not None]
    return last._replace(
        rows=np.concatenate(rows) if rows else None,
        blocks=np.concatenate(blocks) if blocks else None,
        x=np.concatenate(each) if last.op == "dot" else last.x,
    )


def block_count(probe: NumberProbe) -> int:
    """Give the blocks a row."""
    return probe.cols // BY_NAME[probe.type].block


def cut(probe: NumberProbe, first: int, count: int) -> NumberProbe:
    """Keep ``count`` blocks of each row, from block number ``first`` on, and what goes with them of imatrix and ``x``."""
    kind = BY_NAME[probe.type]
    start, stop = first * kind.block, (first + count) * kind.block
    rows, blocks, x, imatrix = probe.rows, probe.blocks, probe.x, probe.imatrix
    return probe._replace(
        cols=stop - start,
        rows=None if rows is None else rows[:, start:stop],
        blocks=None if blocks is None else blocks[:, first * kind.nbytes : (first + count) * kind.nbytes],
        x=None if x is None else x[:, start:stop],
        imatrix=None if imatrix is None else imatrix[start:stop],
    )
