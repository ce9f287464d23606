"""Who is right about a dequantized value: the exact model's word on the one element at fault."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from conformance.ggml_types import BY_NAME
from conformance.judge.exact import EXACT_TYPES, exact_dequantize, explain
from conformance.judge.exact.real import CANONICAL_NAN


class Sides(NamedTuple):
    """The two that differ, and the float32 bits that each gave."""

    authority: str
    expected: int
    subject: str
    found: int


def third_opinion(type_name: str, blocks: Path, index: int, sides: Sides) -> tuple[str, ...]:
    """Give remarks on element ``index`` of all that the blocks in a file hold: the verdict, and how the value comes about.

    Gives none for a type without a model. Only the element's own block is read.
    """
    if type_name not in EXACT_TYPES:
        return ()
    kind = BY_NAME[type_name]
    number, element = divmod(index, kind.block)
    block = _read(blocks, number * kind.nbytes, kind.nbytes)
    if len(block) < kind.nbytes:
        return (f"exact model: block {number} of the input cannot be read again",)
    right = exact_dequantize(type_name, block)[element]
    return (f"exact model: 0x{right:08x}: {_verdict(right, sides)}", explain(type_name, block, element))


def _read(path: Path, start: int, nbytes: int) -> bytes:
    """Read a part of a file; what is not there any more (a subject may do anything to a file it was given) is left out."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(nbytes)
    except OSError:
        return b""


def _verdict(right: int, sides: Sides) -> str:
    expected, found = _one_nan(sides.expected), _one_nan(sides.found)
    if expected == found:
        return "it does not say which NaN"
    if right == expected:
        return f"{sides.authority} is right, {sides.subject} is not"
    if right == found:
        return f"{sides.subject} is right, {sides.authority} is not"
    return f"neither {sides.authority} nor {sides.subject} is right"


def _one_nan(bits: int) -> int:
    """Give the bits as the model writes them: every NaN the same."""
    return CANONICAL_NAN if bits & 0x7FFFFFFF > 0x7F800000 else bits
