"""Documents as trees that can be made wrong: mappings with keys twice, text that stands as it is, numbers without bound."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

# The steps to a node: places in lists; of a mapping, in its list of pairs.
Place = tuple[int, ...]


class Raw(str):
    """Written as it stands: an alias, a tag, a number that JSON does not have."""

    __slots__ = ()


class Pairs(list[tuple[Any, Any]]):
    """A mapping as a list of key and value, so that a key may stand twice."""


Tree = Any  # Pairs | list[Tree] | str | Raw | int | float | bool | None


def of_value(value: Any) -> Tree:
    """Turn dicts, at any depth, into Pairs."""
    if isinstance(value, dict):
        return Pairs((key, of_value(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return [of_value(item) for item in value]
    return value


def of_yaml(path: Path, *, typed: bool = False) -> Tree:
    """Read a sound YAML file; scalars stay text unless ``typed``."""
    loader = yaml.SafeLoader if typed else yaml.BaseLoader
    return of_value(yaml.load(path.read_text(encoding="utf-8"), Loader=loader))  # noqa: S506 - one of the two safe ones


def emit(tree: Tree) -> str:
    """Write a tree as JSON, which is YAML too."""
    if isinstance(tree, Raw):
        return str(tree)
    if isinstance(tree, Pairs):
        return "{" + ", ".join(f"{_key(key)}: {emit(value)}" for key, value in tree) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(emit(item) for item in tree) + "]"
    return _quoted(tree) if isinstance(tree, str) else json.dumps(tree)


def _quoted(text: str) -> str:
    """Write text so that JSON and YAML read the same: signs stand for themselves, but for those that YAML wants escaped.

    JSON's escapes of signs beyond the first 65,536 are two surrogates each, which YAML takes for that.
    """
    plain = (
        sign if sign.isprintable() and sign not in '"\\' else f"\\u{ord(sign):04x}"
        for sign in text
        if ord(sign) < 1 << 16 or sign.isprintable()
    )
    return f'"{"".join(plain)}"'


def _key(key: Tree) -> str:
    return emit(key) if isinstance(key, str) else f"? {emit(key)} "


def paths(tree: Tree, at: Place = ()) -> Iterator[Place]:
    """Give the path of each node, the root's first; of a mapping the steps count pairs and lead to their values."""
    yield at
    if isinstance(tree, list):
        for index, item in enumerate(tree):
            yield from paths(item[1] if isinstance(tree, Pairs) else item, (*at, index))


def get(tree: Tree, path: Sequence[int]) -> Tree:
    """Give the node at ``path``."""
    for step in path:
        tree = tree[step][1] if isinstance(tree, Pairs) else tree[step]
    return tree


def put(tree: Tree, path: Sequence[int], value: Tree) -> Tree:
    """Give a copy with ``value`` at ``path``."""
    if not path:
        return value
    step, *rest = path
    copy = type(tree)(tree)
    if isinstance(tree, Pairs):
        copy[step] = (tree[step][0], put(tree[step][1], rest, value))
    else:
        copy[step] = put(tree[step], rest, value)
    return copy


def rename(tree: Tree, path: Sequence[int], key: Tree) -> Tree:
    """Give a copy in which the pair at ``path`` has another key; what is no pair is left as it is."""
    parent = get(tree, path[:-1]) if path else None
    if not isinstance(parent, Pairs):
        return tree
    copy = Pairs(parent)
    copy[path[-1]] = (key, parent[path[-1]][1])
    return put(tree, path[:-1], copy)


def drop(tree: Tree, path: Sequence[int]) -> Tree:
    """Give a copy without the item or pair at ``path``; of the root an empty one of its kind."""
    if not path:
        return type(tree)() if isinstance(tree, list) else ""
    parent = get(tree, path[:-1])
    return put(tree, path[:-1], type(parent)([*parent[: path[-1]], *parent[path[-1] + 1 :]]))


def double(tree: Tree, path: Sequence[int]) -> Tree:
    """Give a copy with the item or pair at ``path`` twice; the root stands in a list with itself."""
    if not path:
        return [tree, tree]
    parent = get(tree, path[:-1])
    return put(tree, path[:-1], type(parent)([*parent[: path[-1] + 1], *parent[path[-1] :]]))
