"""What a participant can do with a case, as a cell of the matrix shows it: a sign, a name for its colour, and words."""

from __future__ import annotations

from typing import NamedTuple

from conformance.judge.signature import Signature


class Kind(NamedTuple):
    """One kind of cell; ``name`` is its class in the page, ``sign`` what stands in the cell, ``words`` what the sign means."""

    name: str
    sign: str
    words: str


# Departures and deaths, the gravest first: a cell that has several shows the first.
MARKS = (
    Kind("dies", "†", "dies"),
    Kind("hangs", "∞", "does not answer in time"),
    Kind("memory", "▲", "takes too much memory"),
    Kind("fails", "E", "fails without a verdict on the input"),
    Kind("numbers", "≠", "computes other numbers"),
    Kind("values", "Δ", "reads or writes other values"),
    Kind("lax", "+", "accepts what is to be refused"),
    Kind("strict", "×", "refuses what is to be accepted"),
    Kind("reason", "◇", "refuses for another reason"),
    Kind("drift", "~", "is not what is declared or recorded of it"),
)
PLAIN = (
    Kind("accepts", "●", "accepts"),
    Kind("refuses", "○", "refuses"),
    Kind("half", "◐", "accepts one op, refuses another"),
    Kind("judged", "·", "judged, no answer kept"),
    Kind("skip", "–", "not claimed, or not compared"),
    Kind("unput", "?", "the case could not be put to it"),
    Kind("absent", "", "not run"),
)
KINDS = {kind.name: kind for kind in (*MARKS, *PLAIN)}
GRAVITY = {kind.name: place for place, kind in enumerate(MARKS)}
DEATHS = frozenset({"dies", "hangs", "memory"})

_OUTCOMES = {"crash": "dies", "timeout": "hangs", "memory": "memory", "error": "fails", "protocol": "fails"}
_NUMBER_OPS = frozenset({"dequantize", "quantize", "dot", "matvec"})


def mark_of_outcome(outcome: str) -> str | None:
    """Give the mark of an answer's outcome (``crash SIGSEGV``) that is no verdict on the input, None for ok and reject."""
    return _OUTCOMES.get(outcome.partition(" ")[0])


def mark_of_signature(text: str) -> str:
    """Give the mark of a divergence by its signature (``header:-:ok-for-reject-bad-magic:-``)."""
    signature = Signature.of(text)
    word = signature.kind.partition("-")[0]
    if word in _OUTCOMES or word == "unsupported":
        return _OUTCOMES.get(word, "fails")
    if "-for-" in signature.kind:
        return "lax" if word == "ok" else "strict"
    if signature.kind == "reject-class":
        return "reason"
    if signature.kind == "expectation":
        return "drift"
    return "numbers" if signature.op.partition(":")[0] in _NUMBER_OPS else "values"
