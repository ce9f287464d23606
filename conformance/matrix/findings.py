"""Divergences of many cases as one: those with one signature that the same subjects show."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from conformance.judge.divergence import KNOWN_REMARK
from conformance.matrix.cell import State, Who
from conformance.matrix.kinds import GRAVITY, mark_of_signature
from conformance.matrix.matrix import Matrix, Row
from conformance.report.events import CaseResult
from conformance.report.summary import Failure

_LONGEST_SLUG = 48


@dataclass(frozen=True)
class Finding:
    """``failures[case][who]`` of one ``signature``; in each of these cases exactly the participants ``who`` show it."""

    signature: str
    who: tuple[Who, ...]
    rows: tuple[Row, ...]
    failures: dict[str, dict[Who, Failure]]

    @cached_property
    def slug(self) -> str:
        """A name for its page: the signature as far as a file name holds it, and a digest of it and of the participants."""
        names = "\0".join([self.signature, *(f"{one.is_authority}{one.name}" for one in self.who)])
        digest = hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        words = re.sub(r"[^A-Za-z0-9_]+", "-", self.signature)[:_LONGEST_SLUG].strip("-")
        return f"{words}-{digest}"

    @cached_property
    def smallest(self) -> Row:
        """The case with the smallest input."""
        return min(self.rows, key=lambda row: _size(row.about, self._first(row).result))

    def _first(self, row: Row) -> Failure:
        return next(iter(self.failures[row.id].values()))

    @property
    def also(self) -> list[str]:
        """Signatures of other ops that the same differences bear in some of the cases."""
        every = (also.signature for failures in self.failures.values() for failure in failures.values() for also in failure.also)
        return list(dict.fromkeys(every))

    @property
    def known_as(self) -> str:
        """The known reasons in one line, each led by whose it is where the finding is of several."""
        several = len(self.who) > 1
        return "; ".join(f"{', '.join(names)}: {reason}" if several else reason for reason, names in self.reasons.items())

    @property
    def reasons(self) -> dict[str, list[str]]:
        """The known divergences' reasons, and who gives each."""
        found: dict[str, list[str]] = {}
        for failures in self.failures.values():
            for who, failure in failures.items():
                for reason in _reasons(failure):
                    names = found.setdefault(reason, [])
                    if who.name not in names:
                        names.append(who.name)
        return found

    @cached_property
    def state(self) -> State:
        """``new`` where it is not known in all cases and of all participants."""
        new = any(row.cells[who].state == "new" for row in self.rows for who in self.who)
        return "new" if new else "known"

    @cached_property
    def mark(self) -> str:
        """The kind of cell that it makes."""
        if self._first(self.rows[0]).divergence is not None:
            return mark_of_signature(self.signature)
        marks = self.rows[0].cells[self.who[0]].marks
        return marks[0] if marks else "unput"

    def spread(self, who: Who) -> tuple[int, ...]:
        """Add up how a participant's differences spread by distance, over all cases; empty where there is no distance."""
        located = (failures[who].divergence for failures in self.failures.values())
        return added(divergence.by_distance for divergence in located if divergence)


def _reasons(failure: Failure) -> list[str]:
    """Give the known reasons of this divergence, not of the case's others: its remarks tell them."""
    if failure.divergence is None:
        return list(failure.result.known)
    return [remark.removeprefix(KNOWN_REMARK) for remark in failure.divergence.remarks if remark.startswith(KNOWN_REMARK)]


def added(spreads: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Add spreads up, place by place."""
    total: list[int] = []
    for spread in spreads:
        total += [0] * (len(spread) - len(total))
        for place, count in enumerate(spread):
            total[place] += count
    return tuple(total)


def _size(about: CaseResult, result: CaseResult) -> tuple[int, int, str]:
    """Give an input's size: of a built file its bytes, else what was compared; then the length of its recipe."""
    file = sum(len(line.data.replace(" ", "")) // 2 + line.elided for line in about.input_hexdump)
    return file or result.counts.bytes or result.counts.values, len(about.recipe), about.case


def findings_of(matrix: Matrix) -> list[Finding]:
    """Give all findings: new ones first, then the gravest; those with one signature together, of most participants first."""
    order = {column.who: place for place, column in enumerate(matrix.columns)}
    grouped: dict[tuple[str, tuple[Who, ...]], list[tuple[Row, dict[Who, Failure]]]] = {}
    for row in matrix.rows:
        for signature, failures in _by_signature(row).items():
            who = tuple(sorted(failures, key=order.__getitem__))
            grouped.setdefault((signature, who), []).append((row, failures))
    found = [
        Finding(signature, who, tuple(row for row, _ in members), {row.id: failures for row, failures in members})
        for (signature, who), members in grouped.items()
    ]
    return sorted(found, key=_rank)


def _by_signature(row: Row) -> dict[str, dict[Who, Failure]]:
    found: dict[str, dict[Who, Failure]] = {}
    for who, cell in row.cells.items():
        for failure in cell.failures:
            found.setdefault(failure.signature, {}).setdefault(who, failure)
    return found


def _rank(finding: Finding) -> tuple[bool, int, str, int, int]:
    return (
        finding.state == "known",
        GRAVITY.get(finding.mark, len(GRAVITY)),
        finding.signature,
        -len(finding.who),
        -len(finding.rows),
    )
