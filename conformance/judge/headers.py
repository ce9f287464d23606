"""Compare two headers field by field, within what both interfaces can show.

Headers that come from golden files hold digests in place of long arrays (``condense_header``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from conformance.judge.divergence import Divergence
from conformance.subjects.protocol import View
from conformance.values import Boxed, Element, Header, Pair, TensorInfo, Text, Value, text_to_bytes

# Arrays of more elements than this stand in golden files as digests, one for each ARRAY_RANGE elements.
LONG_ARRAY = 64
ARRAY_RANGE = 1024

_STRINGS = ("bytes", "c", "lossy")


class ArrayDigests(msgspec.Struct, frozen=True):
    """A long array by ranges of ``range`` elements: BLAKE2b digests (8 bytes, hex) of its elements in the protocol's form."""

    count: int
    range: int
    digests: list[str]


class Difference(NamedTuple):
    """Two values that differ, and the field path where."""

    path: str
    kind: str
    expected: str
    found: str


def coarser(a: View, b: View) -> View:
    """Give the view that shows only what both show."""
    return View(
        ordered=a.ordered and b.ordered,
        strings=max(a.strings, b.strings, key=_STRINGS.index),
        dims="ne" if "ne" in (a.dims, b.dims) else "exact",
        integers="double" if "double" in (a.integers, b.integers) else "exact",
        data_offset="tensors" if "tensors" in (a.data_offset, b.data_offset) else "always",
    )


def limits(view: View) -> tuple[str, ...]:
    """Say in words what a view does not show."""
    told = {
        view.data_offset == "tensors": "a file without tensors has no data offset",
        not view.ordered: "the order of pairs and tensors does not show",
        view.strings == "c": "strings end at their first NUL",
        view.strings == "lossy": "bytes that are not UTF-8 are replaced",
        view.dims == "ne": "trailing dimensions of 1 do not show",
        view.integers == "double": "64-bit integers pass through a double",
    }
    return tuple(words for holds, words in told.items() if holds)


def reduce_header(header: Header, view: View) -> Header:
    """Give ``header`` as an interface with this view would show it."""
    if view == View():
        return header
    pairs = [_reduce_pair(pair, view) for pair in header.kv]
    tensors = [_reduce_tensor(tensor, view) for tensor in header.tensors]
    data_offset = header.data_offset if tensors or view.data_offset == "always" else 0
    if not view.ordered:
        pairs.sort(key=lambda pair: text_to_bytes(pair.key))
        tensors.sort(key=lambda tensor: text_to_bytes(tensor.name))
    return msgspec.structs.replace(header, kv=pairs, tensors=tensors, data_offset=data_offset)


def _reduce_pair(pair: Pair, view: View) -> Pair:
    key = _reduce_text(pair.key, view)
    return Pair(key, pair.type, _reduce_value(pair.items or pair.type, pair.value, view), pair.items)


def _reduce_value(kind: str, value: Value, view: View) -> Value:
    reduce = _reducer(kind, view)
    if reduce is None:
        return value
    if isinstance(value, list):
        return [reduce(element) for element in value]
    return reduce(value)


def _reducer(kind: str, view: View) -> Callable[[Element], Element] | None:
    if kind == "str" and view.strings != "bytes":
        return lambda element: _boxed(_reduce_bytes(text_to_bytes(element), view))
    if kind in {"u64", "i64"} and view.integers == "double":
        return _through_double
    return None


def _through_double(element: Element) -> Element:
    return str(int(float(element))) if isinstance(element, str) else element


def _boxed(raw: bytes) -> Element:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return Boxed(hex=raw.hex())


def _reduce_bytes(raw: bytes, view: View) -> bytes:
    if view.strings == "c":
        return raw.partition(b"\0")[0]
    return raw.decode("utf-8", "replace").encode() if view.strings == "lossy" else raw


