"""The catalogue of mutants: YAML files that say what is changed in the reference, what goes wrong then, and where that was seen.

``docs/mutants.md`` is the manual of its keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from conformance.errors import ConfigurationError, UsageError

CATALOGUE = Path(__file__).parent / "catalogue"


class Edit(NamedTuple):
    """One change to a file within ``impl``: ``replace``, which stands there exactly once, gives way to ``by``."""

    file: str
    replace: str
    by: str


class Mutant(NamedTuple):
    """One fault. ``group`` is the catalogue file that it stands in; ``labels`` are those of docs/ that cases bear in ``covers``.

    ``select`` are patterns of the cases that could see it. ``ops`` and ``types`` bound a search for it (empty: all that the
    reference does). ``dies``: that it ends in an error, a signal or a limit is the fault itself. ``time``: seconds for a request.
    """

    name: str
    group: str
    fault: str
    source: str
    labels: tuple[str, ...]
    select: tuple[str, ...]
    edits: tuple[Edit, ...]
    ops: tuple[str, ...]
    types: tuple[str, ...]
    dies: bool
    time: float


class _Change(msgspec.Struct, forbid_unknown_fields=True):
    file: str
    replace: str
    by: str


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """A mutant as its author writes it; ``also`` are further edits, where one fault needs them."""

    fault: str
    source: str
    file: str
    replace: str
    by: str
    labels: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    also: tuple[_Change, ...] = ()
    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    dies: bool = False
    time: float = 30.0


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    """A catalogue file: ``select`` and ``ops`` of the mutants that do not say."""

    select: tuple[str, ...]
    ops: tuple[str, ...]
    mutants: dict[str, _Written]


def load_catalogue(folder: Path = CATALOGUE) -> dict[str, Mutant]:
    """Give all mutants by name, file after file. Raises ConfigurationError for what is no catalogue, and for a name twice."""
    found: dict[str, Mutant] = {}
    for path in sorted(folder.glob("*.yaml")):
        group = _read(path)
        for name, written in group.mutants.items():
            if name in found:
                raise ConfigurationError(
                    f"the mutant {name} is in {found[name].group}.yaml, too", where=str(path), hint="give one of them another name"
                )
            found[name] = _mutant(name, path.stem, written, group)
    if not found:
        raise ConfigurationError("no mutants", where=str(folder), hint="a catalogue is made of YAML files: docs/mutants.md")
    return found


def _read(path: Path) -> _Group:
    hint = "docs/mutants.md says what a catalogue file is made of"
    try:
        return msgspec.convert(yaml.safe_load(path.read_text("utf-8")), _Group)
    except (OSError, ValueError, yaml.YAMLError) as problem:  # msgspec's ValidationError is a ValueError
        raise ConfigurationError(f"not a catalogue of mutants: {problem}", where=str(path), hint=hint) from None


def _mutant(name: str, group: str, written: _Written, defaults: _Group) -> Mutant:
    first = Edit(written.file, written.replace, written.by)
    return Mutant(
        name=name,
        group=group,
        fault=written.fault,
        source=written.source,
        labels=written.labels,
        select=written.select or defaults.select,
        edits=(first, *(Edit(change.file, change.replace, change.by) for change in written.also)),
        ops=written.ops or defaults.ops,
        types=written.types,
        dies=written.dies,
        time=written.time,
    )


def choose(catalogue: dict[str, Mutant], names: Sequence[str]) -> list[Mutant]:
    """Give the mutants of these names, all where none is given. Raises UsageError for an unknown name."""
    for name in names:
        if name not in catalogue:
            near = difflib.get_close_matches(name, catalogue, 3, 0.5)
            meant = f"did you mean {', '.join(near)}? " if near else ""
            raise UsageError(f"no mutant {name!r}", hint=f"{meant}`gguf-conformance mutants --list` shows all")
    return [catalogue[name] for name in dict.fromkeys(names)] if names else list(catalogue.values())
