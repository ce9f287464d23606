"""One cell of the matrix: what one participant did with one case, and how that was judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from conformance.matrix.kinds import GRAVITY, mark_of_outcome, mark_of_signature
from conformance.report.events import FAILING, CaseResult
from conformance.report.summary import Failure, failures_of

State = Literal["", "known", "new"]
STATE_SIGNS: dict[State, str] = {"": "", "known": "*", "new": "!"}


class Who(NamedTuple):
    """A participant: its name, and whether it is there as an authority; a subject may bear an authority's name."""

    name: str
    is_authority: bool


@dataclass(frozen=True)
class Cell:
    """``result`` as the stream has it, or as it was put together for a recorded authority."""

    result: CaseResult

    @cached_property
    def state(self) -> State:
        """Whether it departs: not at all, as its divergences file says, or in a way that fails a run."""
        if self.result.verdict in FAILING:
            return "new"
        return "known" if self.result.verdict == "known" else ""

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The departures and deaths in it, the gravest first."""
        outcomes = (mark_of_outcome(answer.outcome) for answer in self.result.answers if answer.who == self.result.who)
        signatures = (mark_of_signature(divergence.signature) for divergence in self.result.divergences)
        return tuple(sorted({mark for mark in (*outcomes, *signatures) if mark}, key=GRAVITY.__getitem__))

    @cached_property
    def kind(self) -> str:
        """The name of the kind that it is shown as."""
        if self.result.verdict == "error":
            return "unput"
        if self.marks:
            return self.marks[0]
        if self.result.verdict == "skip":
            return "skip"
        words = {answer.outcome.partition(" ")[0] for answer in self.result.answers if answer.who == self.result.who}
        if words >= {"ok", "reject"}:
            return "half"
        return "refuses" if "reject" in words else "accepts" if "ok" in words else "judged"

    @property
    def share(self) -> str:
        """What it counts as among all cells of a column: its gravest mark, ``calm`` as expected, or that nothing was judged."""
        if self.marks or self.kind in {"skip", "unput"}:
            return self.kind
        return "calm"

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """Its divergences, those of several ops that are the same otherwise once; none where it does not depart."""
        return tuple(failures_of(self.result)) if self.state else ()

    @property
    def look(self) -> tuple[str, ...]:
        """What makes it look the same as another; cases in which all cells do are one row."""
        return (self.kind, self.state, *sorted(failure.signature for failure in self.failures))

    @property
    def reject_classes(self) -> list[str]:
        """For which reasons it refused, each once."""
        own = (answer.outcome.partition(" ") for answer in self.result.answers if answer.who == self.result.who)
        return list(dict.fromkeys(detail for word, _, detail in own if word == "reject" and detail))
