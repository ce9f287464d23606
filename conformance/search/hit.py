"""What one input showed: the raw form of a finding, before it is narrowed and shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from conformance.judge.divergence import Divergence
from conformance.judge.measure import failure
from conformance.judge.signature import Signature
from conformance.outcomes import Outcome, Unsupported
from conformance.search.probe import FileProbe, NumberProbe

Probe = FileProbe | NumberProbe


class Hit(NamedTuple):
    """A divergence that ``probe`` shows.

    ``against`` says that it is the measure itself that fails: it died, or contradicts itself; the subject is not judged then.
    ``before`` was asked just before, as far as it is remembered.
    """

    probe: Probe
    divergence: Divergence
    against: bool = False
    before: tuple[NumberProbe, ...] = ()

    @property
    def signature(self) -> str:
        """The divergence's signature."""
        return self.divergence.signature

    @property
    def bucket(self) -> tuple[str, str]:
        """What hits have in common that are likely to be one finding."""
        return self.signature, self.probe.label


def unanswered(probe: Probe, op: str, type_name: str, authority: str, outcomes: tuple[Outcome, Outcome]) -> Iterator[Hit]:
    """Give the hits of an input to which the measure has no answer: its own failure, and the subject's, if it fails too.

    ``outcomes``: the subject's and the measure's. What the measure says that it does not do is no failure of it.
    """
    found, expected = outcomes
    if not isinstance(expected, Unsupported) and (failed := failure(op, type_name, authority, expected)):
        yield Hit(probe, failed, against=True)
    if failed := failure(op, type_name, authority, found):
        yield Hit(probe, failed)


# Kinds of divergence after which a process is not used again.
_BREAKS = ("crash", "timeout", "memory", "protocol")


def breaks(signature: str) -> bool:
    """Tell whether a divergence of this signature costs a process."""
    return Signature.of(signature).kind.startswith(_BREAKS)
