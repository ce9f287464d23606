"""Looking into a file: what is shown is what the bytes written here say, and nothing that a file holds reaches a terminal raw."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import impl
from conformance.errors import UsageError
from conformance.inspect import BrokenFileError, Description, describe, to_json
from conformance.inspect_view import render
from conformance.report.console import make_console

U8, U32, F32, BOOL, STR, ARRAY, U64, F64 = 0, 4, 6, 7, 8, 9, 10, 12
T_F32, T_Q8_0, T_Q8_1, T_I32 = 0, 8, 9, 26
HOSTILE = b"\x1b[2J\x1b]0;owned\x07\r\n\xe2\x80\xae\xff\xc2\x9b"


def text(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


def pair(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def strings(*values: bytes) -> bytes:
    return struct.pack("<IQ", STR, len(values)) + b"".join(map(text, values))


def gguf(pairs: list[bytes], tensors: list[tuple[bytes, int, tuple[int, ...], bytes]] = [], *, pad_last: bool = True) -> bytes:  # noqa: B006 - never changed
    """Write a file with the default alignment of 32; a tensor is its name, type, dims and data."""
    directory, data = b"", b""
    for name, kind, dims, raw in tensors:
        directory += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, len(data))
        data += raw + bytes(-len(raw) % 32 if pad_last or name != tensors[-1][0] else 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + directory
    return head + (bytes(-len(head) % 32) + data if tensors else b"")


def q8_0(scale: float, quants: list[int]) -> bytes:
    return struct.pack("<e32b", scale, *quants)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.gguf"


@pytest.fixture
def small(path: Path) -> Path:
    blocks = q8_0(0.5, list(range(-16, 16))) + q8_0(2.0, [1] * 32)
    path.write_bytes(
        gguf(
            [
                pair(b"general.architecture", STR, text(b"llama")),
                pair(b"a.epsilon", F32, struct.pack("<f", 1e-5)),
                pair(b"a.flag", BOOL, b"\x02"),
                pair(b"a.big", U64, struct.pack("<Q", 2**64 - 1)),
                pair(b"a.double", F64, struct.pack("<d", 0.1)),
                pair(b"a.tokens", ARRAY, strings(*(b"t%d" % i for i in range(1200)))),
                pair(b"a.scores", ARRAY, struct.pack("<IQ3f", F32, 3, 0.1, -0.0, float("inf"))),
                pair(b"a.none", ARRAY, struct.pack("<IQ", U8, 0)),
            ],
            [(b"w", T_Q8_0, (32, 2), blocks), (b"0", T_F32, (3,), struct.pack("<3f", 1.5, float("nan"), -0.0))],
        )
    )
    return path


def printed(description: Description) -> str:
    out = io.StringIO()
    render(description, make_console(out, width=60))
    return out.getvalue()


def rendered(path: Path, **asked: Any) -> str:
    return printed(describe(path, **asked))


def test_the_whole_view_of_a_small_file(small: Path) -> None:
    size, data_at = small.stat().st_size, small.read_bytes().index(q8_0(0.5, list(range(-16, 16))))
    assert rendered(small, values=2).replace(str(small), "x.gguf") == (
        f"x.gguf · GGUF 3 · {size:,} bytes\n"
        f"alignment 32 · data at {data_at:,}\n"
        "8 pairs · 2 tensors · 67 elements · Q8_0 1, F32 1\n"
        "\n"
        "metadata\n"
        '  general.architecture  str         "llama"\n'
        "  a.epsilon             f32         1e-05\n"
        "  a.flag                bool        true\n"
        "  a.big                 u64         18446744073709551615\n"
        "  a.double              f64         0.1\n"
        '  a.tokens              str[1,200]  "t0", "t1", … 1,198 more\n'
        "  a.scores              f32[3]      0.1, -0.0, … 1 more\n"
        "  a.none                u8[0]\n"
        "\n"
        "tensors (ne fastest first, at from the file's start)\n"
        "  #  name  type       ne      at  bytes\n"
        f"  0  w     Q8_0  [32, 2]  {data_at:,}     68\n"
        f"  1  0     F32       [3]  {data_at + 96:,}     12\n"
        "\n"
        "sound: llama.cpp's rules hold and all data is there\n"
    )


def test_whole_leaves_nothing_out(small: Path) -> None:
    shown = rendered(small, whole=True)
    assert '"t1199"' in shown
    assert "more" not in shown


def test_long_text_is_cut_and_counted_unless_whole(path: Path) -> None:
    path.write_bytes(gguf([pair(b"template", STR, text(b"x" * 81))]))
    assert f'"{"x" * 80}"… (81 characters)' in rendered(path)
    assert f'"{"x" * 81}"\n' in rendered(path, whole=True)


def test_values_of_a_tensor_are_dequantized_with_their_bits(small: Path) -> None:
    shown = rendered(small, tensor="w", values=34).splitlines()
    # 0.5 * (index - 16) in the first block, 2 * 1 in the second.
    lines = [shown[5 + index] for index in (0, 17, 31, 33)]
    assert lines == ["   0  -8.0  0xc1000000", "  17   0.5  0x3f000000", "  31   7.5  0x40f00000", "  33   2.0  0x40000000"]
    assert shown[5 + 34] == "  … 30 more"
    assert shown[4].startswith("tensor 0 w · Q8_0 · ne [32, 2] · 68 bytes at ")


def test_a_tensors_name_goes_before_its_index(small: Path) -> None:
    by_name = describe(small, tensor="0").values
    assert by_name is not None
    assert (by_name.tensor.index, by_name.tensor.name) == (1, "0")
    assert [(one.value, one.bits) for one in by_name.values] == [
        ("1.5", "0x3fc00000"),
        ("nan", "0x7fc00000"),
        ("-0.0", "0x80000000"),
    ]
    by_index = describe(small, tensor="1").values
    assert by_index is not None
    assert by_index.tensor.index == 1


@pytest.mark.parametrize(
    ("wanted", "hint"), [("ww", "try w"), ("2", "try an index from 0 to 1"), ("-1", "try an index"), ("²", "try")]
)
def test_an_unknown_tensor_is_a_usage_error_that_helps(wanted: str, hint: str, small: Path) -> None:
    with pytest.raises(UsageError) as caught:
        describe(small, tensor=wanted)
    assert repr(wanted) in caught.value.message
    assert caught.value.hint.startswith(hint)


def test_values_that_are_no_blocks_and_values_that_cannot_be_had(path: Path) -> None:
    block = struct.pack("<2e32b", 1.0, 2.0, *range(32))
    path.write_bytes(
        gguf([], [(b"i", T_I32, (2,), struct.pack("<2i", -(2**31), 7)), (b"q", T_Q8_1, (32,), block), (b"z", T_F32, (0,), b"")])
    )
    integers, q8_1, empty = (describe(path, tensor=name).values for name in "iqz")
    assert integers is not None
    assert [one.value for one in integers.values] == ["-2147483648", "7"]
    assert q8_1 is not None
    assert q8_1.values == ()
    assert "Q8_1" in q8_1.note
    assert block.hex(" ") in q8_1.note
    assert empty is not None
    assert (empty.elements, empty.values, empty.note) == (0, (), "")


def test_only_the_blocks_that_are_shown_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(gguf([], [(b"w", T_Q8_0, (3200,), q8_0(1.0, [3] * 32) * 100)]))
    asked = []
    dequantize = impl.dequantize
    monkeypatch.setattr(
        impl, "dequantize", lambda kind, data, shape: (asked.append(len(data)), dequantize(kind, data, shape))[1], raising=False
    )
    describe(path, tensor="w", values=33)
    assert asked == [2 * 34]


def test_floats_are_the_shortest_text_that_reads_back(path: Path) -> None:
    rng = np.random.default_rng(7)
    special = np.array([0, 1, 0x80000000, 0x7F7FFFFF, 0x3DCCCCCD, 0x00800000, 0x4B800001, 0xFF800000, 0x7FC00000], np.uint32)
    exact = np.concatenate([special, rng.integers(0, 2**32, 2000, np.uint32)]).view("<f4")
    path.write_bytes(gguf([pair(b"f", ARRAY, struct.pack("<IQ", F32, len(exact)) + exact.tobytes())]))
    (entry,) = describe(path, whole=True).metadata
    for shown, number in zip(entry.values, exact, strict=True):
        assert np.float32(shown).tobytes() == number.tobytes() or (shown == "nan" and np.isnan(number))
        # numpy finds the shortest digits by another way (Dragon4).
        assert digits(shown) == digits(str(number))


def digits(text: str) -> int:
    return len(Decimal(text).normalize().as_tuple().digits)


def test_hostile_text_is_escaped_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m.gguf"
    path.write_bytes(
        gguf(
            [pair(b"k" + HOSTILE, STR, text(HOSTILE)), pair(b"list", ARRAY, strings(HOSTILE))],
            [(b"n" + HOSTILE, T_F32, (1,), bytes(4))],
        )
    )
    shown = rendered(path) + rendered(path, tensor="0") + printed(msgspec.structs.replace(describe(path), problem="\x1b[2J"))
    assert not [character for character in shown if not character.isprintable() and character != "\n"]
    escaped = r"\x1b[2J\x1b]0;owned\x07\r\n\u202e\xff\x9b"
    assert f'k{escaped}  str     "{escaped}"\n' in shown
    assert f'  str[1]  "{escaped}"\n' in shown
    assert f"n{escaped}" in shown
    assert r"a\x1b[31m.gguf" in shown


def test_json_keeps_every_byte_and_every_digit(small: Path, path: Path) -> None:
    tree = json.loads(to_json(describe(small, tensor="w", values=1)))
    by_key = {entry["key"]: entry for entry in tree["metadata"]}
    assert by_key["a.big"] == {"key": "a.big", "type": "u64", "items": None, "count": 1, "values": ["18446744073709551615"]}
    assert by_key["a.tokens"] == {"key": "a.tokens", "type": "array", "items": "str", "count": 1200, "values": ["t0"]}
    assert tree["tensors"][1]["offset"] == "96"
    assert tree["tensors"][0]["ne"] == ["32", "2"]
    assert tree["values"]["values"] == [{"value": "-8.0", "bits": "0xc1000000"}]
    assert (tree["version"], tree["alignment"], tree["size"], tree["problem"]) == (3, 32, small.stat().st_size, "")

    path.write_bytes(gguf([pair(HOSTILE, ARRAY, strings(HOSTILE, b"ok"))], [(b"\xff", T_F32, (1,), bytes(4))]))
    tree = json.loads(to_json(describe(path)))
    assert tree["metadata"][0]["key"] == {"hex": HOSTILE.hex()}
    assert tree["metadata"][0]["values"] == [{"hex": HOSTILE.hex()}, "ok"]
    assert tree["tensors"][0]["name"] == {"hex": "ff"}


def test_a_broken_file_is_one_error_with_class_field_offset_and_bytes(path: Path) -> None:
    broken = gguf([pair(b"general.alignment", U32, struct.pack("<I", 24)), pair(b"next", U8, b"\x07")])
    path.write_bytes(broken)
    at = 24 + 8 + 17 + 4  # header, key length, key, type
    with pytest.raises(BrokenFileError) as caught:
        describe(path)
    assert caught.value.exit_code == 1
    said = str(caught.value)
    assert said.startswith(f"{path}: bad-alignment at byte {at}, kv[0].value: general.alignment is 24")
    dump = [line for line in said.splitlines() if line.startswith("  > ")]
    assert len(dump) == 1
    assert dump[0].startswith(f"  > {at:08x}  18 00 00 00 04 00 00 00 00 00 00 00 6e 65 78 74  ........")
    assert dump[0].endswith("kv[0].value")
    assert broken[at - 16 : at].hex(" ") in said
    assert broken[at + 16 :].hex(" ") in said


def test_a_file_cut_short_says_where_it_ends(path: Path) -> None:
    whole = gguf([pair(b"k", U32, struct.pack("<I", 1))])
    path.write_bytes(whole[:-4])
    with pytest.raises(BrokenFileError) as caught:
        describe(path)
    said = str(caught.value)
    assert f"truncated at byte {len(whole) - 4}, kv[0].value" in said
    assert f"kv[0].value (the file ends at {len(whole) - 4})" in said
    assert whole[-20:-4].hex(" ") in said


def test_an_empty_file_is_broken_too(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(BrokenFileError, match="truncated at byte 0, magic"):
        describe(path)


def test_hostile_text_in_an_error_is_escaped(path: Path) -> None:
    path.write_bytes(gguf([pair(HOSTILE, U8, b"\0"), pair(HOSTILE, U8, b"\0")]))
    with pytest.raises(BrokenFileError, match="duplicate-key") as caught:
        describe(path)
    assert caught.value.message.isprintable()


def test_an_error_that_the_reference_left_raw_is_escaped_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> impl.File:
        raise impl.GgufError("bad-key", "key \x1b[2J", field="kv[0].key", at=0)

    path.write_bytes(b"GGUF")
    monkeypatch.setattr(impl, "open", refuse, raising=False)
    with pytest.raises(BrokenFileError, match=r"key \\x1b\[2J"):
        describe(path)


def test_missing_data_leaves_the_header_readable_and_is_told(path: Path) -> None:
    name = b"w\x1b[2J"
    path.write_bytes(gguf([], [(b"a", T_F32, (8,), bytes(32)), (name, T_F32, (8,), bytes(32))])[:-8])
    description = describe(path)
    assert [tensor.nbytes for tensor in description.tensors] == [32, 32]
    assert description.problem.startswith("missing-data at byte")
    assert "not sound: missing-data at byte" in rendered(path)
    assert describe(path, tensor="a").values is not None
    with pytest.raises(BrokenFileError, match="missing-data") as caught:
        describe(path, tensor="1")
    assert caught.value.message.isprintable()


def test_a_sound_file_has_no_problem(small: Path) -> None:
    assert describe(small).problem == ""


def test_what_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        describe(tmp_path / "none.gguf")
    with pytest.raises(UsageError, match="is a folder"):
        describe(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no regular file"):
        describe(tmp_path / "pipe")


def test_a_negative_number_of_values_is_a_usage_error(small: Path) -> None:
    with pytest.raises(UsageError, match="-1 values"):
        describe(small, values=-1)


def test_a_header_is_read_without_numpy_and_rich(small: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from conformance.inspect import describe, to_json\n"
        "to_json(describe(Path(sys.argv[1]))); print([name for name in ('numpy', 'rich') if name in sys.modules])"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", script, str(small)], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
