"""Smaller recipes, made of a recipe by leaving out: patches, layout, pairs, tensors, the file's end."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from conformance.search.file_documents import Recipe
from conformance.search.file_spots import without

_LAYOUT = ("n_tensors", "n_kv", "align", "pad_header", "pad_last", "data", "magic", "byteorder", "version")
_ENTRY = re.compile(r"(kv|tensors|data)\[(\d+)\](.*)", re.DOTALL)
# Up to this many bytes every length is tried, beyond it so many steps.
_LENGTHS = 160
_COUNTS = {"kv": "n_kv", "tensors": "n_tensors"}


def less_edited(recipe: Recipe) -> Iterator[Recipe]:
    """Leave out the cut, what is appended, patches, and what is laid out otherwise than usual."""
    for keys in (("patch", "cut", "append"), ("cut", "append"), ("append",), ("cut",), ("patch",), _LAYOUT):
        if any(key in recipe for key in keys):
            yield {key: value for key, value in recipe.items() if key not in keys}
    for path in recipe.get("patch", ()):
        yield tidied(without(recipe, ("patch", path)))
    for key in _LAYOUT:
        if key in recipe:
            yield {name: value for name, value in recipe.items() if name != key}


def afresh(recipe: Recipe) -> Iterator[Recipe]:
    """Start from files with next to nothing in them, with this file's edits and without; or only from its pairs, or its tensors."""
    edits: Recipe = {key: recipe[key] for key in ("patch", "cut", "append") if key in recipe}
    for tiny in _TINY:
        yield tiny
        yield {**tiny, **edits}
        if "kv" in recipe and "tensors" in recipe:
            yield from ({**kept(recipe, part, ()), part: tiny[part]} for part in _COUNTS if part in tiny)


def _pair(key: str = "a", **value: Any) -> dict[str, Any]:
    return {"key": key, **value}


def _tensor(kind: str | int = "I8", *dims: int, **more: Any) -> dict[str, Any]:
    return {"name": "", "type": kind, "dims": list(dims), **more}


_UNPADDED: tuple[dict[str, Any], ...] = ({"pad_header": False}, {"data": "none"}, {"pad_last": False})
_VALUES: tuple[Recipe, ...] = ({"u8": 0}, {"str": ""}, {"array": {"u8": []}})
_MORE_VALUES: tuple[Recipe, ...] = (
    *({"array": {"u8": [0]}}, {"array": {"str": [""]}}, {"array": {"array": []}}, {"array": {"array": [{"u8": []}]}}),
    *({"str": "a"}, {"raw": {"type": 13}}, {"bool": 2}),
)
_ALIGNMENTS: tuple[Recipe, ...] = ({"u8": 0}, {"u32": 0}, {"u32": 1}, {"u32": 24})
# One of each kind, sound or with the fault that it is known for: what ends at one of these is recognised as the same finding.
_TINY: tuple[Recipe, ...] = (
    {},
    *({"kv": [_pair(key, **value)]} for key in ("", "a") for value in _VALUES),
    *({"kv": [_pair(**value)]} for value in _MORE_VALUES),
    {"kv": [_pair(u8=0), _pair(u8=0)]},
    *({"kv": [_pair("general.alignment", **value)]} for value in _ALIGNMENTS),
    *({"tensors": [_tensor(kind, *dims)]} for kind in ("I8", "F32") for dims in ((), (1,), (0,))),
    *({"tensors": [_tensor(kind, *dims)]} for kind, dims in (("Q8_0", ()), ("Q8_0", (1,)), ("Q8_0", (32,)), (4, ()), (43, ()))),
    *({"tensors": [_tensor("I8", *dims)]} for dims in ((1, 1, 1, 1, 1), (2**63,), (2**62, 2), (2**32, 2**32))),
    {"tensors": [_tensor(offset=1, data="none")]},
    *({"tensors": [_tensor("I8", 1)], **change} for change in _UNPADDED),
    *({"tensors": [{**_tensor(), "name": {"repeat": "a", "count": 64}}], **change} for change in ({}, {"pad_last": False})),
    {"tensors": [_tensor(), _tensor()]},
    {"tensors": [_tensor(), {**_tensor(), "name": "a"}]},
)


