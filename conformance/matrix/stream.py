"""One event stream as the matrix takes it in: who took part, whether it is whole, and all results without what is said twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from conformance.matrix.cell import Cell, Who
from conformance.report.events import FAILING, Answered, CaseResult, KnownProblem, Participant, RunStarted, read_events
from conformance.report.summary import RunSummary
from conformance.report.write import EVENTS

Results = dict[str, dict[Who, Cell]]


@dataclass(frozen=True)
class Stream:
    """A run: ``cells[case][who]``; ``about[case]`` is a result that tells of the case; ``warning`` says why it is not whole."""

    path: Path
    started: RunStarted
    warning: str
    cells: Results
    about: dict[str, CaseResult]
    problems: tuple[KnownProblem, ...]

    @property
    def participants(self) -> dict[Who, Participant]:
        """Everybody who took part; an authority of which several recordings were used bears all their versions."""
        found: dict[Who, Participant] = {}
        for one in self.started.participants:
            who = Who(one.name, one.role != "subject")
            versions = dict.fromkeys([*(found[who].version.split(", ") if who in found else ()), one.version])
            found[who] = msgspec.structs.replace(one, version=", ".join(versions))
        return found

    @property
    def when(self) -> datetime:
        """When the run began; the epoch where the stream does not say so in a way that can be read."""
        try:
            read = datetime.fromisoformat(self.started.started)
        except ValueError:
            return datetime.fromtimestamp(0, UTC)
        return read if read.tzinfo else read.replace(tzinfo=UTC)


def read_stream(path: Path) -> Stream:
    """Read a run's events, or those in its folder. Raises ConfigurationError for a stream that is none."""
    events = path / EVENTS if path.is_dir() else path
    summary = RunSummary(str(events))
    cells: Results = {}
    about: dict[str, CaseResult] = {}
    for event in read_events(events):
        summary.add(event)
        if isinstance(event, CaseResult):
            _take(event, cells, about)
    started = summary.close()
    _add_recorded(started, cells, about)
    return Stream(events, started, summary.warning, cells, about, tuple(summary.problems))


def _take(result: CaseResult, cells: Results, about: dict[str, CaseResult]) -> None:
    if result.case not in about:
        about[result.case] = result
    departs = result.verdict in FAILING or result.verdict == "known"
    answers = result.answers if departs else tuple(answer for answer in result.answers if answer.who == result.who)
    who = Who(result.who, result.role == "authority")
    cells.setdefault(result.case, {})[who] = Cell(msgspec.structs.replace(result, answers=answers, input_hexdump=()))


def _add_recorded(started: RunStarted, cells: Results, about: dict[str, CaseResult]) -> None:
    """Make cells of a recorded authority, which has no results of its own, from the answers that subjects were held to."""
    golden = {participant.name for participant in started.participants if participant.role == "golden"}
    for case, result in about.items():
        for name in golden:
            answers = tuple(_recorded(result, name))
            if answers:
                cells[case][Who(name, is_authority=True)] = Cell(
                    CaseResult(case=case, who=name, role="authority", verdict="pass", profile="", answers=answers)
                )


def _recorded(result: CaseResult, authority: str) -> Iterator[Answered]:
    """Give an authority's answers; whether they equal the subject's says nothing of the authority."""
    if authority == result.who:
        return
    for answer in result.answers:
        if answer.who == authority:
            yield msgspec.structs.replace(answer, same=None)
