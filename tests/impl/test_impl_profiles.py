"""Whose rules count: each profile against the authority or the text that it follows."""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from impl_build import ARR, BOOL, F32, STR, U8, alignment, array, gguf, pair, sound_file, string, tensor, u32
from impl_mutants import mutants

import impl
from conformance.adapter import Reject
from conformance.cases.build import build
from conformance.subjects.authorities.gguf_py.reader import Reader
from conformance.subjects.protocol import HeaderRequest
from impl import GgufError, InputError
from impl.container.describe import describe
from impl.container.gguf_py_rules import GgufPyRules
from impl.container.profiles import PROFILES
from impl.serve import main
from impl.subject import Subject


def ours(data: bytes, profile: str) -> tuple[str, Any]:
    """Give the class of the refusal, or the header as the adapter tells it."""
    try:
        return "ok", _comparable(describe(impl.open(data, profile=profile).header))
    except GgufError as error:
        return error.reject_class, None


def theirs(path: Path) -> tuple[str, Any]:
    """Give gguf-py's answer; "endless" where it has none at once (P13)."""
    signal.signal(signal.SIGALRM, _endless)
    # Again and again: the first may come where Python drops what is raised, and an endless answer takes all memory.
    signal.setitimer(signal.ITIMER_REAL, 0.15, 0.15)
    try:
        with np.errstate(over="ignore"):
            header = Reader().header(HeaderRequest(seq=1, path=str(path)))
        return "ok", _comparable(json.loads(msgspec.json.encode(header)))
    except Reject as error:
        return error.answer.reject_class, None
    except EndlessError:
        return "endless", None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class EndlessError(BaseException):
    """Time is up; no ``except Exception`` on the way takes it for a problem of its own."""


def _endless(*_: object) -> None:
    raise EndlessError


def _comparable(header: dict[str, Any]) -> dict[str, Any]:
    """Leave out the type of an empty array's elements, which gguf-py loses."""
    for each in header["kv"]:
        if not each["value"] or each.get("items") is None:
            each.pop("items", None)
    return header


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, where gguf-py's own sums wrap
def test_gguf_py_and_its_profile_agree_on_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    classes: set[str] = set()
    for data in mutants(500, seed=5):
        path.write_bytes(data)
        expected = theirs(path)
        if expected[0] != "endless":
            classes.add(expected[0])
            assert (expected, data) == (ours(data, "gguf-py"), data)
    assert len(classes) >= 9  # the mutants reach that many of its reasons


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("nested", {"kv": [{"key": "a", "array": {"array": [{"u32": [1, 2]}, {"u32": []}, {"u8": [3]}]}}]}),
        ("nested text first", {"kv": [{"key": "a", "array": {"array": [{"str": ["é", "b"]}, {"u16": [65, 0x4142]}]}}]}),
        ("nested numbers first", {"kv": [{"key": "a", "array": {"array": [{"u8": [1]}, {"str": ["ab", ""]}]}}]}),
        ("nothing first", {"kv": [{"key": "a", "array": {"array": [{"str": []}, {"str": ["ab"]}]}}]}),
        ("deep", {"kv": [{"key": "a", "nested": {"levels": 900, "u8": [7]}}]}),
        ("big-endian", {"byteorder": "big", "kv": [{"key": "a", "array": {"i32": [-1, 2]}}, {"key": "b", "f64": 0.1}]}),
        ("version 2", {"version": 2, "kv": [{"key": "", "bool": 255}]}),
        ("nine dims", {"tensors": [{"name": "n" * 100, "type": "F32", "dims": [1] * 9}]}),
        ("Q8_1", {"tensors": [{"name": "t", "type": "Q8_1", "dims": [256, 2]}, {"name": "u", "type": "F32", "dims": [64]}]}),
        ("gap", {"tensors": [{"name": "t", "type": "I8", "dims": [4], "offset": 3}]}),
    ],
)
def test_gguf_py_and_its_profile_give_the_same(tmp_path: Path, name: str, recipe: dict[str, Any]) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(build(recipe).data)
    expected = theirs(path)
    assert expected[0] == "ok", name
    assert ours(path.read_bytes(), "gguf-py") == expected


