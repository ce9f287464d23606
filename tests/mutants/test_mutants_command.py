"""The command: a mutant that lives is named and fails it, and a reference that does not pass stops it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from conformance import cli
from conformance.errors import ConfigurationError
from conformance.mutants import command, corpus
from conformance.mutants.catalogue import Edit, Mutant, load_catalogue
from conformance.mutants.command import Wanted, mutants_command
from conformance.mutants.matrix import row_of
from conformance.report.events import CaseResult
from conformance.run.setup import Options
from tests.corpus import corpus as all_cases

FUGG = load_catalogue()["magic-fugg"]._replace(select=("container/magic",))
NOTHING = FUGG._replace(name="no-fault", fault="nothing at all is wrong", edits=(Edit("types.py", '"""The ggml', '""" The ggml'),))


def wanted(names: tuple[str, ...] = ()) -> Wanted:
    return Wanted(names, Options((), oracle="golden", jobs=1), 0)


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> dict[str, Mutant]:
    mutants = {mutant.name: mutant for mutant in (FUGG, NOTHING)}
    monkeypatch.setattr(command, "load_catalogue", lambda: mutants)
    return mutants


def test_a_mutant_without_a_fault_lives_is_named_and_fails_the_command(
    catalogue: dict[str, Mutant], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mutants_command(wanted(), "never", as_json=False) == 1
    out, err = capsys.readouterr()
    assert "ALIVE  no-fault: nothing at all is wrong" in out
    assert "1 of 2 mutants killed by the corpus" in out
    assert "9 of 10 cases killed none" in out
    assert "2/2 no-fault: NOT KILLED by any of 10 cases" in err


def test_where_all_are_killed_the_command_passes(catalogue: dict[str, Mutant], capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants_command(wanted(("magic-fugg",)), "never", as_json=False) == 0
    out, _ = capsys.readouterr()
    assert "ALIVE" not in out
    assert "container/magic/reversed" in out
    assert "search" not in out


def test_json_has_every_killing_case_and_every_case_that_kills_none(
    catalogue: dict[str, Mutant], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mutants_command(wanted(), "never", as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["alive"] == ["no-fault"]
    assert told["mutants"][0]["killing"] == ["container/magic/reversed"]
    assert len(told["kill_none"]) == 9
    assert "container/magic/reversed" not in told["kill_none"]


def test_a_reference_that_does_not_pass_stops_the_command(catalogue: dict[str, Mutant], monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes for the reference here has a fault itself."""
    monkeypatch.setattr(corpus, "REFERENCE", str(corpus.make(FUGG)))
    with pytest.raises(ConfigurationError, match="the reference itself does not pass") as caught:
        mutants_command(wanted(("no-fault",)), "never", as_json=False)
    assert "container/magic/reversed" in str(caught.value)
    assert "gguf-conformance run" in caught.value.hint


def test_the_most_telling_case_bears_a_label_then_asks_little() -> None:
    [known] = [case for case in all_cases() if case.id == "container/magic/reversed"]
    asked = [
        replace(known, id=name, ask=("header",) * ops, covers=covers)
        for name, ops, covers in (("s/a", 2, ()), ("s/b", 1, ()), ("s/c", 3, ("B09",)))
    ]
    results = [CaseResult(case=case.id, who="m", role="subject", verdict="diverge", profile="llama.cpp") for case in asked]
    row = row_of(FUGG._replace(labels=("B09",)), asked, results)
    assert [kill.case for kill in row.first] == ["s/c", "s/b", "s/a"]


def test_the_list_names_mutants_and_an_unknown_one_is_refused() -> None:
    shown = CliRunner().invoke(cli.main, ["mutants", "--list", "-m", "magic-fugg"])
    assert shown.exit_code == 0
    assert "magic-fugg  readers  FUGG is taken for the magic" in shown.output
    refused = CliRunner().invoke(cli.main, ["mutants", "--list", "-m", "magic-fug"])
    assert refused.exit_code == 2
    assert "did you mean magic-fugg" in refused.output
