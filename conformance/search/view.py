"""A search's result in text, for a terminal, a pipe or a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from conformance.cases.written import to_yaml
from conformance.search.plan import Finding, Plan, Searched

# A recipe longer than this is in its case file.
_RECIPE = 600
# Of signatures that were not looked into so many are named; findings.json and --json have all.
_SIGNATURES = 8


def told(plan: Plan, searched: Searched, folder: Path | None, *, as_json: bool) -> str:
    """Give what is printed at the end of a search."""
    if as_json:
        return msgspec.json.format(msgspec.json.encode(searched), indent=1).decode() + "\n"
    return "".join(f"{line}\n" for line in _lines(plan, searched, folder))


def _lines(plan: Plan, searched: Searched, folder: Path | None) -> Iterator[str]:
    mine = searched.divergences
    theirs = [finding for finding in searched.findings if finding.against]
    yield from _listed(f"{plan.subject.name} departs from {plan.against.name}", mine)
    yield from _listed(f"{plan.against.name} itself has no sound answer (not held against {plan.subject.name})", theirs)
    if searched.first is not None:
        first = searched.first
        yield f"first divergence: {first.signature}: {first.summary}"
        yield f"  after {first.example} draws, {first.inputs:,} inputs, {first.seconds:.1f} s"
    if searched.unsettled:
        more = len(searched.unsettled) - _SIGNATURES
        shown = ", ".join(searched.unsettled[:_SIGNATURES]) + (f" and {more} more signatures" if more > 0 else "")
        yield f"{plan.subject.name} departs as well, not looked into for want of time: {shown}"
    if searched.known:
        number = len(searched.known)
        yield f"left alone: {sum(searched.known.values()):,} hits of {number} known signature{'s' * (number != 1)}"
    if searched.declined:
        told = ", ".join(f"{what} ({count})" for what, count in searched.declined.items())
        yield f"{plan.subject.name} says that it does not do: {told}"
    yield totals(plan, searched)
    if folder is not None:
        yield f"cases and reports: {folder}"


def _listed(title: str, findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield f"{title}: {len(findings)}"
    for finding in sorted(findings, key=lambda one: one.key):
        yield from finding_lines(finding)
    yield ""


def finding_lines(finding: Finding) -> Iterator[str]:
    """Give what is told of one finding: what differs, the smallest input, and when it was found."""
    unstable = "  (not seen again in fresh processes)" if finding.unstable else ""
    yield f"  {finding.signature}  [{finding.focus}]{unstable}"
    yield f"    {finding.summary}"
    recipe = to_yaml({key: value for key, value in finding.case.items() if key != "ask"}).rstrip()
    shown = recipe if len(recipe) <= _RECIPE else f"{recipe[:_RECIPE]}… (the whole is in its case file)"
    yield from (f"    {line}" for line in shown.splitlines())
    yield f"    {finding.nbytes} bytes; after {finding.example} draws, {finding.inputs:,} inputs, {finding.seconds:.1f} s"


def totals(plan: Plan, searched: Searched) -> str:
    """Give the closing line."""
    found = len(searched.divergences)
    deaths = "".join(f", {name} was started again {count} times" for name, count in searched.deaths.items() if count)
    waiting = f", {searched.waiting} more inputs that differ were not looked into for want of time" if searched.waiting else ""
    if searched.first is not None:
        return f"stopped at the first divergence of {plan.subject.name} from {plan.against.name}; seed {plan.seed}"
    return (
        f"{found} divergence{'s' * (found != 1)} of {plan.subject.name} from {plan.against.name}{waiting}; seed {plan.seed}: "
        f"{searched.examples:,} draws, {searched.files:,} files, {searched.blocks:,} blocks in {searched.seconds:.0f} s, "
        f"and {searched.shrinking:.0f} s to make finds small{deaths}"
    )
