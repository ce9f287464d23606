"""Puts libgguf behind protocol 1: its own reader and its compiled quantizers, or with ``numpy`` its numpy port of these."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import libgguf
import numpy as np
from libgguf import libgguf_numpy

from conformance.adapter import PROTOCOL, Adapter, Header, Identity, Ops, Pair, Reject, TensorInfo, View
from conformance.values import VALUE_TYPES

# The library's own exception for a file that it refuses. UnicodeDecodeError, OverflowError and MemoryError pass through its
# validator too, which catches only this one: nobody meant them, so they are errors.
REFUSAL = libgguf.GGUFFormatError

# Its messages and its validator's codes -> class. "unexpected end" is what it says of a length that is too large, too.
CLASSES = (
    (r"not a GGUF file", "bad-magic"),
    (r"unsupported GGUF version \d+", "bad-version"),
    (r"invalid GGUF alignment -?\d+", "bad-alignment"),
    (r"(nested GGUF metadata arrays are not supported|unsupported GGUF (metadata value|array) type \d+)", "bad-value-type"),
    (r"unsupported GGUF tensor dimension count \d+", "bad-dims"),
    (r"unexpected end of GGUF tensor payload .*", "missing-data"),
)
CODES = {
    "metadata_duplicate_key": "duplicate-key",
    "alignment_invalid": "bad-alignment",
    "tensor_duplicate_name": "duplicate-tensor",
    "tensor_offset_alignment": "bad-offset",
    "tensor_payload_overlap": "bad-offset",
    "tensor_payload_range": "missing-data",
    "tensor_shape_invalid": "bad-dims",
}
FLOATS = {"f32": ("<f", "<I", 8), "f64": ("<d", "<Q", 16)}
# The numpy port builds the tables of these in Python, for up to half a minute each.
SLOW_IN_NUMPY = {"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"}


def header(request: Any) -> Header:
    """Give what ``inspect_gguf`` returns."""
    try:
        return describe(libgguf.inspect_gguf(request.path))
    except REFUSAL as error:
        raise refusal(error) from error


def load(request: Any) -> Header:
    """Give the same, unless ``validate_gguf`` finds an error: a user who is about to read data asks it first."""
    result = libgguf.validate_gguf(request.path, max_array_values=None)
    if result.ok:
        return describe(result.file)
    issue = result.errors[0]
    raise Reject(CODES[issue.code], issue.message) if issue.code in CODES else refusal(issue.message)


def tensor(request: Any) -> None:
    """Write what ``read_tensor_bytes`` returns of that tensor. It refuses a tensor of unknown size by a plain ValueError."""
    try:
        file = libgguf.inspect_gguf(request.path)
        Path(request.out).write_bytes(file.read_tensor_bytes(file.tensors[request.index]))
    except UnicodeDecodeError:  # a ValueError, but nobody meant it
        raise
    except ValueError as error:
        raise refusal(error) from error


def refusal(error: object) -> Reject:
    """Give the Reject for a message."""
    text = str(error)
    return Reject(next((name for pattern, name in CLASSES if re.fullmatch(pattern, text, re.DOTALL)), "other"), text)


def describe(file: libgguf.GGUFFile) -> Header:
    """Give the library's header as the protocol writes it."""
    return Header(
        version=file.version,
        alignment=file.alignment,
        data_offset=file.data_offset,
        kv=[pair(key, value) for key, value in file.metadata.items()],
        tensors=[
            TensorInfo(
                name=found.name,
                type=found.qtype_value,
                dims=[str(n) for n in found.shape],
                offset=str(found.offset),
                nbytes=None if found.nbytes is None else str(found.nbytes),
            )
            for found in file.tensors
        ],
    )


def pair(key: str, found: libgguf.GGUFMetadataValue) -> Pair:
    """Give one pair; types are the numbers in the file."""
    kind = VALUE_TYPES[found.raw_type]
    if kind != "array":
        return Pair(key, kind, element(kind, found.value))
    # Of no elements the type may be one that does not exist.
    items = VALUE_TYPES[found.raw_array_type] if found.raw_array_type < len(VALUE_TYPES) else None
    return Pair(key, kind, [element(items, value) for value in found.value], items)


