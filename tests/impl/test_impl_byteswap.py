"""Tensors in the other byte order: which bytes of a block move, by the structs and by what upstream's converter does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import impl
from conformance.judge.layouts import FIELDS
from impl.container.byteswap import PIECE, WORDS
from impl.types import TYPES, by_name

KINDS = [kind.name for kind in TYPES if not kind.removed]

# The blocks as numpy has them, written down from the structs of ggml/src/ggml-common.h; > is put for < in the other order.
STRUCTS = {
    "F32": "<f4", "F16": "<u2", "BF16": "<u2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "Q1_0": "<u2,16u1", "Q2_0": "<u2,16u1", "Q4_0": "<u2,16u1", "Q4_1": "<u2,<u2,16u1", "Q5_0": "<u2,4u1,16u1",
    "Q5_1": "<u2,<u2,4u1,16u1", "Q8_0": "<u2,32i1", "Q8_1": "<u2,<u2,32i1", "MXFP4": "u1,16u1", "NVFP4": "4u1,32u1",
    "Q2_K": "16u1,64u1,<u2,<u2", "Q3_K": "32u1,64u1,12u1,<u2", "Q4_K": "<u2,<u2,12u1,128u1", "Q5_K": "<u2,<u2,12u1,32u1,128u1",
    "Q6_K": "128u1,64u1,16i1,<u2", "Q8_K": "<f4,256i1,16<i2", "IQ2_XXS": "<u2,32<u2", "IQ2_XS": "<u2,32<u2,8u1",
    "IQ2_S": "<u2,64u1,8u1,8u1", "IQ3_XXS": "<u2,96u1", "IQ3_S": "<u2,64u1,8u1,32u1,4u1", "IQ1_S": "<u2,32u1,8<u2",
    "IQ1_M": "32u1,16u1,8u1", "IQ4_NL": "<u2,16u1", "IQ4_XS": "<u2,<u2,4u1,128u1", "TQ1_0": "48u1,4u1,<u2", "TQ2_0": "64u1,<u2",
}  # fmt: skip


def random_bytes(kind: str, blocks: int, seed: int = 5) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, blocks * by_name(kind).nbytes, np.uint8)


def test_every_type_has_its_words() -> None:
    assert sorted(WORDS) == sorted(KINDS) == sorted(STRUCTS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_of_the_struct_are_turned(kind: str) -> None:
    """numpy converts field by field, values staying the same; floats are bit patterns here, so that no NaN changes."""
    raw = random_bytes(kind, 7)
    little = np.dtype(STRUCTS[kind].replace("<f", "<u"))
    assert little.itemsize == by_name(kind).nbytes
    expected = raw.view(little).astype(little.newbyteorder(">")).view(np.uint8)
    assert np.array_equal(impl.byteswap(kind, raw), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_twice_is_nothing(kind: str) -> None:
    raw = random_bytes(kind, 9)
    assert np.array_equal(impl.byteswap(kind, impl.byteswap(kind, raw)), raw)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in FIELDS])
def test_the_harness_counts_the_same_words(kind: str) -> None:
    """Its table of fields was made for reports. It takes the scales of IQ1_M, eight bytes in the struct, for four words."""
    words = {(f.offset + place, f.width) for f in FIELDS[kind] if f.width > 1 for place in range(0, f.nbytes, f.width)}
    ours = {(offset + width * index, width) for offset, width, number in WORDS[kind] for index in range(number)}
    assert ours == (set() if kind == "IQ1_M" else words)


def test_upstreams_converter_moves_the_same_bytes() -> None:
    """It has blocks of Q1_0, Q4_0, Q8_0, Q4_K, Q6_K and TQ2_0, and two types of which nothing moves."""
    converter: Any = pytest.importorskip("gguf.scripts.gguf_convert_endian")
    table = converter.byteswap_tensors
    for kind, swap in table.items():
        raw = random_bytes(kind.name, 3)
        turned = type("Tensor", (), {"data": raw.copy()})()
        for block in range(3):
            swap(turned, block * by_name(kind.name).nbytes)
        assert np.array_equal(impl.byteswap(kind.name, raw), turned.data), kind.name
    assert len(table) >= 4


def test_more_than_one_piece() -> None:
    raw = random_bytes("Q8_0", PIECE + 3)
    ends = np.concatenate([impl.byteswap("Q8_0", raw[: 34 * PIECE]), impl.byteswap("Q8_0", raw[34 * PIECE :])])
    assert np.array_equal(impl.byteswap("Q8_0", raw), ends)


def test_what_is_no_whole_block() -> None:
    with pytest.raises(impl.InputError, match="33 bytes are no whole number of Q8_0 blocks"):
        impl.byteswap("Q8_0", bytes(33))
    with pytest.raises(impl.UnsupportedError, match="unknown ggml type 'Q4_2'"):
        impl.byteswap("Q4_2", bytes(20))
