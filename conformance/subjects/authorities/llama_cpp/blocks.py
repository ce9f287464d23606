"""Quantize, dequantize, dot and matvec, as ggml does them."""

from __future__ import annotations

import ctypes
from pathlib import Path

from conformance.adapter import Reject, Unsupported
from conformance.subjects.authorities.answers import read_exactly, require_shape
from conformance.subjects.authorities.llama_cpp.kinds import (
    Function,
    Kind,
    chunk_quantizes,
    dequantizer,
    dot_partner,
    kinds,
    reference_quantizer,
    scalar_dot,
    vector_dot,
)
from conformance.subjects.authorities.llama_cpp.library import libraries
from conformance.subjects.protocol import DequantizeRequest, DotRequest, MatvecRequest, QuantizeRequest

FLOAT = 4  # bytes of a float32


def declared_dequantize() -> tuple[str, ...]:
    """Name the types that can be dequantized."""
    return tuple(name for name, kind in kinds().items() if name == "F32" or dequantizer(kind))


def declared_quantize() -> tuple[str, ...]:
    """Name the types that can be quantized, and with ``:ref`` those that have a reference function."""
    normal = tuple(name for name, kind in kinds().items() if chunk_quantizes(kind))
    return normal + tuple(f"{name}:ref" for name, kind in kinds().items() if reference_quantizer(kind))


def declared_dot() -> tuple[str, ...]:
    """Name the types with a scalar dot product, and with ``:simd`` those with a vectorised one."""
    pairs = [(kind, partner) for kind in kinds().values() if (partner := dot_partner(kind))]
    scalar = tuple(kind.name for kind, partner in pairs if scalar_dot(kind, partner))
    return scalar + tuple(f"{kind.name}:simd" for kind, partner in pairs if vector_dot(kind, partner))


def dequantize(request: DequantizeRequest) -> None:
    """Write float32 of shape (rows, cols). F32 is copied: ggml has no function for it."""
    kind = kinds()[request.type]
    require_shape(request.rows, request.cols, kind.block)
    data = read_exactly(request.input, request.rows * kind.row_bytes(request.cols), f"rows of {kind.name}")
    convert, count = dequantizer(kind), request.rows * request.cols
    Path(request.out).write_bytes(data if convert is None else _converted(convert, data, count, count * FLOAT))


def quantize(request: QuantizeRequest) -> None:
    """Write rows of blocks: by ``ggml_quantize_chunk``, or for variant "ref" by the type's reference function."""
    kind = kinds()[request.type]
    require_shape(request.rows, request.cols, kind.block)
    rows = read_exactly(request.input, request.rows * request.cols * FLOAT, "float32 rows")
    imatrix = None if request.imatrix is None else read_exactly(request.imatrix, request.cols * FLOAT, "imatrix")
    if request.variant == "ref":
        if imatrix is not None:
            raise Unsupported("ggml's reference functions take no imatrix")
        Path(request.out).write_bytes(quantize_reference(kind, rows, request.rows * request.cols))
    else:
        Path(request.out).write_bytes(_quantize_chunk(kind, rows, request.rows, request.cols, imatrix))


def quantize_reference(kind: Kind, data: bytes, count: int) -> bytes | bytearray:
    """Quantize ``count`` float32 by the reference function of ``kind``; F32 stays as it is.

    Source: ``quantize_row_*_ref`` in ggml/src/ggml-quants.c.
    """
    convert = reference_quantizer(kind)
    if convert is None:
        return data
    libraries().base.ggml_quantize_init(kind.id)
    return _converted(convert, data, count, kind.row_bytes(count))


def _quantize_chunk(kind: Kind, data: bytes, rows: int, cols: int, imatrix: bytes | None) -> bytearray:
    base = libraries().base
    if imatrix is None and base.ggml_quantize_requires_imatrix(kind.id):
        raise Reject("bad-input", f"{kind.name} needs an imatrix (ggml_quantize_requires_imatrix)")
    out = bytearray(rows * kind.row_bytes(cols))
    base.ggml_quantize_chunk(kind.id, data, _address(out), 0, rows, cols, imatrix)
    return out


def _converted(convert: Function, data: bytes, count: int, size: int) -> bytearray:
    out = bytearray(size)
    convert(data, _address(out), count)
    return out


def _address(out: bytearray) -> ctypes.Array[ctypes.c_char]:
    """Give the memory of ``out`` to C: what is written there needs no copy to be written to a file."""
    return (ctypes.c_char * len(out)).from_buffer(out)


def dot(request: DotRequest) -> None:
    """Write one float32 a row: the product of that row of weights and that row of ``x``."""
    _write_products(request, x_rows=request.rows)


def matvec(request: MatvecRequest) -> None:
    """Write one float32 a row: the product of that row of weights and the one row of ``x``."""
    _write_products(request, x_rows=1)


def _write_products(request: DotRequest | MatvecRequest, *, x_rows: int) -> None:
    """Multiply row by row; with one row of ``x``, it meets every row of weights.

    ``x`` is quantized by the reference function, for the scalar and for the vectorised product alike, so that only the
    product differs between them. (The CPU library's own ``quantize_row_q8_0`` gives other bytes on some blocks.)
    """
    kind = kinds()[request.type]
    partner, multiply = _product(kind, request.variant)
    require_shape(request.rows, request.cols, max(kind.block, partner.block))
    weight_bytes, x_bytes = kind.row_bytes(request.cols), partner.row_bytes(request.cols)
    weights = read_exactly(request.weights, request.rows * weight_bytes, f"rows of {kind.name}")
    x = read_exactly(request.x, x_rows * request.cols * FLOAT, "float32 rows")
    quantized = bytes(quantize_reference(partner, x, x_rows * request.cols))  # ctypes takes no bytearray for const void *
    out = (ctypes.c_float * request.rows)()
    for row in range(request.rows):
        w = weights[row * weight_bytes : (row + 1) * weight_bytes]
        at = row * x_bytes if x_rows > 1 else 0
        multiply(request.cols, ctypes.byref(out, row * FLOAT), 0, w, 0, quantized[at : at + x_bytes], 0, 1)
    Path(request.out).write_bytes(bytes(out))


def _product(kind: Kind, variant: str | None) -> tuple[Kind, Function]:
    """Give the type that ``x`` is quantized to, and the function that multiplies."""
    partner = dot_partner(kind)
    function = None if partner is None else (vector_dot if variant else scalar_dot)(kind, partner)
    if partner is None or function is None:
        raise Unsupported(f"dot of {kind.name}")
    return partner, function
