"""The command that repeats a divergence: the one that the run gave, for the subjects that show it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePath

_FLAG = "--subject"


def narrowed(command: str, names: Iterable[str]) -> str:
    """Leave subjects out of a run's command that are not among ``names``; a command that does not tell them apart stays whole."""
    wanted = set(names)
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    kept: list[str] = []
    found: set[str] = set()
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word == _FLAG else None
        if value is None:
            kept.append(word)
        elif name := _names(value) & wanted:
            found |= name
            kept += [word, value]
    return shlex.join(kept) if found == wanted else command


def _names(argument: str) -> set[str]:
    """Give the names that a subject given so may bear: a name, a folder, or a manifest in a folder or alone."""
    path = PurePath(argument)
    return {argument, path.name, path.stem, path.parent.name}
