"""Promoting findings: into files of any form or not at all, told beside JSON, and only what is sure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from conformance.cases.load import load_suites
from conformance.errors import AuthorityMissingError, ConfigurationError, UsageError
from conformance.search import command as command_module
from conformance.search.plan import Finding
from conformance.search.promote import promote
from tests.test_cli import command

FAULTY = ("--subject", "q8_0-stored-scale", "--op", "quantize", "--type", "q8_0", "--examples", "2")
FINDING = Finding(
    signature="quantize:Q8_0:bytes:qs", focus="Q8_0", summary="a byte", expected="1", found="2", op="quantize", type="Q8_0",
    case={"type": "Q8_0", "rows": {"values": [[0] * 32]}, "ask": ["quantize"]},
    nbytes=128, values=0, example=1, inputs=1, seconds=0.1,
)  # fmt: skip


def case_file(root: Path, text: str) -> Path:
    path = root / "found" / "quantize.yaml"
    path.parent.mkdir()
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "suite: found/quantize\ncases:\n  a: {type: Q8_0, rows: {values: [[0]]}, ask: [quantize]}\nnote: below\n",
        "suite: found/quantize\ncases:\n    a: {type: Q8_0, rows: {random: {seed: 1, blocks: 1}}, ask: [quantize]}\n",
        "suite: found/quantize\ncases: {a: {type: Q8_0, rows: {random: {seed: 1, blocks: 1}}, ask: [quantize]}}\n",
        "hello",
    ],
)
def test_a_file_of_another_form_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = case_file(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        list(promote([FINDING], tmp_path, "a against b"))
    assert caught.value.where.startswith(str(path))
    assert path.read_text() == text


def test_a_case_is_added_behind_the_others(tmp_path: Path) -> None:
    expect = "expect: {llama.cpp: accept, gguf-py: accept, spec: observe}"
    path = case_file(
        tmp_path,
        f"suite: found/quantize\ncases:\n  a: {{type: Q8_0, rows: {{random: {{seed: 1, blocks: 1}}}}, {expect}}}\n",
    )
    lines = list(promote([FINDING], tmp_path, "a against b"))
    assert lines == [f"promoted found/quantize/{FINDING.slug}: {path}"]
    assert {case.id for case in load_suites(tmp_path)} == {"found/quantize/a", f"found/quantize/{FINDING.slug}"}


def test_what_is_not_sure_is_not_promoted(tmp_path: Path) -> None:
    lines = list(promote([msgspec.structs.replace(FINDING, unstable=True)], tmp_path, "a against b"))
    assert lines[0].startswith("not promoted, not seen again")
    assert not (tmp_path / "found").exists()


def test_json_is_alone_on_stdout(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    cases.mkdir()
    ended = command("search", *FAULTY, "--json", "--promote", "--cases", str(cases), "--report", str(tmp_path / "reports"))
    assert json.loads(ended.out)["findings"]
    assert "promoted found/quantize/" in ended.err


def test_an_authority_that_is_wanting_is_told_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Iterator[None]:
        raise AuthorityMissingError("none")

    monkeypatch.setattr(command_module, "live_authorities", missing)
    options = command_module.SearchOptions("impl", "gguf-py", (), (), None, 1, 0, None, True, False, True, False, None)
    with pytest.raises(AuthorityMissingError):
        command_module.search_command(options, None, fresh=True, as_json=False)
    with pytest.raises(UsageError, match="cannot be promoted"):
        command_module.search_command(options._replace(against="impl"), None, fresh=True, as_json=False)
