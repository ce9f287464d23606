"""Known divergences: what a subject's author has accepted, each still run, each tied to its signature."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import yaml

from conformance.cases.located import read_yaml
from conformance.cases.select import matches
from conformance.errors import ConfigurationError
from conformance.judge.divergence import KNOWN_REMARK, Divergence
from conformance.judge.signature import DIGEST, Signature, as_digest, satisfied
from conformance.report.events import CaseResult, KnownProblem
from conformance.subjects.manifest import Manifest

FIELDS = ("pattern", "signature", "kind", "reason", "link", "smallest", "sometimes")
Kind = Literal["bug", "policy", "limit"]


class KnownEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry as it is written: each case that a ``pattern`` fits shows each ``signature``; ``kind`` and ``reason`` say why.

    ``smallest`` names the case with the smallest input. An entry that holds ``sometimes`` may happen or not.
    """

    reason: str
    kind: Kind
    link: str = ""
    signature: str | list[str]
    smallest: str = ""
    sometimes: bool = False
    pattern: str | list[str]

    @property
    def patterns(self) -> list[str]:
        """The patterns, also where there is one."""
        return [self.pattern] if isinstance(self.pattern, str) else self.pattern

    @property
    def signatures(self) -> list[str]:
        """The signatures, also where there is one."""
        return [self.signature] if isinstance(self.signature, str) else self.signature


class KnownDivergence(msgspec.Struct, frozen=True):
    """One pattern and one signature of an entry; ``among``: the entry has others beside."""

    pattern: str
    signature: str
    kind: Kind
    reason: str
    link: str = ""
    sometimes: bool = False
    among: bool = False

    @property
    def says(self) -> str:
        """Kind and reason, for a reader."""
        return f"{self.kind}: {self.reason.strip() or 'no reason given yet'}"


class KnownFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ``divergences.yaml``."""

    divergences: list[KnownEntry]


def load_entries(path: Path | None) -> list[KnownEntry]:
    """Read a ``divergences.yaml``; None gives none. Raises ConfigurationError that names the entry at fault."""
    if path is None:
        return []
    try:
        entries = msgspec.convert(read_yaml(path), KnownFile, strict=False).divergences
    except msgspec.ValidationError as problem:
        raise ConfigurationError(
            f"not a list of known divergences: {problem}",
            where=str(path),
            hint=f"each entry of `divergences` has {', '.join(FIELDS)}; kind is bug, policy or limit",
        ) from problem
    for number, entry in enumerate(entries, 1):
        if not (entry.patterns and entry.signatures):
            raise ConfigurationError(
                f"entry {number} is of no case, or of no signature: {entry.reason[:80]!r}",
                where=str(path),
                hint="name what it is of in `pattern` and `signature`, or delete it",
            )
        if entry.smallest and not any(matches(pattern, entry.smallest) for pattern in entry.patterns):
            raise ConfigurationError(
                f"the smallest case of an entry is none of its cases: {entry.smallest}",
                where=str(path),
                hint=f"its patterns: {', '.join(entry.patterns[:3])}",
            )
    return entries


def load_known(path: Path | None) -> tuple[KnownDivergence, ...]:
    """Read a ``divergences.yaml``, each pattern with each signature apart. Raises ConfigurationError as ``load_entries`` does."""
    return tuple(
        KnownDivergence(
            pattern,
            signature,
            entry.kind,
            entry.reason,
            entry.link,
            entry.sometimes,
            among=len(entry.patterns) > 1 or len(entry.signatures) > 1,
        )
        for entry in load_entries(path)
        for pattern in entry.patterns
        for signature in entry.signatures
    )


class Stale(NamedTuple):
    """A known divergence that some of its cases, which were run, do not show; ``gone`` if none of them does."""

    known: KnownDivergence
    cases: list[str]
    gone: bool


class KnownLedger:
    """The known divergences of one subject during one run: which of them were seen, and where."""

    def __init__(self, entries: Iterable[KnownDivergence]) -> None:
        self.entries = tuple(entries)
        self._index = _Index(self.entries)
        # The cases that were run, each with its undecided and its uncompared ops, and the signatures that it showed.
        self._ran: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._shown: dict[str, tuple[str, ...]] = {}

    def unmatched(self, ids: Iterable[str]) -> list[KnownDivergence]:
        """Give the entries whose pattern matches none of all cases."""
        matched = {entry for name in ids for entry in self._index.covering(name)}
        return [entry for entry in self.entries if entry not in matched]

    def note(self, result: CaseResult) -> list[KnownDivergence]:
        """Note that a case was run and what it showed; gives the entries that cover it."""
        if result.verdict != "error":  # its input could not be made
            self._ran[result.case] = (result.undecided, result.uncompared)
            self._shown[result.case] = tuple(divergence.signature for divergence in result.divergences)
        return self._index.covering(result.case)

    def apply(self, result: CaseResult) -> CaseResult:
        """Give ``result`` with verdict ``known`` where every divergence is a known one.

        A new divergence bears a remark where an entry covers the case with another signature, and the entry that would make
        it known.
        """
        here = self.note(result)
        if not result.divergences or not here:
            return result
        entries = [_entry_of(divergence, here) for divergence in result.divergences]
        met = [entry for entry in entries if entry is not None]
        return msgspec.structs.replace(
            result,
            verdict="known" if len(met) == len(result.divergences) else result.verdict,
            divergences=tuple(
                _with_reason(divergence, entry) if entry else _with_remark(divergence, result.case, here)
                for divergence, entry in zip(result.divergences, entries, strict=True)
            ),
            known=tuple(dict.fromkeys(entry.says for entry in met)),
        )

    def stale(self) -> list[Stale]:
        """Give the entries that a case which was run does not show any more, with these cases.

        A case in which nothing was asked or compared that could show it does not decide: a golden run leaves out what has no
        recorded answer, or no input; without gguf-py nobody may say which tensors a file has.
        """
        decided: dict[KnownDivergence, dict[str, bool]] = {}
        for name in self._ran:
            for entry in self._index.covering(name):
                if not entry.sometimes and self.could_show(entry.signature, name):
                    decided.setdefault(entry, {})[name] = self._shows(entry.signature, name)
        found = ((entry, cases) for entry in self.entries if (cases := decided.get(entry)) and not all(cases.values()))
        return [
            Stale(entry, [name for name, holds in cases.items() if not holds], not any(cases.values())) for entry, cases in found
        ]

    def could_show(self, signature: str, name: str) -> bool:
        """Tell whether so much of the case was asked and compared that a divergence of this signature would have shown."""
        if name not in self._ran:
            return False
        parts, (undecided, uncompared) = Signature.of(signature), self._ran[name]
        return parts.op not in undecided and not (parts.of_values and parts.op in uncompared)

    def _shows(self, signature: str, name: str) -> bool:
        return any(_still_happens(signature, shown) for shown in self._shown[name])


class _Index:
    """Entries by pattern: plain ids are looked up, the few with signs for any text are tried."""

    def __init__(self, entries: Iterable[KnownDivergence]) -> None:
        self._plain: dict[str, list[KnownDivergence]] = {}
        self._globs: dict[str, list[KnownDivergence]] = {}
        for entry in dict.fromkeys(entries):
            kind = self._globs if set("*?") & set(entry.pattern) else self._plain
            kind.setdefault(entry.pattern, []).append(entry)

    def covering(self, name: str) -> list[KnownDivergence]:
        """Give the entries that cover the case ``name``."""
        parts = name.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        plain = [entry for path in above for entry in (*self._plain.get(path, ()), *self._plain.get(f"{path}/", ()))]
        return plain + [entry for pattern, entries in self._globs.items() if matches(pattern, name) for entry in entries]


def _entry_of(divergence: Divergence, here: Iterable[KnownDivergence]) -> KnownDivergence | None:
    """Give the entry that a divergence satisfies, None for a new one."""
    return next((entry for entry in here if satisfied(entry.signature, divergence.signature)), None)


def _still_happens(known: str, shown: str) -> bool:
    """Tell whether an entry is not stale: it is met, or all that it says is still true and more is seen now."""
    return satisfied(known, shown) or as_digest(shown) == known


def _with_reason(divergence: Divergence, entry: KnownDivergence) -> Divergence:
    link = f" ({entry.link})" if entry.link else ""
    remark = f"{KNOWN_REMARK}{entry.says}{link}"
    return msgspec.structs.replace(divergence, remarks=(*divergence.remarks, remark))


def _with_remark(divergence: Divergence, case: str, here: list[KnownDivergence]) -> Divergence:
    signature = divergence.signature
    known = [entry.signature for entry in here]
    coarse = as_digest(signature)
    nearest = coarse if coarse in known else get_close_matches(signature, known, n=1, cutoff=0.0)[0]
    remarks = [f"a known divergence covers this case with another signature: {nearest}"]
    if coarse in known:
        remarks.append("that is what a golden run sees of it; this one holds live and golden: put it in its place")
    remarks.append(f"if this one is known too, add: {entry_yaml(case, signature)}")
    if Signature.of(signature).kind == DIGEST:
        remarks.append("a live run (--oracle live) gives the signature that holds under both oracles")
    return msgspec.structs.replace(divergence, remarks=(*divergence.remarks, *remarks))


def entry_yaml(pattern: str, signature: str) -> str:
    """Give the entry that makes a divergence known, to be completed with its reason."""
    text: str = yaml.safe_dump(
        {"pattern": pattern, "signature": signature, "kind": "bug", "reason": ""},
        sort_keys=False,
        default_flow_style=True,
        width=1000,
    )
    return f"- {text.strip()}"


def known_problems(manifest: Manifest, ledger: KnownLedger, all_ids: Iterable[str]) -> list[KnownProblem]:
    """Give the entries whose pattern matches no case, those that cases do not show any more, and those without a reason."""
    unmatched = [_problem(manifest, "unmatched", entry, _delete(entry)) for entry in ledger.unmatched(all_ids)]
    stale = [
        _problem(manifest, "stale", each.known, _delete(each.known) if each.gone else _narrow(each)) for each in ledger.stale()
    ]
    silent = {entry.signature: entry for entry in reversed(ledger.entries) if not entry.reason.strip()}
    told = "say in `reason` why it is so, and in `kind` what it is: bug, policy or limit"
    unexplained = [_problem(manifest, "unexplained", entry, told) for entry in reversed(silent.values())]
    return unmatched + stale + unexplained


def _delete(entry: KnownDivergence) -> str:
    if entry.among:
        return (
            f"take it out of the entry with signature {entry.signature!r}, and delete an entry that has no pattern left; "
            "or run with --oracle live --update-known"
        )
    return f"delete the entry with pattern {entry.pattern!r} and signature {entry.signature!r}"


def _narrow(stale: Stale) -> str:
    first, *more = stale.cases
    told = f"{first} and {len(more)} more do" if more else f"{first} does"
    return f"{told} not show it any more: let the pattern fit the others only, or run with --oracle live --update-known"


def _problem(
    manifest: Manifest, kind: Literal["stale", "unmatched", "unexplained"], entry: KnownDivergence, edit: str
) -> KnownProblem:
    return KnownProblem(
        subject=manifest.name,
        kind=kind,
        pattern=entry.pattern,
        signature=entry.signature,
        file=str(manifest.divergences),
        edit=edit,
    )
