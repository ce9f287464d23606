"""The oracle of fuzzing: sound readers pass it, and each of its rules is seen to fail on one that breaks it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.fuzz import oracle
from conformance.fuzz.oracle import ACCEPTED, BrokenRuleError, check
from impl.container.file import File, Tensor
from impl.errors import GgufError

HEAD = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q1sIB", 1, b"a", 0, 7)
TENSOR = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sIQIQ", 1, b"t", 1, 2, 0, 0)
WHOLE = TENSOR + bytes(-len(TENSOR) % 32 + 32)


@pytest.mark.parametrize(
    ("data", "said"),
    [(HEAD, ACCEPTED), (WHOLE, ACCEPTED), (b"", "truncated"), (HEAD[:-1], "truncated"), (b"GGUFxxxx", "bad-version")],
)
def test_a_sound_reader_passes(data: bytes, said: str) -> None:
    assert check(data) == said


def test_any_other_error_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object, **__: object) -> File:
        raise IndexError("beyond the end")

    monkeypatch.setattr(oracle, "open_file", dies)
    with pytest.raises(IndexError):
        check(HEAD)


def reader(monkeypatch: pytest.MonkeyPatch, before: Callable[[], Any]) -> None:
    """Let the reader do something else first, each time."""
    real = oracle.open_file

    def slow(*words: Any, **named: Any) -> File:
        before()
        return real(*words, **named)

    monkeypatch.setattr(oracle, "open_file", slow)


def test_memory_beyond_the_bytes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    reader(monkeypatch, lambda: bytes(2_000_000))
    with pytest.raises(BrokenRuleError, match="bytes of memory for a file of"):
        check(HEAD)


def test_time_beyond_the_bytes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "TIME_BASE", 0.0)
    monkeypatch.setattr(oracle, "TIME_A_BYTE", 1e-6)

    def spends() -> None:
        until = time.process_time() + 0.01
        while time.process_time() < until:
            pass

    reader(monkeypatch, spends)
    with pytest.raises(BrokenRuleError, match=r"s for a file of 38 bytes"):
        check(HEAD)


def test_what_happens_once_is_charged_to_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    once = iter([2_000_000])
    reader(monkeypatch, lambda: bytes(next(once, 0)))
    assert check(HEAD) == ACCEPTED


def test_an_error_that_does_not_say_where_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> File:
        raise GgufError("truncated", "it ends", field="", at=0)

    monkeypatch.setattr(oracle, "open_file", refuses)
    with pytest.raises(BrokenRuleError, match="says too little"):
        check(HEAD)


def test_data_missing_from_a_file_that_loads_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(self: Tensor) -> memoryview:
        raise GgufError("missing-data", "it ends", field="data", at=0)

    monkeypatch.setattr(Tensor, "raw", property(lacks))
    with pytest.raises(BrokenRuleError, match="of a file that loads"):
        check(WHOLE)


def test_a_tensor_of_another_size_than_it_says_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "data", property(lambda _: np.zeros(2, np.float32)))
    monkeypatch.setattr(Tensor, "raw", property(lambda _: memoryview(b"\0" * 16)))
    with pytest.raises(BrokenRuleError, match="says 8 bytes, gives 16"):
        check(WHOLE)


def test_another_answer_in_pieces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(oracle.Prefix):
        def feed(self, data: bytes | bytearray | memoryview) -> int:
            return super().feed(bytes(data).replace(b"\x07", b"\x08"))

    monkeypatch.setattr(oracle, "Prefix", Deaf)
    with pytest.raises(BrokenRuleError, match="in pieces"):
        check(HEAD)
