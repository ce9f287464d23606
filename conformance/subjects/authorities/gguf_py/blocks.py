"""Quantize and dequantize, as ``gguf.quants`` does them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from conformance.adapter import Reject, Unsupported
from conformance.subjects.authorities.answers import read_exactly, require_shape
from conformance.subjects.protocol import DequantizeRequest, QuantizeRequest

FLOAT = 4  # bytes of a float32

Array = np.ndarray[Any, np.dtype[Any]]


def declared_dequantize() -> tuple[str, ...]:
    """Name the types that ``gguf.quants.dequantize`` has."""
    return tuple(kind.name for kind in GGMLQuantizationType if _implemented(quants.dequantize, kind, _blocks(kind)))


def declared_quantize() -> tuple[str, ...]:
    """Name the types that ``gguf.quants.quantize`` has."""
    return tuple(kind.name for kind in GGMLQuantizationType if _implemented(quants.quantize, kind, _floats(kind)))


def dequantize(request: DequantizeRequest) -> None:
    """Write float32 of shape (rows, cols)."""
    kind = GGMLQuantizationType[request.type]
    block, nbytes = GGML_QUANT_SIZES[kind]
    require_shape(request.rows, request.cols, block)
    row_bytes = request.cols // block * nbytes
    data = read_exactly(request.input, request.rows * row_bytes, f"rows of {kind.name}")
    blocks = np.frombuffer(data, np.uint8).reshape(request.rows, row_bytes)
    Path(request.out).write_bytes(quants.dequantize(blocks, kind).tobytes())


def quantize(request: QuantizeRequest) -> None:
    """Write rows of blocks."""
    if request.imatrix is not None:
        raise Unsupported("gguf-py quantizes without an imatrix")
    data = read_exactly(request.input, request.rows * request.cols * FLOAT, "float32 rows")
    rows = np.frombuffer(data, np.float32).reshape(request.rows, request.cols)
    try:
        blocks = quants.quantize(rows, GGMLQuantizationType[request.type])
    except quants.QuantError as error:
        raise Reject("bad-input", str(error)) from None
    Path(request.out).write_bytes(blocks.tobytes())


def _blocks(kind: GGMLQuantizationType) -> Array:
    return np.zeros((1, GGML_QUANT_SIZES[kind][1]), np.uint8)


def _floats(kind: GGMLQuantizationType) -> Array:
    return np.zeros((1, GGML_QUANT_SIZES[kind][0]), np.float32)


def _implemented(convert: Callable[[Array, GGMLQuantizationType], Array], kind: GGMLQuantizationType, sample: Array) -> bool:
    """Ask the package itself: it has no list of what it implements, but an exception for the rest."""
    try:
        convert(sample, kind)
    except NotImplementedError:
        return False
    return True
