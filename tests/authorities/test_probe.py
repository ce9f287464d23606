"""The inputs by which fused arithmetic is told from plain: both answers are worked out here with exact rational numbers."""

from __future__ import annotations

import struct
from fractions import Fraction

import pytest

from conformance.subjects.authorities.llama_cpp import probe

QUANTS = {found.type: found for found in probe.QUANT_PROBES}
DOTS = {found.type: found for found in probe.DOT_PROBES}


def rounded(exact: Fraction) -> Fraction:
    """The nearest float32, ties to even, of a number in the normal range."""
    if exact == 0:
        return exact
    exponent = 0
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    ulp = Fraction(2) ** (exponent - 23)
    return round(exact / ulp) * ulp


def from_bits(pattern: int) -> Fraction:
    return Fraction(struct.unpack("<f", struct.pack("<I", pattern))[0])


def to_bits(value: Fraction) -> int:
    return struct.unpack("<I", struct.pack("<f", float(value)))[0]


@pytest.mark.parametrize(("kind", "levels"), [("Q4_0", 8), ("Q5_0", 16)])
def test_quantizer_probes(kind, levels):
    """Code of x: the integer part of x * id + levels + 0.5, where d = max / -levels and id = 1 / d."""
    found = QUANTS[kind]
    largest, value, half = from_bits(found.largest), from_bits(found.value), levels + Fraction(1, 2)
    assert abs(value) < abs(largest)
    inverse = rounded(1 / rounded(largest / -levels))
    assert int(rounded(rounded(value * inverse) + half)) == found.separate
    assert int(rounded(value * inverse + half)) == found.fused
    assert found.separate != found.fused


def blocks(data: bytes, form: str) -> list[tuple]:
    return [tuple(map(Fraction, fields)) for fields in struct.iter_unpack(form, data)]


def q8_0_terms(found):
    for (dx, qx), (dy, qy) in zip(blocks(found.weights, "<eb31x"), blocks(found.x, "<eb31x"), strict=True):
        yield qx * qy, rounded(dx * dy)


def q4_0_terms(found):
    for (dx, byte), (dy, qy) in zip(blocks(found.weights, "<eB15x"), blocks(found.x, "<eb31x"), strict=True):
        yield rounded((int(byte) % 16 - 8) * qy * dx), dy


def q6_k_terms(found):
    for (low, high, sub_scale, dx), (dy, qy) in zip(
        blocks(found.weights, "<B127xB63xb15xe"), blocks(found.x, "<fb287x"), strict=True
    ):
        yield rounded(dx * dy), sub_scale * (int(low) % 16 + 16 * (int(high) % 4) - 32) * qy


@pytest.mark.parametrize(("kind", "terms"), [("Q8_0", q8_0_terms), ("Q4_0", q4_0_terms), ("Q6_K", q6_k_terms)])
def test_probes_of_sums_of_products(kind, terms):
    separate = fused = Fraction(0)
    for a, b in terms(DOTS[kind]):
        separate, fused = rounded(separate + rounded(a * b)), rounded(fused + a * b)
    assert to_bits(separate) == DOTS[kind].separate
    assert to_bits(fused) == DOTS[kind].fused
    assert separate != fused


def test_probe_of_a_sum_of_two_products():
    """(dx * dy) * sum + m * s; the second product is exact, so that it does not matter into which of the two the sum is fused."""
    found = DOTS["Q4_1"]
    ((dx, m, byte),) = blocks(found.weights, "<eeB15x")
    ((dy, s, qy),) = blocks(found.x, "<eeb31x")
    assert rounded(m * s) == m * s
    scale, total = rounded(dx * dy), int(byte) % 16 * qy
    assert to_bits(rounded(rounded(scale * total) + m * s)) == found.separate
    assert to_bits(rounded(scale * total + m * s)) == found.fused
    assert found.separate != found.fused


def test_summary_names_the_types_that_disagree():
    assert probe.summary({"Q8_0": "off", "Q6_K": "off"}) == "off"
    assert probe.summary({"Q8_0": "off", "Q6_K": "on"}) == "Q8_0 off, Q6_K on"
    assert probe.judge(5, separate=5, fused=6) == "off"
    assert probe.judge(6, separate=5, fused=6) == "on"
    assert probe.judge(7, separate=5, fused=6) == "neither (0x7)"


def test_the_installed_library_rounds_as_the_recorded_answers_do(llama_cpp):
    """Fails on a build that contracts; `python -m conformance.subjects.authorities.build` makes and installs the right one."""
    details = llama_cpp.identity.details
    assert (details["contraction_base"], details["contraction_dot"]) == ("off", "off")
