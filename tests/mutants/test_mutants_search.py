"""What search says of a mutant, beside what the corpus says."""

from __future__ import annotations

import io
import json

import pytest

from conformance.mutants import command, searching
from conformance.mutants.catalogue import Edit, Mutant, load_catalogue
from conformance.mutants.command import Wanted, mutants_command
from conformance.mutants.corpus import Put
from conformance.mutants.matrix import Kill, Row
from conformance.mutants.searching import Hunt, hunt
from conformance.mutants.table import Judged, render
from conformance.report.console import make_console
from conformance.run.setup import Options

FUGG = load_catalogue()["magic-fugg"]._replace(select=("container/magic",))
ONCE = Hunt("header:-:value:alignment", 1, 1234, 0.25)
NEVER = Hunt("", 9, 1000, 20.4)


def test_search_finds_a_mutant_and_says_after_how_much() -> None:
    pytest.importorskip("hypothesis", reason="search draws with hypothesis: pip install hypothesis")
    found = hunt(load_catalogue()["data-start-one-unit-late"], 60)
    assert found.signature.split(":")[0] in {"header", "load", "tensor"}
    assert found.inputs >= found.examples >= 1


def test_search_finds_nothing_where_nothing_is_wrong() -> None:
    pytest.importorskip("hypothesis", reason="search draws with hypothesis: pip install hypothesis")
    nothing = FUGG._replace(name="no-fault", edits=(Edit("types.py", '"""The ggml', '""" The ggml'),))
    found = hunt(nothing, 1)
    assert found.signature == ""
    assert found.inputs > 0


def test_an_interrupted_search_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        interrupted = True

    monkeypatch.setattr(searching, "search", lambda _plan, _say: Interrupted)
    with pytest.raises(KeyboardInterrupt):
        hunt(FUGG, 1)


@pytest.mark.parametrize(("found", "told"), [(ONCE, "found by search after 0.2 s"), (NEVER, "not found by search in 7 s")])
def test_the_command_asks_search_and_does_not_fail_by_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: Hunt, told: str
) -> None:
    asked: list[tuple[str, float]] = []

    def fake(mutant: Mutant, seconds: float) -> Hunt:
        asked.append((mutant.name, seconds))
        return found

    monkeypatch.setattr(command, "load_catalogue", lambda: {FUGG.name: FUGG})
    monkeypatch.setattr(command, "hunt", fake)
    assert mutants_command(Wanted((), Options((), oracle="golden", jobs=1), 7), "never", as_json=True) == 0
    out, err = capsys.readouterr()
    assert asked == [("magic-fugg", 7)]
    assert told in err
    assert json.loads(out)["mutants"][0]["search"]["inputs"] == found.inputs


def shown(width: int, found: Hunt | None) -> str:
    stream = io.StringIO()
    row = Row(FUGG.name, 10, 1, (Kill("container/magic/a-case-whose-name-is-long", "header:-:x:-"),))
    render([Judged(FUGG, Put(row, ("a",), ("a",), 1.0), found)], None, make_console(stream, "never", width))
    return stream.getvalue()


@pytest.mark.parametrize("width", [20, 100])
def test_names_and_ids_are_never_broken(width: int) -> None:
    assert "magic-fugg" in shown(width, None)
    assert "container/magic/a-case-whose-name-is-long" in shown(width, None)
    assert "search" not in shown(width, None)


def test_the_table_says_what_search_took() -> None:
    assert "search: 0.2 s, 1 example, 1,234 inputs" in shown(100, ONCE)
    assert "1 of 1 mutants killed by the corpus, 1 of 1 by search" in shown(100, ONCE)
    assert "not found in 20 s, 1,000 inputs" in shown(100, NEVER)
    assert "0 of 1 by search" in shown(100, NEVER)
