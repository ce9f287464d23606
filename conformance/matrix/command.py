"""``gguf-conformance matrix EVENTS...``: cases by subjects, from what runs left behind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

from conformance.errors import EXIT_HARNESS, EXIT_OK
from conformance.matrix.html import write_html
from conformance.matrix.load import load_matrix
from conformance.matrix.markdown import markdown
from conformance.matrix.matrix import Matrix
from conformance.matrix.record import record, require_corpus
from conformance.matrix.terminal import render
from conformance.report.console import Color, make_console
from conformance.report.write import writing


class Wanted(NamedTuple):
    """Where the views go, and the page that the summary is recorded in; None: nowhere."""

    html: Path | None = None
    markdown: Path | None = None
    record: Path | None = None


def matrix_command(events: Sequence[Path], patterns: Sequence[str], wanted: Wanted, color: str) -> int:
    """Join event streams and show them as ``show_matrix`` does. Raises GgufConformanceError."""
    return show_matrix(load_matrix(events, patterns), wanted, color)


def show_matrix(matrix: Matrix, wanted: Wanted, color: str) -> int:
    """Print the summary and write what is wanted; EXIT_HARNESS where a run is not whole, since its columns are not.

    Raises GgufConformanceError.
    """
    if wanted.record is not None:
        require_corpus(matrix)
        record(matrix, wanted.record)
    if wanted.html is not None:
        write_html(matrix, wanted.html)
    if wanted.markdown is not None:
        _write(wanted.markdown, markdown(matrix))
    render(matrix, make_console(sys.stdout, cast("Color", color), None))
    return EXIT_HARNESS if matrix.warnings else EXIT_OK


def _write(path: Path, text: str) -> None:
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "backslashreplace"))
