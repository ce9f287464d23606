"""Blocks for the exact model's tests: random ones, and ones with chosen scales."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from conformance.errors import AuthorityMissingError
from conformance.ggml_types import BY_NAME
from conformance.judge.exact import MODELS
from conformance.judge.exact.check import library_dequantize
from conformance.judge.layouts import FIELDS
from conformance.subjects.authorities.llama_cpp.library import libraries

Blocks = npt.NDArray[np.uint8]

# Both zeros, the smallest and largest subnormal, the smallest normal, one, an odd significand, the largest, infinities, NaN.
HALVES = (0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3FFF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01)
FLOATS = (
    0,
    0x80000000,
    1,
    0x007FFFFF,
    0x00800000,
    0x80FFFFFF,
    0x3F800001,
    0x7F7FFFFF,
    0x7E800001,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
)
PATTERNS = {2: tuple(range(256)), 4: HALVES, 8: FLOATS}


def library() -> None:
    """Skip, visibly, where llama.cpp's library is not installed."""
    try:
        libraries()
    except AuthorityMissingError as error:
        pytest.skip(f"needs the live library: {error}")


def random_blocks(type_name: str, count: int) -> Blocks:
    return np.random.default_rng([5, BY_NAME[type_name].id]).integers(0, 256, (count, BY_NAME[type_name].nbytes), dtype=np.uint8)


def from_library(type_name: str, blocks: Blocks) -> list[list[int]]:
    return library_dequantize(type_name, blocks).tolist()


def set_field(type_name: str, block: Blocks, name: str, value: bytes) -> None:
    """Put bytes at the start of a field of one block."""
    (offset,) = [field.offset for field in FIELDS[type_name] if field.name == name]
    block[offset : offset + len(value)] = np.frombuffer(value, np.uint8)


def set_scale(type_name: str, block: Blocks, name: str, bits: int) -> None:
    """Set a stored number of one block; IQ1_M's is spread over four nibbles, NVFP4 has four."""
    width = MODELS[type_name].scales[name].digits // 2
    if type_name == "IQ1_M":
        scales = block[-8:].view("<u2")
        scales[:] = scales & 0x0FFF | np.array([bits << 12, bits << 8 & 0xF000, bits << 4 & 0xF000, bits & 0xF000], "<u4") & 0xF000
    elif type_name == "NVFP4":
        set_field(type_name, block, name, bytes([bits]) * 4)
    else:
        set_field(type_name, block, name, bits.to_bytes(width, "little"))


def special_blocks(type_name: str) -> Iterator[Blocks]:
    """Give random blocks with each combination of the patterns that their stored numbers can have."""
    scales = MODELS[type_name].scales
    combinations = list(product(*(PATTERNS[number.digits] for number in scales.values())))
    for block, combination in zip(random_blocks(type_name, len(combinations)), combinations, strict=True):
        for name, bits in zip(scales, combination, strict=True):
            set_scale(type_name, block, name, bits)
        yield block
