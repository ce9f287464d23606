"""``quantize``, ``dequantize`` and ``dot`` of whole arrays: checks what comes in, then goes through it in pieces."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from impl.blocks import FAMILIES, SUPPORTED
from impl.blocks.codec import Blocks, Bytes, Codec, Floats
from impl.blocks.products import sum_in_order
from impl.errors import InputError, UnsupportedError
from impl.types import by_name

# Elements worked on at a time: the piece and what is made from it (about three times 128 KiB) stay in a core's second-level cache.
PIECE = 32768
# The same for compiled loops, which make no arrays on the way: a call's own cost must not show.
COMPILED_PIECE = 1 << 20

BytesLike = bytes | bytearray | memoryview | npt.NDArray[Any]


@cache
def codec(name: str) -> Codec:
    """Give the codec of the type that ggml calls ``name``.

    Raises:
        UnsupportedError: no such type, or none of its functions is done here.

    """
    by_name(name)  # tells an unknown name from one that is only not done
    for module, names in FAMILIES.items():
        if name in names:
            codecs: tuple[Codec, ...] = importlib.import_module(module).CODECS
            return next(found for found in codecs if found.type.name == name)
    done = ", ".join(sorted({name for names in SUPPORTED.values() for name in names}))
    raise UnsupportedError(f"type {name} is not done here; these are: {done}")


def quantize(
    type: str,  # noqa: A002 - ggml's word
    rows: npt.NDArray[Any],
    imatrix: npt.NDArray[Any] | None = None,
    *,
    reference: bool = False,
) -> Bytes:
    """Quantize float32 ``rows`` of shape (..., cols), as ``ggml_quantize_chunk`` does (Q8_1, Q8_K: as their ``_ref`` functions).

    ``imatrix``: float32 of shape (cols,), the importance of each column. Where ggml takes no heed of it (F32, F16, BF16,
    Q8_0 ...), neither does this. ``reference``: as the type's ``quantize_row_*_ref`` does, which differs for IQ4_NL alone.

    Returns:
        uint8 of shape (..., row bytes).

    Raises:
        InputError: not float32, a row that is no multiple of the block, or an imatrix of another length.
        UnsupportedError: the type is not done here, or not with (or without) an imatrix.

    """
    found = codec(type)
    if not (found.quantize or found.quantize_rows or found.quantize_ref):
        raise unsupported("quantize", type)
    cols = float_cols(rows, "rows", found)
    if imatrix is not None:
        _check_imatrix(imatrix, cols, found)
    elif found.needs_imatrix:
        raise UnsupportedError(f"{type} is quantized with an imatrix only: float32 of shape ({cols},)")
    blocks = _blocks_of(rows, found)
    if found.check is not None and blocks.size:
        found.check(blocks.reshape(-1, cols), found.type)
    out = np.empty(len(blocks), found.layout)
    if found.quantize_ref and (reference or not (found.quantize or found.quantize_rows)):
        _quantize_blocks(found.quantize_ref, found, blocks, out)
    elif found.quantize_rows and (imatrix is not None or not found.quantize):
        _quantize_rows(found.quantize_rows, blocks.reshape(-1, cols), imatrix, out)
    elif found.quantize:
        _quantize_blocks(found.quantize, found, blocks, out)
    return out.view(np.uint8).reshape(*rows.shape[:-1], found.type.row_bytes(cols))


def _quantize_blocks(function: Callable[[Floats, Blocks], None], found: Codec, blocks: Floats, out: Blocks) -> None:
    for piece in [slice(None)] if found.ref_whole else _pieces(len(blocks), found):
        _quietly(function, blocks[piece], out[piece])


def _quantize_rows(
    function: Callable[[Floats, Floats | None, Blocks], None], rows: Floats, imatrix: npt.NDArray[Any] | None, out: Blocks
) -> None:
    if rows.size:
        weights = None if imatrix is None else np.ascontiguousarray(imatrix)
        _quietly(function, rows, weights, out.reshape(len(rows), -1))


def dequantize(type: str, data: BytesLike, shape: Sequence[int]) -> Floats:  # noqa: A002 - ggml's word
    """Turn the bytes of blocks into float32 of ``shape`` (row-major, a row last), as ggml's ``dequantize_row_*`` does.

    Raises:
        InputError: a row that is no multiple of the block, or bytes that are more or fewer than ``shape`` needs.
        UnsupportedError: the type is not done here.

    """
    found = codec(type)
    if found.dequantize is None:
        raise unsupported("dequantize", type)
    _check_row(shape[-1] if len(shape) else 1, found)
    blocks = records(data, math.prod(shape) // found.type.block, found)
    out = np.empty((len(blocks), found.type.block), np.float32)
    for piece in _pieces(len(blocks), found):
        _quietly(found.dequantize, blocks[piece], out[piece])
    return out.reshape(shape)


def dot(type: str, weights: BytesLike, x: npt.NDArray[Any]) -> Floats:  # noqa: A002 - ggml's word
    """Multiply each row of ``weights`` (blocks of ``type``) by the same row of ``x``, float32 of shape (..., cols).

    ``x`` is quantized first, to Q8_0, Q8_1 or Q8_K as ggml pairs it with ``type``, by the ``_ref`` function. The sum runs
    over the blocks in order, in float32, as in ``ggml_vec_dot_*_generic``.

    Returns:
        float32 of shape ``x.shape[:-1]``.

    Raises:
        InputError: ``x`` is not float32, a row is no multiple of the block, or ``weights`` has not the bytes of its rows.
        UnsupportedError: the type has no dot product here.

    """
    found = codec(type)
    if found.dot is None and found.dot_rows is None:
        raise unsupported("dot", type)
    cols = float_cols(x, "x", found)
    partner = codec(found.partner)
    w = records(weights, x.size // found.type.block, found)
    y = quantize(found.partner, x, reference=True).reshape(-1).view(partner.layout)
    rows = math.prod(x.shape[:-1])
    products = multiply(found, w.reshape(rows, cols // found.type.block), y.reshape(rows, cols // partner.type.block))
    return products.reshape(x.shape[:-1])


def multiply(found: Codec, w: Blocks, y: Blocks) -> Floats:
    """Multiply records ``w`` and ``y``, of ``found`` and its partner, of shape (rows, blocks), to float32 of shape (rows,)."""
    if found.dot_rows is not None:
        products: Floats = _quietly(found.dot_rows, w, y)
        return products
    return _dot_blocks(found, w.reshape(-1), y.reshape(-1), w.shape)


def _dot_blocks(found: Codec, w: Blocks, y: Blocks, shape: tuple[int, ...]) -> Floats:
    assert found.dot is not None  # noqa: S101 - the caller has looked
    terms = np.empty(len(w), np.float32)
    for piece in _pieces(len(w), found):
        terms[piece] = _quietly(found.dot, w[piece], y[piece])
    sums: Floats = _quietly(sum_in_order, terms.reshape(shape))
    return sums


def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` without numpy's warnings: overflow, infinity and NaN are part of what blocks can hold."""
    with np.errstate(all="ignore"):
        return function(*arguments)


