"""One event stream as the matrix takes it in: who took part, whether it is whole, and all results without what is said twice."""

from __future__ import annotations

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
    summary, taken = RunSummary(str(events)), _Taken()
    for event in read_events(events):
        summary.add(event)
        if isinstance(event, CaseResult):
            taken.add(event, summary.close())
    started = summary.close()
    taken.add_recorded()
    return Stream(events, started, summary.warning, taken.cells, taken.about, tuple(summary.problems))


class _Taken:
    """Gathers results; ``recorded[case][who]`` are a recorded authority's answers, which only subjects' results hold."""

    def __init__(self) -> None:
        self.cells: Results = {}
        self.about: dict[str, CaseResult] = {}
        self._recorded: dict[str, dict[Who, dict[str, Answered]]] = {}

    def add(self, result: CaseResult, started: RunStarted) -> None:
        before = self.about.get(result.case)
        if before is None or (result.recipe and not before.recipe):
            self.about[result.case] = result
        departs = result.verdict in FAILING or result.verdict == "known"
        answers = result.answers if departs else tuple(answer for answer in result.answers if answer.who == result.who)
        who = Who(result.who, result.role == "authority")
        self.cells.setdefault(result.case, {})[who] = Cell(msgspec.structs.replace(result, answers=answers, input_hexdump=()))
        golden = {one.name for one in started.participants if one.role == "golden"} - {result.who}
        for answer in result.answers:
            if answer.who in golden:
                of_case = self._recorded.setdefault(result.case, {})
                of_case.setdefault(Who(answer.who, is_authority=True), {}).setdefault(answer.op, answer)

    def add_recorded(self) -> None:
        """Make cells of the recorded authorities. Whether an answer equals a subject's says nothing of the authority."""
        for case, found in self._recorded.items():
            for who, by_op in found.items():
                answers = tuple(msgspec.structs.replace(answer, same=None) for answer in by_op.values())
                self.cells[case][who] = Cell(
                    CaseResult(case=case, who=who.name, role="authority", verdict="pass", profile="", answers=answers)
                )
