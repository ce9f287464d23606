"""Signatures, ``op:type:kind:place``: what of a divergence stays the same when only the input changes.

A recorded answer holds digests in place of long outputs and arrays, so a golden run sees less of a divergence than a live one.
The signature of a live run is the finer one, and stands for both.
"""

from __future__ import annotations

from typing import NamedTuple

DIGEST = "digest"
# What a digest says in place of a difference of this kind.
_OUTPUTS = {"bytes": "blocks", "bits": "values"}
# Kinds that only a comparison of values can show; the others follow from the outcome alone.
_OF_VALUES = frozenset({"bytes", "bits", "value", "type", "count", "size", DIGEST})


class Signature(NamedTuple):
    """The four parts. An op may have a variant (``quantize:ref``), so it may hold a colon itself."""

    op: str
    type: str
    kind: str
    place: str

    @classmethod
    def of(cls, text: str) -> Signature:
        """Take a signature apart; parts that lack are empty, so that a text which is none equals no other."""
        parts = text.rsplit(":", 3)
        return cls(*parts) if len(parts) == len(cls._fields) else cls("", "", "", text)

    @property
    def of_values(self) -> bool:
        """Whether only a comparison of values can show it."""
        return self.kind in _OF_VALUES


def as_digest(text: str) -> str:
    """Give what a golden run says of a live run's divergence where only digests are recorded; others as they are."""
    op, kind_name, kind, place = Signature.of(text)
    if kind in _OUTPUTS:
        return f"{op}:{kind_name}:{DIGEST}:{_OUTPUTS[kind]}"
    if kind == "value" and place.endswith(".value[*]"):
        return f"{op}:{kind_name}:{DIGEST}:{place}"
    return text


def satisfied(known: str, shown: str) -> bool:
    """Tell whether a divergence that shows itself as ``shown`` is the one that ``known`` names.

    A digest satisfies the finer signature that it may stand for. The reverse does not hold: a live run sees the finer fact,
    and a signature that leaves it out would hide a change.
    """
    return shown == known or (Signature.of(shown).kind == DIGEST and shown == as_digest(known))
