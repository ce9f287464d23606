"""What the page of one finding shows, taken from its smallest case and counted over all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from conformance.matrix.cell import Cell, Who
from conformance.matrix.findings import Finding
from conformance.matrix.kinds import GRAVITY, mark_of_outcome, mark_of_signature
from conformance.matrix.matrix import Column, Matrix, Row
from conformance.matrix.repeat import narrowed
from conformance.printable import lines_of, one_line, tail_of
from conformance.report.events import Answered
from conformance.report.facts import Fact, answer_text, fact_lines, facts_of
from conformance.report.hexdump import hexdump_lines

_LIMIT = 2000
_STDERR_LINES = 20
_ELSEWHERE = frozenset({"signature", "answered", "stderr", "note", "repeat"})


class AnswerView(NamedTuple):
    """What one participant answered to one op; ``shows`` says that it is one of those that show the finding."""

    who: Who
    op: str
    kind: str
    text: str
    shows: bool
    stderr: tuple[str, ...]


class FindingView:
    """The parts of the page."""

    def __init__(self, matrix: Matrix, finding: Finding) -> None:
        self._matrix = matrix
        self._finding = finding
        self.case: Row = finding.smallest
        self.failures = finding.failures[self.case.id]

    @cached_property
    def columns(self) -> list[Column]:
        """The participants that show it."""
        return [column for column in self._matrix.columns if column.who in self._finding.who]

    @cached_property
    def answers(self) -> list[AnswerView]:
        """What everybody answered in the smallest case, to the ops at issue."""
        ops = {_op(failure.divergence.op) for failure in self.failures.values() if failure.divergence}
        every = [view for column in self._matrix.columns for view in self._answers_of(column.who)]
        return [view for view in every if _op(view.op) in ops] or every

    def _answers_of(self, who: Who) -> Iterator[AnswerView]:
        cell = self.case.cells.get(who)
        if cell is None:
            return
        for answer in cell.result.answers:
            if answer.who == who.name:
                yield AnswerView(
                    who,
                    answer.op,
                    _kind(answer, cell),
                    answer_text(answer, _LIMIT),
                    who in self._finding.who,
                    tuple(tail_of(answer.stderr, _STDERR_LINES, _LIMIT)),
                )

    @cached_property
    def facts(self) -> list[tuple[list[str], list[str]]]:
        """What is at odds in the smallest case: names, and lines that read the same for all of these."""
        found: dict[tuple[str, ...], list[str]] = {}
        for who, failure in self.failures.items():
            lines = fact_lines(list(_at_odds(facts_of(failure))))
            found.setdefault(tuple(lines), []).append(who.name)
        return [(names, list(lines)) for lines, names in found.items()]

    @cached_property
    def summaries(self) -> list[str]:
        """The differences in a sentence each."""
        sentences = (
            failure.divergence.summary if failure.divergence else failure.result.reason for failure in self.failures.values()
        )
        return list(dict.fromkeys(sentences))

    @cached_property
    def recipe(self) -> list[str]:
        """How the input is made."""
        return lines_of(self.case.about.recipe, _LIMIT)

    @cached_property
    def hexdump(self) -> list[str]:
        """The bytes at issue: around the fault where a difference has them, else the input's."""
        located = (failure.divergence.hexdump for failure in self.failures.values() if failure.divergence)
        return hexdump_lines(next((dump for dump in located if dump), self.case.about.input_hexdump))

    @cached_property
    def spreads(self) -> list[tuple[Who, tuple[int, ...]]]:
        """How the differences of each participant spread by distance, where they have one."""
        spreads = ((who, self._finding.spread(who)) for who in self._finding.who)
        return [(who, spread) for who, spread in spreads if any(spread)]

    @cached_property
    def repeats(self) -> list[str]:
        """The commands that show it again, one a run."""
        by_command: dict[str, list[str]] = {}
        for who, failure in self.failures.items():
            by_command.setdefault(failure.result.repeat, []).append(who.name)
        return [one_line(narrowed(command, names)) for command, names in by_command.items() if command]


def _op(step: str) -> str:
    """Give the op of a step's name: ``tensor[3]`` and ``dot:simd`` are ``tensor`` and ``dot``."""
    return step.partition("[")[0].partition(":")[0]


def _kind(answer: Answered, cell: Cell) -> str:
    """Give the kind that one answer reads as: the gravest departure of that op, how it failed, or accepts and refuses."""
    located = (one.signature for one in cell.result.divergences if _op(one.op) == _op(answer.op))
    marks = sorted({mark_of_signature(signature) for signature in located}, key=GRAVITY.__getitem__)
    word = answer.outcome.partition(" ")[0]
    plain = {"ok": "accepts", "reject": "refuses"}.get(word, "fails")
    return next(iter(marks), None) or mark_of_outcome(answer.outcome) or plain


def _at_odds(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Leave out the facts, and the lines that go on with them, that the page tells in other places."""
    label = ""
    for fact in facts:
        label = fact.label or label
        if label not in _ELSEWHERE:
            yield fact
