"""The catalogue: every mutant applies, says what it stands for, and becomes a subject that runs its own copy of the reference."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cases.select import select
from conformance.errors import ConfigurationError, UsageError
from conformance.ggml_types import BY_NAME
from conformance.mutants.catalogue import Edit, Mutant, choose, load_catalogue
from conformance.mutants.make import SOURCE, apply, make
from conformance.subjects.manifest import load_manifest
from tests.corpus import corpus

ROOT = Path(__file__).parents[2]
CATALOGUE = load_catalogue()
OPS = {"header", "load", "tensor", "write", "quantize", "dequantize", "dot", "matvec"}


def defined_labels() -> set[str]:
    pages = (ROOT / "docs" / name for name in ("reader-rules.md", "block-rules.md"))
    cells = [line.split("|")[1] for page in pages for line in page.read_text().splitlines() if line.startswith("| ")]
    return {label.strip() for cell in cells for label in cell.split(",")}


def test_there_are_enough_of_every_kind() -> None:
    assert len(CATALOGUE) >= 95
    assert {mutant.group for mutant in CATALOGUE.values()} == {"readers", "blocks", "writers"}


@pytest.mark.parametrize("mutant", CATALOGUE.values(), ids=list(CATALOGUE))
def test_a_mutant_applies_and_is_python(mutant: Mutant) -> None:
    for file, text in apply(mutant).items():
        assert text != (SOURCE / file).read_text()
        compile(text, file, "exec")


def test_a_mutant_says_what_goes_wrong_and_where_that_was_seen() -> None:
    for mutant in CATALOGUE.values():
        assert re.fullmatch(r"[a-z0-9]+([_-][a-z0-9]+)*", mutant.name)
        assert len(mutant.fault.split()) >= 4
        assert mutant.source
        assert set(mutant.ops) <= OPS
        assert set(mutant.types) <= set(BY_NAME)


def test_no_two_mutants_are_one_fault() -> None:
    faults = [(mutant.group, mutant.fault, mutant.types) for mutant in CATALOGUE.values()]
    edits = [mutant.edits for mutant in CATALOGUE.values()]
    assert len(set(faults)) == len(faults)
    assert len(set(edits)) == len(edits)


def test_labels_are_defined_in_docs() -> None:
    used = {label for mutant in CATALOGUE.values() for label in mutant.labels}
    assert used - defined_labels() == set()


def test_every_pattern_selects_cases() -> None:
    cases = corpus()
    for pattern in {pattern for mutant in CATALOGUE.values() for pattern in mutant.select}:
        assert select(cases, [pattern])


def broken(*edits: Edit, name: str = "broken") -> Mutant:
    return next(iter(CATALOGUE.values()))._replace(name=name, edits=edits)


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (Edit("types.py", "no such text", ""), ["stands 0 times in impl/types.py", "no such text"]),
        (Edit("types.py", "TensorType", "T"), ["times in impl/types.py, not once"]),
        (Edit("no_such.py", "a", "b"), ["no file impl/no_such.py"]),
    ],
)
def test_an_edit_that_does_not_apply_is_told(edit: Edit, told: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="the mutant broken no longer applies") as caught:
        make(broken(edit))
    assert all(part in str(caught.value) for part in told)
    assert "catalogue/" in caught.value.hint


def test_a_second_edit_sees_what_the_first_one_made() -> None:
    first, second = Edit("types.py", 'TensorType(0, "F32", 1, 4)', "ONE"), Edit("types.py", "ONE,", "TWO,")
    assert "TWO," in apply(broken(first, second))["types.py"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mutants: [", "not a catalogue"),
        ("select: [a]\nops: [header]\nmutants: {a: {fault: x, source: y, file: z, replace: r}}", "by"),
        ("select: [a]\nops: [header]\nmutants: {a: {fault: x, source: y, file: z, replace: r, by: s, wrong: 1}}", "wrong"),
    ],
)
def test_a_broken_catalogue_is_told_with_its_file(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=told) as caught:
        load_catalogue(tmp_path)
    assert caught.value.where == str(tmp_path / "own.yaml")


def test_a_name_twice_and_no_mutants_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no mutants"):
        load_catalogue(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(
            "select: [a]\nops: [header]\nmutants: {m: {fault: x, source: y, file: z, replace: r, by: s}}"
        )
    with pytest.raises(ConfigurationError, match=r"the mutant m is in a\.yaml, too"):
        load_catalogue(tmp_path)


def test_an_unknown_name_brings_near_ones() -> None:
    with pytest.raises(UsageError, match="no mutant 'alignment-0-sigfp'") as caught:
        choose(CATALOGUE, ["alignment-0-sigfp"])
    assert "alignment-0-sigfpe" in caught.value.hint


def asked(folder: Path, program: str, **more: str) -> str:
    """Run a program in the way in which the harness starts the mutant, and give what it prints."""
    manifest = load_manifest(folder)
    launcher = Path(manifest.command[1])
    text = launcher.read_text()
    runs = 'runpy.run_module("impl", run_name="__main__", alter_sys=True)'
    assert runs in text
    launcher.with_name("show.py").write_text(text.replace(runs, program))
    command = [manifest.command[0], str(launcher.with_name("show.py"))]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={**manifest.environment, **more}, cwd=ROOT
    ).stdout.strip()


@pytest.mark.parametrize("safe", ["", "1"])
def test_what_runs_is_the_mutated_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe: str) -> None:
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path))
    folder = make(CATALOGUE["magic-fugg"])
    assert folder.is_relative_to(tmp_path)
    program = "import impl, impl.container.reader as reader\nprint(impl.__file__, reader.__file__)"
    files = asked(folder, program, PYTHONSAFEPATH=safe).split()
    assert files == [str(folder / "impl/__init__.py"), str(folder / "impl/container/reader.py")]
    assert "FUGG" in Path(files[1]).read_text()


def test_the_mutant_answers_otherwise_than_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path))
    manifest = load_manifest(make(CATALOGUE["magic-fugg"]))
    (tmp_path / "x.gguf").write_bytes(b"FUGG\3\0\0\0" + bytes(16))
    done = subprocess.run(
        [*manifest.command, "header", str(tmp_path / "x.gguf")], capture_output=True, env=manifest.environment, check=True
    )
    assert json.loads(done.stdout)["version"] == 3


ASK = """
import numpy, impl
from impl.blocks import q8, q4
impl.dequantize("Q8_0", bytes(34), (1, 32)); impl.dequantize("Q4_0", bytes(18), (1, 32))
print(sum(q8._spread_q8_0.stats.cache_hits.values()), sum(q4._spread_q4_0.stats.cache_hits.values()))
"""


def test_compiled_loops_that_the_fault_does_not_touch_are_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q4_0 is changed, Q8_0 is not."""
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path))
    environment = {"NUMBA_CACHE_DIR": ""}
    subprocess.run([sys.executable, "-c", ASK], check=True, capture_output=True, cwd=ROOT)  # the reference keeps both
    folder = make(CATALOGUE["q4_0-nibbles-linear"])
    assert asked(folder, ASK, **environment) == "1 0"
    assert asked(folder, ASK, **environment) == "1 1"


def test_old_mutants_are_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path))
    old, young = tmp_path / "mutants/old-123", tmp_path / "mutants/young-123"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))
    make(CATALOGUE["magic-fugg"])
    assert not old.exists()
    assert young.exists()
