"""A tensor to be written: what the caller says of it, and its bytes as they come."""

from __future__ import annotations

import mmap
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from impl.container.file import Tensor
from impl.container.layout import Described
from impl.container.making import encoded
from impl.errors import InputError
from impl.types import by_name


class NewTensor(NamedTuple):
    """A tensor for ``impl.write``.

    ``data`` is a numpy array (a map of a file, too), anything that holds bytes, or an iterable of these, which is gone through
    once and never held. ``type`` is ggml's name in capitals; an array's own where it is left out (float32 is F32, ...). ``shape``
    counts elements, rows first; an array's own where it is left out, for a quantized type worked out from the bytes of a row.
    """

    name: str | bytes
    data: Any
    type: str | None = None
    shape: tuple[int, ...] | None = None


Tensors = Mapping[str, Any] | Iterable[NewTensor | Tensor]


def listed(tensors: Tensors) -> list[NewTensor]:
    """Give tensors of any of the admitted forms as a list: a mapping of names to arrays, an open file's, or described ones.

    Raises:
        InputError: something else is among them.

    """
    if isinstance(tensors, Mapping):
        return [NewTensor(name, data) for name, data in tensors.items()]
    if not isinstance(tensors, Iterable):
        raise InputError(f"tensors must be a mapping of names to arrays, or impl.NewTensor one by one, not {tensors!r}")
    return [_listed(tensor) for tensor in tensors]


def _listed(tensor: object) -> NewTensor:
    if isinstance(tensor, Tensor):
        return NewTensor(tensor.info.name, tensor, tensor.type, tensor.shape)
    if isinstance(tensor, NewTensor):
        return tensor
    raise InputError(
        f"tensors must be impl.NewTensor or an open file's, not {type(tensor).__name__}: make impl.NewTensor(name, data)"
    )


def described(tensor: NewTensor) -> Described:
    """Say what stands in the directory of a tensor; an array is held to the type and the shape that are given.

    Raises:
        InputError: type or shape are not known, or the array is of others.
        UnsupportedError: ggml has no such type.

    """
    name = encoded(tensor.name, "a tensor's name")
    what = f"tensor {tensor.name!r}"
    kind = by_name(tensor.type or _own_type(tensor.data, what))
    shape = _whole(tensor.shape, what) if tensor.shape is not None else _own_shape(tensor.data, kind.name, what)
    dtype = getattr(tensor.data, "dtype", None)
    if dtype is not None:
        _check_array(tensor.data, kind.name, shape, what)
    return Described(name, kind, shape[::-1])


def _own_type(data: Any, what: str) -> str:
    dtype = str(getattr(data, "dtype", ""))
    for name, native in _DTYPES.items():
        if dtype == native:
            return name
    given = dtype or type(data).__name__
    raise InputError(f"{what} is given as {given}, which is no ggml type: name it, NewTensor(name, data, type='F32', shape=(2, 3))")


def _own_shape(data: Any, kind: str, what: str) -> tuple[int, ...]:
    if getattr(data, "dtype", None) is None:
        raise InputError(f"{what} has no shape: bytes do not tell it; give it, NewTensor(name, data, type='F32', shape=(2, 3))")
    shape = tuple(int(dim) for dim in data.shape)
    if kind in _DTYPES:
        return shape
    block = by_name(kind)
    row = shape[-1] * data.dtype.itemsize if shape else 0
    if not shape or row % block.nbytes:
        raise InputError(
            f"{what}: rows of {row} bytes are no whole {kind} blocks of {block.nbytes} bytes; give its shape in elements"
        )
    return (*shape[:-1], row // block.nbytes * block.block)


def _whole(shape: Any, what: str) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, shape))
    except TypeError:
        raise InputError(f"{what}: shape must be whole numbers, rows first, not {shape!r}") from None


def _check_array(data: Any, kind: str, shape: tuple[int, ...], what: str) -> None:
    """Refuse an array whose numbers are not the type's, or which is no row of bytes and has another shape."""
    dtype, due = str(data.dtype), _DTYPES.get(kind, "uint8")
    if dtype not in {due, "uint8"} and not (kind == "BF16" and data.dtype.itemsize == 2 and data.dtype.kind in "Vu"):
        raise InputError(
            f"{what} of type {kind} is given as {dtype}: it takes {due}, or the bytes as uint8; convert it with .astype"
        )
    if dtype == due != "uint8" and data.ndim > 1 and tuple(data.shape) != shape:
        raise InputError(f"{what}: the array has the shape {tuple(data.shape)}, not {shape}; reshape it, or leave shape out")


def pieces(data: Any, what: str) -> Iterator[memoryview]:
    """Give a tensor's bytes, piece by piece.

    Raises:
        InputError: what comes holds no bytes.
        GgufError: ``missing-data``, the file of an open file's tensor ends before them.

    """
    if isinstance(data, Tensor):
        yield data.native
        return
    if _holds_bytes(data):
        yield flat(data, what)
        return
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise InputError(f"{what} must be bytes, an array, or an iterable of these, not {type(data).__name__}")
    for piece in data:
        yield flat(piece, what)


def flat(data: Any, what: str) -> memoryview:
    """Give the bytes of one piece, without a copy where they lie in one row. Raises InputError."""
    if getattr(data, "dtype", None) is not None:
        from impl.arguments import raw_bytes  # noqa: PLC0415 - loads numpy

        return raw_bytes(data, what).data
    try:
        view = memoryview(data)
    except TypeError:
        raise InputError(f"{what} must come as bytes or arrays, not {type(data).__name__}") from None
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _holds_bytes(data: Any) -> bool:
    return getattr(data, "dtype", None) is not None or isinstance(data, bytes | bytearray | memoryview | mmap.mmap)


# The types that numpy has, by numpy's names.
_DTYPES = {
    "F32": "float32",
    "F16": "float16",
    "F64": "float64",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
}
