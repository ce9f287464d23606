"""Known divergences: what a subject's author has accepted, each still run, each tied to its signature."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from conformance.cases.select import matches
from conformance.errors import ConfigurationError
from conformance.judge.divergence import Divergence
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
        document = yaml.safe_load(path.read_text("utf-8"))
        return tuple(msgspec.convert(document, _File).divergences)
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"cannot read the known divergences: {problem}", where=str(path)) from problem
    except yaml.YAMLError as problem:
        raise ConfigurationError(f"not YAML: {problem}", where=str(path)) from problem
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
        self._ran: set[str] = set()
        self._seen: set[KnownDivergence] = set()

    def unmatched(self, ids: Iterable[str]) -> list[KnownDivergence]:
        """Give the entries whose pattern matches none of all cases."""
        names = list(ids)
        return [entry for entry in self.entries if not any(matches(entry.pattern, name) for name in names)]

    def note(self, case: str, signatures: Iterable[str]) -> list[KnownDivergence]:
        """Note that a case was run and which signatures it showed; gives the entries that cover it."""
        here = [entry for entry in self.entries if matches(entry.pattern, case)]
        shown = set(signatures)
        self._ran.add(case)
        self._seen.update(entry for entry in here if entry.signature in shown)
        return here

    def apply(self, result: CaseResult) -> CaseResult:
        """Give ``result`` with verdict ``known`` where every divergence is a known one.

        A new divergence bears a remark where an entry covers the case with another signature, and the entry that would make
        it known.
        """
        here = self.note(result.case, (divergence.signature for divergence in result.divergences))
        known = {entry.signature: entry for entry in here}
        met = [known[divergence.signature] for divergence in result.divergences if divergence.signature in known]
        if not result.divergences or not here:
            return result
        return msgspec.structs.replace(
            result,
            verdict="known" if len(met) == len(result.divergences) else result.verdict,
            divergences=tuple(
                _with_reason(d, known[d.signature]) if d.signature in known else _with_remark(d, result.case, here)
                for d in result.divergences
            ),
            known=tuple(f"{entry.kind}: {entry.reason}" for entry in met),
        )

    def stale(self, ids: Iterable[str]) -> list[KnownDivergence]:
        """Give the entries all of whose cases were run, of all those that there are, and none showed the signature.

        A run of some of an entry's cases does not decide: the others may still show it.
        """
        names = list(ids)
        return [entry for entry in self.entries if entry not in self._seen and self._decided(entry, names)]

    def _decided(self, entry: KnownDivergence, names: list[str]) -> bool:
        covered = {name for name in names if matches(entry.pattern, name)}
        return bool(covered) and covered <= self._ran


def _with_reason(divergence: Divergence, entry: KnownDivergence) -> Divergence:
    link = f" ({entry.link})" if entry.link else ""
    remark = f"known {entry.kind}: {entry.reason}{link}"
    return msgspec.structs.replace(divergence, remarks=(*divergence.remarks, remark))


def _with_remark(divergence: Divergence, case: str, here: list[KnownDivergence]) -> Divergence:
    nearest = get_close_matches(divergence.signature, [entry.signature for entry in here], n=1, cutoff=0.0)[0]
    remarks = (
        f"a known divergence covers this case with another signature: {nearest}",
        f"if this one is known too, add: {entry_yaml(case, divergence.signature)}",
    )
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
