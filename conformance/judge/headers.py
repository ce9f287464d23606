"""Compare two headers field by field, within what both interfaces can show.

Headers that come from golden files hold digests in place of long arrays.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from conformance.judge.divergence import Divergence
from conformance.subjects.protocol import View
from conformance.values import Element, Header, Pair, TensorInfo, Value

# Arrays of more elements than this stand in golden files as digests, one for each ARRAY_RANGE elements.
LONG_ARRAY = 64
ARRAY_RANGE = 1024


class ArrayDigests(msgspec.Struct, frozen=True):
    """A long array by ranges of ``range`` elements: BLAKE2b digests (8 bytes, hex) of its elements in the protocol's form."""

    count: int
    range: int
    digests: list[str]


class Recorded(NamedTuple):
    """A long array that a header leaves out: its digests, and what tells whether an element found may hide something of it."""

    digests: ArrayDigests
    hides: Callable[[Element], bool]


class Difference(NamedTuple):
    """Values that differ, ``amount`` of them, counted in ``unit``: the first, and the field path where."""

    path: str
    kind: str
    expected: str
    found: str
    amount: int = 1
    unit: str = "fields"


def limits(view: View) -> tuple[str, ...]:
    """Say in words what a view does not show."""
    told = (
        (view.data_offset == "tensors", "a file without tensors has no data offset"),
        (not view.ordered, "the order of pairs and tensors does not show"),
        (view.strings == "c", "strings end at their first NUL"),
        (view.strings == "lossy", "bytes that are not UTF-8 are replaced"),
        (view.dims == "ne", "trailing dimensions of 1 do not show"),
        (view.integers == "double", "64-bit integers pass through a double"),
        (view.types == "lost", "values come without their types; numbers are compared as numbers"),
        (bool(view.hides), f"not shown at all: {', '.join(view.hides)}"),
    )
    return tuple(words for holds, words in told if holds)


def digest_array(value: list[Element], span: int = ARRAY_RANGE) -> ArrayDigests:
    """Condense a long array, ``span`` elements a digest."""
    encoded = (msgspec.json.encode(value[start : start + span]) for start in range(0, len(value), span))
    return ArrayDigests(len(value), span, [hashlib.blake2b(part, digest_size=8).hexdigest() for part in encoded])


def header_differences(expected: Header, found: Header, recorded: Mapping[int, Recorded] | None = None) -> Iterator[Difference]:
    """Give the differences in file order; ``recorded`` holds, by pair index, what is known of expected arrays left out."""
    known = recorded or {}
    yield from _fields("", expected, found, ("version", "alignment", "data_offset"))
    yield from _count("n_kv", expected.kv, found.kv)
    for index, (ours, theirs) in enumerate(zip(expected.kv, found.kv, strict=False)):
        yield from _pair_differences(f"kv[{index}]", ours, theirs)
        if index in known:
            yield from _digest_difference(f"kv[{index}].value", known[index], theirs.value)
        elif ours.type == theirs.type and ours.value != theirs.value:
            yield from _value_difference(f"kv[{index}].value", ours.value, theirs.value)
    yield from _count("n_tensors", expected.tensors, found.tensors)
    for index, (info, other) in enumerate(zip(expected.tensors, found.tensors, strict=False)):
        yield from _fields(f"tensors[{index}].", info, other, ("name", "type", "dims", "offset"))
        if info.nbytes is not None and other.nbytes is not None:
            yield from _fields(f"tensors[{index}].", info, other, ("nbytes",))


def _fields(prefix: str, expected: object, found: object, names: Iterable[str]) -> Iterator[Difference]:
    for name in names:
        ours, theirs = getattr(expected, name), getattr(found, name)
        if ours != theirs:
            yield Difference(prefix + name, "value", show(ours), show(theirs))


def _count(path: str, expected: list[Pair] | list[TensorInfo], found: list[Pair] | list[TensorInfo]) -> Iterator[Difference]:
    if len(expected) != len(found):
        yield Difference(path, "count", str(len(expected)), str(len(found)))


def _pair_differences(path: str, expected: Pair, found: Pair) -> Iterator[Difference]:
    if expected.key != found.key:
        yield Difference(f"{path}.key", "value", show(expected.key), show(found.key))
    if expected.type != found.type:
        yield Difference(f"{path}.type", "type", expected.type, found.type)
    elif expected.items and found.items and expected.items != found.items:
        yield Difference(f"{path}.value.items", "type", expected.items, found.items)


def _digest_difference(path: str, expected: Recorded, found: Value) -> Iterator[Difference]:
    """Hold an array to its digests, but for ranges with elements that may hide something."""
    digests = expected.digests
    if not isinstance(found, list) or len(found) != digests.count:
        length = str(len(found)) if isinstance(found, list) else show(found)
        yield Difference(f"{path}.length", "count", str(digests.count), length)
        return
    ours = digest_array(found, digests.range).digests
    starts = range(0, digests.count, digests.range)
    wrong = [
        (start, left)
        for start, left, right in zip(starts, digests.digests, ours, strict=True)
        if left != right and not any(map(expected.hides, found[start : start + digests.range]))
    ]
    if wrong:
        start, digest = wrong[0]
        end = min(start + digests.range, digests.count) - 1
        told = f"digest {digest} of elements {start} to {end}"
        unit = f"ranges of {digests.range} elements"
        yield Difference(f"{path}[{start}]", "digest", told, "another digest", len(wrong), unit)


def _value_difference(path: str, expected: Value, found: Value) -> Iterator[Difference]:
    if not (isinstance(expected, list) and isinstance(found, list)):
        yield Difference(path, "value", show(expected), show(found))
        return
    if len(expected) != len(found):
        yield Difference(f"{path}.length", "count", str(len(expected)), str(len(found)))
        if len(expected) > LONG_ARRAY:
            return  # a golden run knows nothing else of it, and both are to say the same
    pairs = enumerate(zip_longest(expected, found))
    wrong = [(index, ours, theirs) for index, (ours, theirs) in pairs if ours != theirs]
    if wrong:
        index, ours, theirs = wrong[0]
        yield Difference(f"{path}[{index}]", "value", show(ours), show(theirs), len(wrong), "elements")


def show(value: object, limit: int = 120) -> str:
    """Give a value in one short line."""
    plain = isinstance(value, str) and value.strip() == value != ""
    text = str(value) if plain else msgspec.json.encode(value).decode()  # quoted, where blanks would not be seen
    return text if len(text) <= limit else f"{text[: limit - 1]}… ({len(text)} characters)"


def general_path(path: str) -> str:
    """Give a path without its indices: what stays the same when only the input changes."""
    parts = path.split("[")
    return parts[0] + "".join("[*]" + part.partition("]")[2] for part in parts[1:])


def header_divergences(op: str, authority: str, differences: Iterable[Difference]) -> list[Divergence]:
    """Give one divergence for each signature, the first of its kind, with the number of all that bear it."""
    firsts: dict[str, Difference] = {}
    counts: Counter[str] = Counter()
    for difference in differences:
        signature = f"{op}:-:{difference.kind}:{general_path(difference.path)}"
        firsts.setdefault(signature, difference)
        counts[signature] += difference.amount
    return [
        Divergence(
            signature=signature,
            op=op,
            authority=authority,
            summary=f"{difference.path} is {difference.found} instead of {difference.expected}",
            expected=difference.expected,
            found=difference.found,
            field=difference.path,
            different=counts[signature],
            unit=difference.unit,
        )
        for signature, difference in firsts.items()
    ]
