"""The command, and the page of the manual that it records in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from conformance.cases.select import matches
from conformance.cli import main
from conformance.commands import PeersRun, run_peers
from conformance.errors import ConfigurationError, UsageError
from conformance.matrix.html import write_html
from conformance.matrix.load import load_matrix
from conformance.matrix.matrix import Matrix
from conformance.matrix.record import BEGIN, END, PAGE, drift, record, recorded_rows
from conformance.places import adapters_root
from conformance.run.known import KnownEntry, load_entries
from tests.corpus import corpus
from tests.matrix.streams import both, lax_results, stream, subject


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["matrix", *map(str, arguments)])


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "docs" / "matrix.md"
    path.parent.mkdir()
    path.write_text(f"# Head\n\n{BEGIN}\n\n{END}\n\ntail\n", "utf-8")
    return path


def test_the_command_prints_and_writes_what_is_asked(tmp_path: Path) -> None:
    done = _run(both(tmp_path).parent, "--html", tmp_path / "out", "--markdown", tmp_path / "deep" / "m.md")
    assert done.exit_code == 0
    assert "6 cases, 2 subjects" in done.stdout
    assert (tmp_path / "out" / "index.html").is_file()
    assert (tmp_path / "deep" / "m.md").read_text("utf-8").startswith("# 6 cases, 2 subjects")


def test_nothing_is_written_unasked(tmp_path: Path) -> None:
    both(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert _run(tmp_path / "both").exit_code == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_part_of_the_cases_is_shown(tmp_path: Path) -> None:
    done = _run(both(tmp_path), "--select", "files/**", "-s", "!files/a/one")
    assert "3 cases, 2 subjects" in done.stdout


def test_peers_are_held_to_the_page(
    matrix: Matrix, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(matrix, page)
    monkeypatch.setattr("conformance.matrix.record.PAGE", page)
    monkeypatch.setattr("conformance.commands.run_command", lambda *_, **__: 0)
    events = both(tmp_path / "peers" / "made")
    (tmp_path / "peers" / "events.ndjson").write_bytes((events / "events.ndjson" if events.is_dir() else events).read_bytes())
    asked = PeersRun((), "live", tmp_path / "peers", "never", update=False, record=False, judges_only=True)
    assert run_peers(asked, ["lax", "mortal"]) == 0
    page.write_text(page.read_text().replace("| lax | 1.0 |", "| lax | 0.9 |"))
    assert run_peers(asked, ["lax", "mortal"]) == 1
    assert "docs/matrix.md: lax: version is 1.0, recorded is 0.9\n" in capsys.readouterr().out
    for other in ({"oracle": "golden"}, {"select": ("files/**",)}):
        assert run_peers(asked._replace(**other), ["lax"]) == 0


def test_a_run_that_is_not_whole_gives_3_and_is_shown(tmp_path: Path) -> None:
    done = _run(stream(tmp_path / "cut", lax_results(), subject("lax"), whole=False))
    assert done.exit_code == 3
    assert "TRUNCATED" in done.stdout
    assert "lax" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "Missing argument"),
        (("absent.ndjson",), 3, "cannot read the event stream"),
        (("{stream}", "-s", "nothing"), 2, "selects no case"),
        (("{stream}", "--html", "{stream}/x"), 3, "cannot write"),
        (("{stream}", "--markdown", "{stream}/x.md"), 3, "cannot write"),
        (("{stream}", "--record"), 2, "lax was run on 0 of "),
    ],
)
def test_what_is_wrong_is_told_in_a_line(
    tmp_path: Path, page: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.setattr("conformance.matrix.record.PAGE", page)  # should a guard fail, not the checkout's
    path = both(tmp_path)
    done = _run(*(argument.format(stream=path) for argument in arguments))
    assert done.exit_code == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_summary_is_recorded_between_the_marks(matrix: Matrix, page: Path) -> None:
    record(matrix, page)
    text = page.read_text("utf-8")
    assert text.startswith(f"# Head\n\n{BEGIN}\n\n6 cases, oracle live.\n")
    assert text.endswith(f"{END}\n\ntail\n")
    record(matrix, page)
    assert page.read_text("utf-8") == text
    assert [(row["subject"], row["cases"], row["known"]) for row in recorded_rows(page)] == [
        ("llama.cpp", "6", "-"),
        ("lax", "6", "2"),
        ("mortal", "6", "-"),
    ]


def test_drift_tells_what_the_page_says_otherwise(matrix: Matrix, page: Path) -> None:
    assert drift(matrix, page) == ["llama.cpp is not in the table", "lax is not in the table", "mortal is not in the table"]
    record(matrix, page)
    assert drift(matrix, page) == []
    page.write_text(
        page.read_text("utf-8").replace("| lax | 1.0 | rust | llama.cpp | 6 | 2 |", "| lax | 1.0 | rust | llama.cpp | 6 | 3 |")
    )
    assert drift(matrix, page) == ["lax: pass is 2, recorded is 3"]


def test_what_depends_on_the_machine_is_no_drift(matrix: Matrix, page: Path) -> None:
    record(matrix, page)
    before = page.read_text("utf-8")
    titles = next(line for line in before.splitlines() if line.startswith("| subject")).strip("|").split("|")
    (row,) = [line for line in before.splitlines() if line.startswith("| lax")]
    for title, told in (("hangs", 0), ("memory", 0), ("blocks", 0), ("crashes", 1), ("errors", 1)):
        cells = row.strip("|").split("|")
        cells[[each.strip() for each in titles].index(title)] = " 77 "
        page.write_text(before.replace(row, f"|{'|'.join(cells)}|"), "utf-8")
        assert len(drift(matrix, page)) == told


def test_drift_looks_only_at_those_who_were_run(matrix: Matrix, page: Path, tmp_path: Path) -> None:
    record(matrix, page)
    assert drift(load_matrix([stream(tmp_path / "lax", lax_results(), subject("lax"))]), page) == []


def test_a_name_with_bars_is_read_back(page: Path, tmp_path: Path) -> None:
    matrix = load_matrix([stream(tmp_path / "s", lax_results("a | b"), subject("a | b"))])
    record(matrix, page)
    assert drift(matrix, page) == []


def test_what_cannot_be_recorded_is_told(matrix: Matrix, page: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no checkout"):
        record(matrix, tmp_path / "absent" / "matrix.md")
    with pytest.raises(UsageError, match="a part of the cases"):
        record(load_matrix([both(tmp_path / "part")], ["files/**"]), page)
    cut = load_matrix([stream(tmp_path / "cut", lax_results(), subject("lax"), whole=False)])
    with pytest.raises(ConfigurationError, match="not whole"):
        record(cut, page)
    page.write_text("no marks\n")
    with pytest.raises(ConfigurationError, match="no place for the table"):
        record(matrix, page)


AUTHORITIES = {"llama.cpp", "gguf-py"}


def _recorded_subjects() -> dict[str, dict[str, str]]:
    return {row["subject"]: row for row in recorded_rows() if row["subject"] not in AUTHORITIES}


def _count(text: str) -> int:
    return 0 if text == "-" else int(text.replace(",", ""))


def _built() -> dict[str, Path]:
    """The adapters of real implementations: those that have build commands."""
    manifests = {path: yaml.safe_load(path.read_text("utf-8")) for path in sorted(adapters_root().glob("*/adapter.yaml"))}
    return {document["name"]: path.parent for path, document in manifests.items() if document.get("build")}


AGAIN = "record it again: gguf-conformance peers --record"


def test_every_real_implementation_is_in_the_table_or_the_page_says_why_not() -> None:
    rows, built, text = _recorded_subjects(), _built(), PAGE.read_text("utf-8")
    assert set(rows) <= set(built), AGAIN
    assert [name for name in built if name not in rows and f"`{name}`" not in text] == [], AGAIN


def test_the_recorded_table_is_of_todays_corpus() -> None:
    cases = len(corpus())
    for name, row in _recorded_subjects().items():
        assert _count(row["cases"]) == cases, (name, AGAIN)
        assert sum(_count(row[title]) for title in ("pass", "diverge", "known", "skip")) == cases, (name, AGAIN)
        assert row["diverge"] == "-", f"{name} departs in ways that its divergences.yaml does not have"


def test_the_recorded_table_agrees_with_the_known_divergences() -> None:
    """Each case that an entry names shows it, but for those of entries that hold only sometimes."""
    for name, row in _recorded_subjects().items():
        path = _built()[name] / "divergences.yaml"
        entries = load_entries(path if path.is_file() else None)
        always = _fitting(entry for entry in entries if not entry.sometimes)
        assert always <= _count(row["known"]) <= _fitting(entries), (name, AGAIN)


def _fitting(entries: Iterable[KnownEntry]) -> int:
    return len(set().union(*(_selected(pattern) for entry in entries for pattern in entry.patterns)))


@cache
def _selected(pattern: str) -> frozenset[str]:
    """Give what a pattern fits; the files of many adapters have it, and the corpus is large."""
    return frozenset(case.id for case in corpus() if matches(pattern, case.id))


def test_the_page_says_how_to_read_it() -> None:
    text = PAGE.read_text("utf-8")
    for word in ("--html", "--record", "by_distance", "#verdict=dies"):
        assert word in text


def test_a_list_of_old_pages_that_was_damaged_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "out/divergences").mkdir(parents=True)
    (tmp_path / "out/divergences/old.html").touch()
    (tmp_path / "out/divergences/.written").write_bytes(b"\xff\xfe.html\na\0b.html\nold.html\n")
    write_html(load_matrix([both(tmp_path / "run")]), tmp_path / "out")
    assert not (tmp_path / "out/divergences/old.html").exists()


def test_a_page_that_cannot_be_replaced_is_as_it_was(matrix: Matrix, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text("utf-8")

    def full(_: Path, data: object, *_more: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigurationError, match="No space left on device"):
        record(matrix, page)
    assert page.read_text() == text
