"""Golden files: what is written is read back, repeated answers are references, broken files are named."""

import json
import os
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
        "tensor[0]": record_answer(Ok(), Kept("AAAA")),
    },
    "long": {"header": record_answer(Ok(Header(3, 32, 24, [Pair("a", "array", ["1"] * 5000, "u8")], [])), None)},
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


OK = {"outcome": "ok"}
PAIR = {"key": "a", "type": "array", "value": [], "items": "u8"}
HEADER = {"version": 3, "alignment": 32, "data_offset": 96, "kv": [PAIR], "tensors": []}
OK_HEADER = {"outcome": "ok", "header": HEADER}


def _kept(text: str) -> dict[str, object]:
    return {"outcome": OK, "output": {"kind": "bytes", "base64": text}}


def _tensor(**changes: object) -> dict[str, object]:
    tensor = {"name": "t", "type": 8, "dims": ["32"], "offset": "0", "nbytes": "34", **changes}
    return {"outcome": {**OK_HEADER, "header": {**HEADER, "tensors": [tensor]}}}


def _digests(nbytes: int, unit: int, span: int, count: int) -> dict[str, object]:
    return {"outcome": OK, "output": {"kind": "digests", "nbytes": nbytes, "unit": unit, "range": span, "digests": ["00"] * count}}


def _array(index: int, count: int, span: int) -> dict[str, object]:
    return {"outcome": OK_HEADER, "arrays": {str(index): {"count": count, "range": span, "digests": ["00"]}}}


@pytest.mark.parametrize(
    ("step", "answer", "told"),
    [
        ("header", {"outcome": OK}, "the outcome is ok, but there is no header"),
        ("header", _tensor(type=4), "header: tensors[0].type is 4, which is no ggml type"),
        ("header", _tensor(type=-1), "header: tensors[0].type is -1, which is no ggml type"),
        ("load", _tensor(offset="-1"), "header: tensors[0] holds -1, expected 0 or more"),
        ("load", _tensor(nbytes="x"), "header: tensors[0].nbytes: a decimal string without leading zeros, got 'x'"),
        ("load", {"outcome": {**OK_HEADER, "header": {**HEADER, "data_offset": -32}}}, "header: data_offset is -32"),
        ("dequantize", {"outcome": OK}, "the outcome is ok, but there is no output"),
        ("dequantize", {"outcome": OK_HEADER}, "there is no output"),
        ("tensor[0]", _kept("@@@"), "output.base64 is '@@@'"),
        ("tensor[0]", _kept("AAA"), "output.base64 is 'AAA'"),
        ("tensor[0]", _digests(4096, 4, 0, 1), "output.range is 0, expected 1 or more"),
        ("tensor[0]", _digests(4096, 0, 16, 1), "output.unit is 0"),
        ("tensor[0]", _digests(4097, 4, 16, 1), "output.nbytes is 4097"),
        ("tensor[0]", _digests(0, 4, 16, 0), "output.nbytes is 0"),
        ("tensor[0]", _digests(4096, 4, 512, 1), "output.digests has 1 entries, expected 2"),
        ("load", _array(0, 5000, 1024), "arrays.0.digests has 1 entries, expected 5"),
        ("load", _array(0, 5000, 0), "arrays.0.range is 0"),
        ("load", _array(0, -1, 1024), "arrays.0.count is -1"),
        ("load", _array(1, 5, 1024), "arrays.1: pair 1 of the recorded header is no array"),
        ("load", "=llama.cpp/header", "the reference '=llama.cpp/header' leads nowhere"),
        ("load", {"outcome": 7}, "Expected `object`, got `int`"),
    ],
)
def test_an_answer_that_could_not_be_compared_is_named(tmp_path: Path, step: str, answer: object, told: str) -> None:
    """File, case, field, value, and the command that records the case again."""
    path = tmp_path / "a" / "s.json"
    path.parent.mkdir()
    cases = {
        "fine": {"llama.cpp": {"header": {"outcome": {"outcome": "reject"}}}},
        "k": {"llama.cpp": {step: answer}},
    }
    path.write_text(json.dumps({"format": 1, "authorities": {"llama.cpp": {"version": "1", "view": {}}}, "cases": cases}))
    with pytest.raises(ConfigurationError) as caught:
        GoldenStore(tmp_path).file("a/s")
    text = str(caught.value)
    assert told in text
    assert text.startswith(f"{path}: ")
    assert "case 'k'" in text
    assert "gguf-conformance record -s 'a/s" in text


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("header", "llama.cpp/header, which is '=llama.cpp/tensor[0]': the outcome is ok, but there is no header"),
        ("tensor[0]", "llama.cpp/tensor[0], which is '=llama.cpp/header': the outcome is ok, but there is no output"),
    ],
)
def test_a_reference_to_an_answer_of_another_kind_is_named(tmp_path: Path, step: str, told: str) -> None:
    answers = {"header": {"outcome": OK_HEADER}, "tensor[0]": _kept("AAAA")}
    answers[step] = "=llama.cpp/header" if step == "tensor[0]" else "=llama.cpp/tensor[0]"
    cases = {"k": {"llama.cpp": answers}}
    (tmp_path / "s.json").write_text(json.dumps({"format": 1, "authorities": {}, "cases": cases}))
    with pytest.raises(ConfigurationError) as caught:
        GoldenStore(tmp_path).file("s")
    assert told in str(caught.value)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.json")
    with pytest.raises(ConfigurationError, match="it is a named pipe, not a regular file"):
        GoldenStore(tmp_path).file("s")
