"""Known divergences: what a subject's author has accepted, each still run, each tied to its signature."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from conformance.cases.located import read_yaml
from conformance.cases.select import matches
from conformance.errors import ConfigurationError
from conformance.judge.divergence import Divergence
from conformance.judge.signature import DIGEST, Signature, as_digest, satisfied
from conformance.report.events import CaseResult, KnownProblem
from conformance.subjects.manifest import Manifest

FIELDS = ("pattern", "signature", "kind", "reason", "link")


class KnownDivergence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry: cases matching ``pattern`` diverge with exactly ``signature``; ``kind`` and ``reason`` say why."""

    pattern: str
    signature: str
    kind: Literal["bug", "policy", "limit"]
    reason: str
    link: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    divergences: list[KnownDivergence]


def load_known(path: Path | None) -> tuple[KnownDivergence, ...]:
    """Read a ``divergences.yaml``; None gives none. Raises ConfigurationError that names the entry at fault."""
    if path is None:
        return ()
    try:
        return tuple(msgspec.convert(read_yaml(path), _File).divergences)
    except msgspec.ValidationError as problem:
        raise ConfigurationError(
            f"not a list of known divergences: {problem}",
            where=str(path),
            hint=f"each entry of `divergences` has {', '.join(FIELDS)}; kind is bug, policy or limit",
        ) from problem


class KnownLedger:
    """The known divergences of one subject during one run: which of them were seen."""

    def __init__(self, entries: Iterable[KnownDivergence]) -> None:
        self.entries = tuple(entries)
        # The cases that were run, each with the ops of which nothing was compared.
        self._ran: dict[str, tuple[str, ...]] = {}
        self._seen: set[KnownDivergence] = set()

    def unmatched(self, ids: Iterable[str]) -> list[KnownDivergence]:
        """Give the entries whose pattern matches none of all cases."""
        names = list(ids)
        return [entry for entry in self.entries if not any(matches(entry.pattern, name) for name in names)]

    def note(self, result: CaseResult) -> list[KnownDivergence]:
        """Note that a case was run and what it showed; gives the entries that cover it."""
        here = [entry for entry in self.entries if matches(entry.pattern, result.case)]
        self._ran[result.case] = result.uncompared
        shown = [divergence.signature for divergence in result.divergences]
        self._seen.update(entry for entry in here if any(_still_happens(entry.signature, signature) for signature in shown))
        return here

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
            known=tuple(f"{entry.kind}: {entry.reason}" for entry in met),
        )

    def stale(self, ids: Iterable[str]) -> list[KnownDivergence]:
        """Give the entries all of whose cases were run, of all those that there are, and none showed the signature.

        A run of some of an entry's cases does not decide: the others may still show it. Nor does a case in which nothing was
        compared that could show it: a golden run leaves out what has no recorded answer, or no input.
        """
        names = list(ids)
        return [entry for entry in self.entries if entry not in self._seen and self._decided(entry, names)]

    def _decided(self, entry: KnownDivergence, names: list[str]) -> bool:
        covered = [name for name in names if matches(entry.pattern, name)]
        return bool(covered) and all(self._could_show(entry, name) for name in covered)

    def _could_show(self, entry: KnownDivergence, name: str) -> bool:
        signature = Signature.of(entry.signature)
        return name in self._ran and not (signature.of_values and signature.op in self._ran[name])


def _entry_of(divergence: Divergence, here: Iterable[KnownDivergence]) -> KnownDivergence | None:
    """Give the entry that a divergence satisfies, None for a new one."""
    return next((entry for entry in here if satisfied(entry.signature, divergence.signature)), None)


def _still_happens(known: str, shown: str) -> bool:
    """Tell whether an entry is not stale: it is met, or all that it says is still true and more is seen now."""
    return satisfied(known, shown) or as_digest(shown) == known


def _with_reason(divergence: Divergence, entry: KnownDivergence) -> Divergence:
    link = f" ({entry.link})" if entry.link else ""
    remark = f"known {entry.kind}: {entry.reason}{link}"
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
        {"pattern": pattern, "signature": signature, "kind": "bug", "reason": "why"},
        sort_keys=False,
        default_flow_style=True,
        width=1000,
    )
    return f"- {text.strip()}"


def known_problems(manifest: Manifest, ledger: KnownLedger, all_ids: Iterable[str]) -> list[KnownProblem]:
    """Give the entries whose pattern matches no case, then those that no case shows any more, all having been run."""
    ids = list(all_ids)
    unmatched = [_problem(manifest, "unmatched", entry) for entry in ledger.unmatched(ids)]
    return unmatched + [_problem(manifest, "stale", entry) for entry in ledger.stale(ids)]


def _problem(manifest: Manifest, kind: Literal["stale", "unmatched"], entry: KnownDivergence) -> KnownProblem:
    return KnownProblem(
        subject=manifest.name,
        kind=kind,
        pattern=entry.pattern,
        signature=entry.signature,
        file=str(manifest.divergences),
        edit=f"delete the entry with pattern {entry.pattern!r} and signature {entry.signature!r}",
    )
