"""The diagnosis for a person: a line a check, what to do below what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from conformance.doctor import Check
from conformance.errors import EXIT_AUTHORITY_MISSING, EXIT_OK

_STYLE = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def exit_code(checks: Sequence[Check]) -> int:
    """Give the exit code of a diagnosis: 4 where something fails that a live run needs, 0 otherwise."""
    return EXIT_AUTHORITY_MISSING if any(check.state == "fail" for check in checks) else EXIT_OK


def render(checks: Sequence[Check], console: Console) -> None:
    """Print the checks; what was wanted and the hint only where something is wrong."""
    width = max(len(check.name) for check in checks)
    for check in checks:
        console.print(
            Text.assemble((f"{check.state:<4}  ", _STYLE[check.state]), f"{check.name:<{width}}  {check.found}"), soft_wrap=True
        )
        if check.state != "ok":
            indent = " " * (width + 8)
            console.print(Text(f"{indent}wanted: {check.wanted}"), soft_wrap=True)
            if check.hint:
                console.print(Text(f"{indent}{check.hint}"), soft_wrap=True)
