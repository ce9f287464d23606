"""Puts gguf-inspect behind protocol 1: a parser of GGUF headers in plain Python."""

from __future__ import annotations

import struct
import sys
from typing import Any

import gguf_inspect

from conformance.adapter import PROTOCOL, Adapter, Boxed, Header, Identity, Ops, Pair, Reject, TensorInfo, View
from conformance.values import VALUE_TYPES

# The library raises GGUFError for every file that it refuses, and says that anything else which gets through is a fault of its
# own; that is an error.
REFUSAL = gguf_inspect.GGUFError
FLOATS = {"f32": ("<f", "<I", 8), "f64": ("<d", "<Q", 16)}


def header(request: Any) -> Header:
    """Give what ``parse_gguf`` returns; its warnings refuse nothing."""
    try:
        file = gguf_inspect.parse_gguf(request.path)
    except REFUSAL as error:
        raise Reject(reject_class(error), str(error), getattr(error, "pos", None)) from error
    return Header(
        version=file.version,
        alignment=file.alignment,
        data_offset=file.tensor_data_offset,
        kv=[pair(key, value) for key, value in file.metadata.items()],
        tensors=[
            TensorInfo(
                name=found.name,
                type=found.ggml_type,
                dims=[str(n) for n in found.dims],
                offset=str(found.offset),
                nbytes=None if found.nbytes is None else str(found.nbytes),
            )
            for found in file.tensors
        ],
    )


def reject_class(error: Exception) -> str:
    """Give the class of an exception: from its type, and where one type is raised for two reasons, from its message."""
    text = str(error)
    match error:
        case gguf_inspect.BadMagicError():
            return "bad-magic"
        case gguf_inspect.UnsupportedVersionError():
            return "bad-version"
        case gguf_inspect.GGUFTruncatedError():
            return "bad-length" if longer_than_the_file(text) else "truncated"
        case gguf_inspect.MalformedError() if "dimensions" in text:
            return "bad-dims"
        case gguf_inspect.MalformedError() if "type" in text:
            return "bad-value-type"
    return "other"


def longer_than_the_file(text: str) -> bool:
    """Tell whether what ran off the end are the bytes of a string, whose length was read before."""
    what = text.partition(" while reading ")[2].partition(": needed ")[0]
    return what in {"string value", "array string"} or (what.startswith(("metadata key #", "tensor name #")) and what[-1].isdigit())


def pair(key: str, found: gguf_inspect.GGUFValue) -> Pair:
    """Give one pair; types are the numbers in the file."""
    kind = VALUE_TYPES[found.type]
    if kind != "array":
        return Pair(key, kind, scalar(kind, found.value))
    items = VALUE_TYPES[found.elem_type]
    return Pair(key, kind, [element(items, value) for value in found.value], items)


def element(kind: str, value: Any) -> str | Boxed:
    """Give one element of an array; of an array of arrays, each is a GGUFValue again."""
    if kind != "array":
        return scalar(kind, value)
    items = VALUE_TYPES[value.elem_type]
    return Boxed(items=items, value=[element(items, part) for part in value.value])


def scalar(kind: str, value: Any) -> str:
    """Give one value as the protocol writes it."""
    if kind in FLOATS:
        form, bits, digits = FLOATS[kind]
        return f"0x{struct.unpack(bits, struct.pack(form, value))[0]:0{digits}x}"
    return str(value).lower() if kind == "bool" else str(value)


# Text that is not UTF-8 is decoded with replacements; the offset of the data is padded where there are none, too.
VIEW = View(strings="lossy", data_offset="tensors")
IDENTITY = Identity(
    name="gguf-inspect", version=gguf_inspect.__version__, language="python", protocol=PROTOCOL, ops=Ops(header=VIEW)
)

if __name__ == "__main__":
    sys.exit(Adapter(IDENTITY, {"header": header}).main(sys.argv[1:]))
