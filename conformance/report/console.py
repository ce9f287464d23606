"""Where terminal reports go: consoles that colour only where it is wanted, and never cut an id."""

from __future__ import annotations

import io
import os
import sys
from typing import Literal, TextIO

from rich.console import Console

Color = Literal["auto", "always", "never"]
PIPE_WIDTH = 100


def wants_color(color: Color, stream: TextIO) -> bool:
    """Decide whether to colour: ``auto`` means on a terminal that is not dumb, unless NO_COLOR is set to anything."""
    if color != "auto":
        return color == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def make_console(stream: TextIO, color: Color = "auto", width: int | None = None) -> Console:
    """Make a console on ``stream``; in a pipe it is 100 columns wide. Nothing that is printed is read as markup."""
    colored, terminal = wants_color(color, stream), stream.isatty()
    _tolerate_encoding(stream)
    return Console(
        file=stream,
        width=width or (None if terminal else PIPE_WIDTH),
        force_terminal=terminal or colored,
        color_system=("auto" if terminal else "standard") if colored else None,
        no_color=not colored,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def standard_streams(out: TextIO | None, err: TextIO | None) -> tuple[TextIO, TextIO]:
    """Give the process's streams for those that are None, as they are now (tests and pytest replace them)."""
    return out or sys.stdout, err or sys.stderr


def _tolerate_encoding(stream: TextIO) -> None:
    """Let a stream that cannot show a sign (ASCII, Latin-1) show its escape instead of failing."""
    if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
        stream.reconfigure(errors="backslashreplace")
