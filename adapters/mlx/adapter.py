"""Puts mlx's loader of GGUF files behind protocol 1."""

from __future__ import annotations

import re
import struct
import sys
from importlib.metadata import version
from typing import Any

import mlx.core as mx

from conformance.adapter import PROTOCOL, Adapter, Header, Identity, Ops, Pair, Reject, TensorInfo, View

# What the loader raises on purpose begins with its name. Whatever else comes out of it nobody meant (UnicodeDecodeError of a
# string, bad_alloc): that is an error.
REFUSAL = re.compile(r"\[(load_gguf|convert_gguf|gguf)[^\]]*\]")
CLASSES = (("nested arrays", "bad-value-type"), ("gguf_tensor_to_f16 failed", "bad-tensor-type"))
TYPES = {
    mx.uint8: "u8",
    mx.int8: "i8",
    mx.uint16: "u16",
    mx.int16: "i16",
    mx.uint32: "u32",
    mx.int32: "i32",
    mx.float32: "f32",
    mx.bool_: "bool",
    mx.uint64: "u64",
    mx.int64: "i64",
}
GROUP = 32  # elements that share a scale in the arrays that stand for a quantized tensor


def load(request: Any) -> Header:
    """Give what ``mx.load`` returns: arrays by name, metadata by key."""
    try:
        arrays, metadata = mx.load(request.path, format="gguf", return_metadata=True)
    except (ValueError, RuntimeError) as error:
        raise refusal(error) from error
    return Header(
        version=0,
        alignment=0,
        data_offset=0,
        kv=[pair(key, value) for key, value in metadata.items()],
        tensors=tensors(arrays),
    )


def refusal(error: Exception) -> Exception:
    """Give the Reject for an exception that the loader raises itself; any other is given back as it is."""
    text = str(error)
    if not REFUSAL.match(text):
        return error
    return Reject(next((name for part, name in CLASSES if part in text), "other"), text)


def tensors(arrays: dict[str, mx.array]) -> list[TensorInfo]:
    """Give the file's tensors: a quantized one is three arrays, its packed weights, scales and biases, and is told as one."""
    found = []
    for name, array in arrays.items():
        stem = name.removesuffix(".weight")
        if name.endswith((".scales", ".biases")) and packed(arrays, name.rpartition(".")[0]):
            continue
        shape = list(array.shape)
        if packed(arrays, stem):
            shape[-1] = arrays[f"{stem}.scales"].shape[-1] * GROUP
        found.append(TensorInfo(name, 0, [str(n) for n in reversed(shape)], "0"))
    return found


def packed(arrays: dict[str, mx.array], stem: str) -> bool:
    """Tell whether the three arrays of a quantized tensor are there."""
    weights = arrays.get(f"{stem}.weight", arrays.get(stem))
    both = f"{stem}.scales" in arrays and f"{stem}.biases" in arrays
    return both and weights is not None and weights.dtype == mx.uint32


def pair(key: str, found: Any) -> Pair:
    """Give one pair: a scalar is an array of no dimensions, its type the array's."""
    if isinstance(found, str):
        return Pair(key, "str", found)
    if isinstance(found, list):
        return Pair(key, "array", found, "str")
    kind = TYPES[found.dtype]
    if found.ndim == 0:
        return Pair(key, kind, scalar(kind, found.item()))
    return Pair(key, "array", [scalar(kind, value) for value in found.tolist()], kind)


def scalar(kind: str, value: Any) -> str:
    """Give one value as the protocol writes it."""
    if kind == "f32":
        return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}"
    return str(value).lower() if kind == "bool" else str(value)


# Hash maps. Of a tensor only name and shape are the file's: types other than F32, F16, I8, I16, I32 are converted.
VIEW = View(ordered=False, hides=("version", "alignment", "data_offset", "type", "offset", "nbytes"))
IDENTITY = Identity(
    name="mlx",
    version=version("mlx"),
    language="c++",
    protocol=PROTOCOL,
    ops=Ops(load=VIEW),
    details={"device": str(mx.default_device())},
)

if __name__ == "__main__":
    sys.exit(Adapter(IDENTITY, {"load": load}).main(sys.argv[1:]))
