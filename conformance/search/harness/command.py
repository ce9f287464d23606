"""``search --harness``: prints how far it is and what broke, and keeps each finding's input in a file."""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, ConfigurationError
from conformance.printable import plural
from conformance.search.harness import search_harness
from conformance.search.harness.broken import Broken


def harness_command(seconds: float | None, examples: int | None, seed: int, folder: Path) -> int:
    """Search the harness and write each finding's input into ``folder``; 1 where a rule broke. Raises ConfigurationError."""
    found = search_harness(seconds, examples, seed, _say)
    for broken in found:
        _tell(broken, _kept(broken, folder))
    sys.stdout.write(f"{plural(len(found), 'broken rule')}\n" if found else "no rule broke\n")
    return EXIT_DIVERGENCE if found else EXIT_OK


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _kept(broken: Broken, folder: Path) -> Path:
    path = folder / f"{broken.area}{broken.suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(broken.document)
    except OSError as problem:
        hint = "name a folder that can be written to"
        raise ConfigurationError(f"cannot write the finding: {problem.strerror}", where=str(path), hint=hint) from problem
    return path


def _tell(broken: Broken, path: Path) -> None:
    once = "" if broken.steady else " (once; not when it was repeated)"
    sys.stdout.write(f"{broken.area}: {ascii(broken.what)[1:-1]}{once}\n  input:  {path}\n  repeat: {broken.repeat}\n")
