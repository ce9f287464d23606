"""The kill matrix on a terminal, or in a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.mutants.catalogue import Mutant
from conformance.mutants.corpus import Put
from conformance.mutants.matrix import by_suite
from conformance.mutants.searching import Hunt
from conformance.printable import number, plural

_GOOD, _BAD, _CALM, _HEAD = "green", "bold red", "dim", "bold"
# Columns that the table takes beside the names and the ids.
_BESIDE = 16


class Judged(NamedTuple):
    """A mutant, what the corpus made of it, and what a search did, if there was one."""

    mutant: Mutant
    put: Put
    hunt: Hunt | None


def render(judged: Sequence[Judged], idle: Sequence[str] | None, console: Console) -> None:
    """Print the matrix, the mutants that live, by suite the cases that killed none (None: left out), and the sums."""
    console.print(_matrix(judged, console.width), crop=False)
    _print_alive(judged, console)
    if idle is not None:
        _print_idle(judged, idle, console)
    _print_sums(judged, console)


def _matrix(judged: Sequence[Judged], width: int) -> Table:
    """Make a table of at least this width in which neither a name nor an id is broken, so that a pipe can look for them."""
    names = max(len(one.mutant.name) for one in judged)
    ids = max((len(one.put.row.first[0].case) for one in judged if one.put.row.first), default=0)
    table = Table(box=box.SIMPLE_HEAD, header_style=_HEAD, pad_edge=False, width=max(width, names + ids + _BESIDE))
    table.add_column("mutant, and what goes wrong", min_width=names)
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("the first that kills it, and search" if any(one.hunt for one in judged) else "the first", min_width=ids)
    for one in judged:
        first = Text(one.put.row.first[0].case if one.put.row.first else "-")
        table.add_row(
            Text.assemble(one.mutant.name, "\n", (one.mutant.fault, _CALM)), _count(one), first.append_text(_hunted(one.hunt))
        )
    return table


def _count(one: Judged) -> Text:
    return Text(number(one.put.row.kills)) if one.put.row.killed else Text("ALIVE", style=_BAD)


def _hunted(hunt: Hunt | None) -> Text:
    if hunt is None:
        return Text()
    if not hunt.signature:
        return Text(f"\nnot found in {hunt.seconds:.0f} s, {number(hunt.inputs)} inputs", style=_BAD)
    return Text(f"\nsearch: {hunt.seconds:.1f} s, {plural(hunt.examples, 'example')}, {plural(hunt.inputs, 'input')}", style=_CALM)


def _print_alive(judged: Sequence[Judged], console: Console) -> None:
    for one in judged:
        if not one.put.row.killed:
            head = Text.assemble(("ALIVE  ", _BAD), f"{one.mutant.name}: {one.mutant.fault}")
            console.print(head, soft_wrap=True)
            asked = " ".join(one.mutant.select)
            hint = f"no case of {asked} sees it ({one.mutant.source}): add one to cases/, or widen its `select`"
            console.print(Text(f"       {hint}"), soft_wrap=True)


def _print_idle(judged: Sequence[Judged], idle: Sequence[str], console: Console) -> None:
    asked = len({case for one in judged for case in one.put.asked})
    console.print(
        Text(f"\n{number(len(idle))} of {number(asked)} cases killed none of these mutants (--json names them)", style=_HEAD)
    )
    suites = by_suite(idle)
    width = max(map(len, suites), default=0)
    for suite, count in suites.items():
        console.print(Text(f"  {suite:<{width}}  {number(count):>5}"), soft_wrap=True)


def _print_sums(judged: Sequence[Judged], console: Console) -> None:
    killed = sum(one.put.row.killed for one in judged)
    line = f"\n{killed} of {len(judged)} mutants killed by the corpus"
    hunted = [one.hunt for one in judged if one.hunt]
    if hunted:
        line += f", {sum(bool(hunt.signature) for hunt in hunted)} of {len(hunted)} by search"
    console.print(Text(line, style=_GOOD if killed == len(judged) else _BAD), soft_wrap=True)
