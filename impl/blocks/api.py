"""``quantize``, ``dequantize`` and ``dot`` of whole arrays: checks what comes in, then goes through it in pieces."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from impl.arguments import BytesLike, raw_bytes, require_floats, require_imatrix, require_out, require_threads, whole_shape
from impl.blocks import FAMILIES, SUPPORTED
from impl.blocks.codec import Blocks, Bytes, Codec, Floats
from impl.blocks.products import sum_in_order
from impl.errors import InputError, UnsupportedError
from impl.types import by_name

# Elements worked on at a time: the piece and what is made from it (about three times 128 KiB) stay in a core's second-level cache.
PIECE = 32768
# The same for compiled quantizers, of which a call's own cost would show; the codes of such a piece still stay there.
COMPILED_PIECE = 1 << 18
# Bytes of a result that goes past the caches. A smaller one stays in a server's shared cache, where ordinary stores are faster.
STREAMED = 64 << 20


def codec(name: str) -> Codec:
    """Give the codec of the type that ggml calls ``name``.

    Raises:
        UnsupportedError: no such type, or none of its functions is done here.

    """
    by_name(name)  # tells an unknown name from one that is only not done
    return _codec(name)


@cache
def _codec(name: str) -> Codec:
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
    threads: int = 1,
    out: Bytes | None = None,
) -> Bytes:
    """Quantize float32 ``rows`` of shape (..., cols), as ``ggml_quantize_chunk`` does (Q8_1, Q8_K: as their ``_ref`` functions).

    ``imatrix``: float32 of shape (cols,), the importance of each column. Where ggml takes no heed of it (F32, F16, BF16,
    Q8_0 ...), neither does this. ``reference``: as the type's ``quantize_row_*_ref`` does, which differs for IQ4_NL alone.
    ``threads``: how many work at it. ``out``: where the result goes, of its shape and dtype and in one piece; a buffer that is used
    again saves the time that fresh memory takes.

    Returns:
        uint8 of shape (..., row bytes).

    Raises:
        InputError: not float32, a row that is no multiple of the block, an imatrix of another length or none where ggml needs
            one, an ``out`` that does not fit, no threads, or numbers that ggml does not quantize.
        UnsupportedError: the type is not done here, or not with an imatrix.

    """
    found = codec(type)
    cols = float_cols(rows, "rows", found)
    _check_can_quantize(found, imatrix, cols)
    require_threads(threads)
    blocks = _blocks_of(rows, found)
    if found.check is not None and blocks.size:
        found.check(blocks.reshape(-1, cols), found.type)
    result = _result(out, (*rows.shape[:-1], found.type.row_bytes(cols)), np.uint8, rows, imatrix)
    if not rows.size:
        return result
    filled = result.reshape(-1).view(found.layout)
    if found.quantize_ref and (reference or not (found.quantize or found.quantize_rows)):
        _in_pieces(
            found.quantize_ref, blocks, filled, [slice(None)] if found.ref_whole else _pieces(len(blocks), found, threads), threads
        )
    elif found.quantize_rows and (imatrix is not None or not found.quantize):
        _quantize_rows(found.quantize_rows, blocks.reshape(-1, cols), imatrix, filled, threads)
    elif found.quantize:
        _in_pieces(found.quantize, blocks, filled, _pieces(len(blocks), found, threads), threads)
    return result


def _check_can_quantize(found: Codec, imatrix: npt.NDArray[Any] | None, cols: int) -> None:
    if not (found.quantize or found.quantize_rows or found.quantize_ref):
        raise unsupported("quantize", found.type.name)
    if imatrix is not None:
        _check_imatrix(imatrix, cols, found)
    elif found.needs_imatrix:
        raise InputError(f"{found.type.name} is quantized with an imatrix only: give one, float32 of shape ({cols},)")


def _quantize_rows(
    function: Callable[[Floats, Floats | None, Blocks], None],
    rows: Floats,
    imatrix: npt.NDArray[Any] | None,
    out: Blocks,
    threads: int,
) -> None:
    if not rows.size:
        return
    weights = None if imatrix is None else np.ascontiguousarray(imatrix)
    filled = out.reshape(len(rows), -1)
    if threads == 1:
        _quietly(function, rows, weights, filled)
        return
    step = -(-len(rows) // threads)
    try:
        _each(_slices(len(rows), step), lambda piece: _quietly(function, rows[piece], weights, filled[piece]), threads)
    except InputError:  # its row is counted from the piece's first one: say it again, of the whole
        _quietly(function, rows, weights, filled)


def dequantize(
    type: str,  # noqa: A002 - ggml's word
    data: BytesLike,
    shape: Sequence[int],
    *,
    threads: int = 1,
    out: Floats | None = None,
) -> Floats:
    """Turn the bytes of blocks into float32 of ``shape`` (row-major, a row last), as ggml's ``dequantize_row_*`` does.

    ``threads``: how many work at it. ``out``: where the result goes, of its shape and dtype and in one piece; a buffer that is used
    again saves the time that fresh memory takes.

    Raises:
        InputError: a row that is no multiple of the block, bytes that are more or fewer than ``shape`` needs, an ``out`` that does
            not fit, or no threads.
        UnsupportedError: the type is not done here.

    """
    found = codec(type)
    if found.dequantize is None:
        raise unsupported("dequantize", type)
    dims = whole_shape(shape)
    _check_row(dims[-1] if dims else 1, found)
    require_threads(threads)
    blocks = records(data, math.prod(dims) // found.type.block, found)
    result = _result(out, dims, np.float32, blocks)
    filled = result.reshape(len(blocks), found.type.block)
    # Compiled loops go through memory once, without anything on the way: the fewer the pieces the better.
    pieces = _slices(len(blocks), -(-len(blocks) // threads) or 1) if found.compiled else _pieces(len(blocks), found, threads)
    # Fresh memory is in the caches anyway: the system has just filled it with zeros. Whole lines are made of aligned numbers.
    large = found.streams and out is not None and result.nbytes >= STREAMED and result.flags.aligned
    _in_pieces(_past_caches(found.dequantize) if large else found.dequantize, blocks, filled, pieces, threads)
    return result


def _past_caches(dequantize: Callable[[Blocks, Floats], None]) -> Callable[[Blocks, Floats], None]:
    """Let ``dequantize`` write past the caches, where the processor is one that can."""
    from impl.blocks import streaming  # noqa: PLC0415 - loads the compiler

    return partial(streaming.dequantize_past_caches, dequantize) if streaming.AVAILABLE else dequantize


def _in_pieces(
    function: Callable[[Any, Any], None], source: npt.NDArray[Any], out: npt.NDArray[Any], pieces: Iterable[slice], threads: int
) -> None:
    """Call ``function`` for each piece of ``source`` and of ``out``."""
    _each(pieces, lambda piece: _quietly(function, source[piece], out[piece]), threads)


def _each(pieces: Iterable[slice], work: Callable[[slice], object], threads: int) -> None:
    """Do ``work`` for each piece; compiled loops and numpy run without the interpreter's lock."""
    listed = list(pieces)
    todo = iter(listed)  # a list's iterator gives each piece to one thread
    threads = min(threads, len(listed))

    def share() -> None:
        for piece in todo:
            work(piece)

    if threads <= 1:
        share()
        return
    with ThreadPoolExecutor(threads - 1) as pool:
        helpers = [pool.submit(share) for _ in range(threads - 1)]
        share()
        for helper in helpers:
            helper.result()  # an error in a thread is raised here


