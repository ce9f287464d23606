"""What has to follow when a file becomes smaller before its cut, or within a length that reaches beyond its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from conformance.cases.build import build
from conformance.search.file_documents import Recipe
from conformance.search.file_fields import AFTERWARDS


class Extent(NamedTuple):
    """Sizes in bytes: of what stands before the padding, before the data, of the whole file before it is cut, and of the file."""

    header: int
    start: int
    whole: int
    final: int


def is_coupled(recipe: Recipe) -> bool:
    """Tell whether a cut or a patched length depends on the sizes of what is there."""
    return "cut" in recipe or any(map(_is_length, recipe.get("patch", ())))


def extent(recipe: Recipe, final: int) -> Extent:
    """Measure a recipe whose file has ``final`` bytes. Raises ConfigurationError."""
    whole, fields = build({key: value for key, value in recipe.items() if key not in AFTERWARDS})
    data = fields.find("data")
    start = data.offset if data else len(whole)
    padding = fields.find("padding")
    return Extent(padding.offset if padding else start, start, len(whole), final)


def followed(recipe: Recipe, before: Recipe, sizes: Extent) -> Iterator[Recipe]:
    """Give ``recipe`` with its cut and its patched lengths moved by what it is smaller than ``before`` (of ``sizes``)."""
    now = extent(recipe, 0)
    gone = [old - new for old, new in zip(sizes[:3], now[:3], strict=True)]
    if recipe.get("cut") != before.get("cut"):
        gone = [sizes.final - int(recipe["cut"])] if "cut" in recipe else []
        yield from (_moved(recipe, 0, size, 2 * sizes.whole) for size in gone if size > 0)
        return
    for size in dict.fromkeys(each for each in gone if each > 0):
        yield from (_moved(recipe, *by, 2 * sizes.whole) for by in ((size, size), (size, 0), (0, size)))


def _is_length(path: str) -> bool:
    return path.endswith(".length")


def _moved(recipe: Recipe, cut_by: int, lengths_by: int, reach: int) -> Recipe:
    moved = dict(recipe)
    if "cut" in recipe:
        moved["cut"] = max(int(recipe["cut"]) - cut_by, 0)
    if "patch" in recipe:
        moved["patch"] = {path: _less(path, value, lengths_by, reach) for path, value in recipe["patch"].items()}
    return moved


def _less(path: str, value: object, by: int, reach: int) -> object:
    """Give a smaller length; one that reaches far beyond the file depends on nothing in it."""
    return value - by if _is_length(path) and isinstance(value, int) and by <= value <= reach else value
