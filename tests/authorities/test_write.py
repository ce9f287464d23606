"""Both authorities' ``write``: bytes laid out by hand, what each refuses, and what its interface cannot say."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.cases.build import build
from conformance.cases.walk import walk
from conformance.outcomes import Crash, Error, Ok, Outcome, Reject, Unsupported
from conformance.subjects.process import Subject
from conformance.subjects.protocol import WriteRequest
from conformance.values import Header
from tests.authorities.files import ARR, BOOL, F32, STR, U8, array, gguf, pair, string, tensor

ARCHITECTURE = {"key": "general.architecture", "str": "llama"}


class Asked:
    """Asks for a file to be written, and gives its bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def outcome(self, subject: Subject, header: Header, data: bytes) -> Outcome:
        paths = {name: self.folder / name for name in ("description", "data", "out")}
        paths["out"].unlink(missing_ok=True)
        paths["description"].write_bytes(msgspec.json.encode(header))
        paths["data"].write_bytes(data)
        return subject.ask(WriteRequest(seq=0, **{name: str(path) for name, path in paths.items()})).outcome

    def of_recipe(self, subject: Subject, recipe: dict[str, Any]) -> Outcome:
        built = build(recipe).data
        header = walk(built).header
        starts = [header.data_offset + int(tensor.offset) for tensor in header.tensors]
        data = b"".join(built[start : start + int(one.nbytes or 0)] for start, one in zip(starts, header.tensors, strict=True))
        return self.outcome(subject, header, data)

    @property
    def file(self) -> bytes:
        return (self.folder / "out").read_bytes()


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


@pytest.fixture(params=["llama_cpp", "gguf_py"])
def writer(request: pytest.FixtureRequest) -> Subject:
    found: Subject = request.getfixturevalue(request.param)
    return found


def padded(data: bytes, align: int = 32) -> bytes:
    return data + bytes(-len(data) % align)


RECIPE = {
    "kv": [
        ARCHITECTURE,
        {"key": "a", "f32": "0x7fc12345"},
        {"key": "b", "bool": "2"},
        {"key": "c", "array": {"str": ["x", "", {"hex": "ff"}]}},
        {"key": "d", "array": {"u8": ["1", "255"]}},
    ],
    "tensors": [
        {"name": "t", "type": "F32", "dims": ["3", "2"], "data": ["1", "2", "3", "4", "5", "6"]},
        {"name": "u", "type": "Q8_0", "dims": ["32"], "data": {"fill": "7"}},
    ],
}
PAIRS = [
    pair(b"general.architecture", STR, string(b"llama")),
    pair(b"a", F32, struct.pack("<I", 0x7FC12345)),
    pair(b"b", BOOL, b"\1"),
    pair(b"c", ARR, array(STR, 3, string(b"x") + string(b"") + string(b"\xff"))),
    pair(b"d", ARR, array(U8, 2, b"\1\xff")),
]


def test_a_file_stands_as_laid_out_by_hand(writer: Subject, asked: Asked) -> None:
    assert asked.of_recipe(writer, RECIPE) == Ok()
    data = padded(struct.pack("<6f", *range(1, 7))) + padded(b"\7" * 34)
    assert asked.file == gguf(PAIRS, [tensor(b"t", 0, [3, 2]), tensor(b"u", 8, [32], offset=32)], data)


def test_without_tensors_the_metadata_are_padded(writer: Subject, asked: Asked) -> None:
    assert asked.of_recipe(writer, {"kv": RECIPE["kv"]}) == Ok()
    assert asked.file == padded(gguf(PAIRS))


def test_the_data_lie_at_the_alignment_that_is_said(writer: Subject, asked: Asked) -> None:
    recipe = {"kv": [ARCHITECTURE, {"key": "general.alignment", "u32": "128"}], "tensors": RECIPE["tensors"]}
    assert asked.of_recipe(writer, recipe) == Ok()
    assert asked.file == build(recipe).data
    assert walk(asked.file).header.data_offset % 128 == 0


def test_data_of_another_size_are_refused(writer: Subject, asked: Asked) -> None:
    header = walk(build(RECIPE).data).header
    outcome = asked.outcome(writer, header, bytes(57))
    assert isinstance(outcome, Reject)
    assert (outcome.reject_class, "57 bytes" in outcome.message, "take 58" in outcome.message) == ("bad-input", True, True)


