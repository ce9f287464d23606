"""The same question put to search: whether it finds the fault by itself, with nothing but the reference to compare with."""

from __future__ import annotations

import msgspec

from conformance.mutants.catalogue import Mutant
from conformance.mutants.make import make
from conformance.search.engine import search
from conformance.search.plan import Plan
from conformance.subjects.manifest import find_manifest, load_manifest

REFERENCE = "impl"


class Hunt(msgspec.Struct, frozen=True):
    """What a search came to: the signature of what it found (empty: nothing), and how many draws, inputs and seconds it took."""

    signature: str
    examples: int
    inputs: int
    seconds: float


def hunt(mutant: Mutant, seconds: float, seed: int = 0) -> Hunt:
    """Search for what tells a mutant from the reference, up to the first divergence. Raises as ``search`` does."""
    plan = Plan(
        load_manifest(make(mutant)),
        find_manifest(REFERENCE),
        ops=mutant.ops,
        types=mutant.types,
        seconds=seconds,
        seed=seed,
        stop_at_first=True,
    )
    found = search(plan, lambda _: None)
    if found.interrupted:  # search keeps what it has, and ends; here all is to end
        raise KeyboardInterrupt
    if found.first is None:
        return Hunt("", found.examples, found.files + found.blocks, found.seconds)
    return Hunt(found.first.signature, found.first.example, found.first.inputs, found.first.seconds)
