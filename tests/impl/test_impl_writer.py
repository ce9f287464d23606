"""Files written: byte for byte as laid out by hand, as the harness's builder makes them, and as they were read."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from impl_build import ARR, BOOL, F32, F64, I8, STR, U8, alignment, array, gguf, pair, string, tensor

import impl
from conformance.cases.build import build


def written(path: Path, metadata: Any, tensors: Any = (), **options: Any) -> bytes:
    impl.write(path, metadata, tensors, **options)
    return path.read_bytes()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.gguf"


def padded(data: bytes, align: int = 32) -> bytes:
    return data + bytes(-len(data) % align)


def test_nothing_is_a_padded_head(out: Path) -> None:
    assert written(out, {}) == padded(gguf())
    assert written(out, {}, pad_empty=False) == gguf()


def test_values_and_tensors_stand_as_laid_out_by_hand(out: Path) -> None:
    metadata = {
        "a": impl.value("u8", 255),
        "b": "text",
        "c": True,
        "d": impl.value("i8", [-1, 2]),
        "e": ["x", ""],
        "f": impl.value("f64", []),
    }
    tensors = [
        impl.NewTensor("t", np.arange(6, dtype=np.float32).reshape(2, 3)),
        impl.NewTensor("u", b"\7" * 34, type="Q8_0", shape=(1, 32)),
    ]
    pairs = [
        pair(b"a", U8, b"\xff"),
        pair(b"b", STR, string(b"text")),
        pair(b"c", BOOL, b"\1"),
        pair(b"d", ARR, array(I8, 2, b"\xff\2")),
        pair(b"e", ARR, array(STR, 2, string(b"x") + string(b""))),
        pair(b"f", ARR, array(F64, 0, b"")),
    ]
    data = padded(struct.pack("<6f", *range(6))) + padded(b"\7" * 34)
    expected = gguf(pairs, [tensor(b"t", [3, 2]), tensor(b"u", [32], kind=8, offset=32)], data=data)
    assert written(out, metadata, tensors) == expected


def test_version_2_is_kept(out: Path) -> None:
    assert written(out, {}, version=2) == padded(gguf(version=2))


@pytest.mark.parametrize("align", [1, 8, 64, 4096])
def test_the_alignment_is_that_of_the_pair(out: Path, align: int) -> None:
    data = padded(b"\1\2\3", align) + padded(b"\4", align)
    pairs, tensors = [alignment(align)], [tensor(b"a", [3], kind=24), tensor(b"b", [1], kind=24, offset=len(padded(b"123", align)))]
    made = written(out, {"general.alignment": np.uint32(align)}, {"a": np.int8([1, 2, 3]), "b": np.int8([4])})
    assert made == gguf(pairs, tensors, data=data, align=align)


@pytest.mark.parametrize(
    ("shape", "ne"),
    [((), [1]), ((5,), [5]), ((1, 5), [5]), ((1, 1, 1, 5), [5]), ((2, 1, 5), [5, 1, 2]), ((2, 1, 1, 1), [1, 1, 1, 2])],
)
def test_ones_at_the_end_are_not_written(out: Path, shape: tuple[int, ...], ne: list[int]) -> None:
    made = written(out, {}, [impl.NewTensor("t", np.zeros(shape, np.float16))])
    assert made.startswith(gguf([], [tensor(b"t", ne, kind=1)]))


@pytest.mark.parametrize("shape", [(0,), (0, 4), (2, 0, 3)])
def test_zeros_of_a_shape_stay_so_that_the_file_can_be_read(out: Path, shape: tuple[int, ...]) -> None:
    impl.write(out, {}, {"t": np.zeros(shape, np.float32), "u": np.ones(1, np.float32)})
    read = impl.open(out, full=True, byteorder="either")
    assert (read.tensors[0].shape, read.tensors[1].data.tolist()) == (shape, [1.0])


def test_a_number_of_numpy_keeps_its_bits(out: Path) -> None:
    signalling = np.array([0x7F800001, 0xFFA00000], np.uint32).view(np.float32)
    made = written(out, {"a": signalling, "b": signalling[1]})
    floats = struct.pack("<II", 0x7F800001, 0xFFA00000)
    assert made == padded(gguf([pair(b"a", ARR, array(F32, 2, floats)), pair(b"b", F32, floats[4:])]))


def test_a_bool_that_was_read_as_2_is_written_as_1(out: Path) -> None:
    before = impl.open(gguf([pair(b"a", BOOL, b"\2"), pair(b"b", ARR, array(BOOL, 3, b"\0\xff\1"))]))
    made = written(out, [(key, before.metadata.value(key)) for key in before.metadata])
    assert made == padded(gguf([pair(b"a", BOOL, b"\1"), pair(b"b", ARR, array(BOOL, 3, b"\0\1\1"))]))


def test_the_metadata_of_another_file_keep_their_types(out: Path) -> None:
    before = padded(gguf([pair(b"\xff", U8, b"\7"), pair(b"b", ARR, array(I8, 1, b"\1")), pair(b"c", ARR, array(F64, 0, b""))]))
    assert written(out, impl.open(before).metadata) == before


def test_data_may_come_in_pieces_of_any_kind_and_is_not_held(out: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    seen: list[int] = []

    def pieces() -> Any:
        for index, piece in enumerate((rows[0], rows[1].tobytes(), memoryview(rows[2].tobytes()), bytearray())):
            seen.append(index)
            yield piece

    strided = np.arange(20, dtype=np.float32).reshape(4, 5)[:, ::2]
    rows.tofile(out.with_name("rows"))
    mapped = np.memmap(out.with_name("rows"), np.float32, "r", shape=(3, 4))
    tensors = [impl.NewTensor("t", pieces(), type="F32", shape=(3, 4)), impl.NewTensor("s", strided), impl.NewTensor("m", mapped)]
    impl.write(out, {}, tensors)
    read = impl.open(out, full=True, byteorder="either")
    assert seen == [0, 1, 2, 3]
    assert np.array_equal(read.tensors[0].data, rows)
    assert np.array_equal(read.tensors[1].data, strided)
    assert np.array_equal(read.tensors[2].data, rows)


@pytest.mark.parametrize("size", [1, 33, 35, 100])
def test_pieces_may_end_within_a_block(out: Path, size: int) -> None:
    data = np.random.default_rng(1).integers(0, 256, 10 * 34, np.uint8).tobytes()
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    impl.write(out, {}, [impl.NewTensor("t", pieces, type="Q8_0", shape=(10, 32))], byteorder="big")
    assert bytes(impl.open(out, full=True, byteorder="big").tensors[0].raw) == impl.byteswap("Q8_0", data).tobytes()


def test_a_quantized_array_tells_its_shape_by_its_rows(out: Path) -> None:
    blocks = impl.quantize("Q4_0", np.ones((2, 3, 64), np.float32))
    impl.write(out, {}, [impl.NewTensor("t", blocks.reshape(2, 3, -1), type="Q4_0")])
    assert impl.open(out, full=True).tensors[0].shape == (2, 3, 64)


def test_a_writer_takes_the_data_of_one_tensor_after_the_other(out: Path) -> None:
    tensors = [
        impl.NewTensor("a", None, type="F32", shape=(3,)),
        impl.NewTensor("none", None, type="F32", shape=(0,)),
        impl.NewTensor("b", None, type="I8", shape=(2,)),
    ]
    with impl.Writer(out, {}, tensors) as writer:
        for piece in (np.float32([1]), np.float32([2, 3]), b"", b"\4", b"\5"):
            writer.write(piece)
    data = padded(struct.pack("<3f", 1, 2, 3)) + padded(b"\4\5")
    head = [tensor(b"a", [3]), tensor(b"none", [0], offset=32), tensor(b"b", [2], kind=24, offset=32)]
    assert out.read_bytes() == gguf([], head, data=data)


NUMBERS = {"u8": (0, 255), "i8": (-128, 127), "u16": (0, 65535), "i16": (-(2**15), 2**15 - 1), "u32": (0, 2**32 - 1)}
NUMBERS |= {"i32": (-(2**31), 2**31 - 1), "u64": (0, 2**64 - 1), "i64": (-(2**63), 2**63 - 1), "bool": (0, 1)}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def elements(kind: str) -> st.SearchStrategy[Any]:
    if kind == "str":
        return TEXT
    if kind in {"f32", "f64"}:
        return st.floats(width=32 if kind == "f32" else 64, allow_nan=False)
    return st.booleans() if kind == "bool" else st.integers(*NUMBERS[kind])


def in_recipe(kind: str, value: Any) -> str:
    if kind == "f32":
        return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}"
    if kind == "f64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"
    return str(int(value)) if kind != "str" else value


KINDS = [*NUMBERS, "f32", "f64", "str"]
VALUES = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), st.one_of(elements(kind), st.lists(elements(kind), max_size=5)))
)
TENSORS = st.tuples(
    st.sampled_from(["F32", "F16", "BF16", "I8", "I64", "Q8_0", "Q4_K", "IQ1_S", "TQ2_0", "MXFP4"]),
    st.lists(st.integers(0, 3), max_size=3),
)


@given(
    version=st.sampled_from([2, 3]),
    order=st.sampled_from(["little", "big"]),
    align=st.sampled_from([None, 8, 32, 256]),
    pairs=st.dictionaries(TEXT.filter(lambda key: key and not key.startswith("general.")), VALUES, max_size=5),
    tensors=st.dictionaries(TEXT, TENSORS, max_size=4),
)
@settings(max_examples=150, deadline=None)
def test_what_is_described_is_what_the_builder_makes(tmp_path_factory, version, order, align, pairs, tensors) -> None:
    """The builder knows nothing of this package; of both, a file read back says what was described."""
    out = tmp_path_factory.getbasetemp() / "described.gguf"
    recipe: dict[str, Any] = {"version": str(version), "byteorder": order, "pad_header": "true", "kv": [], "tensors": []}
    metadata, new = {}, []
    if align:
        recipe["kv"].append({"key": "general.alignment", "u32": str(align)})
        metadata["general.alignment"] = impl.value("u32", align)
    for key, (kind, value) in pairs.items():
        said = [in_recipe(kind, one) for one in value] if isinstance(value, list) else in_recipe(kind, value)
        recipe["kv"].append({"key": key, "array": {kind: said}} if isinstance(value, list) else {"key": key, kind: said})
        metadata[key] = impl.value(kind, value)
    for name, (kind, dims) in tensors.items():
        block, nbytes = impl.types.by_name(kind).block, impl.types.by_name(kind).nbytes
        ne = [(dims[0] if dims else 1) * block, *dims[1:]]
        data = bytes(range(1, 200)) * (int(np.prod(ne)) // block * nbytes)
        data = data[: int(np.prod(ne)) // block * nbytes]
        kept = impl.container.layout.written_dims(tuple(ne))
        turned = data if order == "little" else impl.byteswap(kind, data).tobytes()
        recipe["tensors"].append({"name": name, "type": kind, "dims": [str(dim) for dim in kept], "data": turned.hex() or "none"})
        new.append(impl.NewTensor(name, data, type=kind, shape=tuple(ne[::-1])))
    made = written(out, metadata, new, version=version, byteorder=order)
    assert made == build(recipe).data
    read = impl.open(out, full=True, byteorder="either")
    assert {key: read.metadata[key] for key in pairs} == {key: value for key, (_, value) in pairs.items()}
    assert [bytes(one.native) for one in read.tensors] == [one.data for one in new]
