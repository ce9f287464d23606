"""``gguf-conformance report EVENTS [--to DIR]``: all views of a stream that a run left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from conformance.report.console import Color
from conformance.report.events import read_events
from conformance.report.summary import summarize
from conformance.report.terminal import TerminalView
from conformance.report.write import write_reports


def report_command(
    events_path: Path,
    folder: Path | None = None,
    *,
    color: Color = "auto",
    out: TextIO | None = None,
    width: int | None = None,
    by_type: bool = False,
) -> int:
    """Show a stream's result on ``out`` (the process's stdout if None) and write its reports to ``folder`` if there is one.

    Gives the exit code of the run that the stream tells of, EXIT_HARNESS for one that is not whole: a report on a failed run
    is no success. Raises ConfigurationError for a stream that is none and for a folder that cannot be written.
    """
    events = list(read_events(events_path))
    summarize(events, where=str(events_path))
    if folder is not None:
        write_reports(events, folder)
    view = TerminalView(color=color, reports=folder, out=out, width=width, progress=False)
    for event in events:
        view.on_event(event)
    view.finish(by_type=by_type)
    return view.summary.exit_code
