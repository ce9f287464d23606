"""Simpler recipes of as many parts: patches taken in, shorter texts and arrays, plainer types, smaller numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.cases.plan import WIDTHS
from conformance.ggml_types import BY_ID
from conformance.search.file_documents import Recipe, written
from conformance.search.file_smaller import tidied
from conformance.search.file_spots import Place, Spot, at, put, spots, value_form, without
from conformance.search.file_texts import text_form

_SINGLE = re.compile(r"(version|n_tensors|n_kv|magic)|(kv|tensors)\[(\d+)\]\.(key|value|name|type|offset|dims\[(\d+)\])")
_EDGES = sorted(
    {2**power + step for power in (5, 6, 7, 8, 16, 24, *range(29, 34), 40, 48, 53, *range(58, 64)) for step in (-1, 0, 1)}
)
# All numbers below this are tried.
_SMALL = 33
# Of longer arrays and texts single elements are not tried.
_FEW = 16


def absorbed(recipe: Recipe) -> Iterator[Recipe]:
    """Say in the recipe itself what a patch writes over it."""
    for path, value in recipe.get("patch", {}).items():
        rest = tidied(without(recipe, ("patch", path)))
        place = _place(rest, path)
        if place is None:
            continue
        said = text_form(bytes.fromhex(value["hex"])) if isinstance(value, Mapping) and "hex" in value else value
        changed = put(rest, place, said)
        yield changed
        if place[-1] == "u32" and "tensors" in recipe and "align" not in recipe:  # general.alignment without its effect
            yield {**changed, "align": max(int(at(rest, place)), 1)}


def _place(recipe: Recipe, path: str) -> Place | None:
    """Give where a recipe says what the field ``path`` holds."""
    match = _SINGLE.fullmatch(path)
    if not match:
        return None
    if match[1]:
        return (match[1],)
    part, index, name = match[2], int(match[3]), match[4]
    if name == "value":
        form = value_form(recipe["kv"][index])
        return ("kv", index, form) if form in WIDTHS or form == "str" else None
    if match[5]:
        return (part, index, "dims", int(match[5])) if isinstance(recipe[part][index]["dims"], list) else None
    return None if (part, name) == ("kv", "type") else (part, index, name)


def plainer(recipe: Recipe) -> Iterator[Recipe]:
    """Give plainer values, all at once and one by one, then plainer tensors."""
    pairs, tensors = recipe.get("kv", []), recipe.get("tensors", [])
    yield tidied({**recipe, "kv": [{"key": _letter(i), "u8": 0} for i in range(len(pairs))]})
    yield tidied({**recipe, "tensors": [{"name": _letter(i), "type": "I8", "dims": [1]} for i in range(len(tensors))]})
    yield tidied({**recipe, "kv": [{"key": pair["key"], "u8": 0} for pair in pairs]})
    for index, pair in enumerate(pairs):
        yield from (put(recipe, ("kv", index), {"key": pair["key"], **value}) for value in _plainer_values(pair))
    for index, tensor in enumerate(tensors):
        yield from (put(recipe, ("tensors", index), changed) for changed in _plainer_tensors(tensor))


def _letter(index: int) -> str:
    return chr(ord("a") + index % 26)


def _plainer_values(pair: Recipe) -> Iterator[Recipe]:
    form = value_form(pair)
    body = pair[form]
    if form in WIDTHS:
        spot = Spot((form,), form, body)
        yield from ({kind: written(kind, number)} for kind in WIDTHS for number in (0, spot.number % 256) if kind != form)
        return
    yield {"u8": 0}
    if form == "array":
        yield from ({"array": array} for array in _plainer_arrays(body))
    elif form == "nested":
        inner = {kind: items for kind, items in body.items() if kind != "levels"}
        yield {"array": inner}
        yield {"array": {"array": [inner]}}
        yield from ({"nested": {"levels": body["levels"], **array}} for array in _plainer_arrays(inner))


def _plainer_arrays(array: Recipe) -> Iterator[Recipe]:
    ((kind, items),) = array.items()
    yield from ({"u8": []}, {kind: []})
    if not isinstance(items, list):
        yield {kind: [items["fill"]]}
        return
    yield from ({kind: part} for part in _parts_of(items))
    if kind in WIDTHS:
        yield from ({"u8": [number] * len(items)} for number in (0, 1))
    if kind == "array":
        yield from items
        for index, item in enumerate(items[:_FEW]):
            yield from ({kind: [*items[:index], plainer_item, *items[index + 1 :]]} for plainer_item in _plainer_arrays(item))


def _parts_of(items: Sequence[Any]) -> Iterator[list[Any]]:
    """Give halves of a list, and it without each element."""
    middle = len(items) // 2
    if middle:
        yield from (list(items[:middle]), list(items[middle:]))
    for index in range(min(len(items), _FEW)):
        yield [*items[:index], *items[index + 1 :]]


def _plainer_tensors(tensor: Recipe) -> Iterator[Recipe]:
    yield {"name": tensor["name"], "type": "I8", "dims": [1]}
    for key in ("data", "offset"):
        if key in tensor:
            yield {name: value for name, value in tensor.items() if name != key}
    if "data" not in tensor:
        yield {**tensor, "data": "none"}
    dims = tensor["dims"] if isinstance(tensor["dims"], list) else []
    yield from ({**tensor, "dims": part} for part in ([], [1], *_parts_of(dims)))
    for name in ("I8", "F32", "Q8_0"):
        kind = next(kind for kind in BY_ID.values() if kind.name == name)
        yield {**tensor, "type": name}
        yield {**tensor, "type": name, "dims": [kind.block, *dims[1:]]}
    kind_now = next((kind for kind in BY_ID.values() if tensor["type"] in {kind.name, kind.id} and not kind.removed), None)
    if kind_now:
        yield {**tensor, "dims": [kind_now.block] + [1] * (len(dims) - 1)}
        yield {**tensor, "dims": [kind_now.block]}


def shorter_texts(recipe: Recipe) -> Iterator[Recipe]:
    """Give shorter and plainer keys, names, strings and bytes."""
    texts = [spot for spot in spots(recipe) if not spot.is_number and spot.place != ("bytes",)]
    for spot in texts:
        twins = [other for other in texts if (other.role, other.raw) == (spot.role, spot.raw)]
        for raw in _plainer_bytes(spot):
            yield put(recipe, spot.place, spot.written(raw))
            if len(twins) > 1:  # a key or a name that is there twice stays so
                yield _all_put(recipe, twins, raw)


def _all_put(recipe: Recipe, places: Sequence[Spot], raw: bytes) -> Recipe:
    for spot in places:
        recipe = put(recipe, spot.place, spot.written(raw))
    return recipe


def _plainer_bytes(spot: Spot) -> Iterator[bytes]:
    raw, filler = spot.raw, b"\0" if spot.role == "hex" else b"a"
    if spot.place[0] != "patch" and spot.place != ("magic",):
        yield from dict.fromkeys((b"", b"a", b"b", raw[: len(raw) // 2], raw[len(raw) // 2 :], raw[:-1], raw[1:]))
        for size in (1, 2, 4, 8, 16, 32, 64, 128):
            if size < len(raw):
                yield raw[:-size]
                yield filler * (len(raw) - size)
    yield filler * len(raw)
    if len(raw) <= _FEW:
        for index in range(len(raw)):
            yield raw[:index] + filler + raw[index + 1 :]
            if spot.place[0] != "patch":
                yield raw[:index] + raw[index + 1 :]


def number_places(recipe: Recipe) -> list[Place]:
    """Give the places of the numbers that may be made smaller by themselves."""
    return [spot.place for spot in spots(recipe) if spot.is_number and spot.place != ("cut",)]


def number_at(recipe: Recipe, place: Place) -> int:
    """Give the number that stands at ``place``."""
    return _spot(recipe, place).number


def with_number(recipe: Recipe, place: Place, number: int) -> Iterator[Recipe]:
    """Give the recipe with another number; a tensor that lies elsewhere also without data, which would make the file longer."""
    changed = put(recipe, place, _spot(recipe, place).written(number))
    yield changed
    if place[-1] == "offset":
        yield put(changed, (*place[:-1], "data"), "none")


def _spot(recipe: Recipe, place: Place) -> Spot:
    return next(spot for spot in spots(recipe) if spot.place == place)


def edges_below(number: int) -> list[int]:
    """Give numbers below ``number``, in rising order: all small ones, then powers of two and their neighbours."""
    return [*range(min(number, _SMALL)), *(edge for edge in _EDGES if _SMALL <= edge < number)]


def between(low: int, high: int) -> list[int]:
    """Give seven numbers that part what lies between two into eighths, fewer where it is less."""
    return sorted({low + (high - low) * step // 8 for step in range(1, 8)} - {low, high})
