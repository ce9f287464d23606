"""Recording: what is chosen and as declared is written, nothing else changes, and no answer is told to be another version's."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.cases.load import load_suites
from conformance.errors import ConfigurationError
from conformance.run.record import Recorded, record
from tests.run.conftest import CASES, Bench

MARK = "recorded before"


def _record(bench: Bench, *ids: str) -> Recorded:
    cases = [case for case in load_suites(bench.root) if case.id.startswith(ids)]
    bench.store = type(bench.store)(bench.root / "golden")
    return record(cases, bench.authorities, bench.store, lambda model: Path(model.member), lambda _: None)


def _document(bench: Bench) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(bench.store.path("small/files").read_text())
    return read


def _mark(bench: Bench, *keys: str, version: str = "") -> None:
    """Put an answer that no authority gives in place of what is recorded of these cases, so that it shows whether it stays."""
    document = _document(bench)
    for key in keys:
        document["cases"][key] = {"llama.cpp": {"header": {"outcome": {"outcome": "reject", "message": MARK}}}}
    if version:
        document["authorities"]["llama.cpp"]["version"] = version
    bench.store.path("small/files").write_text(json.dumps(document))


def _marked(bench: Bench) -> set[str]:
    return {key for key, answers in _document(bench)["cases"].items() if MARK in json.dumps(answers)}


def test_only_what_is_chosen_is_written(bench: Bench) -> None:
    bench.record()
    blocks = bench.store.path("small/blocks").read_bytes()
    _mark(bench, "plain", "tensor", "alignment-0")
    assert _record(bench, "small/files/plain") == ([bench.store.path("small/files")], [])
    assert _marked(bench) == {"tensor", "alignment-0"}
    assert bench.store.path("small/blocks").read_bytes() == blocks


def test_what_is_not_as_declared_is_not_recorded(bench: Bench) -> None:
    bench.record()
    _mark(bench, "plain", "tensor")
    claim = "  plain: {build: {kv: [{key: a, u32: 7}]}, expect: {llama.cpp: {reject: bad-key}}}"
    bench.write("small/files", CASES.replace("  plain: {build: {kv: [{key: a, u32: 7}]}}", claim))
    recorded = _record(bench, "small/files")
    assert [(result.case, result.who) for result in recorded.refused] == [("small/files/plain", "llama.cpp")]
    assert _marked(bench) == {"plain"}


def test_a_first_recording_leaves_out_what_is_not_as_declared(bench: Bench) -> None:
    claim = "  plain: {build: {kv: [{key: a, u32: 7}]}, expect: {llama.cpp: {reject: bad-key}}}"
    bench.write("small/files", CASES.replace("  plain: {build: {kv: [{key: a, u32: 7}]}}", claim))
    _record(bench, "small/files")
    assert set(_document(bench)["cases"]) == {"tensor", "alignment-0"}


def test_a_part_is_not_recorded_beside_answers_of_another_version(bench: Bench) -> None:
    bench.record()
    _mark(bench, "tensor", version="0.0.9")
    before = bench.store.path("small/files").read_bytes()
    with pytest.raises(ConfigurationError) as caught:
        _record(bench, "small/files/plain", "small/files/tensor")
    text = str(caught.value)
    assert text.startswith(f"{bench.store.path('small/files')}: 1 recorded answers")
    assert "llama.cpp version was 0.0.9, is " in text
    assert "gguf-conformance record -s 'small/files'" in text
    assert bench.store.path("small/files").read_bytes() == before


def test_a_whole_suite_is_recorded_by_another_version(bench: Bench) -> None:
    """What that one does not answer as declared is left out: the old answer would bear its name."""
    bench.record()
    _mark(bench, "plain", "tensor", version="0.0.9")
    claim = "  plain: {build: {kv: [{key: a, u32: 7}]}, expect: {llama.cpp: {reject: bad-key}}}"
    bench.write("small/files", CASES.replace("  plain: {build: {kv: [{key: a, u32: 7}]}}", claim))
    assert [result.case for result in _record(bench, "small/files").refused] == ["small/files/plain"]
    document = _document(bench)
    assert document["authorities"]["llama.cpp"]["version"] == document["authorities"]["gguf-py"]["version"] != "0.0.9"
    assert set(document["cases"]) == {"tensor", "alignment-0"}
    assert _marked(bench) == set()


@pytest.mark.parametrize("damage", [{"outcome": {"outcome": "ok"}}, 7, {"outcome": {"outcome": "unheard of"}}])
def test_a_damaged_answer_is_mended_by_the_command_that_the_error_names(bench: Bench, damage: object) -> None:
    bench.record()
    document = _document(bench)
    document["cases"]["plain"] = {"llama.cpp": {"header": damage}}
    bench.store.path("small/files").write_text(json.dumps(document))
    with pytest.raises(ConfigurationError, match=r"the case 'plain'.*\n.*record -s 'small/files/plain'"):
        bench.run(bench.impl, live=False, select="small/files")
    with pytest.raises(ConfigurationError, match="the case 'plain'"):
        _record(bench, "small/files/tensor")
    _record(bench, "small/files/plain")
    assert bench.run(bench.impl, live=False, select="small/files").code == 0
