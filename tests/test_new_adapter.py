"""``new-adapter``: in each language it gives an adapter that builds and keeps the protocol at once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from conformance.cases.build import build as build_file
from conformance.cases.select import is_plumbing, select
from conformance.cli import main
from conformance.new_adapter import NAME, TEMPLATES, languages
from conformance.outcomes import Reject
from conformance.subjects.building import build, missing_tools
from conformance.subjects.manifest import load_manifest
from conformance.subjects.process import Subject
from conformance.subjects.protocol import HeaderRequest
from tests.corpus import corpus, part_of_corpus

ROOT = Path(__file__).resolve().parents[1]
# What a language needs besides the manifest's `needs`, which are for building.
RUNS_ON = {"javascript": ["node"], "python": ["python3"]}


def new_adapter(*words: str) -> Result:
    return CliRunner().invoke(main, ["new-adapter", *words])


def test_there_are_five_languages() -> None:
    assert languages() == ["c", "go", "javascript", "python", "rust"]


@pytest.mark.parametrize("language", languages())
def test_it_builds_and_keeps_the_protocol_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache of mine"))
    folder = tmp_path / "my adapter"
    assert new_adapter(language, str(folder), "--name", "mine").exit_code == 0
    manifest = load_manifest(folder, check_command=False)
    missing = [*missing_tools(manifest), *(tool for tool in RUNS_ON.get(language, ()) if shutil.which(tool) is None)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not on PATH")
    if manifest.build:
        build(manifest, lambda _: None)
    plumbing = part_of_corpus(tmp_path / "cases", sorted({case.suite for case in corpus() if is_plumbing(case.id)}))
    words = ["run", "--subject", str(folder), "--select", "protocol/**", "--cases", str(plumbing), "--jobs", "1"]
    ran = CliRunner().invoke(main, [*words, "--validate", "--oracle", "golden", "--no-report"])
    assert ran.exit_code == 0, ran.output
    headers = sum(is_plumbing(case.id) and "header" in case.ask for case in corpus())
    assert f"mine: {headers} pass, 0 diverge" in ran.stdout
    _refuses_in_the_middle(folder, tmp_path)


def _refuses_in_the_middle(folder: Path, place: Path) -> None:
    """Of pairs that were read before the file ended nothing may be left in the answer."""
    path = place / "cut.gguf"
    path.write_bytes(build_file({"kv": [{"key": "a", "u32": "7"}, {"key": "b", "str": "text"}], "cut": "-1"}).data)
    with Subject(load_manifest(folder), validate=True) as subject:
        outcome = subject.ask(HeaderRequest(seq=0, path=str(path))).outcome
    assert isinstance(outcome, Reject)
    assert outcome.reject_class in {"bad-length", "truncated"}


@pytest.mark.parametrize("language", languages())
def test_the_name_stands_wherever_it_is_due(tmp_path: Path, language: str) -> None:
    assert new_adapter(language, str(tmp_path / "reader-1.0")).exit_code == 0
    texts = [path.read_bytes() for path in (tmp_path / "reader-1.0").rglob("*") if path.is_file()]
    assert len(texts) >= 3
    assert not any(NAME in text for text in texts)
    assert sum(b"reader-1.0" in text for text in texts) >= 3  # manifest, source and README
    assert load_manifest(tmp_path / "reader-1.0", check_command=False).name == "reader-1.0"


@pytest.mark.parametrize("language", languages())
def test_a_source_is_short_and_says_what_is_to_be_replaced(language: str) -> None:
    sources = [path for path in (TEMPLATES / language).rglob("*") if path.suffix in {".c", ".go", ".js", ".py", ".rs"}]
    (main_source,) = [path for path in sources if path.stem in {"adapter", "main"}]
    text = main_source.read_text("utf-8")
    assert text.count("---- The library. Replace all of this part") == text.count("---- The protocol.") == 1
    assert len(text.splitlines()) <= 210
    assert len((TEMPLATES / language / "README.md").read_text("utf-8").splitlines()) <= 12


def test_it_says_what_to_do_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = new_adapter("c", "mine").stdout
    lines = told.splitlines()
    assert lines[0].startswith("wrote mine: README.md, adapter.c, adapter.yaml")
    assert "  gguf-conformance build ./mine" in lines
    assert "  gguf-conformance run --subject ./mine --select 'protocol/**' --validate" in lines
    assert "docs/new-adapter.md" in told


def test_what_needs_no_building_is_not_told_to_be_built(tmp_path: Path) -> None:
    assert "gguf-conformance build" not in new_adapter("python", str(tmp_path / "mine")).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rusty", "x"), "did you mean `rust`?"),
        (("cobol", "x"), "there are: c, go, javascript, python, rust"),
        (("../python", "x"), "no template in '../python'"),
        (("c", "two words"), "'two words' cannot be an adapter's name"),
        (("c", "x", "--name", ""), "'' cannot be an adapter's name"),
        (("c", "x", "--name", 'a"'), "cannot be an adapter's name"),
        (("c", "x", "--name", "llama.cpp"), "`llama.cpp` is an authority's name"),
        (("c", "full"), "full is there already"),
        (("c", "full/file"), "full/file is there already"),
    ],
)
def test_what_it_cannot_do_it_says_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused = new_adapter(*words)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full"]
    assert refused.exit_code == 2
    assert told in refused.stderr


def test_the_page_names_the_languages_and_only_commands_and_cases_that_there_are() -> None:
    page = (ROOT / "docs" / "new-adapter.md").read_text("utf-8")
    assert [language for language in languages() if f"`{language}`" not in page] == []
    commands = set(re.findall(r"gguf-conformance ([a-z-]+)", page))
    assert commands >= {"new-adapter", "build", "run", "explain", "search"}
    assert commands <= set(main.commands)
    patterns = {*re.findall(r"--select '!?([^']+)'", page), *re.findall(r"explain (\S+)", page)}
    assert len(patterns) >= 4
    assert all(select(corpus(), [pattern]) for pattern in patterns)
    (workflow,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert yaml.safe_load(workflow)["jobs"]["conformance"]["steps"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    assert new_adapter("python", str(tmp_path)).exit_code == 0
    assert (tmp_path / "adapter.py").is_file()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = new_adapter("python", str(tmp_path / "file" / "mine"))
    assert refused.exit_code == 3
    assert "cannot write the adapter: Not a directory" in refused.stderr


def test_links_that_lead_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for folder in (tmp_path / "loop", tmp_path / "loop" / "inner"):
        told = new_adapter("python", str(folder))
        assert (told.exit_code, "cannot write the adapter" in told.stderr) == (3, True), told.stderr
