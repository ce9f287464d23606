"""``peers``: adapters are built, those that cannot be are told, and the others are run."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.cli import main
from conformance.peers import _chosen
from conformance.places import adapters_root
from tests.corpus import part_of_corpus

SOUND = """
import sys
from impl.serve import main
from impl.subject import Subject
sys.exit(main(Subject(), sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(autouse=True)
def _few_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``peers`` takes the project's cases; these tests need one suite of them, and all take most of a second to read, twice."""
    root = part_of_corpus(tmp_path / "cases", ["container/alignment"])
    monkeypatch.setattr("conformance.run.setup.cases_root", lambda: root)


def adapter(folder: Path, name: str, build: str = "cp a.py {build}/a.py", needs: str = "[]", source: str = SOUND) -> str:
    (folder / name).mkdir()
    (folder / name / "a.py").write_text(source)
    text = f"name: {name}\nlanguage: python\ncommand: ['{{python}}', '{{build}}/a.py']\nbuild: ['{build}']\nneeds: {needs}\n"
    (folder / name / "adapter.yaml").write_text(text)
    return str(folder / name)


def peers(folder: Path, *words: str) -> Result:
    select = ("--select", "container/alignment/2*", "--oracle", "golden", "--report", str(folder / "reports"))
    return CliRunner().invoke(main, ["peers", *words, *select])


def test_sound_ones_are_built_run_and_shown(tmp_path: Path) -> None:
    words = [adapter(tmp_path, "one"), adapter(tmp_path, "two")]
    ended = peers(tmp_path, *words)
    assert ended.exit_code == 0, ended.output
    assert "one: " in ended.stdout
    assert (tmp_path / "reports" / "matrix" / "index.html").is_file()
    assert [line.split()[1:3] for line in ended.stdout.splitlines()[-2:]] == [["built", "in"]] * 2
    again = peers(tmp_path, *words)
    assert [line.split("  ")[-1] for line in again.stdout.splitlines()[-2:]] == ["nothing has changed"] * 2


def test_what_cannot_be_built_or_started_fails_and_the_others_go_on(tmp_path: Path) -> None:
    words = [
        adapter(tmp_path, "one"),
        adapter(tmp_path, "broken", build="exit 9"),
        adapter(tmp_path, "needing", needs="[no-such-tool]"),
        adapter(tmp_path, "silent", source="raise SystemExit(4)"),
    ]
    ended = peers(tmp_path, *words)
    assert ended.exit_code == 3
    told = [line.split("  ", 1) for line in ended.stdout.splitlines()[-4:]]
    assert [word.strip() for word, _ in told] == words
    states = [state.strip() for _, state in told]
    assert states[0].startswith("built in")
    assert states[1] == "FAILED: building broken failed (exit 9): exit 9"
    assert states[2] == "FAILED: needing cannot be built: no-such-tool not on PATH"
    assert states[3].startswith("FAILED: subject silent: no hello")
    assert "one: " in ended.stdout
    assert "Traceback" not in ended.output


def test_a_language_that_is_not_there_may_be_left_out_and_is_told(tmp_path: Path) -> None:
    words = [adapter(tmp_path, "one"), adapter(tmp_path, "needing", needs="[no-such-tool]")]
    ended = peers(tmp_path, *words, "--present")
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.splitlines()[-1].endswith("left out: no-such-tool not on PATH")
    assert peers(tmp_path, words[1], "--present").exit_code == 3  # nothing was run


def test_building_alone_runs_nothing(tmp_path: Path) -> None:
    ended = peers(tmp_path, adapter(tmp_path, "one"), "--build-only")
    assert (ended.exit_code, len(ended.stdout.splitlines())) == (0, 1)
    assert not (tmp_path / "reports").exists()
    assert peers(tmp_path, adapter(tmp_path, "bad", build="exit 1"), "--build-only").exit_code == 3


def test_one_without_build_commands_is_no_peer(tmp_path: Path) -> None:
    ended = peers(tmp_path, "impl")
    assert (ended.exit_code, "run it as it is: gguf-conformance run --subject impl" in ended.stderr) == (2, True)


def test_without_names_all_that_are_built() -> None:
    written = {path.parent.name for path in adapters_root().glob("*/adapter.yaml") if "\nbuild:" in path.read_text()}
    assert {one.word for one in _chosen(())} == written
    assert "impl" not in written


def test_one_that_is_named_in_several_ways_is_one(tmp_path: Path) -> None:
    word = adapter(tmp_path, "one")
    ended = peers(tmp_path, word, f"{word}/", f"{word}/adapter.yaml")
    assert ended.exit_code == 0, ended.output
    assert len([line for line in ended.stderr.splitlines() if line.startswith("building")]) == 1


def test_two_of_one_name_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    words = [adapter(tmp_path, "one"), adapter(tmp_path, "two")]
    manifest = tmp_path / "two" / "adapter.yaml"
    manifest.write_text(manifest.read_text().replace("name: two", "name: one"))
    ended = peers(tmp_path, *words)
    assert (ended.exit_code, "two subjects are called 'one'" in ended.stderr) == (2, True)
    assert not (tmp_path / "cache").exists()


def test_a_broken_manifest_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    words = [adapter(tmp_path, "one"), adapter(tmp_path, "broken")]
    (tmp_path / "broken" / "adapter.yaml").write_text("name: [")
    ended = peers(tmp_path, *words)
    assert ended.exit_code == 3
    assert "adapter.yaml:1:8: not YAML" in ended.stderr
    assert "one: " in ended.stdout
    assert [line.split("  ", 1)[1].strip()[:8] for line in ended.stdout.splitlines()[-2:]] == ["built in", "FAILED: "]


def test_one_that_ends_the_run_leaves_the_others_told(tmp_path: Path) -> None:
    dying = (
        f"import os, sys\nif os.path.exists(sys.argv[0] + '.seen'): sys.exit(5)\nopen(sys.argv[0] + '.seen', 'w').close()\n{SOUND}"
    )
    ended = peers(tmp_path, adapter(tmp_path, "one"), adapter(tmp_path, "dying", source=dying))
    assert (ended.exit_code, "subject dying: no hello" in ended.stderr) == (3, True)
    assert [line.split("  ")[-1][:8] for line in ended.stdout.splitlines()[-2:]] == ["built in"] * 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--select", "no/such/case"], 2, "selects no case"),
        (["--oracle", "golden", "--update-known"], 2, "updated by a live run"),
        (["--select", "container/**", "--record"], 2, "a part of the cases is not recorded"),
        (["--report", "/proc/none"], 3, "cannot write /proc/none"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_built(words: list[str], code: int, said: str, tmp_path: Path) -> None:
    ended = CliRunner().invoke(main, ["peers", adapter(tmp_path, "one"), *words])
    assert (ended.exit_code, said in ended.stderr) == (code, True), ended.output
    assert not (tmp_path / "cache").exists()