def _result(
    out: npt.NDArray[Any] | None, shape: tuple[int, ...], dtype: type[np.generic], *sources: npt.NDArray[Any] | None
) -> npt.NDArray[Any]:
    """Give ``out``, if it can take the result, or make an array for it."""
    if out is None:
        return np.empty(shape, dtype)
    require_out(out, shape, dtype, *(source for source in sources if source is not None))
    return out


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


def _pieces(count: int, found: Codec, threads: int = 1) -> Iterator[slice]:
    """Cut ``count`` blocks into pieces of a good size, or smaller ones so that each thread has its share."""
    good = (COMPILED_PIECE if found.compiled else PIECE) // found.type.block
    return _slices(count, max(1, min(good, -(-count // threads))))


def _slices(count: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, count, step))


def unsupported(op: str, name: str) -> UnsupportedError:
    """Make the error for an op that is not done for a type."""
    return UnsupportedError(f"{op} of {name} is not done here; it is for: {', '.join(SUPPORTED[op])}")


def float_cols(rows: npt.NDArray[Any], what: str, found: Codec) -> int:
    """Check dtype and dimensions of float input; give its row length."""
    require_floats(rows, what)
    _check_row(rows.shape[-1], found)
    return int(rows.shape[-1])


def _check_row(cols: int, found: Codec) -> None:
    if cols % found.type.block:
        raise InputError(f"a row of {cols} elements is no multiple of {found.type.block}, the block of {found.type.name}")


def _check_imatrix(imatrix: npt.NDArray[Any], cols: int, found: Codec) -> None:
    require_imatrix(imatrix, cols)
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
    raw = raw_bytes(data, f"blocks of {found.type.name}")
    if len(raw) != count * found.type.nbytes:
        problem = f"{len(raw)} bytes of {found.type.name}, but the shape needs {count} blocks, {count * found.type.nbytes} bytes"
        raise InputError(problem)
    return _read_only(raw.view(found.layout))
