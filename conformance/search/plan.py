"""What is to be searched, and what came of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from conformance.cases.written import to_yaml
from conformance.subjects.manifest import Manifest

FILE_OPS = ("header", "load", "tensor", "write")
NUMBER_OPS = ("quantize", "dequantize", "dot", "matvec")

# What a case's id cannot hold, and how much of a finding's words one does.
_UNFIT = re.compile(r"[^A-Za-z0-9.]+")
_LONGEST = 60

Say = Callable[[str], None]


class Plan(NamedTuple):
    """A search: ``subject`` is held to ``against``, in these ``ops`` and ggml ``types`` (none named: all that both do).

    It ends after ``seconds``, or after ``examples`` draws of hypothesis (each makes many inputs), whichever is given and comes
    first. With ``examples`` alone the same seed finds the same. ``stop_at_first`` ends at the first divergence, which is
    then not shrunk. What ``database`` keeps of earlier searches is tried first. Divergences with a signature in ``known`` are
    counted and left alone.
    """

    subject: Manifest
    against: Manifest
    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    seconds: float | None = None
    examples: int | None = None
    seed: int = 0
    stop_at_first: bool = False
    database: Path | None = None
    known: frozenset[str] = frozenset()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A divergence with the smallest input that shows it.

    ``focus`` is what the input is about, which tells apart findings with one signature. ``case`` is the case's mapping as YAML
    holds it, without expectations. ``values`` counts elements that are not zero, or pairs and tensors; ``nbytes`` the input's
    bytes.
    ``example``, ``inputs`` and ``seconds`` say when it was first seen. ``against`` marks what the measure itself does wrong.
    ``unstable`` says that fresh processes did not show it again.
    """

    signature: str
    focus: str
    summary: str
    expected: str
    found: str
    op: str
    type: str
    case: dict[str, Any]
    nbytes: int
    values: int
    example: int
    inputs: int
    seconds: float
    against: bool = False
    unstable: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.signature, self.focus

    @property
    def suite(self) -> str:
        """The case file that it belongs into."""
        return f"found/{self.op.partition(':')[0]}"

    @property
    def slug(self) -> str:
        """The last part of its case's id: what differs, what the input is about, and the input's digest."""
        digest = hashlib.blake2b(to_yaml(self.case).encode(), digest_size=3).hexdigest()
        about = _UNFIT.sub("-", f"{self.signature.partition(':')[2]}-{self.focus}").strip("-.")
        return f"{about[:_LONGEST]}-{digest}".lstrip("-._+")


class First(msgspec.Struct, frozen=True):
    """The first divergence of a search that stops there: what, and after how many draws, inputs and seconds."""

    signature: str
    summary: str
    example: int
    inputs: int
    seconds: float


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """What a search did: how much was put to both sides, in how many seconds of searching (shrinking apart), and its findings.

    ``first`` is set where it was to stop at the first divergence and there was one; ``waiting`` counts hits that were left as
    they were, for want of time; ``unsettled`` are the signatures of those in which the subject departs, as far as no finding
    has them; ``declined`` counts what the subject said that it does not do, ``known`` the hits of each known signature.
    """

    findings: tuple[Finding, ...]
    first: First | None
    waiting: int
    unsettled: tuple[str, ...] = ()
    examples: int
    files: int
    blocks: int
    seconds: float
    shrinking: float
    deaths: dict[str, int]
    declined: dict[str, int]
    known: dict[str, int] = {}
    interrupted: bool = False

    @property
    def divergences(self) -> tuple[Finding, ...]:
        """The findings that are the subject's."""
        return tuple(finding for finding in self.findings if not finding.against)

    @property
    def departs(self) -> bool:
        """Whether the subject was seen to depart, whether or not there was time to look into it."""
        return bool(self.divergences or self.first or self.unsettled)
