"""What is odd in a file without a lie: each count and length is right, but what is there comes twice, lacks, or is extreme."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformance.search.file_documents import Recipe
from conformance.search.file_draws import Draw, choose

_Form = Callable[[Draw, Recipe], Recipe | None]


def form(draw: Draw, recipe: Mapping[str, Any]) -> tuple[str, Recipe]:
    """Give an odd form of ``recipe`` and its name. Patches go: their fields may be others' now."""
    plain = {key: value for key, value in recipe.items() if key not in {"patch", "bytes"}}
    word, make = choose(draw, FORMS)
    made = make(draw, plain)
    return (word, made) if made else ("kv[*]=more", _with(plain, "kv", [{"key": "z", "u8": 0}]))


def _with(recipe: Recipe, part: str, items: list[Any]) -> Recipe:
    return {**recipe, part: [*recipe.get(part, ()), *items]}


def _changed(draw: Draw, recipe: Recipe, part: str, change: Callable[[Recipe], Recipe]) -> Recipe | None:
    """Change one pair or tensor; None where there is none."""
    items = list(recipe.get(part, ()))
    if not items:
        return None
    index = draw.below(len(items))
    items[index] = change(items[index])
    return {**recipe, part: items}


def _again(part: str) -> _Form:
    """Put one pair or tensor there twice."""

    def make(draw: Draw, recipe: Recipe) -> Recipe | None:
        items = recipe.get(part, ())
        return _with(recipe, part, [choose(draw, items)]) if items else None

    return make


def _without(part: str) -> _Form:
    def make(draw: Draw, recipe: Recipe) -> Recipe | None:
        items = list(recipe.get(part, ()))
        if not items:
            return None
        del items[draw.below(len(items))]
        return {**recipe, part: items}

    return make


def _swapped(part: str) -> _Form:
    """Let the first change places with another."""

    def make(draw: Draw, recipe: Recipe) -> Recipe | None:
        items = list(recipe.get(part, ()))
        if len(items) < 2:
            return None
        other = 1 + draw.below(len(items) - 1)
        items[0], items[other] = items[other], items[0]
        return {**recipe, part: items}

    return make


def _pair(*pairs: Recipe) -> _Form:
    def make(draw: Draw, recipe: Recipe) -> Recipe | None:
        return _with(recipe, "kv", [choose(draw, pairs)])

    return make


def _tensor(*tensors: Recipe) -> _Form:
    def make(draw: Draw, recipe: Recipe) -> Recipe | None:
        return _with(recipe, "tensors", [choose(draw, tensors)])

    return make


def _named(part: str, key: str, *texts: Any) -> _Form:
    """Give a pair another key, or a tensor another name."""

    def make(draw: Draw, recipe: Recipe) -> Recipe | None:
        text = choose(draw, texts)
        return _changed(draw, recipe, part, lambda item: {**item, key: text})

    return make


def _layout(*changes: Recipe) -> _Form:
    """Lay the file out otherwise."""

    def make(draw: Draw, recipe: Recipe) -> Recipe | None:
        return {**recipe, **choose(draw, changes)}

    return make


def _more_dims(draw: Draw, recipe: Recipe) -> Recipe | None:
    ones = [1] * choose(draw, (4, 5, 64))
    return _changed(draw, recipe, "tensors", lambda item: {**item, "dims": [*item["dims"], *ones]} if _listed(item) else item)


def _listed(tensor: Recipe) -> bool:
    return isinstance(tensor["dims"], list | tuple)


def _aligned(draw: Draw, recipe: Recipe) -> Recipe | None:
    """State an alignment and keep to it; an odd one is in order for some readers, one beyond reason for none."""
    pairs = [pair for pair in recipe.get("kv", ()) if pair["key"] != "general.alignment"]
    value = choose(draw, (64, 1, 2, 24, 48, 40, 0, 4096, 2**31))
    stated = {"key": "general.alignment", "u32": value}
    layout = {"align": 32} if value > 2**16 else {}
    return {**recipe, **layout, "kv": [stated, *pairs] if draw.below(2) else [*pairs, stated]}


def _nested(draw: Draw, recipe: Recipe) -> Recipe | None:
    return _with(recipe, "kv", [{"key": "deep", "nested": {"levels": choose(draw, (1, 2, 3, 64, 127, 1100)), "u8": [1]}}])