def _reduce_text(text: Text, view: View) -> Text:
    reduced = _boxed(_reduce_bytes(text_to_bytes(text), view))
    return reduced if isinstance(reduced, str) else text


def _reduce_tensor(tensor: TensorInfo, view: View) -> TensorInfo:
    dims = list(tensor.dims)
    while view.dims == "ne" and len(dims) > 1 and dims[-1] == "1":
        dims.pop()
    if view.dims == "ne" and not dims:
        dims = ["1"]
    return msgspec.structs.replace(tensor, name=_reduce_text(tensor.name, view), dims=dims)


def digest_array(value: list[Element]) -> ArrayDigests:
    """Condense a long array."""
    ranges = range(0, len(value), ARRAY_RANGE)
    encoded = (msgspec.json.encode(value[start : start + ARRAY_RANGE]) for start in ranges)
    return ArrayDigests(len(value), ARRAY_RANGE, [hashlib.blake2b(part, digest_size=8).hexdigest() for part in encoded])


def header_differences(
    expected: Header, found: Header, digests: Mapping[int, ArrayDigests | None] | None = None
) -> Iterator[Difference]:
    """Give the differences in file order.

    ``digests`` holds, by pair index, what is known of expected arrays that were left out; None where nothing is known that
    could be compared (the digests are of bytes that the other interface does not show): then only key and type are.
    """
    known = digests or {}
    yield from _fields("", expected, found, ("version", "alignment", "data_offset"))
    yield from _count("n_kv", expected.kv, found.kv)
    for index, (ours, theirs) in enumerate(zip(expected.kv, found.kv, strict=False)):
        yield from _pair_differences(f"kv[{index}]", ours, theirs)
        if index in known:
            yield from _digest_difference(f"kv[{index}]", known[index], theirs.value)
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


def _digest_difference(path: str, expected: ArrayDigests | None, found: Value) -> Iterator[Difference]:
    if expected is None:
        return
    if not isinstance(found, list) or len(found) != expected.count:
        length = str(len(found)) if isinstance(found, list) else show(found)
        yield Difference(f"{path}.value.length", "count", str(expected.count), length)
        return
    ours = digest_array(found).digests
    for index, (left, right) in enumerate(zip(expected.digests, ours, strict=True)):
        if left != right:
            start = index * expected.range
            end = min(start + expected.range, expected.count) - 1
            yield Difference(f"{path}.value[{start}]", "digest", f"digest {left} of elements {start} to {end}", "another digest")
            return


def _value_difference(path: str, expected: Value, found: Value) -> Iterator[Difference]:
    if not (isinstance(expected, list) and isinstance(found, list)):
        yield Difference(path, "value", show(expected), show(found))
        return
    if len(expected) != len(found):
        yield Difference(f"{path}.length", "count", str(len(expected)), str(len(found)))
        if len(expected) > LONG_ARRAY:
            return  # a golden run knows nothing else of it, and both are to say the same
    for index, (ours, theirs) in enumerate(zip_longest(expected, found)):
        if ours != theirs:
            yield Difference(f"{path}[{index}]", "value", show(ours), show(theirs))
            return


def show(value: object, limit: int = 120) -> str:
    """Give a value in one short line."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}… ({len(text)} characters)"


def general_path(path: str) -> str:
    """Give a path without its indices: what stays the same when only the input changes."""
    parts = path.split("[")
    return parts[0] + "".join("[*]" + part.partition("]")[2] for part in parts[1:])


def header_divergences(op: str, authority: str, differences: Iterable[Difference]) -> list[Divergence]:
    """Give one divergence for each signature, the first of its kind, with the number of its kind."""
    firsts: dict[str, Difference] = {}
    counts: dict[str, int] = {}
    for difference in differences:
        signature = f"{op}:-:{difference.kind}:{general_path(difference.path)}"
        firsts.setdefault(signature, difference)
        counts[signature] = counts.get(signature, 0) + 1
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
            unit="fields",
        )
        for signature, difference in firsts.items()
    ]