@pytest.mark.parametrize(
    ("expected", "recipe"),
    [
        ("truncated", {"kv": [{"key": "general.alignment", "u32": 64}], "cut": -4}),
        ("truncated", {"kv": [{"key": "general.alignment", "u32": 64}], "cut": -1}),
        ("too-deep", {"kv": [{"key": "a", "nested": {"levels": 1100, "u8": [7]}}]}),
        (
            "missing-data",
            {"tensors": [{"name": "t", "type": "F32", "dims": [4]}], "patch": {"tensors[0].dims[0]": 2**63}, "cut": -1},
        ),
        ("bad-dims", {"tensors": [{"name": "t", "type": "F32", "dims": [4]}], "patch": {"tensors[0].dims[0]": 2**63}}),
        ("bad-alignment", {"kv": [{"key": "general.alignment", "u32": 48}, {"key": "b", "u8": 1}], "cut": -1}),
        ("duplicate-tensor", {"tensors": [{"name": "t", "type": "F32", "dims": [1]}, {"name": "t", "type": 99, "dims": [1]}]}),
        (
            "missing-data",
            {"tensors": [{"name": "t", "type": "F32", "dims": [1]}, {"name": "u", "type": "F32", "dims": [1]}], "cut": -56},
        ),
    ],
)
def test_of_two_faults_it_tells_the_one_that_gguf_py_meets_first(tmp_path: Path, expected: str, recipe: dict[str, Any]) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(build(recipe).data)
    assert theirs(path)[0] == expected
    assert ours(path.read_bytes(), "gguf-py")[0] == expected


def test_arrays_that_there_is_no_room_for_are_refused_before_they_are_read() -> None:
    recipe = {"kv": [{"key": "a", "array": {"array": [{"u8": [1]}]}}], "patch": {"kv[0].value.length": 3}}
    with pytest.raises(GgufError, match="3 arrays take at least 36 bytes, but only 13 are left") as caught:
        impl.open(build(recipe).data, profile="spec")
    assert (caught.value.reject_class, caught.value.field) == ("bad-length", "kv[0].value.length")


def test_levels_beyond_those_that_python_allows_are_too_deep() -> None:
    deep = {"kv": [{"key": "a", "nested": {"levels": GgufPyRules.max_levels, "u8": [7]}}]}
    assert ours(build(deep).data, "gguf-py")[0] == "too-deep"
    assert ours(build(deep).data, "spec")[0] == "ok"


def test_arrays_within_an_array_keep_their_structure() -> None:
    inner = [{"u32": [1, 2]}, {"array": [{"str": ["x"]}, {"u8": []}]}, {"u32": [3]}]
    data = build(
        {"kv": [{"key": "a", "array": {"array": inner}}, {"key": "b", "array": {"array": []}}, {"key": "c", "u8": 9}]}
    ).data
    meta = impl.open(data, profile="spec").metadata
    assert (meta["a"], meta["b"], meta["c"]) == ([[1, 2], [["x"], []], [3]], [], 9)
    assert (meta.type("a"), meta.items_type("a")) == ("array", "array")


def test_many_levels_are_read_without_a_stack() -> None:
    data = build({"kv": [{"key": "a", "nested": {"levels": 99_999, "u8": [7]}}, {"key": "s", "u32": 42}]}).data
    meta = impl.open(data, profile="spec").metadata
    value, levels = meta["a"], 0
    while isinstance(value, list):
        value, levels = value[0], levels + 1
    assert (value, levels, meta["s"]) == (7, 100_000, 42)


