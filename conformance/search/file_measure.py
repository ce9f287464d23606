"""How large a recipe is: what shrinking makes smaller at every step, and therefore ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from conformance.cases.directory import MAX_DATA
from conformance.cases.integers import parse_integer
from conformance.ggml_types import BY_NAME
from conformance.search.file_documents import Recipe
from conformance.search.file_spots import Spot, spots
from conformance.values import VALUE_TYPES

# Files with tensors beyond this are not built.
_LARGE = 2**20
# What each part of a recipe costs beside what is in it, so that fewer parts are simpler than smaller numbers up to this.
_PART = 1000
# Forms of values in the order of the types' numbers; a nest and raw bytes say more than any type.
_FORMS = {form: index for index, form in enumerate((*VALUE_TYPES, "nested", "raw"))}


class Measure(NamedTuple):
    """Bytes of the file; then patches, cut and appended bytes; then what the recipe's parts, numbers and texts cost."""

    nbytes: int
    edits: int
    weight: int


def measured(recipe: Recipe, nbytes: int) -> Measure:
    """Measure a recipe whose file has ``nbytes``."""
    edits = len(recipe.get("patch", ())) + ("cut" in recipe) + ("append" in recipe)
    return Measure(nbytes, edits, _parts(recipe) + sum(map(_cost, spots(recipe))))


def too_large(recipe: Recipe) -> bool:
    """Tell whether a tensor's data, or an alignment, makes a file of megabytes: it takes long to build, and is no small one."""
    if recipe.get("tensors") and any(number > _LARGE for number in _alignments(recipe)):
        return True
    return any(_LARGE < _end(tensor) <= MAX_DATA for tensor in recipe.get("tensors", ()) if tensor.get("data") != "none")


def _alignments(recipe: Recipe) -> Iterator[int]:
    if "align" in recipe:
        yield parse_integer(recipe["align"])
        return
    yield from (parse_integer(pair["u32"]) for pair in recipe.get("kv", ()) if pair["key"] == "general.alignment" and "u32" in pair)


def _end(tensor: Recipe) -> int:
    """Give where a tensor's data would end."""
    dims = [parse_integer(dim) for dim in tensor["dims"]] if isinstance(tensor["dims"], list) else [0]
    kind = BY_NAME.get(str(tensor["type"]))
    size = prod(dims) * (kind.nbytes if kind else 8) // max(kind.block if kind else 1, 1)
    return size + parse_integer(tensor.get("offset", 0))


def _parts(tree: Any) -> int:
    if isinstance(tree, Mapping):
        return sum(_PART + _FORMS.get(key, 0) + _parts(value) for key, value in tree.items())
    return sum(_PART + _parts(item) for item in tree) if isinstance(tree, list | tuple) else 0


def _cost(spot: Spot) -> int:
    if spot.is_number:
        return spot.number
    if spot.role == "hex":
        return sum(1 + byte for byte in spot.raw)
    return sum(map(_letter_cost, spot.raw))


def _letter_cost(byte: int) -> int:
    """Hold ``a`` for the simplest, then the other small letters, then what can be printed."""
    if 0x61 <= byte <= 0x7A:
        return 1 + byte - 0x61
    return 64 + byte if 0x20 <= byte < 0x7F else 512 + byte