def fewer_parts(recipe: Recipe) -> Iterator[Recipe]:
    """Leave out pairs and tensors: all but one of them, one kind, halves, each; then the same with the counts left as they are."""
    pairs, tensors = range(len(recipe.get("kv", ()))), range(len(recipe.get("tensors", ())))
    choices = [(frozenset[int](), frozenset[int]())]
    choices += [(frozenset({pair}), frozenset[int]()) for pair in pairs]
    choices += [(frozenset[int](), frozenset({tensor})) for tensor in tensors]
    choices += [(frozenset(pairs), frozenset[int]()), (frozenset[int](), frozenset(tensors))]
    choices += [(frozenset({pair}), frozenset({tensor})) for pair in pairs for tensor in tensors]
    choices += [(kept, frozenset(tensors)) for kept in _halves(pairs)] + [(frozenset(pairs), kept) for kept in _halves(tensors)]
    choices += [(frozenset(pairs) - {pair}, frozenset(tensors)) for pair in pairs]
    choices += [(frozenset(pairs), frozenset(tensors) - {tensor}) for tensor in tensors]
    for kept_pairs, kept_tensors in dict.fromkeys(choices):
        smaller = kept(kept(recipe, "kv", kept_pairs), "tensors", kept_tensors)
        yield smaller
        yield {**smaller, **{name: recipe.get(name, len(recipe[part])) for part, name in _COUNTS.items() if part in recipe}}


def _halves(numbers: range) -> list[frozenset[int]]:
    middle = len(numbers) // 2
    return [frozenset(numbers[:middle]), frozenset(numbers[middle:])]


def kept(recipe: Recipe, part: str, numbers: Collection[int]) -> Recipe:
    """Keep the pairs or tensors with these numbers; patches follow theirs, those of others go."""
    order = sorted(numbers)
    items = [recipe[part][number] for number in order] if part in recipe else []
    patch = {}
    for path, value in recipe.get("patch", {}).items():
        moved = _moved(path, part, order)
        if moved:
            patch[moved] = value
    return tidied({**recipe, part: items, "patch": patch})


def _moved(path: str, part: str, order: list[int]) -> str:
    """Give the path that a field has when only the pairs or tensors in ``order`` are there; empty if it is gone."""
    match = _ENTRY.fullmatch(path)
    if not match or (match[1] == "kv") != (part == "kv"):
        return path
    number = int(match[2])
    return f"{match[1]}[{order.index(number)}]{match[3]}" if number in order else ""


def tidied(recipe: Recipe) -> Recipe:
    """Leave out what holds nothing."""
    return {key: value for key, value in recipe.items() if value or key not in {"kv", "tensors", "patch"}}


def shorter(recipe: Recipe, size: int) -> Iterator[Recipe]:
    """End a file of ``size`` bytes earlier, at every length where it is small; or leave out its data or padding."""
    if "bytes" in recipe:
        yield from ({"bytes": recipe["bytes"][: 2 * length]} for length in _lengths(size))
        return
    bare = {key: value for key, value in recipe.items() if key != "append"}
    if "tensors" in recipe and "cut" not in recipe:
        yield from ({**bare, **change} for change in _UNPADDED)
    yield from ({**bare, "cut": length} for length in _lengths(size))


def _lengths(size: int) -> list[int]:
    """Give lengths below ``size``, in rising order."""
    if size <= _LENGTHS:
        return list(range(size))
    steps = {size * step // 64 for step in range(64)}
    return sorted(steps | {size - 2**power for power in range(size.bit_length()) if 2**power <= size})
