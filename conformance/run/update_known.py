"""Brings a subject's ``divergences.yaml`` to what a live run shows; what is new there waits for a person's reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from conformance.cases.cover import cover
from conformance.cases.model import Case
from conformance.cases.select import matches
from conformance.cases.size import input_size
from conformance.errors import EXIT_DIVERGENCE, EXIT_OK, ConfigurationError, UsageError
from conformance.report.events import CaseResult
from conformance.report.summary import RunSummary
from conformance.run.known import KnownEntry, KnownLedger, load_entries
from conformance.subjects.manifest import Manifest
from conformance.whole import write_whole

_HEAD = """\
# Known divergences of {name} from {profile} (docs/judging.md). The cases and signatures are written by
# `gguf-conformance run --subject {name} --oracle live --update-known`; kind, reason and link are a person's.
"""
_OTHER_BREAKS = frozenset("\r\x85\u2028\u2029")


class Updated(NamedTuple):
    """What became of a file: its entries, how many of them say no reason yet, and how many lost all of their cases."""

    path: Path
    entries: list[KnownEntry]
    unexplained: int
    gone: int


class Corpus:
    """All cases by id, with their sizes where asked for."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = {case.id: case for case in cases}
        self._sizes: dict[str, int] = {}
        self.ids = list(self._cases)

    def smallest(self, names: Collection[str]) -> str:
        """Give the one of the named cases with the smallest input, the first of several."""
        return min((name for name in self.ids if name in names), key=self.size)

    def size(self, name: str) -> int:
        """Give the bytes of a case's input."""
        if name not in self._sizes:
            self._sizes[name] = input_size(self._cases[name])
        return self._sizes[name]


def update_known(manifest: Manifest, results: Iterable[CaseResult], corpus: Corpus) -> Updated:
    """Write the known divergences that ``results``, of a live run of this subject, show; cases that were not run keep theirs.

    An entry keeps its reason, and those of its cases that still show all of its signatures. Raises ConfigurationError where the
    file is broken or cannot be written.
    """
    path = known_file(manifest)
    before = load_entries(path if path.exists() else None)
    kept, new = updated(before, list(results), corpus)
    entries = kept + new
    _write(path, known_text(manifest, entries))
    return Updated(path, entries, sum(not entry.reason.strip() for entry in entries), len(before) - len(kept))


def known_file(manifest: Manifest) -> Path:
    """Give the file of a subject's known divergences, also where there is none yet."""
    return manifest.divergences or manifest.folder / "divergences.yaml"


def require_own_files(manifests: Iterable[Manifest]) -> None:
    """Make sure that no two subjects write one file. Raises UsageError: what the one shows would be taken from the other's."""
    found: dict[Path, str] = {}
    for manifest in manifests:
        path = known_file(manifest).resolve()
        if path in found:
            raise UsageError(
                f"{found[path]} and {manifest.name} have one file of known divergences: {path}",
                hint="give each a file of its own: `divergences` in its manifest",
            )
        found[path] = manifest.name


def why_not(summary: RunSummary) -> str:
    """Say why a run's results are not taken for what its subjects do, empty where they are."""
    if summary.exit_code not in (EXIT_OK, EXIT_DIVERGENCE):
        return "the run is not whole, or something else is to be mended first"
    if any(total.verdicts["authority-drift"] or total.verdicts["authority-crash"] for _, total in summary.totals):
        return "an authority is not what the cases and recorded answers say"
    return ""


def updated(
    entries: Sequence[KnownEntry], results: Sequence[CaseResult], corpus: Corpus
) -> tuple[list[KnownEntry], list[KnownEntry]]:
    """Give the entries that say what ``results`` show: the old ones with the cases that still hold, and the new ones."""
    ledger = KnownLedger(())
    for result in results:
        ledger.note(result)
    shown = {result.case: {divergence.signature for divergence in result.divergences} for result in results}
    left = {name: set(signatures) for name, signatures in shown.items()}
    kept = []
    for entry in entries:
        covered = [name for name in corpus.ids if any(matches(pattern, name) for pattern in entry.patterns)]
        holds = [name for name in covered if entry.sometimes or _holds(entry, name, shown, ledger)]
        for name in holds:
            left.get(name, set()).difference_update(entry.signatures)
        if holds:
            kept.append(entry if holds == covered else _with_cases(entry, holds, corpus))
    return [_with_smallest(entry, corpus) for entry in kept], _new(left, corpus)


def _holds(entry: KnownEntry, name: str, shown: Mapping[str, set[str]], ledger: KnownLedger) -> bool:
    """Tell whether a case still shows all of an entry's signatures, or was not asked so that it could."""
    return all(signature in shown.get(name, ()) or not ledger.could_show(signature, name) for signature in entry.signatures)


def _new(left: Mapping[str, set[str]], corpus: Corpus) -> list[KnownEntry]:
    """Give an entry for each set of signatures that cases show and no entry holds, those of the most cases first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in corpus.ids:
        if signatures := left.get(name):
            groups.setdefault(tuple(sorted(signatures)), []).append(name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    empty = (KnownEntry(reason="", kind="bug", signature=_one_or_all(signatures), pattern=[]) for signatures, _ in ordered)
    return [_with_cases(entry, names, corpus) for entry, (_, names) in zip(empty, ordered, strict=True)]


def _with_cases(entry: KnownEntry, names: list[str], corpus: Corpus) -> KnownEntry:
    pattern = _one_or_all(cover(names, corpus.ids))
    return msgspec.structs.replace(entry, pattern=pattern, smallest=corpus.smallest(names))


def _with_smallest(entry: KnownEntry, corpus: Corpus) -> KnownEntry:
    """Give an entry with its smallest case, where a person named none."""
    if entry.smallest in corpus.ids:
        return entry
    covered = {name for name in corpus.ids if any(matches(pattern, name) for pattern in entry.patterns)}
    return msgspec.structs.replace(entry, smallest=corpus.smallest(covered))


def _one_or_all(texts: Sequence[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else list(texts)


def known_text(manifest: Manifest, entries: Sequence[KnownEntry]) -> str:
    """Give the file as it is written: short lists in a line, what is empty left out."""
    head = _HEAD.format(name=manifest.name, profile=manifest.profile)
    if not entries:
        return f"{head}divergences: []\n"
    return head + "divergences:\n" + "".join(_entry_text(entry) for entry in entries)


class _Dumper(yaml.SafeDumper):
    """Writes text so that it reads back."""


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Give text's node: with escapes, where it holds line breaks of other kinds, which YAML would make blanks of."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _OTHER_BREAKS.intersection(text) else None)


_Dumper.add_representer(str, _text_node)


def _entry_text(entry: KnownEntry) -> str:
    told = {name: value for name, value in msgspec.to_builtins(entry).items() if value or name == "reason"}
    text: str = yaml.dump(told, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return "".join(f"{'  - ' if number == 0 else '    '}{line}\n" for number, line in enumerate(text.rstrip("\n").split("\n")))


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except OSError as problem:
        raise ConfigurationError(
            f"cannot write the known divergences: {problem.strerror}", where=str(path), hint="name a subject whose folder is yours"
        ) from problem


def collector(names: Iterable[str]) -> tuple[dict[str, list[CaseResult]], Callable[[object], None]]:
    """Give a place for the results of these subjects, by name, and what puts an event's result there."""
    found: dict[str, list[CaseResult]] = {name: [] for name in names}

    def take(event: object) -> None:
        if isinstance(event, CaseResult) and event.role == "subject" and event.who in found:
            found[event.who].append(event)

    return found, take
