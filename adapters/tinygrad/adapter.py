"""Puts tinygrad's loader of GGUF files behind protocol 1, and its dequantization."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tinygrad import Device, Tensor
from tinygrad.llm.gguf import ggml_data_to_tensor, gguf_load

from conformance.adapter import PROTOCOL, Adapter, Boxed, Header, Identity, Ops, Pair, Reject, TensorInfo, View
from conformance.values import element_from_bytes

# What the loader raises on purpose: ValueError with one of these messages. Whatever else comes out of it (struct.error where the
# file ends, KeyError for a value type, what tensors raise about shapes) nobody meant: that is an error.
REFUSALS = (
    (r"Invalid GGUF format!", "other"),  # magic or version
    (r"GGML type '-?\d+' is not supported!", "bad-tensor-type"),
    (r"multi-part GGUF .*|first split path .*", "other"),
)
# ggml_data_to_tensor has no list of what it does; these are in its docstring.
TYPES = {
    "F32": 0,
    "F16": 1,
    "Q4_0": 2,
    "Q4_1": 3,
    "Q5_0": 6,
    "Q5_1": 7,
    "Q8_0": 8,
    "Q4_K": 12,
    "Q5_K": 13,
    "Q6_K": 14,
    "IQ3_XXS": 18,
    "IQ3_S": 21,
    "IQ2_S": 22,
    "IQ4_XS": 23,
    "BF16": 30,
    "MXFP4": 39,
    "Q1_0": 41,
}


def header(request: Any) -> Header:
    """Give what ``gguf_load`` returns: values by key, tensors by name. Their data are not computed."""
    try:
        pairs, tensors = gguf_load(request.path)
    except ValueError as error:
        raise refusal(error) from error
    return Header(
        version=0,
        alignment=0,
        data_offset=0,
        kv=[pair(key, value) for key, value in pairs.items()],
        tensors=[TensorInfo(name, 0, [str(n) for n in reversed(found.shape)], "0") for name, found in tensors.items()],
    )


def refusal(error: ValueError) -> Exception:
    """Give the Reject for a ValueError that the loader raises itself; any other is given back as it is."""
    text = str(error)
    classes = (name for pattern, name in REFUSALS if re.fullmatch(pattern, text, re.DOTALL))
    found = next(classes, None)
    return error if found is None else Reject(found, text)


def pair(key: str, found: Any) -> Pair:
    """Give one pair. The value's type is Python's; a u8 comes as ``bytes`` of length 1, and is told as text."""
    if isinstance(found, list):
        return Pair(key, "array", [element(part) for part in found], items_of(found))
    return Pair(key, kind_of(found), element(found))


def items_of(values: Iterable[Any]) -> str | None:
    """Give the one type of all elements; None where there are none."""
    kinds = {kind_of(value) for value in values}
    return "i64" if kinds == {"u64", "i64"} else next(iter(kinds), None)


def kind_of(value: Any) -> str:
    """Give the protocol's type for one of Python's."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "u64" if value >= 0 else "i64"
    return {bool: "bool", float: "f64", list: "array"}.get(type(value), "str")


def element(value: Any) -> str | Boxed:
    """Give one value as the protocol writes it."""
    match value:
        case list():
            return Boxed(items=items_of(value), value=[element(part) for part in value])
        case bool():
            return str(value).lower()
        case float():
            return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"
        case bytes():
            return element_from_bytes(value)
    return str(value)


def dequantize(request: Any) -> None:
    """Write what ``ggml_data_to_tensor`` gives, as float32."""
    data = Tensor(np.fromfile(request.input, np.uint8))
    found = ggml_data_to_tensor(data, request.rows * request.cols, TYPES[request.type])
    Path(request.out).write_bytes(found.float().numpy().tobytes())


# The dictionaries keep the file's order. Python's values say no type.
VIEW = View(types="lost", hides=("version", "alignment", "data_offset", "type", "offset", "nbytes"))


def identity() -> Identity:
    """Say which tinygrad answers, and on what it computes."""
    return Identity(
        name="tinygrad",
        version=version("tinygrad"),
        language="python",
        protocol=PROTOCOL,
        ops=Ops(header=VIEW, dequantize=tuple(TYPES)),
        details={"device": Device.DEFAULT, "numpy": np.__version__},
    )


if __name__ == "__main__":
    sys.exit(Adapter(identity, {"header": header, "dequantize": dequantize}).main(sys.argv[1:]))
