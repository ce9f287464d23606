"""From a hit to a finding: asked once more by itself, made as small as it can be, and described."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from conformance.cases.build import build
from conformance.judge.signature import Signature
from conformance.search import file_case, number_case
from conformance.search.file_documents import Recipe
from conformance.search.files import PATIENCE, FileBench
from conformance.search.hit import Hit, breaks
from conformance.search.ledger import Seen
from conformance.search.numbers import NumberBench
from conformance.search.plan import Finding
from conformance.search.probe import FileOp, FileProbe, NumberProbe
from conformance.search.rows import Flags
from conformance.search.shrink_files import Candidate, Shows
from conformance.search.shrink_files import shrink as shrink_file
from conformance.search.shrink_numbers import shrink as shrink_numbers
from conformance.search.shrink_numbers import shrink_sequence

# Files of one exchange while shrinking. What breaks a process costs a new one, or the time of waiting for it: then one at a time,
# the first that shows it is taken, and there are few rounds.
_BATCH = 64
_ROUNDS_OF_BREAKS = 16
# Seconds: a hundred times as long as a file takes that is read.
_IMPATIENCE = 0.4
_FEW = {"budget": 30, "at_once": 8}
# How often new processes are started to find the shortest sequence of requests.
_RESTARTS = 16
_SEQUENCES = 3


class Settler:
    """Makes hits small by asking both sides again, many candidates at a time."""

    def __init__(self, files: FileBench, numbers: NumberBench) -> None:
        self.files = files
        self.numbers = numbers
        # By signature: how often a sequence of requests was looked for. Each takes many new processes.
        self._sequences: Counter[str] = Counter()

    def settle(self, seen: Seen) -> Finding | None:
        """Give the finding that a hit is; one that does not show again is kept as it was, and marked unstable.

        None for one that only shows after others, where enough of its signature were looked into.
        """
        hit = seen.hit
        if isinstance(hit.probe, FileProbe):
            return self._file(seen, hit, hit.probe)
        return self._numbers(seen, hit, hit.probe)

    def _file(self, seen: Seen, hit: Hit, probe: FileProbe) -> Finding:
        def shows(candidates: Sequence[Candidate]) -> list[bool]:
            return self._files_show(hit, probe.op, candidates)

        recipe = dict(probe.recipe)
        whole = [Candidate.of(recipe)]
        stable = shows(whole)[0] or self._alone(lambda: shows(whole)[0])
        if stable:
            recipe = self._shrunk_break(recipe, shows) if breaks(hit.signature) else shrink_file(recipe, shows)
        least = FileProbe(probe.op, build(recipe).data, recipe, probe.label)
        shown = self._shown(hit, self.files.ask([least])[0]) if stable else hit
        return _finding(
            seen,
            shown._replace(probe=least),
            focus=file_case.focus(recipe),
            case=file_case.case_of(recipe, probe.op, **_limits(hit.signature)),
            nbytes=len(least.data),
            values=len(recipe.get("kv") or ()) + len(recipe.get("tensors") or ()),
            unstable=not stable,
        )

    def _shrunk_break(self, recipe: Recipe, shows: Shows) -> Recipe:
        """Make a file small that costs a process each time; one that hangs is waited for shortly, and fully once at the end."""
        self.files.patience = _IMPATIENCE
        try:
            least = shrink_file(recipe, shows, rounds=_ROUNDS_OF_BREAKS)
        finally:
            self.files.patience = PATIENCE
        return least if shows([Candidate.of(least)])[0] else recipe

    def _numbers(self, seen: Seen, hit: Hit, probe: NumberProbe) -> Finding | None:
        def shows(candidates: NumberProbe) -> Flags:
            return self.numbers.shows(candidates, hit.signature, against=hit.against)

        # First of all by itself: what only shows in a process with a past would be shrunk in vain.
        if self._shows_after([probe], hit, both=False):
            least = shrink_numbers(probe, shows, **_FEW) if breaks(hit.signature) else shrink_numbers(probe, shows)
            if self._shows_after([least], hit):
                return self._number_finding(seen, [least])
        if self._sequences[hit.signature] >= _SEQUENCES or not hit.before:
            return None if self._sequences[hit.signature] else self._number_finding(seen, [probe], unstable=True)
        self._sequences[hit.signature] += 1
        sequence, unstable = self._sequence([*hit.before, probe], hit)
        if not unstable:
            self._sequences[hit.signature] = _SEQUENCES
        return self._number_finding(seen, sequence, unstable=unstable)

    def _sequence(self, probes: list[NumberProbe], hit: Hit) -> tuple[list[NumberProbe], bool]:
        """Give the shortest sequence that shows it, put to new processes, and whether any does not.

        What remembers is nearly always the subject: only its process is new each time, and both once at the end.
        """
        if not self._shows_after(probes, hit):
            return probes[-1:], True
        least = shrink_sequence(probes, lambda each: self._shows_after(each, hit, both=False), _RESTARTS)
        if not self._shows_after(least, hit):
            least = shrink_sequence(probes, lambda each: self._shows_after(each, hit), _RESTARTS)
        return least, False

    def _shows_after(self, sequence: Sequence[NumberProbe], hit: Hit, *, both: bool = True) -> bool:
        """Tell whether the last request shows it where new processes (the subject's, or ``both``) were asked the others first."""
        self.numbers.fresh(both=both or hit.against)
        for probe in sequence[:-1]:
            self.numbers.put(probe)
            self.numbers.collect()
        return bool(self.numbers.shows(sequence[-1], hit.signature, against=hit.against).any())

    def _number_finding(self, seen: Seen, sequence: Sequence[NumberProbe], *, unstable: bool = False) -> Finding:
        least = sequence[-1]
        self.numbers.put(least)
        shown = self._shown(seen.hit, list(self.numbers.take()))
        given = [values for values in (least.rows, least.blocks, least.x, least.imatrix) if values is not None]
        focus = f"{least.type} imatrix" if least.imatrix is not None else least.type
        case = number_case.case_of(least)
        if before := [number_case.case_of(probe) for probe in sequence[:-1]]:
            case, focus = {"before": before, **case}, f"{focus} after others"
        return _finding(
            seen,
            shown,
            focus=focus,
            case=case,
            nbytes=sum(values.nbytes for values in given),
            values=sum(int(np.count_nonzero(values)) for values in given),
            unstable=unstable,
        )

    def _files_show(self, hit: Hit, op: FileOp, candidates: Sequence[Candidate]) -> list[bool]:
        shown: list[bool] = []
        batch = 1 if breaks(hit.signature) else _BATCH
        for start in range(0, len(candidates), batch):
            part = candidates[start : start + batch]
            hits = self.files.ask([FileProbe(op, each.data, each.recipe, "") for each in part])
            shown += [any(_same(hit, other) for other in of_one) for of_one in hits]
            if batch == 1 and shown[-1]:
                break
        return shown + [False] * (len(candidates) - len(shown))

    def _alone(self, shows: Any) -> bool:
        """Tell whether it shows in processes that have done nothing else."""
        for side in self.files.pair:
            side.restart()
        return bool(shows())

    def _shown(self, hit: Hit, hits: Sequence[Hit]) -> Hit:
        return next((other for other in hits if _same(hit, other)), hit)


def _limits(signature: str) -> dict[str, Any]:
    """Give a case of a file that hangs the patience of the search: everybody who runs it waits so long."""
    return {"limits": {"time": PATIENCE}} if Signature.of(signature).kind == "timeout" else {}


def _same(hit: Hit, other: Hit) -> bool:
    return (other.signature, other.against) == (hit.signature, hit.against)


def _finding(seen: Seen, hit: Hit, *, focus: str, case: dict[str, Any], nbytes: int, values: int, unstable: bool) -> Finding:
    divergence = hit.divergence
    return Finding(
        signature=hit.signature,
        focus=focus,
        summary=divergence.summary,
        expected=divergence.expected,
        found=divergence.found,
        op=divergence.op,
        type=hit.probe.type if isinstance(hit.probe, NumberProbe) else "-",
        case=case,
        nbytes=nbytes,
        values=values,
        example=seen.example,
        inputs=seen.inputs,
        seconds=round(seen.seconds, 3),
        against=hit.against,
        unstable=unstable,
    )