def test_version_2_is_ggmls_alone(llama_cpp: Subject, gguf_py: Subject, asked: Asked) -> None:
    recipe = {**RECIPE, "version": "2"}
    assert asked.of_recipe(llama_cpp, recipe) == Ok()
    assert asked.file == build({**recipe, "kv": [*RECIPE["kv"][:2], {"key": "b", "bool": "1"}, *RECIPE["kv"][3:]]}).data
    assert asked.of_recipe(gguf_py, recipe) == Unsupported("GGUFWriter writes version 3, not 2")


def one_pair(value: dict[str, Any]) -> dict[str, Any]:
    return {"kv": [ARCHITECTURE, {"key": "a", **value}]}


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"kv": [{"key": {"hex": "610062"}, "u8": "1"}]}, "a key with a NUL in it, b'a\\x00b': the library takes C strings"),
        ({"kv": [{"key": "a", "str": {"hex": "00"}}]}, "a value with a NUL in it"),
        ({"kv": [{"key": "a", "array": {"str": [{"hex": "00"}]}}]}, "an element with a NUL in it"),
        ({"kv": [{"key": "a", "array": {"array": []}}]}, "no function that sets an array of arrays"),
        ({"version": "7"}, "no context of version 7"),
    ],
)
def test_what_ggmls_functions_cannot_say(llama_cpp: Subject, asked: Asked, recipe: dict[str, Any], says: str) -> None:
    outcome = asked.of_recipe(llama_cpp, recipe)
    assert isinstance(outcome, Unsupported)
    assert says in outcome.reason


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({}, "before all other pairs"),
        ({"kv": [{"key": "a", "u8": "1"}, ARCHITECTURE]}, "before all other pairs"),
        ({"kv": [{"key": "general.architecture", "str": ""}]}, "before all other pairs"),
        ({"kv": [ARCHITECTURE, {"key": {"hex": "ff"}, "u8": "1"}]}, "a key that is no UTF-8, ff"),
        (one_pair({"array": {"u8": []}}), "Empty array"),
        (one_pair({"array": {"array": [{"u8": ["1"]}]}}), "it has i32, f32, str, bool, not u8"),
        ({"kv": [ARCHITECTURE], "tensors": [{"name": {"hex": "ff"}, "type": "I8", "dims": ["1"]}]}, "a tensor's name that is no"),
        ({"kv": [ARCHITECTURE], "tensors": [{"name": "t", "type": "99", "dims": ["1"], "data": "00"}]}, "there is no 99"),
    ],
)
def test_what_gguf_writer_cannot_say(gguf_py: Subject, asked: Asked, recipe: dict[str, Any], says: str) -> None:
    outcome = asked.of_recipe(gguf_py, recipe)
    assert isinstance(outcome, Unsupported)
    assert says in outcome.reason


def test_what_is_no_alignment_is_left_to_ggmls_assertion(llama_cpp: Subject, asked: Asked) -> None:
    """What is no power of two is left to gguf_set_val_u32, which asserts it."""
    outcome = asked.of_recipe(llama_cpp, {"kv": [{"key": "general.alignment", "u32": "48"}]})
    assert isinstance(outcome, Crash)
    assert (outcome.how, "must be power of 2" in outcome.stderr) == ("SIGABRT", True)


def test_a_size_that_ggml_counts_otherwise_is_the_adapters_error(llama_cpp: Subject, asked: Asked) -> None:
    header = walk(build({"tensors": [{"name": "t", "type": "F32", "dims": ["3"]}]}).data).header
    wrong = msgspec.structs.replace(header, tensors=[msgspec.structs.replace(header.tensors[0], nbytes="16")])
    outcome = asked.outcome(llama_cpp, wrong, bytes(16))
    assert isinstance(outcome, Error)
    assert "has 12 bytes to the library, 16 are given" in outcome.message


def test_a_folder_that_is_not_there_is_an_error(writer: Subject, asked: Asked, tmp_path: Path) -> None:
    header = walk(build({"kv": [ARCHITECTURE]}).data).header
    asked.outcome(writer, header, b"")
    request = WriteRequest(
        seq=0, description=str(tmp_path / "description"), data=str(tmp_path / "data"), out=str(tmp_path / "no/out")
    )
    assert isinstance(writer.ask(request).outcome, Error)
