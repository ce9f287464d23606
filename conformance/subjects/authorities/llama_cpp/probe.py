"""Finds out what arithmetic the loaded library was compiled to: whether multiply and add are fused, and which vector units.

A compiler that may contract ``a * b + c`` into one fused operation rounds once where the source rounds twice. Each probe is
an input for which the two differ, found by a search with exact rational numbers; ``tests/authorities/test_probe.py``
works both answers out again.
"""

from __future__ import annotations

import ctypes
import struct
from typing import NamedTuple

from conformance.subjects.authorities.llama_cpp.blocks import quantize_reference
from conformance.subjects.authorities.llama_cpp.kinds import dot_partner, kinds, scalar_dot
from conformance.subjects.authorities.llama_cpp.library import libraries

# fmt: off
_VECTOR_UNITS = (
    "sse3", "ssse3", "avx", "avx_vnni", "avx2", "bmi2", "f16c", "fma", "avx512", "avx512_vbmi", "avx512_vnni", "avx512_bf16",
    "amx_int8", "neon", "arm_fma", "fp16_va", "dotprod", "matmul_int8", "sve", "sme", "sme2", "riscv_v", "vsx", "vxe", "wasm_simd",
)
# fmt: on


class QuantProbe(NamedTuple):
    """A block of 32 floats: ``largest`` (a float32 bit pattern), then ``value``, then zeros; and the code that ``value`` gets.

    Its code is the low nibble of byte ``at`` of the block.
    """

    type: str
    largest: int
    value: int
    at: int
    separate: int
    fused: int


class DotProbe(NamedTuple):
    """A row of weights and one of quantized ``x``, and the bit pattern of their product."""

    type: str
    weights: bytes
    x: bytes
    separate: int
    fused: int


def _q4_0(scale: float, first: int) -> bytes:
    """Make a block that holds ``first`` in element 0 and zeros."""
    return struct.pack("<e16B", scale, (first + 8) | 0x80, *[0x88] * 15)


def _q4_1(scale: float, minimum: float, first: int) -> bytes:
    return struct.pack("<ee16B", scale, minimum, first, *[0] * 15)


def _q6_k(scale: float, sub_scale: int, first: int) -> bytes:
    """Make a super-block that holds ``first`` in element 0; the other elements are -32 and meet zeros."""
    code = first + 32
    low, high = bytes([code & 15]) + bytes(127), bytes([code >> 4]) + bytes(63)
    return low + high + struct.pack("<16be", sub_scale, *[0] * 15, scale)


def _q8_0(scale: float, first: int) -> bytes:
    return struct.pack("<e32b", scale, first, *[0] * 31)


def _q8_1(scale: float, total: float, first: int) -> bytes:
    return struct.pack("<ee32b", scale, total, first, *[0] * 31)


def _q8_k(scale: int, first: int) -> bytes:
    """Make a super-block with ``first`` in element 0; ``scale`` is a float32 bit pattern."""
    return struct.pack("<I256b16h", scale, first, *[0] * 255, first, *[0] * 15)


# x * (1 / d) + 8.5 (Q4_0) and + 16.5 (Q5_0), in quantize_row_*_ref of ggml/src/ggml-quants.c.
QUANT_PROBES = (
    QuantProbe("Q4_0", 0x3FA0A61A, 0x3F34BADE, at=3, separate=4, fused=3),
    QuantProbe("Q5_0", 0x3FB1E541, 0x3F108A46, at=7, separate=10, fused=9),
)

# The sums of ggml_vec_dot_*_generic in ggml/src/ggml-cpu/quants.c: of the form sum += a * b (Q8_0, Q4_0, and Q6_K in eight
# lanes), and a * b + c * d (Q4_1). A compiler may fuse in one and not in another.
DOT_PROBES = (
    DotProbe(
        "Q8_0",
        _q8_0(1.6142578125, 124) + _q8_0(1.9599609375, 65),
        _q8_0(1.84375, 55) + _q8_0(1.2509765625, 107),
        separate=0x4711E702,
        fused=0x4711E701,
    ),
    DotProbe(
        "Q4_0",
        _q4_0(1.5546875, -5) + _q4_0(1.3896484375, 7),
        _q8_0(1.974609375, 22) + _q8_0(1.0908203125, 30),
        separate=0xC19ADF80,
        fused=0xC19ADF85,
    ),
    DotProbe(
        "Q4_1",
        _q4_1(1.1328125, -19.5625, 10),
        _q8_1(0.83251953125, 11.5703125, 71),
        separate=0x43DD9FD2,
        fused=0x43DD9FD3,
    ),
    DotProbe(
        "Q6_K",
        _q6_k(0.087158203125, 28, 14) + _q6_k(0.0830078125, 13, 22),
        _q8_k(0x3D78A13E, 35) + _q8_k(0x3CB58EEF, 108),
        separate=0x43016930,
        fused=0x43016931,
    ),
)


def contraction_base() -> str:
    """Tell whether ggml-base fuses multiply and add: "off", "on", or which type gave what."""
    return summary({probe.type: judge(_code(probe), probe.separate, probe.fused) for probe in QUANT_PROBES})


def contraction_dot() -> str:
    """Tell the same of the scalar dot products in ggml-cpu, "none" if there is no ggml-cpu."""
    if libraries().cpu is None:
        return "none"
    return summary({probe.type: judge(_product(probe), probe.separate, probe.fused) for probe in DOT_PROBES})


def summary(found: dict[str, str]) -> str:
    """Give the answer that all types gave, or each type's."""
    answers = set(found.values())
    return answers.pop() if len(answers) == 1 else ", ".join(f"{kind} {answer}" for kind, answer in found.items())


def judge(result: int, separate: int, fused: int) -> str:
    """Name the arithmetic that gives ``result``: "off" or "on" (multiply and add fused)."""
    return {separate: "off", fused: "on"}.get(result, f"neither ({result:#x})")


def _code(probe: QuantProbe) -> int:
    row = struct.pack("<32I", probe.largest, probe.value, *[0] * 30)
    return quantize_reference(kinds()[probe.type], row, 32)[probe.at] & 15


def _product(probe: DotProbe) -> int:
    kind = kinds()[probe.type]
    partner = dot_partner(kind)
    multiply = None if partner is None else scalar_dot(kind, partner)
    if multiply is None:
        raise RuntimeError(f"the library has no scalar dot product of {probe.type}")
    result = ctypes.c_float()
    multiply(len(probe.weights) // kind.nbytes * kind.block, ctypes.byref(result), 0, probe.weights, 0, probe.x, 0, 1)
    return int.from_bytes(bytes(result), "little")


def vector_units() -> str:
    """Name the vector units that ggml-cpu was compiled for, by its functions ``ggml_cpu_has_*``."""
    cpu = libraries().cpu
    return " ".join(name for name in _VECTOR_UNITS if getattr(cpu, f"ggml_cpu_has_{name}", int)())
