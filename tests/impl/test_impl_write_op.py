"""The adapter's ``write``: what a description says is written, and what it refuses has the class that a reader would give."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from impl_build import ARR, BOOL, F32, I64, STR, U8, array, every_value_type, gguf, pair, string, tensor

from impl.container.describe import describe
from impl.container.file import open_file
from impl.serve import respond
from impl.subject import Subject

Json = dict[str, Any]


class Writing:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ask(self, header: Json, data: bytes = b"") -> Json:
        for name, content in (("description", json.dumps({"version": 3, **header}).encode()), ("data", data)):
            (self.folder / name).write_bytes(content)
        request = {name: str(self.folder / name) for name in ("description", "data", "out")}
        return respond(Subject(), "write", {"seq": 1, "op": "write", **request})

    @property
    def file(self) -> bytes:
        return (self.folder / "out").read_bytes()


@pytest.fixture
def writing(tmp_path: Path) -> Writing:
    return Writing(tmp_path)


def kv(**changes: Any) -> Json:
    return {"kv": [{"key": "a", **changes}], "tensors": []}


def of_type(number: int, dims: list[str]) -> Json:
    return {"kv": [], "tensors": [{"name": "t", "type": number, "dims": dims, "offset": "0", "nbytes": "9"}]}


def test_what_is_said_is_written(writing: Writing) -> None:
    pairs = [
        {"key": {"hex": "ff"}, "type": "f32", "value": "0x7f800001"},
        {"key": "b", "type": "bool", "value": "true"},
        {"key": "c", "type": "i64", "value": "-9223372036854775808"},
        {"key": "d", "type": "array", "items": "str", "value": ["x", {"hex": "c0"}]},
        {"key": "e", "type": "array", "items": "u8", "value": []},
        {"key": "f", "type": "str", "value": "ü"},
    ]
    tensors = [
        {"name": "t", "type": 24, "dims": ["3", "1"], "offset": "0", "nbytes": "3"},
        {"name": "u", "type": 8, "dims": ["32"], "offset": "32", "nbytes": "34"},
    ]
    assert writing.ask({"kv": pairs, "tensors": tensors}, b"\1\2\3" + b"\7" * 34) == {"ok": {}}
    head = [
        pair(b"\xff", F32, struct.pack("<I", 0x7F800001)),
        pair(b"b", BOOL, b"\1"),
        pair(b"c", I64, struct.pack("<q", -(2**63))),
        pair(b"d", ARR, array(STR, 2, string(b"x") + string(b"\xc0"))),
        pair(b"e", ARR, array(U8, 0, b"")),
        pair(b"f", STR, string("ü".encode())),
    ]
    directory = [tensor(b"t", [3], kind=24), tensor(b"u", [32], kind=8, offset=32)]
    assert writing.file == gguf(head, directory, data=b"\1\2\3" + bytes(29) + b"\7" * 34 + bytes(30))


def test_what_was_described_comes_out_again(writing: Writing) -> None:
    before = describe(open_file(gguf(every_value_type())).header)
    assert writing.ask(before) == {"ok": {}}
    assert describe(open_file(writing.file).header) == before
    assert len(writing.file) % 32 == 0


@pytest.mark.parametrize(
    ("header", "reject_class", "field", "says"),
    [
        (kv(type="u8", value="256"), "bad-value", "kv[0].value", "256 is no u8"),
        (kv(type="array", items="i16", value=["1", "40000"]), "bad-value", "kv[0].value", "40000 is no i16"),
        (kv(type="array", items="array", value=[]), "bad-value-type", "kv[0].value.items", "the elements are arrays"),
        (kv(type="array", value=[]), "bad-value-type", "kv[0].value.items", "no type is told"),
        (kv(key="", type="u8", value="1"), "bad-key", "kv[0].key", "the key is empty"),
        ({"version": 4, "kv": [], "tensors": []}, "bad-version", "version", "version 4"),
        (of_type(4, ["32"]), "bad-tensor-type", "tensors[0].type", "ggml has no type 4, or no longer"),
        (of_type(43, ["32"]), "bad-tensor-type", "tensors[0].type", "ggml has no type 43"),
        (of_type(8, ["33"]), "bad-block", "tensors[0].dims[0]", "a row of 33 elements"),
        (of_type(0, ["1"] * 5), "bad-dims", "tensors[0].n_dims", "has 5 dimensions"),
    ],
)
def test_what_is_refused_has_class_and_field(writing: Writing, header: Json, reject_class: str, field: str, says: str) -> None:
    rejected = writing.ask(header, bytes(9))["reject"]
    assert (rejected["class"], rejected["field"]) == (reject_class, field)
    assert says in rejected["message"]
    assert not (writing.folder / "out").exists()


@pytest.mark.parametrize(("size", "says"), [(8, "takes 9 bytes, but 8 were given"), (10, "holds more bytes than the tensors take")])
def test_data_of_another_size_are_refused(writing: Writing, size: int, says: str) -> None:
    rejected = writing.ask(of_type(24, ["9"]), bytes(size))["reject"]
    assert rejected["class"] == "bad-input"
    assert says in rejected["message"]
    assert not (writing.folder / "out").exists()


def test_a_file_that_cannot_be_written_is_an_error(writing: Writing) -> None:
    (writing.folder / "description").write_text("{}")
    request = {"description": str(writing.folder / "none"), "data": "none", "out": "none"}
    assert "FileNotFoundError" in respond(Subject(), "write", {"op": "write", **request})["error"]


@pytest.mark.parametrize(("profile", "writes"), [("llama.cpp", True), ("gguf-py", False), ("spec", False)])
def test_only_as_ggml_it_writes(profile: str, writes: bool) -> None:
    assert ("write" in Subject().reading_as(profile).hello({})["ops"]) is writes
