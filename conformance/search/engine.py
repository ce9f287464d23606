"""A search from its first draw to its findings."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

from conformance.block_ops import TYPES_OF
from conformance.errors import UsageError
from conformance.run.scratch import scratch_folder, writing_to
from conformance.search.areas import Area, FileArea, NumberArea, SequenceArea, file_ops, number_cells
from conformance.search.asking import Side
from conformance.search.clock import Clock, Enough
from conformance.search.files import FileBench, Pair
from conformance.search.hit import Hit, Probe
from conformance.search.hypotheses import require_hypothesis
from conformance.search.kept import Kept
from conformance.search.ledger import Ledger, Seen
from conformance.search.numbers import NumberBench
from conformance.search.plan import Finding, First, Plan, Say, Searched
from conformance.search.probe import FileProbe
from conformance.search.settle import Settler

# Seconds between two words on how far it is.
_TELL_EVERY = 10.0


def search(plan: Plan, say: Say) -> Searched:
    """Search until the plan's budget is spent; ``say`` is told what is found, when it is.

    Raises ConfigurationError where a side cannot be started, UsageError where there is nothing that both do, or nothing of it came
    to be compared.
    """
    require_hypothesis()
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder(in_memory=True))
        pair = Pair(*(stack.enter_context(Side(manifest)) for manifest in (plan.subject, plan.against)))
        with writing_to(folder):
            return _Search(plan, pair, folder, say).go()


class _Search:
    def __init__(self, plan: Plan, pair: Pair, folder: Path, say: Say) -> None:
        self.plan = plan
        self.pair = pair
        self.say = say
        self.clock = Clock(plan.seconds, plan.examples)
        self.ledger = Ledger()
        self.files = FileBench(pair, folder)
        self.numbers = NumberBench(pair, folder)
        self.settler = Settler(self.files, self.numbers)
        self.kept = Kept(plan.database, f"{pair.subject.name}/{pair.against.name}")
        self.first: First | None = None
        self.known: Counter[str] = Counter()
        self._told_at = 0.0

    def go(self) -> Searched:
        areas = self._areas()
        interrupted = False
        try:
            with suppress(Enough):
                self._again()
                self._draw(areas)
            self._settle()
        except KeyboardInterrupt:
            interrupted = True
        if not interrupted:
            self._require_any()
        return Searched(
            findings=tuple(self.ledger.findings.values()),
            first=self.first,
            waiting=self.ledger.waiting,
            unsettled=self.ledger.unsettled,
            examples=self.clock.examples,
            files=self.files.count,
            blocks=self.numbers.blocks,
            seconds=round(self.clock.elapsed - self.clock.shrinking, 3),
            shrinking=round(self.clock.shrinking, 3),
            declined=dict(sorted((self.files.declined + self.numbers.declined).items())),
            known=dict(sorted(self.known.items())),
            deaths={side.name: side.deaths for side in self.pair},
            interrupted=interrupted,
        )

    def _require_any(self) -> None:
        """Raise UsageError where no answers were compared: that nothing was found then says nothing."""
        if not (self.files.count or self.numbers.blocks or self.ledger.waiting or self.ledger.findings or self.first or self.known):
            raise UsageError(
                f"nothing was compared: {self.pair.subject.name} declined all of it"
                if self.files.declined or self.numbers.declined
                else "nothing was compared: no draw was of what both sides do",
                hint="ask for other ops and types, or give it more: --seconds, --examples, another --seed",
            )

    def _areas(self) -> list[Area]:
        # A tensor is asked for of files whose headers are read alike.
        headers = all(side.does("header") for side in self.pair)
        ops = [op for op in file_ops(self.pair, self.plan) if op != "tensor" or headers]
        cells = [cell for cell in number_cells(self.pair, self.plan) if _is_drawn(*cell)]
        areas: list[Area] = []
        if ops:
            areas.append(FileArea(self.files, ops, self.clock, self._note))
        if cells:
            areas.append(NumberArea(self.numbers, cells, self.clock, self._note))
            areas.append(SequenceArea(self.numbers, cells, self.clock, self._note))
        if not areas:
            asked = ", ".join([*self.plan.ops, *self.plan.types]) or "any op"
            raise UsageError(
                f"{self.pair.subject.name} and {self.pair.against.name} have nothing in common to search: {asked}",
                hint="leave out --op and --type to search all that both do",
            )
        return areas

    def _draw(self, areas: list[Area]) -> None:
        for turn in count():
            for index, area in enumerate(areas):
                area.round(self.plan.seed * 2**32 + turn * len(areas) + index, self.clock.left(area.planned))
                self._settle()
                self._tell()

    def _tell(self) -> None:
        """Tell now and then how far it is."""
        if self.clock.elapsed >= self._told_at + _TELL_EVERY:
            self._told_at = self.clock.elapsed
            found = sum(not finding.against for finding in self.ledger.findings.values())
            put = f"{self.files.count:,} files, {self.numbers.blocks:,} blocks"
            self.say(f"{self.clock.elapsed:.0f} s: {put}; {found} found, {self.ledger.waiting} to be looked into")

    def _again(self) -> None:
        """Try what earlier searches found."""
        for probe in self.kept.probes():
            for hit in self._ask(probe):
                self._note(hit)

    def _ask(self, probe: Probe) -> list[Hit]:
        if isinstance(probe, FileProbe):
            return self.files.ask([probe])[0]
        self.numbers.put(probe)
        return list(self.numbers.take())

    def _note(self, hit: Hit) -> None:
        if hit.signature in self.plan.known and not hit.against:
            self.known[hit.signature] += 1
            return
        seen = Seen(hit, self.clock.examples, self.files.count + self.numbers.blocks, self.clock.elapsed)
        if self.plan.stop_at_first:
            if not hit.against and self.first is None:
                self.first = First(hit.signature, hit.divergence.summary, seen.example, seen.inputs, round(seen.seconds, 3))
                raise Enough
            return
        self.ledger.note(seen)

    def _settle(self) -> None:
        for seen in self.ledger.pending(lambda: self.clock.may_shrink):
            counts = self.files.count, self.numbers.blocks
            with self.clock.shrinks():
                finding = self.settler.settle(seen)
            # What is put to make a find small is no part of the search's figures, as its time is none.
            self.files.count, self.numbers.blocks = counts
            if finding is None:
                self.ledger.reopen(seen)
            elif self.ledger.add(finding, seen):
                self.kept.keep(finding)
                self.say(_told(finding))


def _is_drawn(op: str, kind: str) -> bool:
    """Tell whether there are strategies for an op of a type, with its variant: not for what is a copy of another op."""
    name, colon, variant = kind.partition(":")
    return name in TYPES_OF.get(f"{op}{colon}{variant}", ())


def _told(finding: Finding) -> str:
    size = f"{finding.nbytes} bytes"
    return f"found after {finding.seconds:.1f} s: {finding.signature} [{finding.focus}] {size}: {finding.summary}"
