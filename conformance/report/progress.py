"""How far a run is: a bar on a terminal, a plain line now and then elsewhere. Always on stderr, never a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from conformance.printable import number, one_line, plural
from conformance.report.events import CaseResult, Event, RunStarted
from conformance.report.summary import RunSummary
from conformance.report.text import seconds

# Seconds between two plain lines.
PLAIN_EVERY = 10.0


class ProgressView(Protocol):
    """Shows progress: told of each event after the summary has it, and stopped at the end."""

    def update(self, event: Event, summary: RunSummary) -> None:
        """Show the state after ``event``."""

    def stop(self) -> None:
        """Leave the terminal as it was found."""


class NoProgress:
    """For reports from a file, which are made at once."""

    def update(self, event: Event, summary: RunSummary) -> None:
        """Show nothing."""

    def stop(self) -> None:
        """Have nothing to undo."""


class BarProgress:
    """A bar: done of total, failures, time, and the case whose result came last."""

    def __init__(self, console: Console) -> None:
        columns: tuple[ProgressColumn, ...] = (
            BarColumn(bar_width=24),
            TextColumn("{task.fields[done]}", markup=False),
            TextColumn("{task.fields[failed]}", style="bold", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[case]}", style="dim", markup=False, table_column=Column(no_wrap=True, ratio=1)),
        )
        self._progress = Progress(*columns, console=console, transient=True, expand=True)
        self._task: TaskID | None = None

    def update(self, event: Event, summary: RunSummary) -> None:
        """Start with the run, then move with each result."""
        if isinstance(event, RunStarted):
            self._task = self._progress.add_task("", total=event.cases or None, done="", failed="", case="")
            self._progress.start()
        elif isinstance(event, CaseResult) and self._task is not None and summary.started:
            done, failed = len(summary.seen), len(summary.failed)
            self._progress.update(
                self._task,
                completed=done,
                done=f"{number(done)}/{number(summary.started.cases)}",
                failed=f"{number(failed)} failed",
                case=one_line(event.case),
            )

    def stop(self) -> None:
        """Take the bar away and show the cursor again."""
        self._progress.stop()


class PlainProgress:
    """One line at most every ten seconds, for logs."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._began = self._last = clock()

    def update(self, event: Event, summary: RunSummary) -> None:
        """Print a line if the last one is old enough."""
        now = self._clock()
        if isinstance(event, RunStarted):
            self._began = self._last = now
        elif isinstance(event, CaseResult) and summary.started and now - self._last >= PLAIN_EVERY:
            self._last = now
            done = f"{number(len(summary.seen))} of {plural(summary.started.cases, 'case')}"
            line = f"{done}, {number(len(summary.failed))} failed, {seconds(now - self._began)}, at {one_line(event.case)}"
            self._console.print(line, soft_wrap=True)

    def stop(self) -> None:
        """Have nothing to undo."""
