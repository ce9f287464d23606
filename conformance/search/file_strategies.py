"""hypothesis strategies for files: sound ones, broken ones, and their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from conformance.cases.build import build
from conformance.search.file_documents import document
from conformance.search.file_draws import Tape
from conformance.search.file_fields import anatomy
from conformance.search.variants import both, drawn_fault, faulty

# Bytes that a document and its faults are made of. hypothesis draws a row of fixed size twice as fast as one of any size.
_DOCUMENT, _FAULTS = 128, 48


def documents() -> st.SearchStrategy[dict[str, Any]]:
    """Recipes (docs/cases.md) of sound files: 0 to 6 pairs of all value types, 0 to 4 tensors of all ggml types, data included.

    Sound is what the layout allows. Big-endian files, arrays of arrays, empty parts of keys and names that are no UTF-8 are among
    them, which some readers refuse. Shrinks towards few pairs and tensors of the simplest types.
    """
    return _bytes(_DOCUMENT).map(lambda tape: document(Tape(tape)))


def broken_files() -> st.SearchStrategy[dict[str, Any]]:
    """Recipes of files with one to three faults: a sound one with ``patch``, ``cut`` or ``append``.

    A fault changes bytes; a reader may still take the file (data, padding, a version 2 in place of 3).
    """
    return _bytes(_DOCUMENT + _FAULTS).map(_broken)


def file_bytes(recipes: st.SearchStrategy[Mapping[str, Any]] | None = None) -> st.SearchStrategy[bytes]:
    """Bytes of files: of ``recipes``, else of sound and broken ones. One that does not build raises ConfigurationError."""
    return (recipes if recipes is not None else st.one_of(documents(), broken_files())).map(lambda recipe: build(recipe).data)


def _bytes(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


def _broken(tape: bytes) -> dict[str, Any]:
    taken, draw = anatomy(document(Tape(tape[:_DOCUMENT]))), Tape(tape[_DOCUMENT:])
    count = 1 + draw.below(3)
    fault = drawn_fault(draw, taken)
    for _ in range(count - 1):
        fault = both(fault, drawn_fault(draw, taken))
    return faulty(taken, fault)
