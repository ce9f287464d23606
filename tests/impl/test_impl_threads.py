"""Several threads, and results that go where the caller wants them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import impl
from impl import InputError
from impl.blocks import SUPPORTED, api
from impl.blocks.api import COMPILED_PIECE, codec
from impl.types import by_name

COLS = 2048


def rows_of(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(count).standard_normal((count, COLS)).astype(np.float32)


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("kind", SUPPORTED["quantize"])
def test_threads_change_nothing(kind: str, threads: int) -> None:
    rows = rows_of(5)
    imatrix = np.linspace(0.5, 2, COLS, dtype=np.float32) if codec(kind).uses_imatrix else None
    assert (impl.quantize(kind, rows, imatrix, threads=threads) == impl.quantize(kind, rows, imatrix)).all()
    if not codec(kind).needs_imatrix:
        assert (impl.quantize(kind, rows, threads=threads) == impl.quantize(kind, rows)).all()


@pytest.mark.parametrize("kind", SUPPORTED["dequantize"])
def test_threads_change_nothing_in_dequantizing(kind: str) -> None:
    data = np.random.default_rng(1).integers(0, 256, (5, by_name(kind).row_bytes(COLS)), dtype=np.uint8)
    alone, together = (impl.dequantize(kind, data, (5, COLS), threads=threads).view(np.uint32) for threads in (1, 3))
    assert (alone == together).all()


def test_the_work_is_done_by_as_many_threads_as_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece waits until all three are at work, so that one thread alone would not come to an end."""
    barrier = threading.Barrier(3, timeout=20)
    plain = api._quietly

    def quietly(*arguments: object) -> object:
        barrier.wait()
        return plain(*arguments)

    monkeypatch.setattr(api, "_quietly", quietly)
    rows = rows_of(3)
    assert impl.quantize("Q8_0", rows, threads=3).shape == (3, by_name("Q8_0").row_bytes(COLS))
    assert impl.quantize("Q4_0", rows, np.ones(COLS, np.float32), threads=3).shape == (3, by_name("Q4_0").row_bytes(COLS))


def test_no_more_threads_are_started_than_there_are_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    plain = api.ThreadPoolExecutor
    monkeypatch.setattr(api, "ThreadPoolExecutor", lambda threads: (started.append(threads), plain(threads))[1])
    impl.quantize("Q8_0", np.zeros((1, 64), np.float32), threads=10_000)
    impl.dequantize("Q8_0", bytes(2 * 34), (64,), threads=10_000)
    impl.quantize("Q4_0", np.zeros((2, 64), np.float32), np.ones(64, np.float32), threads=10_000)
    assert started == [1, 1, 1]


def test_large_arrays_are_cut_into_pieces_for_one_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    plain = api._quietly
    monkeypatch.setattr(api, "_quietly", lambda function, *rest: (seen.append(rest[0].size), plain(function, *rest))[1])
    impl.quantize("F16", np.zeros(2 * COMPILED_PIECE + 5, np.float32))
    assert seen == [COMPILED_PIECE, COMPILED_PIECE, 5]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_of_any_thread_is_raised(failing: int) -> None:
    """Each thread has one piece, so that in two of three cases it is not the caller's that fails."""
    barrier = threading.Barrier(3, timeout=20)

    def work(piece: slice) -> None:
        barrier.wait()
        if piece.start == failing:
            raise InputError("it failed")

    with pytest.raises(InputError, match="it failed"):
        api._each([slice(n, n + 1) for n in range(3)], work, 3)


def test_each_piece_is_done_once() -> None:
    done: list[int] = []
    api._each((slice(n, n + 1) for n in range(1000)), lambda piece: done.append(piece.start), 4)
    assert sorted(done) == list(range(1000))


def test_the_result_goes_where_it_is_wanted() -> None:
    rows = rows_of(3)
    blocks = np.full((3, by_name("Q4_0").row_bytes(COLS)), 0xAA, np.uint8)
    assert impl.quantize("Q4_0", rows, out=blocks) is blocks
    assert (blocks == impl.quantize("Q4_0", rows)).all()
    floats = np.full((3, COLS), np.nan, np.float32)
    assert impl.dequantize("Q4_0", blocks, (3, COLS), out=floats) is floats
    assert (floats == impl.dequantize("Q4_0", blocks, (3, COLS))).all()


@pytest.mark.parametrize(
    ("out", "says"),
    [
        (np.empty((3, 64), np.float64), "float64"),
        (np.empty((2, 64), np.float32), r"\(2, 64\)"),
        (np.empty((3, 128), np.float32)[:, ::2], r"strides \(512, 8\)"),
        (np.broadcast_to(np.float32(0), (3, 64)), r"strides \(0, 0\)"),
    ],
)
def test_a_place_that_does_not_fit_is_refused(out: np.ndarray[tuple[int, ...], np.dtype[np.float32]], says: str) -> None:
    with pytest.raises(InputError, match=rf"out must be float32 of shape \(3, 64\).* not .*{says}"):
        impl.dequantize("Q8_0", bytes(6 * 34), (3, 64), out=out)


@pytest.mark.parametrize("threads", [0, -1])
def test_no_threads(threads: int) -> None:
    with pytest.raises(InputError, match=f"threads must be 1 or more, a whole number, not {threads}"):
        impl.quantize("Q8_0", np.zeros(32, np.float32), threads=threads)
    with pytest.raises(InputError, match=f"threads must be 1 or more, a whole number, not {threads}"):
        impl.dequantize("Q8_0", bytes(34), (32,), threads=threads)


def test_an_error_in_a_thread_says_its_row_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(x: np.ndarray[tuple[int, ...], np.dtype[np.float32]], _imatrix: object, _out: object) -> None:
        for row in np.flatnonzero(np.isnan(x).any(axis=1)):
            raise InputError(f"row {row}")

    found = codec("Q4_0")
    monkeypatch.setitem(found.__dict__, "quantize_rows", refuse)
    rows = rows_of(6)
    rows[4, 7] = np.nan
    with pytest.raises(InputError, match="row 4"):
        impl.quantize("Q4_0", rows, np.ones(COLS, np.float32), threads=3)
