"""The way down from a request on numbers to a simpler one that still shows the same, in few exchanges.

Candidates go as rows of one request wherever a row stands for itself. Each step goes down in the order of ``simpler.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from conformance.block_ops import NEEDING, OTHER_REFERENCE
from conformance.ggml_types import BY_NAME
from conformance.search import number_changes as changes
from conformance.search.probe import Floats, NumberProbe
from conformance.search.probe_rows import block_count, cut, own_x, stack, take
from conformance.search.simpler import Costs, block_costs, complexity, float_costs, imatrix_costs

Flags = npt.NDArray[np.bool_]
Shows = Callable[[NumberProbe], Flags]
"""Tells for each row of a request whether it shows the divergence; one exchange."""

AT_ONCE = 1024
"""Candidates of one request, if not said otherwise."""

# Rows that are tried alone, windows of blocks that are tried one by one, candidates of a pass where each is a request.
_LONE_ROWS, _LONE_WINDOWS, _LONE_CANDIDATES = 3, 4, 6
# GROUP_MAX_EPS in ggml/src/ggml-quants.c, below which nothing is stored (docs/block-rules.md, N4).
_SMALLEST_SIZE = 1e-15

_Array = npt.NDArray[Any]


class _SpentError(Exception):
    """All exchanges are used up."""


class _Part(NamedTuple):
    """One array of a probe: its field, what its rows cost, and the passes that make variants of one row."""

    field: str
    costs: Callable[[_Array], Costs]
    passes: tuple[Callable[[_Array], _Array], ...]


class Descent:
    """One way down, of at most about ``budget`` exchanges, each of up to ``at_once`` candidates: none where each is to be alone.

    ``_trail`` are the requests from the first to the simplest so far, and whether each was seen to show it by itself.
    """

    def __init__(self, shows: Shows, budget: int, at_once: int = AT_ONCE) -> None:
        self._shows = shows
        self._left = budget
        self._reserve = budget // 4
        self._at_once = at_once
        self._first: npt.NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._trail: list[tuple[NumberProbe, bool]] = []

    @property
    def _state(self) -> NumberProbe:
        """The simplest request so far."""
        return self._trail[-1][0]

    def simplest(self, probe: NumberProbe) -> NumberProbe:
        """Give the simplest request found, which was seen to show it by itself; ``probe`` itself where that does not."""
        if self._begin(probe):
            with suppress(_SpentError):
                self._begin_rows()
                self._run()
        return self._verified(probe)

    def _begin(self, probe: NumberProbe) -> bool:
        flags = self._shows(probe)
        self._left -= 1
        if not flags.any():
            return False
        self._trail.append((probe, True))
        self._first = np.flatnonzero(flags)
        return True

    def _begin_rows(self) -> None:
        """Narrow to one row if one shows it by itself."""
        if self._at_once < 2:
            self._drop_rows(kept=0)
            return
        probe, rows = own_x(self._state), self._first
        simplest = sorted(rows[:256].tolist(), key=lambda row: (complexity(take(probe, [row])), row))
        if not any(self._alone(take(probe, [row])) for row in simplest[:_LONE_ROWS]):
            self._fewer_rows(int(rows[0]))

    def _fewer_rows(self, row: int) -> None:
        """Where a row shows it only after others: keep that one, and as few before it as will do."""
        probe = own_x(self._state)
        if probe.n == 1 or self._alone(take(probe, slice(max(0, row - 1), row + 1))):
            return
        self._alone(take(probe, slice(0, row + 1)))
        self._drop_rows(kept=1)

    def _drop_rows(self, kept: int) -> None:
        """Drop rows, halves first, single ones last, but for ``kept`` at the end."""
        size = self._state.n // 2
        while size:
            start = 0
            while start < self._state.n - kept and self._left > self._reserve:
                left = np.delete(np.arange(self._state.n), slice(start, min(start + size, self._state.n - kept)))
                if not len(left) or not self._alone(take(self._state, left)):
                    start += size
            size //= 2

    def _run(self) -> None:
        """Shorten the row, then make its parts simpler until none gives way."""
        self._plainer_imatrix()
        self._shorter()
        before: tuple[int, ...] | None = None
        while before != complexity(self._state):
            before = complexity(self._state)
            for part in _parts(self._state):
                for variants in part.passes:
                    self._simpler(part, variants)
            self._shorter()

    def _asked(self, probe: NumberProbe) -> Flags:
        if self._left <= 1:
            raise _SpentError
        self._left -= 1
        return self._shows(probe)

    def _alone(self, probe: NumberProbe) -> bool:
        """Ask for a whole candidate by itself, and keep it if it is simpler and shows it."""
        if complexity(probe) >= complexity(self._state) or not self._asked(probe).any():
            return False
        self._trail.append((probe, True))
        return True

    def _plainer_imatrix(self) -> None:
        imatrix = self._state.imatrix
        if imatrix is None or (self._state.type not in NEEDING and self._alone(self._state._replace(imatrix=None))):
            return
        self._alone(self._state._replace(imatrix=np.ones_like(imatrix)))

    def _first_alone(self, candidates: Iterator[NumberProbe]) -> bool:
        return any(self._alone(candidate) for candidate in candidates)

    def _shorter(self) -> None:
        """Keep as few neighbouring blocks as show it: one, two, four, wherever they stand."""
        count, size = block_count(self._state), 1
        while size < count:
            windows = [cut(self._state, start, size) for start in range(count - size + 1)]
            if self._any_of(windows):
                return
            size *= 2

    def _any_of(self, candidates: list[NumberProbe]) -> bool:
        """Keep the simplest of ``candidates`` of one row and length each that shows it."""
        if self._share_a_request(candidates):
            candidates = candidates[: self._at_once]
            showing = np.flatnonzero(self._asked(stack(candidates)))
            if not len(showing):
                return False
            best = min(showing.tolist(), key=lambda number: (complexity(candidates[number]), number))
            self._trail.append((candidates[best], len(candidates) == 1))
            return True
        return self._first_alone(iter(candidates[:_LONE_WINDOWS]))

    def _share_a_request(self, candidates: list[NumberProbe]) -> bool:
        first = candidates[0]
        alike = all(_equal(first.imatrix, other.imatrix) for other in candidates)
        return self._at_once > 1 and self._state.n == 1 and self._state.op != "matvec" and alike

    def _simpler(self, part: _Part, variants: Callable[[_Array], _Array]) -> None:
        """Let one pass over one part run as long as it gives something."""
        apart = self._at_once > 1 and not self._for_all_rows(part.field)
        while self._all_at_once(part, variants) if apart else self._one_by_one(part, variants):
            pass

    def _for_all_rows(self, field: str) -> bool:
        """Tell whether all rows of a request share what stands in this field."""
        shared = self._state.op == "matvec" or len(getattr(self._state, field)) != self._state.n
        return field == "imatrix" or (field == "x" and shared)

    def _all_at_once(self, part: _Part, variants: Callable[[_Array], _Array]) -> bool:
        """Ask for all variants in one request, then for the sums of those that showed it."""
        current = getattr(self._state, part.field).reshape(-1)
        tried = _below(part, current[None], self._defined(variants(current)))
        showing = self._showing(part, _chosen(tried, self._at_once, self._at_once // 2))
        if not len(showing):
            return False
        sums = _below(part, showing[:1], self._defined(_sums(current, showing)))
        best = self._showing(part, _chosen(sums, self._at_once))[:1]
        self._trail.append((self._with(part, best if len(best) else showing[:1]), False))
        return True

    def _defined(self, variants: _Array) -> _Array:
        """Leave out blocks without numbers of size where a reference function keeps the codes of the block before."""
        if not self._state.variant or self._state.type not in OTHER_REFERENCE:
            return variants
        size = BY_NAME[self._state.type].block
        blocks = np.abs(variants).reshape(len(variants), variants.shape[1] // size, size)
        defined: _Array = variants[(blocks.max(axis=2) >= _SMALLEST_SIZE).all(axis=1)]
        return defined

    def _showing(self, part: _Part, variants: _Array) -> _Array:
        """Give the variants that show it; where a row shows it only after others, it is the last row of a variant that counts."""
        if not len(variants):
            return variants
        flags = self._asked(self._with(part, variants))
        return variants[flags.reshape(len(variants), -1)[:, -1]]

    def _one_by_one(self, part: _Part, variants: Callable[[_Array], _Array]) -> bool:
        """Ask for the simplest variants, each in a request of its own."""
        current = getattr(self._state, part.field)
        flat = current.reshape(-1)
        tried = _below(part, flat[None], self._defined(variants(flat)))
        chosen = _chosen(tried, _LONE_CANDIDATES)
        return self._first_alone(_replaced(self._state, part.field, variant.reshape(current.shape)) for variant in chosen)

    def _with(self, part: _Part, variants: _Array) -> NumberProbe:
        """Give the state's rows once for each variant of a part of theirs."""
        changed = take(self._state, np.tile(np.arange(self._state.n), len(variants)))
        return _replaced(changed, part.field, variants.reshape(self._state.n * len(variants), -1))

    def _verified(self, probe: NumberProbe) -> NumberProbe:
        """Give the simplest of the trail that shows it by itself; what was asked alone need not be asked again."""
        for number, (state, sure) in enumerate(reversed(self._trail)):
            if sure or (number < _LONE_ROWS and self._shows(state).any()):
                return state
        return probe


