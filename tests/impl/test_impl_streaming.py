"""Large results, written past the caches: the same bits, wherever the result begins and ends."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import impl
from impl.blocks import SUPPORTED, api, streaming
from impl.blocks.api import codec
from impl.types import by_name

COLS = 512
GUARD = 40
STREAMED = [name for name in SUPPORTED["dequantize"] if codec(name).streams]
x86 = pytest.mark.skipif(not streaming.AVAILABLE, reason="needs an x86 processor: others have no such stores here")


@x86
@pytest.mark.parametrize("offset", [0, 1, 13, 16])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 31, 100])
def test_a_copy_changes_its_place_alone(offset: int, count: int) -> None:
    room = np.full(GUARD + count + GUARD, np.nan, np.float32)
    start = (-(room.ctypes.data // 4) % 16) + offset  # so many numbers after a line's start
    source = np.arange(1, count + 1, dtype=np.float32)
    streaming.copy_past_caches(source, room[start : start + count])
    assert (room[start : start + count] == source).all()
    assert np.isnan(room[:start]).all()
    assert np.isnan(room[start + count :]).all()


@x86
def test_whole_lines_go_past_the_caches() -> None:
    function: Any = streaming.copy_past_caches
    compiled = numba.njit(function.py_func)  # compiled here and now: of what is kept on disk there is no text
    compiled(np.zeros(32, np.float32), np.zeros(32, np.float32))
    (text,) = compiled.inspect_asm().values()
    assert "movnt" in text
    assert "sfence" in text


@x86
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", STREAMED)
def test_the_bits_are_those_of_a_small_result(kind: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pieces and a bit, one number after the start of a line."""
    monkeypatch.setattr(streaming, "PIECE", 1024)
    rows = 7
    data = np.random.default_rng(5).integers(0, 256, (rows, by_name(kind).row_bytes(COLS)), dtype=np.uint8)
    plain = impl.dequantize(kind, data, (rows, COLS))
    room = np.full(rows * COLS + 2, 7, np.float32)
    monkeypatch.setattr(api, "STREAMED", 0)
    streamed = impl.dequantize(kind, data, (rows, COLS), threads=threads, out=room[1:-1].reshape(rows, COLS))
    assert (streamed.view(np.uint32) == plain.view(np.uint32)).all()
    assert room[0] == room[-1] == 7


@pytest.mark.parametrize(
    ("nbytes", "available", "expected"), [(64 << 20, True, 1), ((64 << 20) - 4, True, 0), (64 << 20, False, 0)]
)
def test_large_results_alone_go_past_the_caches(
    nbytes: int, available: bool, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    monkeypatch.setattr(streaming, "AVAILABLE", available)
    monkeypatch.setattr(streaming, "dequantize_past_caches", lambda _function, blocks, _out: seen.append(len(blocks)))
    count = nbytes // 4
    impl.dequantize("BF16", bytes(2 * count), (count,), out=np.empty(count, np.float32))
    assert len(seen) == expected


def test_fresh_memory_is_in_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "dequantize_past_caches", None)
    monkeypatch.setattr(api, "STREAMED", 0)
    assert (impl.dequantize("BF16", bytes(64), (32,)) == 0).all()


@x86
def test_a_result_at_an_odd_address_is_written_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store past the caches at an address that no line's start is a whole number of floats away from ends the process."""
    monkeypatch.setattr(streaming, "dequantize_past_caches", None)
    monkeypatch.setattr(api, "STREAMED", 0)
    odd = np.frombuffer(bytearray(4 * 64 + 1), np.uint8)[1:].view(np.float32)
    data = np.arange(128, dtype=np.uint8)
    streamed = impl.dequantize("BF16", data, (64,), out=odd)
    assert (streamed.view(np.uint32) == impl.dequantize("BF16", data, (64,)).view(np.uint32)).all()
