"""Files written again: as they were, with other metadata, in the other byte order."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from impl_build import ARR, BOOL, STR, U32, alignment, array, gguf, pair, string, tensor, u32

import impl
from conformance.cases.build import build
from conformance.cases.model import ModelInput
from conformance.models import locate
from conformance.places import cache_root
from impl.types import TYPES
from tests.corpus import corpus

KINDS = [kind for kind in TYPES if not kind.removed]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file with every type of tensor."""
    path = tmp_path / "model.gguf"
    rng = np.random.default_rng(3)
    tensors = [
        impl.NewTensor(kind.name.lower(), rng.integers(0, 256, 3 * kind.nbytes, np.uint8).tobytes(), kind.name, (3, kind.block))
        for kind in KINDS
    ]
    metadata = {"general.architecture": "llama", "a.count": np.uint16(7), "a.list": ["x", "yy"], "a.scores": np.float32([1, 2])}
    impl.write(path, metadata, tensors)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_without_changes_it_stays_as_it_was(model: Path, tmp_path: Path) -> None:
    impl.rewrite(model, tmp_path / "again.gguf")
    assert sha256(tmp_path / "again.gguf") == sha256(model)


def test_little_to_big_and_back_is_the_same_file(model: Path, tmp_path: Path) -> None:
    big, again = tmp_path / "big.gguf", tmp_path / "again.gguf"
    impl.rewrite(model, big, byteorder="big")
    assert big.read_bytes()[4:8] == b"\0\0\0\3"
    impl.rewrite(big, tmp_path / "big-again.gguf")
    assert sha256(tmp_path / "big-again.gguf") == sha256(big) != sha256(model)
    impl.rewrite(big, again, byteorder="little")
    assert sha256(again) == sha256(model)


def test_a_big_endian_file_reads_as_the_little_endian_one(model: Path, tmp_path: Path) -> None:
    impl.rewrite(model, tmp_path / "big.gguf", byteorder="big")
    little, big = impl.open(model, full=True), impl.open(tmp_path / "big.gguf", full=True, byteorder="big")
    assert dict(big.metadata) == dict(little.metadata)
    for ours, theirs in zip(little.tensors, big.tensors, strict=True):
        assert (ours.name, ours.type, ours.shape) == (theirs.name, theirs.type, theirs.shape)
        assert bytes(ours.native) == bytes(theirs.native)


def test_values_change_in_their_place_and_keep_their_type(model: Path) -> None:
    data = [bytes(one.raw) for one in impl.open(model).tensors]
    impl.rewrite(model, changes={"a.count": 9, "a.scores": [0.5], "b.new": True, "a.list": None, "c": impl.value("u8", [1])})
    read = impl.open(model, full=True)
    assert {key: (read.metadata.type(key), read.metadata[key]) for key in read.metadata} == {
        "general.architecture": ("str", "llama"),
        "a.count": ("u16", 9),
        "a.scores": ("array", [0.5]),
        "b.new": ("bool", True),
        "c": ("array", [1]),
    }
    assert list(read.metadata) == ["general.architecture", "a.count", "a.scores", "b.new", "c"]
    assert read.metadata.items_type("a.scores") == "f32"
    assert [bytes(one.raw) for one in read.tensors] == data


def test_another_alignment_moves_the_data(model: Path) -> None:
    before = impl.open(model)
    data = [bytes(one.raw) for one in before.tensors]
    impl.rewrite(model, changes={"general.alignment": impl.value("u32", 256)})
    read = impl.open(model, full=True)
    assert (read.alignment, read.data_offset % 256, [one.offset % 256 for one in read.tensors]) == (256, 0, [0] * len(KINDS))
    assert [bytes(one.raw) for one in read.tensors] == data


def test_an_open_file_can_be_written_again_while_it_is_read(model: Path, tmp_path: Path) -> None:
    opened = impl.open(model)
    tensors = opened.tensors[3:5]
    impl.write(model, {"a": opened.metadata.value("a.list")}, tensors)
    assert impl.open(model, full=True).metadata["a"] == ["x", "yy"]
    assert bytes(impl.open(model).tensors[1].raw) == bytes(tensors[1].raw)
    impl.rewrite(opened, tmp_path / "copy.gguf")
    assert dict(impl.open(tmp_path / "copy.gguf").metadata) == dict(opened.metadata)


