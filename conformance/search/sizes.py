"""Exact sizes: what a reader's answer says of its tensors, held to arithmetic that does not wrap."""

from __future__ import annotations

from math import prod

from conformance.ggml_types import BY_ID
from conformance.values import Header, TensorInfo


def wrong_size(header: Header) -> tuple[str, str] | None:
    """Give the path and the contradiction of the first tensor whose ``nbytes`` are not what its shape and type need.

    A reader that accepts such a file computed in numbers that wrapped: its answer is no measure for another's.
    """
    for index, tensor in enumerate(header.tensors):
        if tensor.nbytes is not None and (due := _due(tensor)) is not None and due != int(tensor.nbytes):
            return f"tensors[{index}].nbytes", f"{tensor.nbytes} bytes for a tensor that takes {due}"
    return None


def beyond_size(header: Header) -> tuple[int, str] | None:
    """Give the number and the size of the first tensor whose size, multiplied before it is divided by the block, passes 64 bits.

    ``ggml_nbytes`` (ggml/src/ggml.c) multiplies first, so that it wraps where the size itself would fit.
    """
    for index, tensor in enumerate(header.tensors):
        kind = BY_ID.get(tensor.type)
        if kind is not None and prod(map(int, tensor.dims)) * kind.nbytes >= 2**64:
            return index, f"{'*'.join(tensor.dims)} elements of {kind.nbytes} bytes a block of {kind.block}"
    return None


def _due(tensor: TensorInfo) -> int | None:
    kind = BY_ID.get(tensor.type)
    if kind is None or kind.removed:
        return None
    return prod(int(dim) for dim in tensor.dims) // kind.block * kind.nbytes