def _long(unit: str, *counts: int) -> list[Recipe]:
    return [{"repeat": unit, "count": count} for count in counts]


FORMS: tuple[tuple[str, _Form], ...] = (
    ("kv[*]=again", _again("kv")),
    ("kv[*]=missing", _without("kv")),
    ("kv[*]=order", _swapped("kv")),
    ("tensors[*]=again", _again("tensors")),
    ("tensors[*]=missing", _without("tensors")),
    ("tensors[*]=order", _swapped("tensors")),
    ("general.alignment=other", _aligned),
    ("general.alignment=type", _pair(*({"key": "general.alignment", kind: 32} for kind in ("u64", "i32", "u16", "u8")))),
    ("general.alignment=nul", _pair({"key": {"hex": b"general.alignment\0".hex()}, "u32": 64})),
    ("kv[*].key=empty", _named("kv", "key", "")),
    ("kv[*].key=long", _named("kv", "key", *_long("k", 64, 255, 65535, 65536))),
    ("kv[*].key=odd", _named("kv", "key", ".", "a..b", "A", "a b", {"hex": "ff"}, {"hex": "00"}, "GGUF.version", "GGUF.kv_count")),
    (
        "kv[*].type=unknown",
        _pair(*({"key": "raw", "raw": {"type": number, "hex": "00"}} for number in (13, 14, 255, 2**31, 2**32 - 1))),
    ),
    ("kv[*].value=nested", _nested),
    (
        "kv[*].value=arrays",
        _pair({"key": "z", "array": {"array": [{"u8": [1, 2]}, {"str": ["a"]}]}}, {"key": "z", "array": {"array": []}}),
    ),
    (
        "kv[*].value=long",
        _pair({"key": "z", "array": {"u8": {"fill": 1, "count": 4097}}}, {"key": "z", "str": {"repeat": "s", "count": 4097}}),
    ),
    (
        "kv[*].value=odd",
        _pair(
            *(
                {"key": "z", "str": text}
                for text in ({"hex": "efbbbf61"}, {"hex": "61ff"}, {"hex": "610062"}, " a ", "a\r\n", "null")
            ),
            {"key": "z", "array": {"str": [{"hex": "efbbbf"}, {"hex": "ff"}, ""]}},
        ),
    ),
    ("kv[*].value=bool", _pair({"key": "z", "bool": 2}, {"key": "z", "array": {"bool": [0, 1, 2, 255]}})),
    ("tensors[*].name=long", _named("tensors", "name", *_long("n", 63, 64, 65, 127, 128, 256))),
    ("tensors[*].name=odd", _named("tensors", "name", "", {"hex": "ff"}, {"hex": "7400"}, {"hex": "00"}, "é")),
    ("tensors[*].n_dims=many", _more_dims),
    (
        "tensors[*].n_dims=zero",
        _tensor({"name": "z", "type": "F32", "dims": []}, {"name": "z", "type": "Q8_0", "dims": [], "data": "none"}),
    ),
    (
        "tensors[*].dims=zero",
        _tensor(*({"name": "z", "type": "F32", "dims": dims} for dims in ([0], [4, 0], [0, 4], [4, 1, 0, 2]))),
    ),
    # The data's size fits into 64 bits; with the 368 bytes that ggml needs for each tensor besides, it does not.
    ("tensors[*].dims=most", _tensor(*({"name": "z", "type": "F64", "dims": [2**61 - less]} for less in (4, 20, 45, 80)))),
    ("tensors[*].dims=block", _tensor(*({"name": "z", "type": "Q8_0", "dims": dims} for dims in ([31], [33], [1, 32], [16, 2])))),
    ("tensors[*].type=removed", _tensor(*({"name": "z", "type": number, "dims": [32]} for number in (4, 5, 31, 36, 43, 2**31)))),
    ("data=unpadded", _layout({"pad_last": False}, {"data": "none"}, {"pad_header": False})),
    ("align=other", _layout({"align": 1}, {"align": 8}, {"align": 64}, {"align": 48})),
    ("byteorder=big", _layout({"byteorder": "big"})),
    ("version=old", _layout({"version": 1}, {"version": 2})),
)
