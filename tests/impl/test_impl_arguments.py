"""What callers give: what numpy users expect works, and everything else is refused with what was given and what is needed."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import impl
from impl import InputError, UnsupportedError

ROWS = np.random.default_rng(5).standard_normal((4, 256)).astype(np.float32)
WEIGHTS = np.ones(256, np.float32)
KIND = "Q4_K"


@pytest.fixture(scope="module")
def blocks() -> Any:
    return impl.quantize(KIND, ROWS)


FLOAT_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "quantize": lambda _, rows: impl.quantize(KIND, rows),
    "check": lambda _, rows: impl.check(KIND, rows),
    "dot": lambda blocks, rows: impl.dot(KIND, blocks, rows),
    "matvec": lambda blocks, rows: impl.matvec(KIND, blocks, rows[0] if np.ndim(rows) == 2 else rows),
}
WRONG_FLOATS = {
    "a list": ([[1.0] * 256], "must be a numpy array of float32, not list"),
    "float16": (ROWS.astype(np.float16), "must be a numpy array of float32, not float16: convert it with .astype"),
    "float64": (ROWS.astype(np.float64), "must be a numpy array of float32, not float64: convert it with .astype"),
    "big-endian": (ROWS.astype(">f4"), "must be a numpy array of float32, not >f4: convert it with .astype"),
    "masked": (np.ma.masked_array(ROWS, mask=ROWS > 0), "is a masked array, whose mask would be lost"),
    "no dimension": (np.array(1, np.float32), "must have at least one dimension, the row"),
    "no whole block": (ROWS[:, :100], "a row of 100 elements is no multiple of 256, the block of Q4_K"),
}


@pytest.mark.parametrize("op", FLOAT_OPS)
@pytest.mark.parametrize("given", WRONG_FLOATS)
def test_floats_that_are_none_are_refused(blocks: Any, op: str, given: str) -> None:
    values, told = WRONG_FLOATS[given]
    if op == "matvec" and given == "a list":
        values = values[0]
    with pytest.raises(InputError) as raised:
        FLOAT_OPS[op](blocks, values)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "rows",
    [np.repeat(ROWS, 2, axis=1)[:, ::2], np.asfortranarray(ROWS), ROWS[::-1, ::-1][::-1, ::-1], ROWS.view(np.recarray)],
    ids=["every second", "columns first", "turned twice", "a subclass"],
)
def test_how_an_array_lies_in_memory_does_not_matter(blocks: Any, rows: Any) -> None:
    assert np.array_equal(impl.quantize(KIND, rows), blocks)
    impl.check(KIND, rows)
    assert np.array_equal(impl.dot(KIND, blocks, rows), impl.dot(KIND, blocks, ROWS))
    assert np.array_equal(impl.matvec(KIND, blocks, rows[0]), impl.matvec(KIND, blocks, ROWS[0]))
    spread = np.repeat(blocks, 2, axis=1)[:, ::2]
    assert np.array_equal(impl.dequantize(KIND, spread, (4, 256)), impl.dequantize(KIND, blocks, (4, 256)))
    assert impl.validate(KIND, spread) is None


@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_K", "IQ4_XS"])
def test_no_rows_give_no_rows(kind: str) -> None:
    none = np.zeros((0, 256), np.float32)
    assert impl.quantize(kind, none).shape == (0, len(impl.quantize(kind, ROWS)[0]))
    assert impl.dequantize(kind, b"", (0, 256)).shape == (0, 256)
    impl.check(kind, none)
    assert impl.validate(kind, b"") is None
    assert impl.quantize(kind, np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert impl.dequantize(kind, b"", (3, 0)).shape == (3, 0)


def test_products_of_no_rows() -> None:
    assert impl.dot(KIND, b"", np.zeros((0, 256), np.float32)).shape == (0,)
    assert impl.matvec(KIND, b"", ROWS[0]).shape == (0,)


BYTE_OPS: dict[str, Callable[[Any], Any]] = {
    "dequantize": lambda data: impl.dequantize(KIND, data, (4, 256)),
    "dot": lambda data: impl.dot(KIND, data, ROWS),
    "matvec": lambda data: impl.matvec(KIND, data, ROWS[0]),
    "validate": lambda data: impl.validate(KIND, data),
}
SAME_BYTES: dict[str, Callable[[Any], Any]] = {
    "bytes": lambda blocks: blocks.tobytes(),
    "bytearray": lambda blocks: bytearray(blocks.tobytes()),
    "memoryview": memoryview,
    "strided memoryview": lambda blocks: memoryview(np.repeat(blocks.reshape(-1), 2))[::2],
    "array.array": lambda blocks: array.array("B", blocks.tobytes()),
    "int8": lambda blocks: blocks.view(np.int8),
    "from an odd address": lambda blocks: np.frombuffer(b"x" + blocks.tobytes(), np.uint8)[1:],
}


@pytest.mark.parametrize("op", BYTE_OPS)
@pytest.mark.parametrize("given", SAME_BYTES)
def test_bytes_come_in_many_forms(blocks: Any, op: str, given: str) -> None:
    ask = BYTE_OPS[op]
    assert np.array_equal(ask(SAME_BYTES[given](blocks)), ask(blocks))


WRONG_BYTES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "too short": (lambda blocks: blocks.reshape(-1)[:-1], "575 bytes"),
    "too long": (lambda blocks: blocks.tobytes() + b"x", "577 bytes"),
    "a list": (lambda blocks: blocks.tolist(), "must be bytes or a numpy array of them, not list"),
    "text": (lambda _: "x" * 576, "must be bytes or a numpy array of them, not str"),
    "nothing": (lambda _: None, "must be bytes or a numpy array of them, not NoneType"),
    "objects": (lambda blocks: blocks.astype(object), "must be bytes, not an array of object"),
    "big-endian": (lambda blocks: blocks.view(">u2"), "must be bytes, not an array of >u2"),
    "masked": (lambda blocks: np.ma.masked_array(blocks, mask=blocks > 9), "is a masked array, whose mask would be lost"),
}


@pytest.mark.parametrize("op", BYTE_OPS)
@pytest.mark.parametrize("given", WRONG_BYTES)
def test_bytes_that_are_none_are_refused(blocks: Any, op: str, given: str) -> None:
    make, told = WRONG_BYTES[given]
    with pytest.raises(InputError) as raised:
        BYTE_OPS[op](make(blocks))
    assert told in str(raised.value)


@pytest.mark.parametrize("kind", ["NOPE", "q4_k", "Q4_2", None, 12, ["Q4_K"], b"Q4_K"])
def test_an_unknown_type_is_told_with_the_known_ones(blocks: Any, kind: Any) -> None:
    asked: list[Callable[[], object]] = [
        lambda: impl.quantize(kind, ROWS),
        lambda: impl.dequantize(kind, blocks, (4, 256)),
        lambda: impl.dot(kind, blocks, ROWS),
        lambda: impl.matvec(kind, blocks, ROWS[0]),
        lambda: impl.check(kind, ROWS),
        lambda: impl.validate(kind, blocks),
    ]
    for ask in asked:
        with pytest.raises(UnsupportedError) as raised:
            ask()
        assert f"unknown ggml type {kind!r}: the known ones are F32, F16" in str(raised.value)


def test_rows_in_the_place_of_the_type_are_not_printed_in_full() -> None:
    with pytest.raises(UnsupportedError) as raised:
        impl.quantize(ROWS, "Q8_0")  # type: ignore[arg-type]
    assert "array(" in str(raised.value).partition(":")[0]
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("imatrix", "told"),
    [
        ([1.0] * 256, "not list"),
        (WEIGHTS[:100], "not float32 of shape (100,)"),
        (WEIGHTS.astype(np.float64), "not float64 of shape (256,)"),
        (WEIGHTS.astype(">f4"), "not >f4 of shape (256,)"),
        (np.ma.masked_array(WEIGHTS, mask=WEIGHTS > 0), "is a masked array"),
        (np.ones((4, 256), np.float32), "not float32 of shape (4, 256)"),
    ],
)
def test_an_imatrix_that_is_none_is_refused(imatrix: Any, told: str) -> None:
    for kind in (KIND, "Q8_0"):
        with pytest.raises(InputError, match="imatrix") as raised:
            impl.quantize(kind, ROWS, imatrix)
        assert told in str(raised.value)


def test_an_imatrix_may_lie_anyhow() -> None:
    weights = np.random.default_rng(6).random(512).astype(np.float32)
    assert np.array_equal(impl.quantize(KIND, ROWS, weights[::2]), impl.quantize(KIND, ROWS, weights[::2].copy()))


@pytest.mark.parametrize("shape", [(4, 256), [4, 256], np.array([4, 256]), (np.uint64(4), np.int8(2) * np.int64(128)), 1024])
def test_a_shape_is_what_numpy_takes_for_one(blocks: Any, shape: Any) -> None:
    assert np.array_equal(impl.dequantize(KIND, blocks, shape).reshape(-1), impl.dequantize(KIND, blocks, (1024,)))


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((4.0, 256), "shape must be whole numbers, not (4.0, 256)"),
        ("ab", "shape must be whole numbers, not 'ab'"),
        (None, "shape must be whole numbers, not None"),
        ((-4, -256), "not (-4, -256)"),
        ((0, 2**70), "shape must be numbers from 0 to 2^63 - 1"),
        ((2**62, 0), "shape must be of fewer than 2^61 numbers, those of 0 left out, not (4611686018427387904, 0)"),
        ((4, 100), "a row of 100 elements is no multiple of 256"),
        ((5, 256), "but the shape needs 5 blocks, 720 bytes"),
    ],
)
def test_a_shape_that_is_none_is_refused(blocks: Any, shape: Any, told: str) -> None:
    with pytest.raises(InputError) as raised:
        impl.dequantize(KIND, blocks, shape)
    assert told in str(raised.value)


@pytest.mark.parametrize("threads", [0, -1, 1.5, None, "2"])
def test_threads_that_are_no_number_are_refused(blocks: Any, threads: Any) -> None:
    for ask in (
        lambda: impl.quantize(KIND, ROWS, threads=threads),
        lambda: impl.dequantize(KIND, blocks, (4, 256), threads=threads),
    ):
        with pytest.raises(InputError) as raised:
            ask()
        assert f"threads must be 1 or more, a whole number, not {threads!r}" in str(raised.value)


def _outs(shape: tuple[int, int], dtype: type[np.generic]) -> dict[str, tuple[Any, str]]:
    locked = np.empty(shape, dtype)
    locked.flags.writeable = False
    return {
        "a list": ([0], "not list"),
        "another shape": (np.empty((shape[0], shape[1] - 1), dtype), f"of shape ({shape[0]}, {shape[1] - 1})"),
        "another dtype": (np.empty(shape, np.int16), "not int16"),
        "in parts": (np.empty((shape[0], 2 * shape[1]), dtype)[:, ::2], "with strides"),
        "not writeable": (locked, "in one piece and writeable"),
        "masked": (np.ma.masked_array(np.empty(shape, dtype)), "is a masked array"),
    }


@pytest.mark.parametrize("given", list(_outs((1, 1), np.uint8)))
def test_an_out_that_cannot_take_the_result_is_refused(blocks: Any, given: str) -> None:
    asked = (
        (_outs((4, 144), np.uint8), lambda out: impl.quantize(KIND, ROWS, out=out)),
        (_outs((4, 256), np.float32), lambda out: impl.dequantize(KIND, blocks, (4, 256), out=out)),
    )
    for outs, ask in asked:
        out, told = outs[given]
        with pytest.raises(InputError) as raised:
            ask(out)
        assert told in str(raised.value)


def test_an_out_in_the_memory_of_the_input_is_refused() -> None:
    rows = ROWS.copy()
    with pytest.raises(InputError, match="out lies in the memory of what is read"):
        impl.quantize(KIND, rows, out=rows.reshape(-1).view(np.uint8)[:576].reshape(4, 144))
    floats = np.zeros((4, 256), np.float32)
    with pytest.raises(InputError, match="out lies in the memory of what is read"):
        impl.dequantize("F32", floats.view(np.uint8), (4, 256), out=floats)
    importances = np.ones(256, np.float32)
    with pytest.raises(InputError, match="out lies in the memory of what is read"):
        impl.quantize(KIND, rows, importances, out=importances.view(np.uint8)[:576].reshape(4, 144))


def test_an_out_at_an_odd_address_takes_the_result(blocks: Any) -> None:
    odd = np.frombuffer(bytearray(4 * 1024 + 1), np.uint8)[1:].view(np.float32).reshape(4, 256)
    assert impl.dequantize(KIND, blocks, (4, 256), out=odd) is odd
    assert np.array_equal(odd, impl.dequantize(KIND, blocks, (4, 256)))
    odd_bytes = np.frombuffer(bytearray(4 * 144 + 1), np.uint8)[1:].reshape(4, 144)
    assert np.array_equal(impl.quantize(KIND, ROWS, out=odd_bytes), blocks)


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview])
def test_a_file_at_hand_comes_in_many_forms(form: Callable[[bytes], Any]) -> None:
    file = b"GGUF" + (3).to_bytes(4, "little") + bytes(16)
    assert impl.open(form(file)).version == 3
