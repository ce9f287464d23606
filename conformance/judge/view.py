"""A header as an interface shows it: what it hides is taken from both sides before they are compared."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec

from conformance.judge.plain import INTEGERS, NUMBER, NUMBERS, plain_number
from conformance.subjects.protocol import View
from conformance.values import (
    Boxed,
    Element,
    Header,
    Pair,
    TensorInfo,
    Text,
    Value,
    element_from_bytes,
    text_from_bytes,
    text_to_bytes,
)

# From here on a double does not hold every integer.
EXACT_IN_DOUBLE = 1 << 53
# Shorter decimals than this, signs included, are below that.
_DIGITS_IN_DOUBLE = 16
_REPLACEMENT = "\ufffd"


class Reduced(NamedTuple):
    """A reduced header; ``places[i]`` is where the pair that was number i stands in it."""

    header: Header
    places: list[int]


def reduce_header(header: Header, *views: View, long: Collection[int] = ()) -> Reduced:
    """Give ``header`` as one sees it through all of ``views``.

    ``long`` are the numbers of the pairs whose values are left out (long arrays of a golden file). Where order does not show,
    pairs and tensors are sorted by name, and what then bears one name by all else that shows of it.
    """
    pairs, tensors, data_offset = header.kv, header.tensors, header.data_offset
    for view in views:
        pairs = [_reduce_pair(pair, view) for pair in pairs]
        tensors = [_reduce_tensor(tensor, view) for tensor in tensors]
    hidden = {name for view in views for name in view.hides}
    if "data_offset" in hidden or (not tensors and any(view.data_offset == "tensors" for view in views)):
        data_offset = 0
    order = list(range(len(pairs)))
    if not all(view.ordered for view in views):
        order.sort(key=lambda index: _pair_key(pairs[index], index in long))
        tensors = sorted(tensors, key=_tensor_key)
    places = sorted(range(len(order)), key=order.__getitem__)
    shown = Header(
        0 if "version" in hidden else header.version,
        0 if "alignment" in hidden else header.alignment,
        data_offset,
        [pairs[index] for index in order],
        tensors,
    )
    return Reduced(shown, places)


def with_items(header: Header, other: Header) -> Header:
    """Give ``header`` with the element types that it leaves out, as far as ``other``, on the same file, tells them.

    Without its type nobody could say what a view hides of an array's elements.
    """
    first = {_key_start(pair): pair.items for pair in reversed(other.kv) if pair.items}

    def filled(index: int, pair: Pair) -> Pair:
        if pair.type != "array" or pair.items is not None:
            return pair
        beside = other.kv[index] if index < len(other.kv) else pair
        same_key = _key_start(beside) == _key_start(pair)
        items = beside.items if same_key and beside.items else first.get(_key_start(pair))
        return msgspec.structs.replace(pair, items=items)

    return msgspec.structs.replace(header, kv=[filled(index, pair) for index, pair in enumerate(header.kv)])


def _key_start(pair: Pair) -> bytes:
    """Give what every view leaves of a key."""
    return _lossy(_to_nul(text_to_bytes(pair.key)))


def hides(kind: str, more: View, than: View) -> Callable[[Element], bool]:
    """Give what tells whether an array's element, seen through both views, may hide something that shows through ``than`` alone.

    ``kind`` is the type of the elements.
    """
    cut = more.strings == "c" != than.strings
    replaced = more.strings == "lossy" != than.strings
    rounded = more.integers == "double" != than.integers
    untyped = more.types == "lost" != than.types
    if kind == "array":
        return lambda _: cut or replaced or rounded or untyped
    if kind == "str":
        return lambda element: cut or (replaced and isinstance(element, str) and _REPLACEMENT in element)
    if untyped and kind in NUMBERS:
        return lambda _: True  # written in another form
    if kind in {"u64", "i64"} and rounded:
        return lambda element: isinstance(element, str) and abs(int(element)) >= EXACT_IN_DOUBLE
    return lambda _: False


def _pair_key(pair: Pair, is_long: bool) -> tuple[bytes, str, bool, bytes]:
    return text_to_bytes(pair.key), pair.type, is_long, b"" if is_long else msgspec.json.encode(pair.value)


def _tensor_key(tensor: TensorInfo) -> tuple[bytes, bytes]:
    # A reader may leave sizes out: they do not sort.
    return text_to_bytes(tensor.name), msgspec.json.encode(msgspec.structs.replace(tensor, nbytes=None))


def _reduce_pair(pair: Pair, view: View) -> Pair:
    value = _reduce_value(pair.items or pair.type, pair.value, view)
    return Pair(_reduce_text(pair.key, view), _reduce_type(pair.type, view), value, pair.items and _reduce_type(pair.items, view))


def _reduce_type(kind: str, view: View) -> str:
    return NUMBER if view.types == "lost" and kind in NUMBERS else kind


def _reduce_value(kind: str, value: Value, view: View) -> Value:
    reduce = _reducer(kind, view)
    if reduce is None or (isinstance(value, list) and _shows_whole(kind, value, view)):
        return value
    return [reduce(element) for element in value] if isinstance(value, list) else reduce(value)


def _shows_whole(kind: str, elements: list[Element], view: View) -> bool:
    """Say at once that a view hides nothing of an array, where that can be seen without looking at each element.

    Tokenizers have hundreds of thousands of strings, and most of them show through every view.
    """
    try:
        joined = "".join(elements)  # type: ignore[arg-type]  # others than plain strings are what is caught
    except TypeError:
        return False
    if kind == "str":
        return _is_utf8(joined) and not (view.strings == "c" and "\0" in joined)
    return kind in INTEGERS and (view.integers == "exact" or max(map(len, elements), default=0) < _DIGITS_IN_DOUBLE)  # type: ignore[arg-type]


def _is_utf8(text: str) -> bool:
    """Tell whether text can be written: a lone surrogate stands for bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reducer(kind: str, view: View) -> Callable[[Element], Element] | None:
    """Give what a view makes of a value of a type; None where it shows all of it."""
    if kind == "str" and view.strings != "bytes":
        return lambda element: element_from_bytes(_reduce_bytes(text_to_bytes(element), view))
    rounded = view.integers == "double"
    if (view.types == "lost" and kind in NUMBERS) or (rounded and kind == NUMBER):
        return lambda element: plain_number(element, rounded=rounded) if isinstance(element, str) else element
    if kind in {"u64", "i64"} and rounded:
        return lambda element: _through_double(element) if isinstance(element, str) else element
    if kind == "array" and (view.strings, view.integers, view.types) != ("bytes", "exact", "exact"):
        return lambda element: _reduce_inner(element, view)
    return None


