from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cases.integers import float_bits, parse_float, parse_hex, parse_integer


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("007", 7),
        ("0x10", 16),
        ("0XfF", 255),
        ("2^63-1", 9223372036854775807),
        ("-2^31", -2147483648),
        ("2^32+5", 4294967301),
        ("3*2^10", 3072),
        ("2^3^2", 512),
        ("10-4-3", 3),
        ("(10-4)*(3+1)", 24),
        ("--5", 5),
        ("2*-3", -6),
        (" 2 ^ 8 ", 256),
    ],
)
def test_an_expression_has_its_value(text: str, value: int) -> None:
    assert parse_integer(text) == value


def test_an_int_is_itself() -> None:
    assert parse_integer(2**64) == 2**64


@pytest.mark.parametrize(
    "text", ["", " ", "x", "1.5", "2^", "^2", "(1", "1)", "0x", "1 2", "2**3", "1/2", "1e3", "__import__('os')", True, None, 1.0]
)
def test_what_is_no_integer_is_refused_and_shown(text: object) -> None:
    with pytest.raises(ValueError, match="is no integer\nwrite an integer") as caught:
        parse_integer(text)
    assert str(text) in str(caught.value)


@pytest.mark.parametrize("text", ["2^(-1)", "2^4097", "9^9^9"])
def test_an_exponent_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="exponent"):
        parse_integer(text)


def _expressions() -> st.SearchStrategy[tuple[str, int]]:
    """Fully parenthesised texts with their values, computed beside the text and never from it."""
    leaf = st.integers(0, 2**40).flatmap(lambda n: st.sampled_from([(str(n), n), (hex(n), n)]))

    def combine(inner: st.SearchStrategy[tuple[str, int]]) -> st.SearchStrategy[tuple[str, int]]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda p: (f"({p[0][0]})+({p[1][0]})", p[0][1] + p[1][1])),
            pairs.map(lambda p: (f"({p[0][0]}) - ({p[1][0]})", p[0][1] - p[1][1])),
            pairs.map(lambda p: (f"({p[0][0]})*({p[1][0]})", p[0][1] * p[1][1])),
            st.tuples(inner, st.integers(0, 5)).map(lambda p: (f"({p[0][0]})^{p[1]}", p[0][1] ** p[1])),
            inner.map(lambda p: (f"-({p[0]})", -p[1])),
        )

    return st.recursive(leaf, combine, max_leaves=8)


@given(_expressions())
def test_any_expression_has_the_value_of_its_parts(expression: tuple[str, int]) -> None:
    text, value = expression
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    ("text", "kind", "bits"),
    [
        ("1", "f32", 0x3F800000),
        ("1.5", "f32", 0x3FC00000),
        ("-0.0", "f32", 0x80000000),
        ("nan", "f32", 0x7FC00000),
        ("-nan", "f32", 0xFFC00000),
        ("inf", "f32", 0x7F800000),
        ("-inf", "f32", 0xFF800000),
        ("1e-45", "f32", 0x00000001),
        ("1e-60", "f32", 0x00000000),
        ("3.4028235e38", "f32", 0x7F7FFFFF),
        ("0x7f800001", "f32", 0x7F800001),
        ("nan", "f64", 0x7FF8000000000000),
        ("-inf", "f64", 0xFFF0000000000000),
        ("0x7ff0000000000001", "f64", 0x7FF0000000000001),
        ("-2.5E1", "f64", 0xC039000000000000),
        (float("nan"), "f32", 0x7FC00000),
        (3, "f64", 0x4008000000000000),
    ],
)
def test_a_float_has_its_bits(text: object, kind: str, bits: int) -> None:
    assert float_bits(text, kind) == bits


@given(st.floats(width=32, allow_nan=False))
def test_a_decimal_of_an_f32_comes_back(number: float) -> None:
    assert float_bits(repr(number), "f32") == struct.unpack("<I", struct.pack("<f", number))[0]


@given(st.floats(allow_nan=False))
def test_a_decimal_of_an_f64_comes_back(number: float) -> None:
    assert struct.pack("<d", parse_float(repr(number))) == struct.pack("<d", number)


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [
        ("", "f32", "is no float"),
        ("NaN", "f32", "is no float"),
        (".nan", "f32", "is no float"),
        ("1_000", "f32", "is no float"),
        ("infinity", "f64", "is no float"),
        (True, "f32", "is no float"),
        ("0x7fc0", "f32", "0x and 8 hex digits"),
        ("0x7fc00000", "f64", "0x and 16 hex digits"),
        ("0x7fc0000g", "f32", "no bit pattern"),
        ("1e39", "f32", "beyond the largest finite f32"),
        ("1e400", "f64", "beyond the largest finite f64"),
    ],
)
def test_what_is_no_float_is_refused(text: object, kind: str, part: str) -> None:
    with pytest.raises(ValueError, match=part):
        float_bits(text, kind)


def test_hex_gives_bytes_and_refuses_half_a_byte() -> None:
    assert parse_hex("ff fe00") == b"\xff\xfe\x00"
    for wrong in ("f", "zz", 5):
        with pytest.raises(ValueError, match="no hex text"):
            parse_hex(wrong)
