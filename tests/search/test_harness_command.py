"""What a person sees of the harness's self-search."""

import sys

import pytest

from conformance.errors import ConfigurationError
from conformance.search.harness import Broken, command, search_harness

BROKEN = Broken("known", "traceback: KeyError: '\x1b[2J'", b"divergences: []\n", "gguf-conformance run", ".yaml")


def finding(*found: Broken):
    return lambda *_: list(found)


def test_a_finding_is_kept_in_a_file(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "search_harness", finding(BROKEN))
    assert command.harness_command(None, 10, 1, tmp_path / "kept") == 1
    assert (tmp_path / "kept" / "known.yaml").read_bytes() == BROKEN.document
    said = capsys.readouterr().out
    assert "\x1b" not in said
    for part in (
        "known: traceback: KeyError",
        str(tmp_path / "kept" / "known.yaml"),
        "repeat: gguf-conformance run",
        "1 broken rule",
    ):
        assert part in said


def test_nothing_found(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "search_harness", finding())
    assert command.harness_command(None, 10, 1, tmp_path / "kept") == 0
    assert capsys.readouterr().out == "no rule broke\n"
    assert not (tmp_path / "kept").exists()


def test_a_folder_that_cannot_be_made(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "search_harness", finding(BROKEN))
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot write the finding") as raised:
        command.harness_command(None, 10, 1, tmp_path / "file")
    assert raised.value.hint


def test_without_hypothesis_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ConfigurationError, match="needs the package hypothesis") as raised:
        search_harness(1.0, None, 1, print)
    assert "pip install" in raised.value.hint
