import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.judge.divergence import FloatBits, HexLine
from conformance.printable import lines_of, number, one_line, plural, tail_of
from conformance.report.bits import byte_lines, decimal, float_lines, split_bits
from conformance.report.events import Counts
from conformance.report.hexdump import hexdump_lines
from conformance.report.paths import case_path
from conformance.report.text import compared, ranges, seconds, wrap


def test_a_pattern_is_split_into_sign_exponent_and_significand():
    assert split_bits("0x3f800000") == "0 01111111 00000000000000000000000"
    assert split_bits("0xffc00001") == "1 11111111 10000000000000000000001"
    assert split_bits("0xbc00") == "1 01111 0000000000"
    assert split_bits("0x3ff0000000000001") == "0 01111111111 " + "0" * 51 + "1"


@pytest.mark.parametrize("bad", ["", "3f800000", "0x3f80000", "0x3f8000001", "0x3g800000", "0x3f800000\n", "1.0"])
def test_what_is_no_pattern_is_refused_and_shown(bad):
    with pytest.raises(ValueError, match="not a float's bit pattern") as caught:
        split_bits(bad)
    assert repr(bad) in str(caught.value)


@given(st.integers(0, 2**32 - 1))
def test_the_parts_of_a_pattern_make_the_pattern(bits):
    sign, exponent, significand = split_bits(f"0x{bits:08x}").split(" ")
    assert (len(sign), len(exponent), len(significand)) == (1, 8, 23)
    assert int(sign + exponent + significand, 2) == bits


@given(st.floats(width=32, allow_nan=False))
def test_a_decimal_reads_back_to_its_bits(value):
    raw = struct.pack(">f", value)
    assert struct.pack(">f", float(decimal(f"0x{raw.hex()}"))) == raw


def test_decimals_are_the_shortest():
    assert decimal("0x3dcccccd") == "0.1"
    assert decimal("0x7f7fffff") == "3.4028235e+38"
    assert decimal("0x00000001") == "1e-45"
    assert decimal("0x80000000") == "-0"
    assert decimal("0xff800000") == "-inf"
    assert decimal("0x3fb999999999999a") == "0.1"
    assert decimal("0x7bff") == "6.55e+04"


def test_a_nan_tells_its_sign_and_kind():
    assert decimal("0x7fc00000") == "nan, quiet"
    assert decimal("0xff800001") == "-nan, signalling"


def test_carets_stand_below_the_bits_that_differ():
    lines = float_lines(FloatBits("0x3f800000", "0xbf800001", 5))
    assert lines is not None
    marked = [column for column, sign in enumerate(lines.marks) if sign == "^"]
    assert marked == [lines.found.index("1 01111111"), lines.found.index("00000000000000000000001") + 22]
    assert lines.marks.endswith("5 ulps")
    assert float_lines(FloatBits("0x3f800000", "0x7fc00000")).marks.endswith("no distance: NaN")


def test_patterns_of_two_widths_are_not_laid_out():
    assert float_lines(FloatBits("0x3f800000", "0x3c00", 1)) is None
    assert float_lines(FloatBits("one", "two", 1)) is None


def test_bytes_show_their_nibbles():
    assert byte_lines("0x3d", "0x3f") == ("0x3d  0011 1101", "0x3f  0011 1111", 13 * " " + "^")
    assert byte_lines("0x3d", "61") is None


@given(st.text())
def test_a_line_is_printable_whatever_the_data(text):
    shown = one_line(text)
    assert shown.isprintable()
    assert shown.isascii() or not text.isascii()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\n\tb\x00", "a\\r\\n\\tb\\x00"),
        ("abc\u202edef\u200b", "abc\\u202edef\\u200b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_moves_hides_or_reorders_is_escaped(text, shown):
    assert one_line(text) == shown


def test_what_is_left_out_is_counted():
    assert one_line("x" * 1600, 600) == "x" * 600 + "… (1,000 more characters)"
    assert one_line("x" * 600, 600) == "x" * 600


def test_lines_and_tails():
    assert lines_of("a\r\n\tb\x07\n\nc\n") == ["a", "    b\\x07", "", "c"]
    assert lines_of("\n") == []
    assert tail_of("1\n2\n3\n", 2) == ["(1 earlier line left out)", "2", "3"]
    assert tail_of("1\n2\n", 2) == ["1", "2"]


def test_numbers():
    assert number(139468) == "139,468"
    assert plural(1, "case") == "1 case"
    assert plural(0, "case") == "0 cases"
    assert [seconds(value) for value in (0, 0.0346, 0.0004, 12.34, 99.96, 125, 3725)] == [
        "0 ms",
        "35 ms",
        "under 1 ms",
        "12.3 s",
        "1 min 40 s",
        "2 min 05 s",
        "1 h 02 min",
    ]
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert compared(Counts(requests=9, blocks=4102, bytes=139468, tensors=1)) == "1 tensor, 4,102 blocks, 139,468 bytes compared"
    assert compared(Counts(requests=9)) == ""


def test_wrapping_never_breaks_a_word():
    word = "container/a-very-long/identifier-" * 4
    assert wrap(f"see {word} there", 40) == ["see", word, "there"]


def test_a_hexdump_is_aligned_marks_the_fault_and_counts_what_is_left_out():
    lines = hexdump_lines(
        (
            HexLine(0, "47475546", "magic"),
            HexLine(4, "60 00 ff", "version\x1b", mark=True, elided=4012),
            HexLine(0x1234567890, "zz", "tail"),
        )
    )
    assert lines == [
        "  00000000  47 47 55 46  GGUF  magic",
        "> 00000004  60 00 ff     `..   version\\x1b",
        "  ........  (4,012 bytes of version\\x1b left out)",
        "  1234567890  zz                 tail",
    ]


def test_carets_mark_the_bytes_between_expected_and_found():
    pair = (HexLine(2**40, "e4 f2 ec", "qs expected", mark=True), HexLine(2**40, "e4 f3 ec", "qs found", mark=True))
    lines = hexdump_lines((*pair, HexLine(2**40 + 3, "00", "d")))
    assert lines == [
        "> 10000000000  e4 f2 ec  ...  qs expected",
        "> 10000000000  e4 f3 ec  ...  qs found",
        "                  ^^",
        "  10000000003  00        .    d",
    ]


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ("container/alignment/zero", "container/alignment/zero"),
        ("a/../../b", "a/%2E%2E/%2E%2E/b"),
        ("/etc/x", "%/etc/x"),
        ("a b/c:d\\e\x00", "a%20b/c%3Ad%5Ce%00"),
        ("é", "%C3%A9"),
    ],
)
def test_no_id_leaves_the_folder(case, path):
    assert case_path(case) == path


def test_long_ids_differ_and_fit():
    paths = {case_path("x" * 400 + end) for end in ("a", "b")}
    assert len(paths) == 2
    assert all(len(path) <= 200 for path in paths)
