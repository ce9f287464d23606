"""A file that was found, as a case, and in a word what it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance.cases.build import build
from conformance.cases.integers import parse_integer
from conformance.cases.plan import WIDTHS
from conformance.ggml_types import BY_ID
from conformance.judge.headers import general_path
from conformance.search.file_documents import Recipe
from conformance.search.file_fields import AFTERWARDS
from conformance.search.file_spots import Spot, plain_recipe, put, spots, value_form
from conformance.search.file_texts import text_bytes
from conformance.search.probe import FileOp

# Arrays in arrays: how many does not matter.
_LEVELS = re.compile(r"(?:\[\*\]){3,}")
_ALIGNMENT = b"general.alignment"
# What a file made small has in any case, and where it ends early: it is about these only where there is nothing else.
_SMALLEST = (".n_dims:0", ".dims:0", ".key:empty", ":empty-array")
_ENDS = ("data:none", "pad_header", "pad_last")
# What else a recipe may say of the file as a whole, beside its parts and its edits.
_WHOLE = ("magic", "version", "byteorder", "n_tensors", "n_kv", "align", "pad_header", "pad_last")


def case_of(recipe: Mapping[str, Any], op: FileOp, **about: Any) -> dict[str, Any]:
    """Give a case's mapping (docs/cases.md) that asks ``op`` of the file that ``recipe`` builds, byte for byte.

    ``about`` are keys beside it (``note``, ``spec``, ``expect``, ``covers``): without ``expect`` it is to be added before the case
    loads. All scalars are text, as a loaded case has them; keys, names and strings are written so that each of their bytes shows.
    """
    made = _as_text(_shown(plain_recipe(recipe)))
    source = {"bytes": made["bytes"]} if "bytes" in made else {"build": made}
    return {**source, "ask": [op], **about}


def _as_text(tree: Any) -> Any:
    """Write numbers and yes or no as a case file holds them: as text, which the grammar reads."""
    if isinstance(tree, dict):
        return {key: _as_text(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_as_text(item) for item in tree]
    return str(tree).lower() if isinstance(tree, bool) else str(tree)


def _shown(recipe: Recipe) -> Recipe:
    """Write keys, names and strings so that whatever they hold can be read in the file."""
    for spot in list(spots(recipe)):
        if spot.role == "text" and not isinstance(spot.value, Mapping):
            recipe = put(recipe, spot.place, spot.written(spot.raw))
    return recipe


def focus(recipe: Mapping[str, Any]) -> str:
    """Say in a word what a minimal file is about: patched fields, where it is cut, and what is odd in it, without indices.

    Where nothing is odd it is what there is, ``kv[*].value:u64`` or ``tensors[*].type:Q4_K``; an empty file is ``empty``.
    """
    taken = plain_recipe(recipe)
    if "bytes" in taken:
        return "bytes"
    found = {*_edited(taken), *_whole(taken), *_odd_pairs(taken), *_odd_tensors(taken)}
    odd = {word for word in found if not word.endswith(_SMALLEST)}
    about = odd.difference(_ENDS) or odd or found or set(_plain_parts(taken))
    return _LEVELS.sub("[*]..", " + ".join(sorted(about))) or "empty"


def _edited(recipe: Recipe) -> Iterator[str]:
    keys = [text_bytes(pair["key"]) for pair in recipe.get("kv", ())]
    for path in recipe.get("patch", {}):
        is_alignment = any(path == f"kv[{index}].value" and key == _ALIGNMENT for index, key in enumerate(keys))
        yield "general.alignment" if is_alignment else general_path(path)
    if "cut" in recipe:
        yield f"cut:{_cut_field(recipe)}"
    if "append" in recipe:
        yield "appended"


def _cut_field(recipe: Recipe) -> str:
    """Give the field that the file ends before, or within."""
    _, fields = build({key: value for key, value in recipe.items() if key not in AFTERWARDS})
    size = len(build({key: value for key, value in recipe.items() if key != "append"}).data)
    field = fields.at(size)
    return general_path(field.path) if field else "end"


def _whole(recipe: Recipe) -> Iterator[str]:
    yield from (key for key in _WHOLE if key in recipe)
    if recipe.get("data") == "none":
        yield "data:none"


def _odd_pairs(recipe: Recipe) -> Iterator[str]:
    pairs = recipe.get("kv", ())
    keys = [text_bytes(pair["key"]) for pair in pairs]
    if len(set(keys)) < len(keys):
        yield "kv[*].key:twice"
    for key, pair in zip(keys, pairs, strict=True):
        if key.partition(b"\0")[0] == _ALIGNMENT:
            yield "general.alignment" if key == _ALIGNMENT else "general.alignment:nul"
        elif word := _odd_key(key):
            yield f"kv[*].key:{word}"
        if word := _odd_value(pair):
            yield f"kv[*].value:{word}"


def _odd_key(key: bytes) -> str:
    if key.startswith(b"GGUF."):
        return key.decode("utf-8", "replace")
    if len(key) > 65535:
        return "length>65535"
    return _odd_text(key) or ("empty-part" if b"" in key.split(b".") else "capitals" if key != key.lower() else "")


def _odd_text(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return "not-utf8"
    tests = (("empty", not raw), ("nul", b"\0" in raw), ("not-ascii", not text.isascii()), ("control", not text.isprintable()))
    return next((word for word, holds in tests if holds), "")


def _odd_value(pair: Recipe) -> str:
    form = value_form(pair)
    body = pair[form]
    match form:
        case "array":
            ((kind, items),) = body.items()
            return f"array-of-{kind}" if kind == "array" else f"array-of-{kind}:empty-array" if items == [] else ""
        case "nested":
            return "array-of-array"
        case "raw":
            return "type:unknown"
        case "str":
            word = _odd_text(text_bytes(body))
            return f"str:{word}" if word else ""
        case "bool":
            return "bool:other" if Spot(("bool",), "bool", body).number > 1 else ""
    return ""


def _odd_tensors(recipe: Recipe) -> Iterator[str]:
    tensors = recipe.get("tensors", ())
    names = [text_bytes(tensor["name"]) for tensor in tensors]
    if len(set(names)) < len(names):
        yield "tensors[*].name:twice"
    for name, tensor in zip(names, tensors, strict=True):
        if len(name) >= 64:
            yield "tensors[*].name:length>=64"
        elif name and (word := _odd_text(name)):
            yield f"tensors[*].name:{word}"
        yield from (f"tensors[*].{word}" for word, holds in _TENSORS if holds(tensor))


def _dims(tensor: Recipe) -> list[int]:
    dims = tensor["dims"]
    return [parse_integer(dim) for dim in dims] if isinstance(dims, list) else [parse_integer(dims["fill"])] * int(dims["count"])


def _product(tensor: Recipe) -> int:
    product = 1
    for dim in _dims(tensor):
        product *= max(dim, 1)
    return product


def _type_number(tensor: Recipe) -> int:
    return Spot(("type",), "type", tensor["type"]).number


def _is_known(tensor: Recipe) -> bool:
    kind = BY_ID.get(_type_number(tensor))
    return kind is not None and not kind.removed


def _has_broken_row(tensor: Recipe) -> bool:
    return _is_known(tensor) and (_dims(tensor) or [1])[0] % BY_ID[_type_number(tensor)].block != 0


_TENSORS: tuple[tuple[str, Callable[[Recipe], bool]], ...] = (
    ("n_dims:0", lambda tensor: not _dims(tensor)),
    ("n_dims>4", lambda tensor: len(_dims(tensor)) > 4),
    ("dims:0", lambda tensor: 0 in _dims(tensor)),
    ("dims:huge", lambda tensor: _product(tensor) >= 2**31),
    ("dims:block", _has_broken_row),
    ("type:unknown", lambda tensor: not _is_known(tensor)),
    ("offset", lambda tensor: "offset" in tensor),
)


def _plain_parts(recipe: Recipe) -> Iterator[str]:
    for pair in recipe.get("kv", ()):
        form = value_form(pair)
        yield f"kv[*].value:{form if form in WIDTHS or form == 'str' else f'array-of-{next(iter(pair[form]))}'}"
    for tensor in recipe.get("tensors", ()):
        yield f"tensors[*].type:{BY_ID[_type_number(tensor)].name}"