# (label of docs/reader-rules.md, file, class by profile spec); None: taken.
SPEC = [
    ("S6", gguf([pair(b"a", BOOL, b"\2")]), "bad-value"),
    ("S6", gguf([pair(b"a", ARR, array(BOOL, 3, b"\0\1\3"))]), "bad-value"),
    ("S7", gguf([pair(b"a", STR, string(b"\xff"))]), "bad-value"),
    ("S7", gguf([pair(b"a", ARR, array(STR, 5000, string(b"a") * 4999 + string(b"\xc3")))]), "bad-value"),
    ("S7", gguf([pair(b"a", ARR, array(STR, 2, string(b"\xc3") + string(b"\xa9")))]), "bad-value"),
    ("S8", gguf([pair(b"a", ARR, array(ARR, 1, array(F32, 1, u32(0))))]), None),
    ("S9", gguf([pair(b"A", U8, b"\0")]), "bad-key"),
    ("S9", gguf([pair(b"a..b", U8, b"\0")]), "bad-key"),
    ("S9", gguf([pair(b"a\n", U8, b"\0")]), "bad-key"),
    ("S9", gguf([pair(b"k" * 65535, U8, b"\0")]), None),
    ("S9", gguf([pair(b"k" * 65536, U8, b"\0")]), "bad-key"),
    ("S11", gguf((), [tensor(b"n" * 64, [1])], data=bytes(32)), None),
    ("S11", gguf((), [tensor(b"n" * 65, [1])], data=bytes(32)), "bad-name"),
    ("S11", gguf((), [tensor(b"\xff", [1])], data=bytes(32)), "bad-name"),
    ("S12", gguf((), [tensor(b"t", [1] * 5)], data=bytes(32)), "bad-dims"),
    ("S14", gguf((), [tensor(b"t", [1], offset=64)], data=bytes(128)), None),
    ("S14", gguf((), [tensor(b"t", [1], offset=8)], data=bytes(128)), "bad-offset"),
    ("S16", gguf([alignment(24)]), None),
    ("S16", gguf([alignment(4)]), "bad-alignment"),
    ("S16", gguf([alignment(0)]), "bad-alignment"),
]


@pytest.mark.parametrize(("label", "data", "expected"), SPEC, ids=[f"{label}-{i}" for i, (label, _, _) in enumerate(SPEC)])
def test_what_the_text_says(label: str, data: bytes, expected: str | None) -> None:
    assert ours(data, "spec")[0] == (expected or "ok"), label


def test_the_string_that_is_not_utf8_is_named() -> None:
    words = string(b"a") * 4999 + string(b"\xc3")
    with pytest.raises(GgufError, match="is not UTF-8") as caught:
        impl.open(gguf([pair(b"a", ARR, array(STR, 5000, words))]), profile="spec")
    assert caught.value.field == "kv[0].value[4999]"
    assert caught.value.at == 24 + 9 + 4 + 12 + 9 * 4999 + 8


def test_all_that_the_text_wants_of_data_is_the_tensors_not_their_padding() -> None:
    data = gguf((), [tensor(b"t", [4])], data=bytes(16))
    impl.open(data, profile="spec", full=True)
    with pytest.raises(GgufError, match="takes 16 bytes"):
        impl.open(data[:-1], profile="spec", full=True)
    with pytest.raises(GgufError, match="take 32 bytes"):
        impl.open(data, full=True)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_sound_file_is_the_same_to_all_but_for_what_they_forbid(profile: str) -> None:
    data = build({"kv": [{"key": "a.b", "str": "x"}], "tensors": [{"name": "t", "type": "F32", "dims": [4]}]}).data
    assert describe(impl.open(data, profile=profile, full=True).header) == describe(impl.open(data).header)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"profile": "llama"}, "unknown profile 'llama': the known ones are llama.cpp, gguf-py, spec"),
        ({"versions": (4,)}, "versions are some of 1, 2 and 3, not 4"),
        ({"versions": 3}, "versions are some of 1, 2 and 3, as a tuple, not 3"),
        ({"byteorder": ">"}, "byteorder must be 'little', 'big' or 'either', not '>'"),
    ],
)
def test_options_that_are_none_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        impl.open(sound_file(), **options)


class TestVersion1:
    RECIPE: ClassVar[dict[str, Any]] = {
        "version": 1,
        "kv": [{"key": "name", "str": "abc"}, {"key": "w", "array": {"str": ["a", "bc"]}}, {"key": "n", "array": {"u16": [1, 2]}}],
        "tensors": [{"name": "t", "type": "F32", "dims": [3, 2], "data": [1, 2, 3, 4, 5, 6]}],
    }

    @pytest.mark.parametrize("byteorder", ["little", "big"])
    def test_it_is_read_where_it_is_asked_for(self, byteorder: str) -> None:
        data = build({**self.RECIPE, "byteorder": byteorder}).data
        file = impl.open(data, versions=(1, 2, 3), byteorder=byteorder, full=True)
        assert (file.version, dict(file.metadata)) == (1, {"name": "abc", "w": ["a", "bc"], "n": [1, 2]})
        assert file.tensors[0].data.tolist() == [[1, 2, 3], [4, 5, 6]]

    @pytest.mark.parametrize("profile", PROFILES)
    def test_else_it_is_refused(self, profile: str) -> None:
        assert ours(build(self.RECIPE).data, profile)[0] == "bad-version"

    def test_a_length_of_32_bits_is_held_to_the_file(self) -> None:
        recipe = {**self.RECIPE, "patch": {"kv[0].value.length": 2**32 - 1}}
        with pytest.raises(GgufError, match="string length 4294967295"):
            impl.open(build(recipe).data, versions=(1,))


