"""A search whose time is over, or that is interrupted, keeps what it saw: nothing that was seen counts as nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import UsageError
from conformance.outcomes import Timeout
from conformance.search import command as command_module
from conformance.search.asking import Side
from conformance.search.engine import search
from conformance.search.plan import Plan, Searched
from conformance.search.settle import Settler
from conformance.subjects.manifest import Manifest, find_manifest, load_manifest
from conformance.subjects.protocol import HeaderRequest
from tests.test_cli import command

HERE = Path(__file__).parent


@pytest.fixture
def hanging(tmp_path: Path) -> Manifest:
    said = f"name: hanging\nlanguage: python\ncommand: [{sys.executable}, {HERE / 'hanging_subject.py'}]\nlimits: {{time: 0.2}}\n"
    (tmp_path / "adapter.yaml").write_text(said)
    return load_manifest(tmp_path)


def searched(subject: Manifest, **options: Any) -> Searched:
    return search(Plan(subject=subject, against=find_manifest("impl"), **options), lambda _: None)


def test_of_a_batch_that_hangs_the_rest_is_not_asked(hanging: Manifest, tmp_path: Path) -> None:
    with Side(hanging) as side:
        _ = side.identity
        side.pose([HeaderRequest(seq=0, path=str(tmp_path / "none"))] * 20)
        outcomes = side.collect()
    assert [type(outcome) for outcome in outcomes] == [Timeout] * 3 + [type(None)] * 17


def test_files_that_were_not_asked_do_not_count(hanging: Manifest) -> None:
    found = searched(hanging, ops=("header",), examples=1)
    assert [finding.signature for finding in found.divergences] == ["header:-:timeout:-"]
    assert found.files < 40  # sound and broken forms are 64; what makes the finding small comes on top


def test_what_was_seen_and_not_looked_into_departs_too(hanging: Manifest, tmp_path: Path) -> None:
    words = ("--subject", str(tmp_path), "--against", "impl", "--op", "header", "--seconds", "0.3", "--no-database")
    ended = command("search", *words, "--report", str(tmp_path / "reports"))
    assert ended.code == 1, ended.out
    assert "header:-:timeout:-" in ended.out


@pytest.mark.parametrize("times", [0, 1])
def test_an_interruption_while_finds_are_made_small_loses_none(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    settle = Settler.settle
    seen = []

    def interrupted(self: Settler, hit: Any) -> Any:
        if len(seen) == times:
            raise KeyboardInterrupt
        seen.append(settle(self, hit))
        return seen[-1]

    monkeypatch.setattr(Settler, "settle", interrupted)
    found = searched(find_manifest("impl-gguf-py"), ops=("header",), examples=2)
    assert found.interrupted
    assert list(found.divergences) == seen
    assert found.unsettled
    assert found.departs


def test_there_is_a_draw_however_short_the_time() -> None:
    assert searched(find_manifest("impl"), ops=("header",), seconds=0.001).files > 0


def test_where_nothing_was_compared_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.search.areas.NumberArea.put", lambda *_: None)
    with pytest.raises(UsageError, match="nothing was compared"):
        searched(find_manifest("impl"), ops=("dequantize",), examples=2)


def test_where_reports_cannot_be_written_what_was_found_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    words = ("--subject", "impl-gguf-py", "--against", "impl", "--op", "header", "--examples", "1")
    ended = command("search", *words, "--report", str(tmp_path / "file" / "reports"))
    assert (ended.code, "cannot write" in ended.err) == (3, True)
    assert "impl-gguf-py departs from impl" in ended.out


def test_an_interruption_while_reports_are_written_keeps_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_module, "write_results", interrupted)
    options = command_module.SearchOptions(
        "impl-gguf-py", "impl", ("header",), (), None, 1, 0, None, True, False, False, False, None
    )
    assert command_module.search_command(options, tmp_path, fresh=False, as_json=False) == 130
    assert "impl-gguf-py departs from impl" in capsys.readouterr().out
