"""The results of one case, of all its participants together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.judge.divergence import HexLine
from conformance.report.events import Agreement, Answered, CaseResult, Event
from conformance.report.summary import Failure, failures_of

_QUIET = frozenset({"pass", "skip"})


@dataclass(frozen=True)
class CaseResults:
    """All results of the case ``id``; what they say of the input is the same in each, and taken from the first that says it."""

    id: str
    results: tuple[CaseResult, ...]

    def _first(self, name: str) -> str:
        return next((text for result in self.results if (text := str(getattr(result, name)))), "")

    @property
    def source(self) -> str:
        """Where the case is declared."""
        return self._first("source")

    @property
    def recipe(self) -> str:
        """The declaration of the input."""
        return self._first("recipe")

    @property
    def spec(self) -> str:
        """The sentence of the specification, or its section."""
        return self._first("spec")

    @property
    def note(self) -> str:
        """What the case's author says of it."""
        return self._first("note")

    @property
    def input_hexdump(self) -> tuple[HexLine, ...]:
        """The input's annotated bytes, with the fault marked where a result marks it."""
        dumps = [result.input_hexdump for result in self.results if result.input_hexdump]
        return next((dump for dump in dumps if any(line.mark for line in dump)), dumps[0] if dumps else ())

    @property
    def covers(self) -> tuple[str, ...]:
        """Labels of what the case stands for."""
        return next((result.covers for result in self.results if result.covers), ())

    @property
    def expected(self) -> dict[str, str]:
        """What the case declares of each authority."""
        return {who: text for result in self.results for who, text in result.expected.items()}

    @property
    def answers(self) -> list[tuple[Answered, list[str]]]:
        """Each participant's answer to each op, once though several results carry it, and what it equals or not.

        A participant's own result tells more of its answer (time, stderr) than the copy that a subject was compared with.
        """
        kept: dict[tuple[str, str], Answered] = {}
        compared: dict[tuple[str, str], list[str]] = {}
        for result in self.results:
            for answer in result.answers:
                key = (answer.who, answer.op)
                if key not in kept or answer.who == result.who:
                    kept[key] = answer
                if answer.same is not None:
                    compared.setdefault(key, []).append(_comparison(result, answer))
        return [(answer, compared.get(key, [])) for key, answer in kept.items()]

    @property
    def agreement(self) -> list[tuple[str, str, Agreement]]:
        """Each subject, each authority, and in how many steps their answers were the same."""
        return [(result.who, authority, steps) for result in self.results for authority, steps in result.agreement.items()]

    @property
    def failures(self) -> list[tuple[CaseResult, list[Failure]]]:
        """The results that are neither passed nor skipped, known ones included, each with its divergences."""
        return [(result, failures_of(result)) for result in self.results if result.verdict not in _QUIET]

    @property
    def repeats(self) -> list[str]:
        """The commands that repeat the case, of the results that did not pass first."""
        ordered = sorted(self.results, key=lambda result: result.verdict in _QUIET)
        return list(dict.fromkeys(result.repeat for result in ordered if result.repeat))

    @property
    def is_notable(self) -> bool:
        """Whether any participant did otherwise than pass or skip."""
        return any(result.verdict not in _QUIET for result in self.results)


def _comparison(result: CaseResult, answer: Answered) -> str:
    """Say what ``same`` says: of an authority's answer within a subject's result, of an authority's own, of a subject's own."""
    if answer.who != result.who:
        return f"{'=' if answer.same else '≠'} {result.who}"
    if result.role == "authority":
        return "as recorded" if answer.same else "not as recorded"
    return "right" if answer.same else "wrong"


def group(events: Iterable[Event]) -> list[CaseResults]:
    """Gather the results of a stream by case, cases in the order of their first result."""
    grouped: dict[str, list[CaseResult]] = {}
    for event in events:
        if isinstance(event, CaseResult):
            grouped.setdefault(event.case, []).append(event)
    return [CaseResults(case, tuple(results)) for case, results in grouped.items()]