class TestBigEndian:
    RECIPE: ClassVar[dict[str, Any]] = {
        "byteorder": "big",
        "kv": [
            {"key": "a", "u16": 0x0102},
            {"key": "b", "f64": 0.1},
            {"key": "c", "array": {"i32": [-1, 2]}},
            {"key": "d", "str": "x"},
        ],
        "tensors": [
            {"name": "t", "type": "I16", "dims": [4], "data": [1, -2, 300, -400]},
            {"name": "f", "type": "F64", "dims": [2], "data": [0.5, -3]},
        ],
    }

    @pytest.mark.parametrize("byteorder", ["big", "either"])
    def test_values_and_data_are_those_of_the_little_endian_file(self, byteorder: str) -> None:
        big = impl.open(build(self.RECIPE).data, byteorder=byteorder, full=True)
        little = impl.open(build({**self.RECIPE, "byteorder": "little"}).data)
        assert (big.byteorder, little.byteorder) == ("big", "little")
        assert describe(big.header) == describe(little.header)
        for mine, other in zip(big.tensors, little.tensors, strict=True):
            assert mine.data.tolist() == other.data.tolist()
            assert bytes(mine.raw) != bytes(other.raw)
            assert bytes(mine.native) == bytes(other.raw)

    def test_it_is_not_taken_for_little_endian(self) -> None:
        assert ours(build(self.RECIPE).data, "llama.cpp")[0] == "byte-order"
        little = build({**self.RECIPE, "byteorder": "little"}).data
        with pytest.raises(GgufError, match="in the other byte order"):
            impl.open(little, byteorder="big")

    def test_a_scale_within_a_block_is_turned_too(self) -> None:
        head = build(
            {"byteorder": "big", "tensors": [{"name": "t", "type": "Q8_0", "dims": [32], "data": {"u8": list(range(34))}}]}
        )
        stored = impl.open(head.data, byteorder="big").tensors[0]
        expected = bytes(stored.raw[1::-1]) + bytes(stored.raw[2:])
        assert stored.data.tobytes() == expected


def test_blocks_that_gguf_py_takes_for_larger_ones_are_not_turned() -> None:
    """Ten blocks of 36 bytes are nine of 40: they must not come out as others."""
    recipe = {"byteorder": "big", "tensors": [{"name": "t", "type": "Q8_1", "dims": [288]}], "append": {"count": 64}}
    data = build(recipe).data
    assert impl.open(data, byteorder="big").tensors[0].data.shape == (324,)
    with pytest.raises(InputError, match="has 40 bytes to gguf-py, and 36 to ggml"):
        _ = impl.open(data, profile="gguf-py").tensors[0].data


def test_the_adapter_reads_by_the_profile_that_it_is_given(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(build(TestBigEndian.RECIPE).data)
    assert main(Subject(), ["--profile", "gguf-py", "header", str(path)]) == 0
    assert json.loads(capfdbinary.readouterr().out)["data_offset"] % 32 == 0
    assert main(Subject(), ["header", str(path)]) == 1
    assert json.loads(capfdbinary.readouterr().out)["class"] == "byte-order"
    assert main(Subject(), ["--profile", "pytorch", "header", str(path)]) == 2
    assert b"unknown profile pytorch" in capfdbinary.readouterr().err
    assert main(Subject(), ["--profile"]) == 2


def test_a_stream_by_gguf_pys_rules_is_checked_for_data_only_in_full() -> None:
    data = gguf((), [tensor(b"t", [4])], data=bytes(15))
    impl.open(io.BytesIO(data), profile="gguf-py")
    with pytest.raises(GgufError, match="takes 16 bytes"):
        impl.open(io.BytesIO(data), profile="gguf-py", full=True)
