"""What a caller gives, looked at before anything is done with it: each refusal says what was given and what is needed."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeGuard

import numpy as np
import numpy.typing as npt

from impl.errors import InputError

BytesLike = bytes | bytearray | memoryview | npt.NDArray[Any]

# numpy's own limit of a dimension.
_LARGEST = 2**63 - 1


def require_floats(values: object, what: str) -> TypeGuard[npt.NDArray[np.float32]]:
    """Refuse all but a numpy array of float32 in this machine's byte order, of at least one dimension; else give True.

    Raises:
        InputError: it is something else, or a masked array, whose masked elements would count.

    """
    if not isinstance(values, np.ndarray):
        raise InputError(f"{what} must be a numpy array of float32, not {type(values).__name__}: make it with numpy.float32(...)")
    if values.dtype != np.float32:
        raise InputError(f"{what} must be a numpy array of float32, not {values.dtype}: convert it with .astype(numpy.float32)")
    _refuse_masked(values, what)
    if values.ndim == 0:
        raise InputError(f"{what} must have at least one dimension, the row")
    return True


def raw_bytes(data: object, what: str) -> npt.NDArray[np.uint8]:
    """Give the bytes of ``data`` as uint8 of one dimension: a view where they lie in one piece, else a copy.

    Raises:
        InputError: it holds no bytes, or numbers in the other byte order, or is a masked array.

    """
    try:
        array: npt.NDArray[Any] = data if isinstance(data, np.ndarray) else np.asarray(memoryview(data))  # type: ignore[arg-type] # it raises
    except (TypeError, ValueError):
        raise InputError(f"{what} must be bytes or a numpy array of them, not {type(data).__name__}") from None
    _refuse_masked(array, what)
    if array.dtype.hasobject or not array.dtype.isnative:
        raise InputError(f"{what} must be bytes, not an array of {array.dtype}: give its little-endian bytes, as uint8")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def whole_shape(shape: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Give a shape as a tuple of ints, as numpy takes it: a number alone is a row.

    Raises:
        InputError: a dimension is no whole number, or negative, or too large for an array.

    """
    try:
        # An array, too, has the method that numbers are known by.
        single = isinstance(shape, SupportsIndex) and not isinstance(shape, np.ndarray)
        dims = (operator.index(shape),) if single else tuple(map(operator.index, shape))  # type: ignore[arg-type] # it raises
    except TypeError:
        raise InputError(f"shape must be whole numbers, not {shape!r}") from None
    if not all(0 <= dim <= _LARGEST for dim in dims):
        raise InputError(f"shape must be numbers from 0 to 2^63 - 1, not {dims}")
    # numpy counts an array's bytes as if its dimensions of 0 were not there; a float32 has 4.
    if 0 in dims and 4 * math.prod(dim for dim in dims if dim) > _LARGEST:
        raise InputError(f"shape must be of fewer than 2^61 numbers, those of 0 left out, not {dims}")
    return dims


def require_threads(threads: object) -> None:
    """Refuse what is no number of threads. Raises InputError."""
    if not isinstance(threads, SupportsIndex) or operator.index(threads) < 1:
        raise InputError(f"threads must be 1 or more, a whole number, not {threads!r}")


def require_imatrix(imatrix: object, cols: int) -> None:
    """Refuse all but float32 of shape (``cols``,). Raises InputError.

    Its numbers are not looked at: ggml multiplies by them as they are, whatever they are.
    """
    wanted = f"imatrix must be a numpy array of float32 of shape ({cols},)"
    if not isinstance(imatrix, np.ndarray):
        raise InputError(f"{wanted}, not {type(imatrix).__name__}")
    if imatrix.dtype != np.float32 or imatrix.shape != (cols,):
        raise InputError(f"{wanted}, not {imatrix.dtype} of shape {imatrix.shape}")
    _refuse_masked(imatrix, "imatrix")


def require_out(out: object, shape: tuple[int, ...], dtype: type[np.generic], *sources: npt.NDArray[Any]) -> None:
    """Refuse an ``out`` that cannot take a result of this shape and dtype, or lies where a source lies. Raises InputError."""
    wanted = f"out must be {np.dtype(dtype)} of shape {shape}, in one piece and writeable"
    if not isinstance(out, np.ndarray):
        raise InputError(f"{wanted}, not {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype or not (out.flags.c_contiguous and out.flags.writeable):
        raise InputError(f"{wanted}, not {out.dtype} of shape {out.shape} with strides {out.strides}")
    _refuse_masked(out, "out")
    if any(np.may_share_memory(out, source) for source in sources):
        raise InputError("out lies in the memory of what is read: give it memory of its own")


def _refuse_masked(array: npt.NDArray[Any], what: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{what} is a masked array, whose mask would be lost: give what stands there with .filled(value)")
