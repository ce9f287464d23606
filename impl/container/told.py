"""The other way round from ``describe``: a header in the adapter protocol's words, made into what is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from impl.container.describe import Json
from impl.container.making import TYPES, strings, value
from impl.container.new_tensor import NewTensor
from impl.container.values import STRING, Number, Numbers, String, Value
from impl.errors import DescriptionError, InputError
from impl.types import TYPES as TENSOR_TYPES

_FLOAT_BYTES = {"f32": 4, "f64": 8}


def told_pairs(said: Sequence[Json]) -> Iterator[tuple[bytes, Value]]:
    """Make the pairs. Raises DescriptionError for a value that the format, or ggml's reader, does not have."""
    for index, pair in enumerate(said):
        field = f"kv[{index}].value"
        key = _text(pair["key"])
        if pair["type"] == "array":
            yield key, _array(pair.get("items"), pair["value"], field)
        else:
            yield key, _single(pair["type"], pair["value"], field)


def told_tensors(said: Sequence[Json]) -> Iterator[NewTensor]:
    """Make the directory, without data. Raises DescriptionError for a type that ggml does not have, or no longer."""
    for index, tensor in enumerate(said):
        number = tensor["type"]
        known = [kind for kind in TENSOR_TYPES if kind.id == number and not kind.removed]
        if not known:
            problem = f"ggml has no type {number}, or no longer"
            hint = f"of 0 to {len(TENSOR_TYPES) - 1} it has all but those that it has removed"
            raise DescriptionError("bad-tensor-type", problem, field=f"tensors[{index}].type", hint=hint)
        yield NewTensor(_text(tensor["name"]), None, known[0].name, tuple(map(int, reversed(tensor["dims"]))))


def _single(kind: str, said: Any, field: str) -> Value:
    if kind == STRING.name:
        return String(_text(said))
    return Number(TYPES[kind], _number(kind, said, field))


def _array(items: str | None, said: list[Any], field: str) -> Value:
    if items is None or items == "array":
        what = "no type is told for the elements" if items is None else "the elements are arrays"
        hint = "give their type" if items is None else "ggml reads no arrays of arrays: give one array of numbers or text"
        raise DescriptionError("bad-value-type", what, field=f"{field}.items", hint=hint)
    if items == STRING.name:
        return strings([_text(one) for one in said])
    return Numbers(TYPES[items], len(said), b"".join(_number(items, one, field) for one in said), 0)


def _number(kind: str, said: str, field: str) -> bytes:
    if kind in _FLOAT_BYTES:
        return int(said, 16).to_bytes(_FLOAT_BYTES[kind], "little")
    try:
        made = value(kind, said == "true" if kind == "bool" else int(said))
    except InputError as error:
        raise DescriptionError("bad-value", str(error), field=field, hint="give a number in that range") from error
    assert isinstance(made, Number)  # noqa: S101 - one number makes a Number
    return made.raw


def _text(said: str | Json) -> bytes:
    return said.encode("utf-8", "surrogatepass") if isinstance(said, str) else bytes.fromhex(said["hex"])
