"""The hits of a search that wait to be made small, and the findings that they became: each kind of divergence once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from conformance.judge.signature import Signature
from conformance.search.hit import Hit, breaks
from conformance.search.plan import Finding

# Hits with one signature but other labels are often the same finding: after so many of them no more are made small. Which of two
# faults a refusal names first is the least of a reader's concerns, and deaths are told apart by nothing but their inputs.
_LABELS = 24
_FEW_LABELS = 3


class Seen(NamedTuple):
    """A hit, and when it was first seen: after how many draws, inputs and seconds."""

    hit: Hit
    example: int
    inputs: int
    seconds: float


class Ledger:
    """Keeps the first hit of each bucket, and the smallest finding of each key."""

    def __init__(self) -> None:
        self.findings: dict[tuple[str, str], Finding] = {}
        self._buckets: set[tuple[str, str]] = set()
        self._pending: list[Seen] = []
        self._labels: Counter[str] = Counter()

    def note(self, seen: Seen) -> bool:
        """Keep a hit if it is of a new bucket; tell whether it was."""
        bucket = seen.hit.bucket
        if bucket in self._buckets or self._labels[bucket[0]] >= _most_labels(bucket[0]):
            return False
        self._buckets.add(bucket)
        self._labels[bucket[0]] += 1
        self._pending.append(seen)
        return True

    def add(self, finding: Finding, seen: Seen) -> bool:
        """Keep the finding that a hit became; tell whether it is of a new key.

        One that does not show again is kept only while there is none of its signature that does, and its bucket stays open.
        """
        if finding.unstable:
            self.reopen(seen)
            if any(other.signature == finding.signature for other in self.findings.values()):
                return False
        else:
            self._drop_unstable(finding.signature)
        before = self.findings.get(finding.key)
        if before is None or (finding.nbytes, finding.values) < (before.nbytes, before.values):
            self.findings[finding.key] = finding if before is None else _dated(finding, before)
        return before is None

    def reopen(self, seen: Seen) -> None:
        """Take another hit of the same bucket, should there be one: this one came to nothing."""
        self._buckets.discard(seen.hit.bucket)

    def _drop_unstable(self, signature: str) -> None:
        for key, finding in list(self.findings.items()):
            if finding.unstable and finding.signature == signature:
                del self.findings[key]

    def pending(self, may: Callable[[], bool]) -> Iterator[Seen]:
        """Give the hits that wait, and forget them, while there ``may`` be more.

        Those of signatures without a finding come first, then those that cost processes, and last those that differ only in why
        they refuse.
        """
        while self._pending and may():
            known = {signature for signature, _ in self.findings}
            waiting = [seen.hit.signature for seen in self._pending]
            first = min(range(len(waiting)), key=lambda index: (_weight(waiting[index]), waiting[index] in known, index))
            yield self._pending[first]
            del self._pending[first]  # not before it is dealt with: an interrupted one waits on

    @property
    def waiting(self) -> int:
        """How many hits wait."""
        return len(self._pending)

    @property
    def unsettled(self) -> tuple[str, ...]:
        """The signatures of the subject's hits that wait, as far as there is no finding with them."""
        found = {finding.signature for finding in self.findings.values() if not finding.against}
        return tuple(sorted({seen.hit.signature for seen in self._pending if not seen.hit.against} - found))


def _most_labels(signature: str) -> int:
    return _FEW_LABELS if _of_class(signature) or breaks(signature) else _LABELS


def _weight(signature: str) -> int:
    return 2 if _of_class(signature) else int(breaks(signature))


def _of_class(signature: str) -> bool:
    return Signature.of(signature).kind == "reject-class"


def _dated(finding: Finding, before: Finding) -> Finding:
    """Give a finding the date of an earlier one of its key."""
    return msgspec.structs.replace(finding, example=before.example, inputs=before.inputs, seconds=before.seconds)
