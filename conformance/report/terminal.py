"""The terminal's view of a run: progress while it goes on, the result when it is done."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

import msgspec
from rich.text import Text

from conformance.printable import lines_of, number, one_line, plural
from conformance.report.console import Color, make_console, standard_streams
from conformance.report.events import FAILING, Agreement, Event, KnownProblem, Participant, RunStarted
from conformance.report.facts import facts_of, headline, laid_out
from conformance.report.paths import case_path
from conformance.report.progress import BarProgress, NoProgress, PlainProgress, ProgressView
from conformance.report.summary import Failure, RunSummary, Tally, choose, suite_of
from conformance.report.tally_table import AMOUNTS, TallyColumn, TallyLayout, lay_out, verdict_columns
from conformance.report.text import compared, seconds, wrap
from conformance.report.type_table import type_tables

# Failures that are shown in full; the rest is counted by signature.
FULL = 10
_LABEL = 11
# So many patterns are named that one edit mends; the reports have all.
_PATTERNS = 8
_BAD, _GOOD, _CALM, _HEAD = "bold red", "green", "dim", "bold"


class TerminalView:
    """Shows a run: progress on ``err`` as events come, the result on ``out`` at ``finish``.

    ``reports`` is the folder that the other views are written to, if there is one; it is only named. ``width`` overrides the
    terminal's. With ``progress`` False (a report from a file) nothing goes to ``err``. A view that is used as a
    context manager gives the terminal back whatever happens.
    """

    def __init__(
        self,
        *,
        color: Color = "auto",
        reports: Path | None = None,
        out: TextIO | None = None,
        err: TextIO | None = None,
        width: int | None = None,
        progress: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        out_stream, err_stream = standard_streams(out, err)
        self.summary = RunSummary()
        self._console = make_console(out_stream, color, width)
        self._reports = reports
        self._progress: ProgressView = NoProgress()
        if progress:
            console = make_console(err_stream, color, width)
            bar = err_stream.isatty() and not console.is_dumb_terminal
            self._progress = BarProgress(console) if bar else PlainProgress(console, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def on_event(self, event: Event) -> None:
        """Take in one event. Raises ConfigurationError where the events do not make one stream."""
        self.summary.add(event)
        self._progress.update(event, self.summary)

    def finish(self, *, by_type: bool = False) -> None:
        """Print the result; where the closing event has not come, of a truncated run.

        ``by_type`` shows blocks by ggml type and op instead of suites by participant.
        """
        self._progress.stop()
        if self.summary.started is None:
            return
        for line in self._lines(self.summary.started, by_type=by_type):
            self._console.print(line, soft_wrap=True)

    def _lines(self, started: RunStarted, *, by_type: bool) -> Iterator[Text]:
        summary, width = self.summary, self._console.width
        yield from _header(started)
        yield from _warning(summary)
        yield from _types(summary) if by_type else _table(summary, width)
        yield from _failures(summary.failures, self._reports, width)
        yield from _by_reason("known divergences", summary.known, width)
        yield from _by_reason("not asked or not compared", summary.skipped, width)
        yield from _problems(summary.problems, width)
        yield from _closing(summary, self._reports)


def _header(started: RunStarted) -> Iterator[Text]:
    setting = f"oracle {started.oracle} · profile {one_line(started.profile)} · {plural(started.cases, 'case')}"
    yield Text.assemble((f"gguf-conformance {one_line(started.version)}", _HEAD), f" · {setting} · {one_line(started.started)}")
    if started.command:
        yield Text(f"  {one_line(started.command)}", style=_CALM)
    for participant in started.participants:
        yield from _participant(participant)


def _participant(participant: Participant) -> Iterator[Text]:
    name = f"{one_line(participant.name)} {one_line(participant.version)}"
    language = f" ({one_line(participant.language)})" if participant.language else ""
    yield Text.assemble("  ", (f"{participant.role:<{_LABEL}}", _CALM), (name, _HEAD), language)
    details = [*participant.details.items(), *(("limit", limit) for limit in participant.limits)]
    width = max((len(one_line(key)) for key, _ in details), default=0)
    for key, value in details:
        yield Text.assemble(" " * (2 + _LABEL), (f"{one_line(key):<{width}}  ", _CALM), one_line(value))


def _warning(summary: RunSummary) -> Iterator[Text]:
    if summary.warning:
        yield Text()
        yield Text(f"!! {summary.warning} !!", style=_BAD)


def _table(summary: RunSummary, width: int) -> Iterator[Text]:
    if not summary.tallies:
        yield Text()
        yield Text("no results", style=_BAD)
        return
    verdicts = verdict_columns(summary)
    whole = lay_out(summary, (*verdicts, *AMOUNTS))
    for layout in [whole] if whole.width <= width else [lay_out(summary, verdicts), lay_out(summary, AMOUNTS)]:
        yield Text()
        yield from _table_lines(layout)


def _types(summary: RunSummary) -> Iterator[Text]:
    for table in type_tables(summary):
        yield Text()
        yield Text(f"{one_line(table.who)}: blocks compared, by type and op", style=_HEAD)
        yield from (Text(line, style=_BAD if "differ" in line else "") for line in table.lines())
    if not summary.by_op:
        yield Text()
        yield Text("no blocks were compared", style=_BAD)


def _table_lines(layout: TallyLayout) -> Iterator[Text]:
    for index, (suite, who, numbers, row) in enumerate(layout.lines()):
        if row and row.total and not layout.rows[index - 2].total:
            yield Text("─" * layout.width, style=_CALM)
        line = Text.assemble(suite, who, style=_CALM if row is None else "")
        for column, cell in zip(layout.columns, numbers, strict=True):
            line.append(cell, style=_CALM if row is None else _cell_style(column, cell))
        yield line


def _cell_style(column: TallyColumn, cell: str) -> str:
    if cell.strip() == "-":
        return _CALM
    return _BAD if column.failing else ""


def _failures(failures: list[Failure], reports: Path | None, width: int) -> Iterator[Text]:
    full, rest = choose(failures, FULL)
    for index, failure in enumerate(full, 1):
        yield Text()
        yield from _failure(index, failure, reports, width)
    if rest:
        yield Text()
        yield Text(f"{plural(len(rest), 'more difference')}, by signature{_see(reports)}", style=_HEAD)
        yield from _counted(Counter((failure.result.who, failure.signature) for failure in rest))


def _failure(index: int, failure: Failure, reports: Path | None, width: int) -> Iterator[Text]:
    result, divergence = failure.result, failure.divergence
    yield Text.assemble(
        (f"{index}. ", _CALM), (one_line(result.case), _HEAD), f" · {one_line(result.who)} ", (headline(failure), _BAD)
    )
    if divergence is not None:
        yield from (Text(f"   {line}") for line in wrap(one_line(divergence.summary), width - 3))
    for label, text in laid_out(facts_of(failure), width - 3 - _LABEL):
        yield Text.assemble("   ", (f"{label:<{_LABEL}}", _CALM), text)
    if reports is not None:
        yield Text.assemble(
            "   ", (f"{'report':<{_LABEL}}", _CALM), one_line(str(reports / "cases" / f"{case_path(result.case)}.md"))
        )


def _see(reports: Path | None) -> str:
    return f"; see {one_line(str(reports / 'summary.md'))}" if reports is not None else ""


def _counted(counter: Counter[tuple[str, str]]) -> Iterator[Text]:
    most = counter.most_common()
    count_width = max(len(number(count)) for _, count in most)
    who_width = max(len(one_line(who)) for (who, _), _ in most)
    for (who, signature), count in most:
        yield Text(f"   {number(count):>{count_width}}  {one_line(who):<{who_width}}  {one_line(signature)}")


def _by_reason(title: str, reasons: Mapping[tuple[str, str], list[str]], width: int) -> Iterator[Text]:
    """List reasons with their numbers of cases and suites, so that nothing is left out silently."""
    if not reasons:
        return
    yield Text()
    yield Text(title, style=_HEAD)
    count_width = max(len(number(len(cases))) for cases in reasons.values())
    who_width = max(len(one_line(who)) for who, _ in reasons)
    for (who, reason), cases in sorted(reasons.items(), key=lambda item: (item[0][0], -len(item[1]))):
        first, *more = wrap(one_line(reason), width - count_width - who_width - 7)
        indent = " " * (7 + count_width + who_width)
        yield Text(f"   {one_line(who):<{who_width}}  {number(len(cases)):>{count_width}}  {first}")
        yield from (Text(indent + line) for line in more)
        suites = ", ".join(f"{one_line(suite)} ({number(count)})" for suite, count in Counter(map(suite_of, cases)).items())
        yield from (Text(indent + line, style=_CALM) for line in wrap(suites, width - len(indent)))


def _problems(problems: list[KnownProblem], width: int) -> Iterator[Text]:
    """List what is wrong with known divergences; those that one edit mends are told together."""
    alike: dict[KnownProblem, list[str]] = {}
    for problem in problems:
        alike.setdefault(msgspec.structs.replace(problem, pattern=""), []).append(one_line(problem.pattern))
    for problem, patterns in alike.items():
        yield Text()
        what = patterns[0] if len(patterns) == 1 else f"{number(len(patterns))} patterns, each"
        yield Text.assemble((f"known divergence {problem.kind}", _BAD), f" · {one_line(problem.subject)} · {what} {problem.says}")
        if len(patterns) > 1:
            rest = f" and {number(len(patterns) - _PATTERNS)} more" if len(patterns) > _PATTERNS else ""
            first, *more = wrap(", ".join(patterns[:_PATTERNS]) + rest, width - _LABEL - 3)
            yield Text.assemble("   ", (f"{'patterns':<{_LABEL}}", _CALM), first)
            yield from (Text(f"   {'':<{_LABEL}}{line}") for line in more)
        yield Text.assemble("   ", (f"{'signature':<{_LABEL}}", _CALM), one_line(problem.signature))
        yield Text.assemble("   ", (f"{'mend':<{_LABEL}}", _CALM), one_line(problem.file))
        yield from (Text(f"   {'':<{_LABEL}}{line}") for line in lines_of(problem.edit))


def _closing(summary: RunSummary, reports: Path | None) -> Iterator[Text]:
    yield from _warning(summary)
    yield Text()
    if reports is not None:
        yield Text.assemble(("reports ", _CALM), one_line(str(reports / "summary.md")))
    for (who, authority), steps in summary.agreement.items():
        yield Text(f"{one_line(who)} answers the same as {one_line(authority)} {_times(steps)}", style=_CALM)
    for who, total in summary.totals:
        yield _total(who, total)
    yield from (Text(line, style=_BAD) for line in summary.plumbing)
    took = f" · {seconds(summary.finished.seconds)}" if summary.finished else ""
    style = _GOOD if summary.exit_code == 0 else _BAD
    yield Text.assemble((f"exit {summary.exit_code}: {summary.exit_meaning}", style), took)


def _times(steps: Agreement) -> str:
    """Say how often two answers were the same: not a verdict, since one authority judges and the other may differ from it."""
    return f"in {number(steps.same)} of {number(steps.same + steps.different)} steps"


def _total(who: str, total: Tally) -> Text:
    """One participant's line: ``impl: 214 pass, 0 diverge, 3 skip (reasons above) · 4,102 blocks ... compared``."""
    always, verdicts = ("pass", "diverge"), total.verdicts
    rare = [verdict for verdict in ("known", "stale", "authority-drift", "authority-crash", "error") if verdicts[verdict]]
    said = [f"{number(verdicts[verdict])} {verdict}" for verdict in (*always, *rare)]
    if verdicts["skip"]:
        said.append(f"{number(verdicts['skip'])} skip (reasons above)")
    amounts = compared(total.counts)
    clean = "" if any(verdicts[verdict] for verdict in (*FAILING, "known")) else ", 0 different"
    return Text.assemble((f"{one_line(who)}: ", _HEAD), ", ".join(said), f" · {amounts}{clean}" if amounts else "")
