"""Golden files: what is written is read back, repeated answers are references, broken files are named."""

from pathlib import Path

import pytest

from conformance.errors import ConfigurationError
from conformance.judge.golden import FORMAT, GoldenAuthority, GoldenFile, GoldenStore, fold, record_answer, unfold
from conformance.judge.output import Kept
from conformance.outcomes import Crash, Ok, Reject
from conformance.subjects.protocol import View
from conformance.values import Header, Pair

ANSWERS = {
    "llama.cpp": {
        "header": record_answer(Ok(Header(3, 32, 24, [], [])), None),
        "load": record_answer(Ok(Header(3, 32, 24, [], [])), None),
        "long": record_answer(Ok(Header(3, 32, 24, [Pair("a", "array", ["1"] * 5000, "u8")], [])), None),
        "tensor[0]": record_answer(Ok(), Kept("AAAA")),
    },
    "gguf-py": {"header": record_answer(Reject("bad-key", "some message", 7), None), "load": record_answer(Crash("SIGABRT"), None)},
}


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    GoldenStore(tmp_path).write("a/b", GoldenFile(FORMAT, {"llama.cpp": GoldenAuthority("1", View())}, {"k": fold(ANSWERS)}))
    store = GoldenStore(tmp_path)
    for authority, steps in ANSWERS.items():
        for step, answer in steps.items():
            assert store.answer("a/b", "k", authority, step) == answer
    assert store.answer("a/b", "k", "llama.cpp", "dot") is None
    assert store.answer("a/b", "other", "llama.cpp", "header") is None
    assert store.answer("a/c", "k", "llama.cpp", "header") is None


def test_messages_and_places_are_kept_to_be_shown_but_stderr_is_not() -> None:
    assert ANSWERS["gguf-py"]["header"].outcome == Reject("bad-key", "some message", 7)
    assert record_answer(Crash("SIGABRT", "a path of this machine"), None).outcome == Crash("SIGABRT")


def test_an_answer_that_repeats_is_a_reference() -> None:
    folded = fold(ANSWERS)
    assert folded["llama.cpp"]["load"] == "=llama.cpp/header"
    assert unfold(folded, "llama.cpp", "load") == ANSWERS["llama.cpp"]["load"]


@pytest.mark.parametrize("text", [b"", b"{", b'{"format":99,"authorities":{},"cases":{}}', b'{"format":1}', b"\xff"])
def test_a_broken_file_is_named(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "s.json").write_bytes(text)
    with pytest.raises(ConfigurationError) as caught:
        GoldenStore(tmp_path).file("s")
    assert str(tmp_path / "s.json") in str(caught.value)
    assert "gguf-conformance record" in str(caught.value)


def test_a_reference_that_leads_nowhere_is_named() -> None:
    with pytest.raises(ConfigurationError, match="leads nowhere"):
        unfold({"llama.cpp": {"load": "=llama.cpp/header"}}, "llama.cpp", "load")