def _reduce_inner(element: Element, view: View) -> Element:
    """Reduce an array within an array."""
    if not isinstance(element, Boxed) or element.items is None or element.value is None:
        return element
    inner = _reduce_value(element.items, element.value, view)
    return msgspec.structs.replace(element, items=_reduce_type(element.items, view), value=inner)


def _through_double(text: str) -> str:
    return str(int(float(text)))


def _to_nul(raw: bytes) -> bytes:
    return raw.partition(b"\0")[0]


def _lossy(raw: bytes) -> bytes:
    return raw.decode("utf-8", "replace").encode()


def _reduce_bytes(raw: bytes, view: View) -> bytes:
    return _to_nul(raw) if view.strings == "c" else _lossy(raw) if view.strings == "lossy" else raw


def _reduce_text(text: Text, view: View) -> Text:
    return text_from_bytes(_reduce_bytes(text_to_bytes(text), view)) if view.strings != "bytes" else text


def _reduce_tensor(tensor: TensorInfo, view: View) -> TensorInfo:
    dims, offset, nbytes = list(tensor.dims), tensor.offset, tensor.nbytes
    while view.dims == "ne" and len(dims) > 1 and dims[-1] == "1":
        dims.pop()
    if view.dims == "ne" and not dims:
        dims = ["1"]
    if view.integers == "double":
        dims, offset = [_through_double(dim) for dim in dims], _through_double(offset)
        nbytes = None if nbytes is None else _through_double(nbytes)
    return TensorInfo(
        _reduce_text(tensor.name, view),
        0 if "type" in view.hides else tensor.type,
        dims,
        "0" if "offset" in view.hides else offset,
        None if "nbytes" in view.hides else nbytes,
    )
