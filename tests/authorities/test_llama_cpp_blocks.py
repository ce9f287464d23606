"""Quantize, dequantize, dot and matvec of llama.cpp, through its adapter."""

from __future__ import annotations

import math
import struct

import pytest

from conformance.ggml_types import BY_NAME
from conformance.outcomes import Ok, Reject, Unsupported
from conformance.subjects.manifest import find_manifest
from conformance.subjects.process import Subject
from conformance.subjects.protocol import QuantizeRequest
from tests.authorities.block_requests import Blocks, bits, floats, gaussian, noise

INF, NAN = math.inf, math.nan


@pytest.fixture
def blocks(llama_cpp, tmp_path):
    return Blocks(llama_cpp, tmp_path)


def with_third(value):
    return [float(value if i == 3 else i) for i in range(32)]


# Input, the stored scale, the first five quants, the first four dequantized values: measured on candle-core 0.11.0 and
# on ggml for a study of Q8_0 that found the two the same byte for byte.
SPECIAL = {
    "zeros": ([0.0] * 32, 0.0, (0, 0, 0, 0, 0), (0.0, 0.0, 0.0, 0.0)),
    "tiny": ([1e-9 * i for i in range(32)], 0.0, (0, 4, 8, 12, 16), (0.0, 0.0, 0.0, 0.0)),
    "huge": ([1e7 * i for i in range(32)], INF, (0, 4, 8, 12, 16), (NAN, INF, INF, INF)),
    "inf": (with_third(INF), INF, (0, 0, 0, 0, 0), (NAN, NAN, NAN, NAN)),
    "nan": (with_third(NAN), 0.244140625, (0, 4, 8, 0, 16), (0.0, 0.9765625, 1.953125, 0.0)),
    "half": ([127.0] + [i + 0.5 for i in range(1, 32)], 1.0, (127, 2, 3, 4, 5), (127.0, 2.0, 3.0, 4.0)),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_q8_0_special_blocks(blocks, name):
    values, scale, quants, dequantized = SPECIAL[name]
    outcome, block = blocks.quantize("Q8_0", floats(values), 32)
    assert outcome == Ok()
    assert struct.unpack("<e5b", block[:7]) == (scale, *quants)
    _, back = blocks.dequantize("Q8_0", block, 32)
    assert [repr(value) for value in struct.unpack("<4f", back[:16])] == [repr(value) for value in dequantized]


def test_dequantize_is_one_exact_product(blocks):
    """d times a code of 8 or fewer bits fits a float32, and far more so a double."""
    scale, codes = 0.00012350082397460938, list(range(-128, 128, 8))
    _, q8_0 = blocks.dequantize("Q8_0", struct.pack("<e32b", scale, *codes), 32)
    assert q8_0 == floats(scale * code for code in codes)
    nibbles = [0x80 | i if i < 8 else 0x0F - i + 8 for i in range(16)]
    _, q4_0 = blocks.dequantize("Q4_0", struct.pack("<e16B", scale, *nibbles), 32)
    assert q4_0 == floats([scale * ((n & 15) - 8) for n in nibbles] + [scale * ((n >> 4) - 8) for n in nibbles])


def test_f32_passes_unchanged(blocks):
    data = struct.pack("<4I", 0x7F800001, 0x80000000, 0x00000001, 0xFFC12345)
    assert blocks.quantize("F32", data, 4) == (Ok(), data)
    assert blocks.dequantize("F32", data, 4) == (Ok(), data)


def row_bytes(kind: str) -> int:
    return BY_NAME[kind.partition(":")[0]].row_bytes(256)


def test_each_declared_quantizer_answers(blocks):
    """For some of the IQ types the library builds a table on first use, which takes seconds."""
    rows, imatrix = gaussian(512), floats([1.0] * 256)
    for kind in blocks.subject.identity.ops.quantize:
        outcome, out = blocks.quantize(kind, rows, 256, None if kind.endswith(":ref") else imatrix)
        assert (outcome, len(out)) == (Ok(), 2 * row_bytes(kind)), kind


def test_each_declared_dequantizer_answers(blocks):
    for kind in blocks.subject.identity.ops.dequantize:
        outcome, out = blocks.dequantize(kind, noise(2 * row_bytes(kind)), 256)
        assert (outcome, len(out)) == (Ok(), 2 * 256 * 4), kind


def test_each_declared_product_answers(blocks):
    ops = blocks.subject.identity.ops
    assert ops.dot == ops.matvec
    x = gaussian(512, 2)
    for kind in ops.dot:
        weights = noise(2 * row_bytes(kind))
        outcome, out = blocks.dot(kind, weights, x, 256)
        assert (outcome, len(out)) == (Ok(), 8), kind
        outcome, out = blocks.matvec(kind, weights, x[:1024], 256)
        assert (outcome, len(out)) == (Ok(), 8), kind


def test_which_types_are_declared(llama_cpp):
    """All that ggml has blocks for, but for what its sources leave out."""
    ops = llama_cpp.identity.ops
    live = {name for name, kind in BY_NAME.items() if not kind.removed}
    integers = {"I8", "I16", "I32", "I64", "F64"}
    assert set(ops.dequantize) == live - integers - {"Q8_1"}
    assert {kind for kind in ops.quantize if ":" not in kind} == live - integers - {"Q8_1", "Q8_K"}
    without_reference = {"F32", "IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M"}
    assert {kind.removesuffix(":ref") for kind in ops.quantize if ":" in kind} == live - integers - without_reference
    products = live - integers - {"Q8_1", "Q8_K"}
    assert {kind for kind in ops.dot if ":" not in kind} == products - {"F32", "F16", "BF16"}
    assert {"F32:simd", "F16:simd", "BF16:simd"} <= set(ops.dot)


@pytest.mark.parametrize("kind", ["Q8_1", "Q8_K", "I8", "F64", "Q4_0:simd", "IQ2_XXS:ref", "NONE"])
def test_what_is_not_declared_is_unsupported(blocks, kind):
    outcome, _ = blocks.quantize(kind, gaussian(256), 256)
    assert outcome == Unsupported(f"quantize of {kind}")


def test_reference_and_chunk_differ_for_iq4_nl_alone(blocks):
    """quantize_iq4_nl tries seven scales, quantize_row_iq4_nl_ref none."""
    rows = gaussian(8 * 256)
    declared = blocks.subject.identity.ops.quantize
    kinds = [kind for kind in declared if f"{kind}:ref" in declared and kind != "IQ2_S"]  # its table takes seconds
    differ = {kind for kind in kinds if blocks.quantize(kind, rows, 256)[1] != blocks.quantize(f"{kind}:ref", rows, 256)[1]}
    assert differ == {"IQ4_NL"}


def test_a_reference_function_may_come_first(llama_cpp, tmp_path):
    """Without ggml_quantize_init, which the normal path calls by itself, this one aborts."""
    with Subject(find_manifest("llama.cpp")) as fresh:
        outcome, _ = Blocks(fresh, tmp_path).quantize("IQ3_XXS:ref", gaussian(256), 256)
    assert outcome == Ok()


def test_q8_1_and_q8_k_have_reference_functions_only(blocks):
    _, q8_0 = blocks.quantize("Q8_0", gaussian(256), 256)
    _, q8_1 = blocks.quantize("Q8_1:ref", gaussian(256), 256)
    for block in range(8):
        d, quants = q8_0[34 * block :][:2], q8_0[34 * block + 2 :][:32]
        assert q8_1[36 * block :][:2] == d
        assert q8_1[36 * block + 4 :][:32] == quants
    outcome, q8_k = blocks.quantize("Q8_K:ref", gaussian(256), 256)
    assert outcome == Ok()
    quants, sums = struct.unpack("<256b", q8_k[4:260]), struct.unpack("<16h", q8_k[260:])
    assert sums == tuple(sum(quants[16 * i : 16 * i + 16]) for i in range(16))


def test_the_imatrix_counts(blocks):
    rows = gaussian(256)
    ramp = floats(1.0 + i for i in range(256))
    assert blocks.quantize("Q4_K", rows, 256)[1] != blocks.quantize("Q4_K", rows, 256, ramp)[1]
    assert blocks.quantize("Q8_0", rows, 256)[1] == blocks.quantize("Q8_0", rows, 256, ramp)[1]


def test_an_imatrix_that_is_needed_or_not_taken(blocks):
    outcome, _ = blocks.quantize("IQ2_XXS", gaussian(256), 256)
    assert outcome == Reject("bad-input", "IQ2_XXS needs an imatrix (ggml_quantize_requires_imatrix)")
    outcome, _ = blocks.quantize("Q4_0:ref", gaussian(32), 32, floats([1.0] * 32))
    assert outcome == Unsupported("ggml's reference functions take no imatrix")


def test_sizes_are_checked_before_the_library_sees_them(blocks, tmp_path):
    short = tmp_path / "short"
    short.write_bytes(bytes(127))
    request = {"seq": 0, "type": "Q8_0", "input": str(short), "out": str(tmp_path / "out")}
    for rows, cols, message in (
        (1, 32, f"float32 rows: 127 bytes in {short}, expected 128"),
        (1, 31, "1 rows of 31 elements; it takes a row or more, each a multiple of the block, 32"),
        (1, 0, "1 rows of 0 elements; it takes a row or more, each a multiple of the block, 32"),
        (0, 32, "0 rows of 32 elements; it takes a row or more, each a multiple of the block, 32"),
    ):
        outcome = blocks.subject.ask(QuantizeRequest(rows=rows, cols=cols, **request)).outcome
        assert outcome == Reject("bad-input", message)


def f32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def q8_0_product(weights: bytes, x: bytes) -> float:
    """The sum of ggml_vec_dot_q8_0_q8_0_generic in plain floats, rounded to float32 after each operation.

    Each product has at most 41 significant bits and each sum is of two float32, so the double before the rounding does no harm.
    """
    total = 0.0
    for start in range(0, len(weights), 34):
        (dx, *qx), (dy, *qy) = (struct.unpack("<e32b", row[start : start + 34]) for row in (weights, x))
        total = f32(total + f32(sum(a * b for a, b in zip(qx, qy, strict=True)) * f32(dx * dy)))
    return total


def test_scalar_q8_0_dot_is_plain_float32(blocks):
    _, weights = blocks.quantize("Q8_0", gaussian(8 * 1024, 5), 1024)
    x = gaussian(8 * 1024, 6)
    _, quantized = blocks.quantize("Q8_0:ref", x, 1024)
    outcome, products = blocks.dot("Q8_0", weights, x, 1024)
    assert outcome == Ok()
    size = 1024 // 32 * 34
    expected = floats(q8_0_product(weights[i * size :][:size], quantized[i * size :][:size]) for i in range(8))
    assert bits(products) == bits(expected)


def test_vectorised_dot_differs_in_the_last_bits_only(blocks):
    _, weights = blocks.quantize("Q8_0", gaussian(8 * 1024, 5), 1024)
    x = gaussian(8 * 1024, 6)
    scalar, vector = (blocks.dot(kind, weights, x, 1024)[1] for kind in ("Q8_0", "Q8_0:simd"))
    assert scalar != vector
    for a, b in zip(struct.unpack("<8f", scalar), struct.unpack("<8f", vector), strict=True):
        # 32 blocks: each of the 31 sums is off by at most half an ulp of a partial sum, none of which passes 200 here
        assert abs(a - b) <= 2 * 31 * 2**-17


def test_matvec_is_the_dot_of_each_row_with_one_x(blocks):
    _, weights = blocks.quantize("Q4_K", gaussian(3 * 512, 7), 512)
    x = gaussian(512, 8)
    assert blocks.matvec("Q4_K", weights, x, 512)[1] == blocks.dot("Q4_K", weights, x * 3, 512)[1]
