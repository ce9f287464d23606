"""Families: a case that is declared once, with placeholders, and unfolds into one case for each member.

``each`` names placeholders and what they stand for in turn, ``except`` says what differs for some of the members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from conformance.cases.entry import Entry, nearest
from conformance.cases.located import LocatedDict, LocatedList

FAMILY_KEYS = ("each", "except")
# Members of one family. More are several families, or too many: each one is run, recorded and shown.
MAX_MEMBERS = 1000
# What an exception may say; `expect` is merged, `covers` are added, `omit` gives the reason why there is no such member.
_SAYS = ("expect", "covers", "note", "spec", "omit")
# Here a placeholder gives a member's name; elsewhere its value.
_NAMED = ("note", "spec", "covers")

_WORD = re.compile(r"[a-z][a-z_]*")
_PLACEHOLDER = re.compile(r"<([a-z][a-z_]*)(?:\.([a-z][a-z_]*))?>")
_NAME = re.compile(r"[A-Za-z0-9._+-]+")
_RANGE = ("from", "to", "step")


class Member(NamedTuple):
    """One case: its key, its mapping, and the ``expect`` of the exceptions that hold for it, later ones winning."""

    key: str
    entry: Entry
    expects: tuple[Entry, ...] = ()


class _Exception(NamedTuple):
    """An item of ``except``: the names it is about, placeholder by placeholder, and what it says."""

    names: dict[str, frozenset[str]]
    says: dict[str, Entry]

    def holds(self, names: Mapping[str, str]) -> bool:
        return all(names[word] in chosen for word, chosen in self.names.items())


def unfold(key: str, entry: Entry) -> list[Member]:
    """Give the cases declared under ``key``: the one that stands there, or the members of a family, in order.

    Raises ConfigurationError for a range or list without members, too many of them, two with one key, a placeholder that
    is not declared or not in the key, and an exception for a member that does not exist.
    """
    parts = entry.mapping()
    if "each" not in parts:
        if "except" in parts or _PLACEHOLDER.search(key):
            hint = "say what the placeholders stand for: each: {n: {from: 0, to: 9}}"
            raise entry.error("placeholders in a key and `except` belong to a family, and `each` is missing", hint)
        return [Member(key, entry)]
    each = _each(parts["each"])
    _check_key(key, entry, each)
    exceptions = [_exception(item, each) for item in parts["except"].sequence()] if "except" in parts else []
    return list(_members(key, entry, each, exceptions))


def _each(entry: Entry) -> dict[str, dict[str, Any]]:
    """Give name -> value for each placeholder."""
    each: dict[str, dict[str, Any]] = {}
    for word, values in entry.mapping().items():
        if not _WORD.fullmatch(word):
            raise values.error(f"`{word}` cannot be a placeholder", "use small letters and _")
        each[word] = _values(values)
    count = 1
    for values_of_one in each.values():
        count *= len(values_of_one)
    if not each or not 0 < count <= MAX_MEMBERS:
        raise entry.error(f"a family of {count if each else 0} members", f"declare 1 to {MAX_MEMBERS}")
    return each


def _values(entry: Entry) -> dict[str, Any]:
    """Take a range, a list of texts, or a mapping of names to values of any form."""
    if entry.is_list():
        named = [(item.text(), item) for item in entry.sequence()]
    elif set(parts := entry.mapping()) <= {*_RANGE} and parts:
        return _range(entry, parts)
    else:
        named = list(parts.items())
    for name, item in named:
        if not _NAME.fullmatch(name):
            raise item.error(f"`{name}` cannot be part of an id", f"give it a name: {{a-name: {name}}}")
    if len(twice := {name for name, _ in named}) < len(named):
        raise entry.error("a member comes twice", f"keep each of these once: {', '.join(sorted(twice))}")
    return {name: item.value for name, item in named}


def _range(entry: Entry, parts: dict[str, Entry]) -> dict[str, Any]:
    if "from" not in parts or "to" not in parts:
        raise entry.error("a range is `from` and `to`, both included", "write {from: 0, to: 9}, or {from: 0, to: 90, step: 10}")
    low, high = (parts[key].integer(-(2**63), 2**64 - 1) for key in ("from", "to"))
    step = parts["step"].integer(1, 2**63) if "step" in parts else 1
    if not 0 <= (high - low) // step < MAX_MEMBERS:
        raise entry.error(
            f"{low} to {high} in steps of {step} is no range of 1 to {MAX_MEMBERS} members", "write the smaller one in `from`"
        )
    return {str(number): str(number) for number in range(low, high + 1, step)}


def _check_key(key: str, entry: Entry, each: Mapping[str, Any]) -> None:
    used = {word for word, _ in _PLACEHOLDER.findall(key)}
    if lacking := [word for word in each if word not in used]:
        raise entry.error(f"the key `{key}` lacks <{lacking[0]}>, so that members would share it", f"write `{key}-<{lacking[0]}>:`")


def _exception(entry: Entry, each: Mapping[str, Mapping[str, Any]]) -> _Exception:
    parts = entry.mapping((*each, *_SAYS))
    names = {word: _chosen(part, word, list(each[word])) for word, part in parts.items() if word in each}
    says = {word: part for word, part in parts.items() if word in _SAYS}
    if not names or not says:
        raise entry.error(
            "an exception is about members and says something", f"write {{{next(iter(each))}: [...], expect: {{...}}}}"
        )
    return _Exception(names, says)


def _chosen(entry: Entry, word: str, names: list[str]) -> frozenset[str]:
    """Give the names that a name, a range of names ``a..b`` or a list of either chooses."""
    chosen: set[str] = set()
    for item in entry.sequence() if entry.is_list() else [entry]:
        ends = [item.text()] if item.text() in names else item.text().split("..")
        for end in ends:
            if end not in names:
                raise item.error(f"`{end}` is no member of <{word}>", nearest(end, names[:50]))
        first, last = names.index(ends[0]), names.index(ends[-1])
        if first > last or len(ends) > 2:
            raise item.error(f"`{item.text()}` is no range of members", "write first..last, in the order of `each`")
        chosen.update(names[first : last + 1])
    return frozenset(chosen)


def _members(key: str, entry: Entry, each: dict[str, dict[str, Any]], exceptions: list[_Exception]) -> Iterator[Member]:
    seen: dict[str, str] = {}
    for combination in product(*(values.items() for values in each.values())):
        names = {word: name for word, (name, _) in zip(each, combination, strict=True)}
        values = {word: value for word, (_, value) in zip(each, combination, strict=True)}
        holding = [exception for exception in exceptions if exception.holds(names)]
        own = str(_filled(key, names, entry))
        shown = ", ".join(f"{word} {name}" for word, name in names.items())
        if own in seen:
            raise entry.error(f"two members have the key `{own}`: {seen[own]}; {shown}", "put a sign between the placeholders")
        seen[own] = shown
        if not any("omit" in exception.says for exception in holding):
            yield _member(own, entry, (names, values), holding)


def _member(key: str, family: Entry, given: tuple[dict[str, str], dict[str, Any]], holding: list[_Exception]) -> Member:
    """Fill the placeholders in, and put what the exceptions say over what the family says."""
    path = f"{family.path.rpartition('.')[0]}.{key}" if "." in family.path else key
    tree = LocatedDict(family.file, family.line)
    layers = [{word: part for word, part in family.mapping().items() if word not in FAMILY_KEYS}]
    layers += [exception.says for exception in holding]
    expects = []
    for number, layer in enumerate(layers):
        for word, part in layer.items():
            filled = _filled(part.value, given[0] if word in _NAMED else given[1], part)
            if number and word == "expect":
                expects.append(Entry(filled, part.file, part.line, f"{path}.expect"))
                continue
            tree[word] = [*tree[word], *filled] if word == "covers" and word in tree else filled
            tree.lines[word] = part.line
    return Member(key, Entry(tree, family.file, family.line, path), tuple(expects))


def _filled(tree: Any, given: Mapping[str, Any], entry: Entry) -> Any:
    """Give ``tree`` with each placeholder replaced; what holds none is not copied."""
    if isinstance(tree, str):
        return _filled_text(tree, given, entry) if "<" in tree else tree
    if isinstance(tree, LocatedList):
        items = [_filled(item, given, entry) for item in tree]
        if all(new is old for new, old in zip(items, tree, strict=True)):
            return tree
        copied = LocatedList(tree.file, tree.line)
        copied.extend(items)
        copied.lines = tree.lines
        return copied
    filled = LocatedDict(tree.file, tree.line)
    for key, item in tree.items():
        own = _filled(key, given, entry)
        if not isinstance(own, str) or own in filled:
            raise entry.error(
                f"`{key}` is no key once it is filled in", "a key's placeholder stands for text, each key for another"
            )
        filled[own] = _filled(item, given, entry)
        filled.lines[own] = tree.lines.get(key, tree.line)
    same = all(new is old for new, old in zip(filled.values(), tree.values(), strict=True)) and filled.keys() == tree.keys()
    return tree if same else filled


def _filled_text(text: str, given: Mapping[str, Any], entry: Entry) -> Any:
    """Replace a placeholder alone by its value, of any form; within a text, by the value's own text."""
    if whole := _PLACEHOLDER.fullmatch(text):
        return _value(whole, given, entry)
    return _PLACEHOLDER.sub(lambda found: _text(found, given, entry), text)


def _text(found: re.Match[str], given: Mapping[str, Any], entry: Entry) -> str:
    value = _value(found, given, entry)
    if not isinstance(value, str):
        raise entry.error(f"{found[0]} stands for a mapping or a list, which cannot be part of a text", "let it stand alone")
    return value


def _value(found: re.Match[str], given: Mapping[str, Any], entry: Entry) -> Any:
    word, part = found[1], found[2]
    if word not in given:
        raise entry.error(f"{found[0]} is not declared", nearest(word, list(given)))
    value = given[word]
    if part is None:
        return value
    if not isinstance(value, Mapping) or part not in value:
        raise entry.error(
            f"{found[0]}: `{word}` has no part `{part}` here", "give each of its values this key, or take the part out"
        )
    return value[part]