def _equal(left: Floats | None, right: Floats | None) -> bool:
    return left is right if left is None or right is None else np.array_equal(left, right)


def _replaced(probe: NumberProbe, field: str, array: _Array) -> NumberProbe:
    fields: dict[str, Any] = {field: array}
    return probe._replace(**fields)


def _below(part: _Part, current: _Array, variants: _Array) -> _Array:
    """Give the variants that cost less than ``current``, the cheapest first, each once."""
    if not len(variants):
        return variants
    limit, costs = part.costs(current)[0].tolist(), part.costs(variants)
    order = np.lexsort(costs.T[::-1])
    seen: dict[bytes, int] = {}
    for number in order.tolist():
        if costs[number].tolist() < limit:
            seen.setdefault(variants[number].tobytes(), number)
    return variants[list(seen.values())]


def _chosen(variants: _Array, most: int, first: int = 1) -> _Array:
    """Give ``most`` of the variants: the ``first`` ones, which are the boldest, and others evenly down to the most timid."""
    if len(variants) <= most:
        return variants
    spread = np.linspace(first, len(variants) - 1, most - first).astype(np.intp)
    chosen: _Array = variants[np.unique(np.concatenate([np.arange(first), spread]))]
    return chosen


def _sums(base: _Array, showing: _Array) -> _Array:
    """Give the first two changes taken together, the first three, and so on."""
    bits = showing.view(np.uint32) if showing.dtype == np.float32 else showing
    plain = base.view(bits.dtype)
    sums = np.empty_like(bits)
    total = plain
    for number, changed in enumerate(bits):
        total = np.where(changed != plain, changed, total)
        sums[number] = total
    return sums.view(showing.dtype)


def _parts(probe: NumberProbe) -> tuple[_Part, ...]:
    floats = (
        lambda row: changes.filled(row, 0.0),
        changes.whole_floats,
        changes.single_floats,
        changes.together,
        changes.moved_floats,
    )
    importances = (lambda row: changes.filled(row, 1.0), lambda row: changes.filled(row, 0.0), changes.whole_floats)
    octets = (
        lambda row: changes.filled(row, 0),
        lambda row: changes.blocks_by_field(row, probe.type),
        changes.single_bits,
    )
    every = (
        _Part("rows", float_costs, floats),
        _Part("blocks", block_costs(probe.type), octets),
        _Part("x", float_costs, floats),
        _Part("imatrix", lambda rows: imatrix_costs(np.atleast_2d(rows)), importances),
    )
    return tuple(part for part in every if getattr(probe, part.field) is not None)
