"""A built file taken apart for search: where each of its fields stands, and what kind of thing it is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from math import prod
from typing import Any, Literal, NamedTuple

from conformance.cases.build import build
from conformance.ggml_types import BY_ID
from conformance.judge.headers import general_path

_TENSOR = re.compile(r"tensors\[(\d+)\]")
_ALIGNMENT = b"general.alignment"
# What is done to the file as a whole, after its fields are laid out.
AFTERWARDS = frozenset({"cut", "append"})
# How often a field is chosen: readers look at few of a file's first and last bytes, at the alignment first of all.
_WEIGHTS = {"magic": 1, "version": 1, "padding": 1, "data[*]": 1, "data[*].padding": 1, "bytes": 1, "general.alignment": 5}
_WEIGHT = 3


class Site(NamedTuple):
    """A field: its ``path``, the path ``general`` to all like it (``kv[*].key``), its place, and what it holds in the sound file.

    ``kind`` is the field map's; ``alignment`` where it is the value of general.alignment.
    """

    path: str
    general: str
    offset: int
    length: int
    kind: str
    before: bytes

    @property
    def end(self) -> int:
        """Offset of the first byte after the field."""
        return self.offset + self.length


class Anatomy(NamedTuple):
    """A file's bytes and its fields: by their general paths, by their places, and those of each tensor's entry by their names.

    ``groups`` are those with one general path, each as many times as it shall be chosen.
    """

    recipe: Mapping[str, Any]
    data: bytes
    order: Literal["little", "big"]
    groups: tuple[tuple[Site, ...], ...]
    sites: tuple[Site, ...]
    starts: tuple[int, ...]
    tensors: tuple[dict[str, Site], ...]

    def at(self, offset: int) -> Site:
        """Give the field that holds the byte at ``offset``, or the last one before it."""
        return self.sites[bisect_right(self.starts, offset) - 1]

    def named(self, general: str) -> tuple[Site, ...]:
        """Give the fields with this general path."""
        return next((group for group in self.groups if group[0].general == general), ())

    def number(self, site: Site) -> int:
        """Give the number that a field holds in the sound file."""
        return int.from_bytes(site.before, self.order)


def anatomy(recipe: Mapping[str, Any]) -> Anatomy:
    """Build ``recipe``, without what it cuts or appends, and take it apart. Raises ConfigurationError."""
    whole = {key: value for key, value in recipe.items() if key not in AFTERWARDS}
    data, fields = build(whole)
    sites, groups = [], dict[str, list[Site]]()
    for field in fields:
        if field.length and fields.find(field.path) == field:  # a field that another lies over cannot be patched by its path
            before = data[field.offset : field.end]
            site = Site(field.path, _named(field.path, groups), field.offset, field.length, field.kind, before)
            sites.append(site)
            groups.setdefault(site.general, []).append(site)
    return Anatomy(
        recipe=whole,
        data=data,
        order="big" if recipe.get("byteorder") == "big" else "little",
        groups=tuple(tuple(group) for general, group in groups.items() for _ in range(_WEIGHTS.get(general, _WEIGHT))),
        sites=tuple(sites),
        starts=tuple(site.offset for site in sites),
        tensors=_tensors(sites),
    )


def _named(path: str, groups: dict[str, list[Site]]) -> str:
    """Give the general path; the value of general.alignment has that name, since readers judge it as nothing else."""
    general = general_path(path)
    keys = groups.get("kv[*].key", []) if general == "kv[*].value" else []
    is_its_value = keys and keys[-1].before == _ALIGNMENT and keys[-1].path == f"{path.removesuffix('.value')}.key"
    return "general.alignment" if is_its_value else general


def _tensors(sites: list[Site]) -> tuple[dict[str, Site], ...]:
    entries: dict[int, dict[str, Site]] = {}
    for site in sites:
        if match := _TENSOR.match(site.path):
            entries.setdefault(int(match[1]), {})[site.path[match.end() + 1 :]] = site
    return tuple(entries.values())


def claimed(taken: Anatomy, data: bytes) -> int:
    """Give the most bytes that a tensor's entry in ``data`` claims, a dimension of 0 counted as 1 and nothing wrapped around.

    ``data`` is the file with its numbers changed in place.
    """
    return max((_claimed(entry, taken, data) for entry in taken.tensors), default=0)


def _claimed(entry: dict[str, Site], taken: Anatomy, data: bytes) -> int:
    numbers = [
        int.from_bytes(data[site.offset : site.end], taken.order)
        for name, site in entry.items()
        if name.startswith("dims") or name == "type"
    ]
    kind = BY_ID.get(numbers.pop())
    elements = prod(max(number, 1) for number in numbers)
    return elements * (kind.nbytes if kind else 0) // max(kind.block if kind else 1, 1)