def _pieces(count: int, found: Codec) -> Iterator[slice]:
    step = (COMPILED_PIECE if found.compiled else PIECE) // found.type.block
    return (slice(start, start + step) for start in range(0, count, step))


def unsupported(op: str, name: str) -> UnsupportedError:
    """Make the error for an op that is not done for a type."""
    return UnsupportedError(f"{op} of {name} is not done here; it is for: {', '.join(SUPPORTED[op])}")


def float_cols(rows: npt.NDArray[Any], what: str, found: Codec) -> int:
    """Check dtype and dimensions of float input; give its row length."""
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float32:
        got = rows.dtype if isinstance(rows, np.ndarray) else type(rows).__name__
        raise InputError(f"{what} must be a numpy array of float32, not {got}: convert it with .astype(numpy.float32)")
    if rows.ndim == 0:
        raise InputError(f"{what} must have at least one dimension, the row")
    _check_row(rows.shape[-1], found)
    return int(rows.shape[-1])


def _check_row(cols: int, found: Codec) -> None:
    if cols % found.type.block:
        raise InputError(f"a row of {cols} elements is no multiple of {found.type.block}, the block of {found.type.name}")


def _check_imatrix(imatrix: npt.NDArray[Any], cols: int, found: Codec) -> None:
    if imatrix.dtype != np.float32 or imatrix.shape != (cols,):
        raise InputError(f"imatrix must be float32 of shape ({cols},), not {imatrix.dtype} of shape {imatrix.shape}")
    if found.uses_imatrix and found.quantize_rows is None:
        raise UnsupportedError(f"quantize of {found.type.name} with an imatrix is not done here; without one it is")


def _blocks_of(rows: npt.NDArray[Any], found: Codec) -> Floats:
    return _read_only(np.ascontiguousarray(rows).reshape(-1, found.type.block))


def _read_only(view: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make a view read-only, whatever it is a view of: a compiled loop is compiled for each of the two kinds that it meets."""
    view.flags.writeable = False
    return view


def records(data: BytesLike, count: int, found: Codec) -> Blocks:
    """View ``data`` as ``count`` blocks, without a copy where it lies in one piece. Raises InputError for another size."""
    raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8) if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    if len(raw) != count * found.type.nbytes:
        problem = f"{len(raw)} bytes of {found.type.name}, but the shape needs {count} blocks, {count * found.type.nbytes} bytes"
        raise InputError(problem)
    return _read_only(raw.view(found.layout))
