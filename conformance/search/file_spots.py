"""What a recipe says in single words: each number, text and run of bytes in it, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conformance.cases.integers import float_bits, parse_hex, parse_integer
from conformance.cases.plan import WIDTHS
from conformance.ggml_types import BY_ID, BY_NAME
from conformance.search.file_documents import Recipe, written
from conformance.search.file_texts import text_bytes, text_form

Place = tuple[str | int, ...]

_NUMBERS = ("version", "n_tensors", "n_kv", "align", "cut")


class Spot(NamedTuple):
    """A word of a recipe. ``role`` says how it is written: "text", "hex", "int", "type" (a ggml type), or a value type's name."""

    place: Place
    role: str
    value: Any

    @property
    def is_number(self) -> bool:
        """Whether it stands for a number: its bits, for a float or a negative one."""
        return self.role not in {"text", "hex"}

    @property
    def number(self) -> int:
        """The number that it stands for. Raises ValueError."""
        if self.role in {"f32", "f64"}:
            bits: int = float_bits(self.value, self.role)
            return bits
        if self.role == "type" and self.value in BY_NAME:
            return BY_NAME[self.value].id
        if self.role == "bool" and str(self.value).lower() in {"true", "false"}:
            return int(str(self.value).lower() == "true")
        number: int = parse_integer(self.value) % 2 ** (8 * WIDTHS.get(self.role, 8))
        return number

    @property
    def raw(self) -> bytes:
        """The bytes that it stands for. Raises ConfigurationError or ValueError."""
        return text_bytes(self.value) if self.role == "text" else parse_hex(self.value)

    def written(self, new: int | bytes) -> Any:
        """Write another number, or other bytes, in its place."""
        if isinstance(new, bytes):
            return text_form(new) if self.role == "text" else new.hex()
        if self.role == "type" and new in BY_ID and not BY_ID[new].removed:
            return BY_ID[new].name
        return written(self.role, new) if self.role in WIDTHS else new


def spots(recipe: Mapping[str, Any]) -> Iterator[Spot]:
    """Go through the words of a recipe; tensors' data are not among them."""
    for key in _NUMBERS:
        if key in recipe:
            yield Spot((key,), "int", recipe[key])
    if "magic" in recipe:
        yield Spot(("magic",), "text", recipe["magic"])
    if "bytes" in recipe:
        yield Spot(("bytes",), "hex", recipe["bytes"])
    for index, pair in enumerate(recipe.get("kv", ())):
        yield Spot(("kv", index, "key"), "text", pair["key"])
        yield from _value(("kv", index), pair)
    for index, tensor in enumerate(recipe.get("tensors", ())):
        yield from _tensor(("tensors", index), tensor)
    yield from _patches(recipe.get("patch", {}))
    if "append" in recipe:
        yield from _appended(recipe["append"])


def _value(place: Place, pair: Mapping[str, Any]) -> Iterator[Spot]:
    form = value_form(pair)
    body = pair[form]
    match form:
        case "str":
            yield Spot((*place, form), "text", body)
        case "array":
            yield from _array((*place, form), body)
        case "nested":
            yield Spot((*place, form, "levels"), "int", body["levels"])
            yield from _array((*place, form), {kind: items for kind, items in body.items() if kind != "levels"})
        case "raw":
            yield Spot((*place, form, "type"), "int", body["type"])
            if "hex" in body:
                yield Spot((*place, form, "hex"), "hex", body["hex"])
        case _:
            yield Spot((*place, form), form, body)


def value_form(pair: Mapping[str, Any]) -> str:
    """Give the form of a pair's value: a value type, ``nested`` or ``raw``."""
    return next(form for form in pair if form != "key")


def _array(place: Place, form: Mapping[str, Any]) -> Iterator[Spot]:
    ((kind, items),) = form.items()
    role = "text" if kind == "str" else kind
    if kind == "array":
        for index, item in enumerate(items):
            yield from _array((*place, kind, index), item)
    else:
        yield from _items((*place, kind), role, items)


def _items(place: Place, role: str, items: Any) -> Iterator[Spot]:
    """Elements, written out or as ``{fill: 0, count: 1000}``."""
    if isinstance(items, Mapping):
        yield Spot((*place, "fill"), role, items["fill"])
        yield Spot((*place, "count"), "int", items["count"])
        return
    for index, item in enumerate(items):
        yield Spot((*place, index), role, item)


def _tensor(place: Place, tensor: Mapping[str, Any]) -> Iterator[Spot]:
    yield Spot((*place, "name"), "text", tensor["name"])
    yield Spot((*place, "type"), "type", tensor["type"])
    yield from _items((*place, "dims"), "int", tensor["dims"])
    if "offset" in tensor:
        yield Spot((*place, "offset"), "int", tensor["offset"])


def _patches(patch: Mapping[str, Any]) -> Iterator[Spot]:
    for path, value in patch.items():
        if not isinstance(value, Mapping):
            is_float = isinstance(value, str) and value.startswith("0x") and len(value) in {10, 18}
            yield Spot(("patch", path), ("f32" if len(value) == 10 else "f64") if is_float else "int", value)
        elif "hex" in value:
            yield Spot(("patch", path, "hex"), "hex", value["hex"])
        else:
            yield Spot(("patch", path, "fill"), "int", value["fill"])


def _appended(form: Any) -> Iterator[Spot]:
    if isinstance(form, Mapping):
        yield Spot(("append", "count"), "int", form["count"])
    else:
        yield Spot(("append",), "hex", form)


def at(tree: Any, place: Place) -> Any:
    """Give what stands at ``place``."""
    for step in place:
        tree = tree[step]
    return tree


def put(tree: Any, place: Place, value: Any) -> Any:
    """Give a copy of ``tree`` with ``value`` at ``place``; what is not on the way there is shared."""
    if not place:
        return value
    step, *rest = place
    copied = list(tree) if isinstance(tree, list | tuple) else dict(tree)
    copied[step] = put(tree[step], tuple(rest), value) if rest else value  # type: ignore[index] # a step fits what it goes into
    return copied


def without(tree: Any, place: Place) -> Any:
    """Give a copy of ``tree`` in which nothing stands at ``place``."""
    *way, last = place
    inner = at(tree, tuple(way))
    if isinstance(inner, Mapping):
        kept: Any = {key: value for key, value in inner.items() if key != last}
    else:
        kept = [value for index, value in enumerate(inner) if index != last]
    return put(tree, tuple(way), kept)


def plain(tree: Any) -> Any:
    """Give a recipe as plain dicts and lists of its own."""
    if isinstance(tree, Mapping):
        return {str(key): plain(value) for key, value in tree.items()}
    return [plain(item) for item in tree] if isinstance(tree, list | tuple) else tree


def plain_recipe(recipe: Mapping[str, Any]) -> Recipe:
    """Give a recipe as plain dicts and lists, without parts that hold nothing."""
    made: Recipe = {key: plain(value) for key, value in recipe.items()}
    return {key: value for key, value in made.items() if value or key not in {"kv", "tensors", "patch"}}