def element(kind: str | None, value: Any) -> str:
    """Give one value as the protocol writes it."""
    if kind in FLOATS:
        form, bits, digits = FLOATS[kind]
        return f"0x{struct.unpack(bits, struct.pack(form, value))[0]:0{digits}x}"
    return str(value).lower() if kind == "bool" else str(value)


def native_dequantize(data: Any, kind: Any, cols: int) -> Any:
    """Dequantize rows of bytes by the compiled functions."""
    return libgguf.dequantize_rows(data, kind, n_per_row=cols)


def numpy_dequantize(data: Any, kind: Any, _cols: int) -> Any:
    """Dequantize rows of bytes by the numpy port."""
    return libgguf_numpy.dequantize(data, kind)


def numpy_quantize(rows: Any, kind: Any, _imatrix: Any) -> Any:
    """Quantize rows by the numpy port, which takes no imatrix and says so in its hello."""
    return libgguf_numpy.quantize(rows, kind)


def dequantizing(convert: Callable[..., Any]) -> Callable[[Any], None]:
    """Give the handler of ``dequantize``."""

    def dequantize(request: Any) -> None:
        data = np.fromfile(request.input, np.uint8).reshape(request.rows, -1)
        convert(data, libgguf.GGMLQuantizationType[request.type], request.cols).tofile(request.out)

    return dequantize


def quantizing(convert: Callable[..., Any]) -> Callable[[Any], None]:
    """Give the handler of ``quantize``."""

    def quantize(request: Any) -> None:
        rows = np.fromfile(request.input, np.float32).reshape(request.rows, request.cols)
        imatrix = None if request.imatrix is None else np.fromfile(request.imatrix, np.float32)
        convert(rows, libgguf.GGMLQuantizationType[request.type], imatrix).tofile(request.out)

    return quantize


def declared(convert: Callable[..., Any], sample: Callable[[int, int], Any]) -> tuple[str, ...]:
    """Ask the library itself, with one block: it raises ValueError or NotImplementedError for a type that it does not do."""
    names = []
    for kind, (block, nbytes) in libgguf.GGML_QUANT_SIZES.items():
        try:
            convert(sample(block, nbytes), kind, block)
        except (ValueError, NotImplementedError):
            continue
        names.append(kind.name)
    return tuple(names)


def quantizes(port: bool) -> tuple[str, ...]:
    """Name the types that can be quantized, without trying: that would build the tables of the IQ types."""
    names = tuple(kind.name for kind, (block, _) in libgguf.GGML_QUANT_SIZES.items() if libgguf.row_size(kind, block))
    return tuple(name for name in names if name not in SLOW_IN_NUMPY) if port else names


def adapter(port: bool) -> Adapter:
    """Put the compiled functions behind the protocol, or the numpy port."""
    decode = numpy_dequantize if port else native_dequantize
    encode = numpy_quantize if port else libgguf.quantize_rows

    def identity() -> Identity:
        # Where there are no tensors the library pads all the same: that offset leads to nothing.
        reading = None if port else View(data_offset="tensors")
        return Identity(
            name="libgguf-numpy" if port else "libgguf",
            version=version("libgguf"),
            language="python",
            protocol=PROTOCOL,
            ops=Ops(
                header=reading,
                load=reading,
                tensor=reading,
                dequantize=declared(decode, lambda _block, nbytes: np.zeros((1, nbytes), np.uint8)),
                quantize=quantizes(port),
                imatrix=not port,
            ),
            details={"numpy": np.__version__},
        )

    files = {} if port else {"header": header, "load": load, "tensor": tensor}
    return Adapter(identity, {**files, "dequantize": dequantizing(decode), "quantize": quantizing(encode)})


if __name__ == "__main__":
    words = sys.argv[1:]
    numpy_port = words[:1] == ["numpy"]
    sys.exit(adapter(numpy_port).main(words[1:] if numpy_port else words))