@pytest.mark.parametrize("pad", [True, False])
def test_whether_a_file_without_tensors_is_padded_stays(tmp_path: Path, pad: bool) -> None:
    path = tmp_path / "vocab.gguf"
    data = gguf([alignment(64), pair(b"a", STR, string(b"x"))])
    path.write_bytes(data + bytes(-len(data) % 64) if pad else data)
    before = sha256(path)
    impl.rewrite(path)
    assert sha256(path) == before


def test_what_is_not_kept(tmp_path: Path) -> None:
    """A bool of 2, and dimensions of 1 at the end, are written as ggml writes them."""
    path = tmp_path / "odd.gguf"
    floats = struct.pack("<2f", 1, 2)
    path.write_bytes(gguf([pair(b"a", BOOL, b"\2")], [tensor(b"t", [2, 1])], data=floats + bytes(24)))
    impl.rewrite(path)
    assert path.read_bytes() == gguf([pair(b"a", BOOL, b"\1")], [tensor(b"t", [2])], data=floats + bytes(24))


def test_version_1_becomes_what_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "one.gguf"
    path.write_bytes(build({"version": "1", "kv": [{"key": "a", "array": {"str": ["x", "yy"]}}, {"key": "b", "u32": "7"}]}).data)
    with pytest.raises(impl.DescriptionError, match="version 1; write version 3, or 2"):
        impl.rewrite(path)
    impl.rewrite(path, version=3)
    pairs = [pair(b"a", ARR, array(STR, 2, string(b"x") + string(b"yy"))), pair(b"b", U32, u32(7))]
    assert path.read_bytes() == gguf(pairs)


def test_what_is_refused(model: Path) -> None:
    before = sha256(model)
    with pytest.raises(impl.InputError, match="the key 'none' is to be taken out, but is not there"):
        impl.rewrite(model, changes={"none": None})
    with pytest.raises(impl.InputError, match="70000 is no u16"):
        impl.rewrite(model, changes={"a.count": 70000})
    with pytest.raises(impl.InputError, match="out must be a path where an open file is written again"):
        impl.rewrite(impl.open(model))
    with pytest.raises(impl.GgufError, match="but the file ends") as missing:
        impl.rewrite(impl.open(model.read_bytes()[:-4000]), model)
    assert missing.value.reject_class == "missing-data"
    assert sha256(model) == before


def real_files() -> list[Any]:
    cases = corpus()
    return sorted({case.input.member: case.input for case in cases if isinstance(case.input, ModelInput)}.items())


@pytest.mark.parametrize(("member", "source"), real_files(), ids=[Path(member).name for member, _ in real_files()])
def test_a_real_file_comes_out_as_it_was(tmp_path: Path, member: str, source: ModelInput) -> None:
    if not (cache_root() / "models" / f"{source.package}-{source.version}" / member).is_file():
        pytest.skip(f"{member} is not at hand; `gguf-conformance fetch` brings it")
    path = locate(source)
    impl.rewrite(path, tmp_path / "again.gguf")
    assert sha256(tmp_path / "again.gguf") == source.sha256


def test_gguf_py_reads_a_big_endian_file_alike(model: Path, tmp_path: Path) -> None:
    """Its reader tells the byte order by the version, and gives numbers in that order; blocks it leaves as they stand."""
    reader: Any = pytest.importorskip("gguf.gguf_reader").GGUFReader
    kept = ["f32", "f16", "f64", "i8", "i16", "i32", "i64"]
    impl.write(
        tmp_path / "big.gguf", impl.open(model).metadata, [t for t in impl.open(model).tensors if t.name in kept], byteorder="big"
    )
    big = reader(tmp_path / "big.gguf")
    assert big.endianess.name == "BIG"
    said = {name: field.contents() for name, field in list(big.fields.items())[3:]}
    assert said == {"general.architecture": "llama", "a.count": 7, "a.list": ["x", "yy"], "a.scores": [1.0, 2.0]}
    for theirs in big.tensors:
        (ours,) = (one for one in impl.open(model).tensors if one.name == theirs.name)
        bits = np.asarray(theirs.data).astype(np.asarray(theirs.data).dtype.newbyteorder("<"))
        assert bits.tobytes() == bytes(ours.raw) or np.array_equal(bits, ours.data, equal_nan=True)
    assert sorted(one.name for one in big.tensors) == sorted(kept)
