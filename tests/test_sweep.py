"""The cases that a sweep declares: they load, there are enough, and they ask whatever the library has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance import sweep
from conformance.block_ops import SEARCH_SHARE
from conformance.cases.load import load_suites
from conformance.cases.model import BlocksInput, Case, RowsInput
from conformance.cli import main
from conformance.errors import ConfigurationError, UsageError
from conformance.subjects.authorities.llama_cpp.blocks import declared_dequantize, declared_dot, declared_quantize
from conformance.subjects.authorities.llama_cpp.kinds import kinds
from conformance.subjects.authorities.llama_cpp.library import libraries, package_folder
from conformance.sweep import TYPES, Sweep

live = pytest.mark.skipif(package_folder() is None, reason="needs the live library: pip install 'gguf-conformance[live]'")


def declared(folder: Path, *types: str, blocks: int = 500, seed: int = 3) -> list[Case]:
    return load_suites(Sweep(types, blocks, seed).write(folder))


def blocks_of(case: Case) -> int:
    assert isinstance(case.input, RowsInput | BlocksInput)
    recipe = case.input.recipe["random"]
    return int(recipe["rows"]) * int(recipe["cols"]) // sweep.BY_NAME[case.input.type].block


def test_the_same_seed_declares_the_same_and_another_other_numbers(tmp_path: Path) -> None:
    texts = [
        [path.read_text() for path in sorted(Sweep((), 40, seed).write(tmp_path / str(number)).rglob("*.yaml"))]
        for number, seed in enumerate((3, 3, 4))
    ]
    assert texts[0] == texts[1]
    assert len(texts[0]) == len(TYPES)
    assert all(mine != other for mine, other in zip(texts[0], texts[2], strict=True))


def test_no_two_recipes_share_a_seed(tmp_path: Path) -> None:
    seeds: Counter[int] = Counter()
    for case in declared(tmp_path, blocks=9000):
        assert isinstance(case.input, RowsInput | BlocksInput)
        recipes = [case.input.recipe, *([case.input.imatrix, case.input.x] if isinstance(case.input, RowsInput) else [])]
        seeds.update(int(recipe["random"]["seed"]) for recipe in recipes if recipe)
    assert seeds.most_common(1)[0][1] == 1


@pytest.mark.parametrize("blocks", [1, 500, 70_000])
def test_there_are_as_many_blocks_as_asked_for_and_hardly_more(blocks: int, tmp_path: Path) -> None:
    found: Counter[tuple[str, str]] = Counter()
    for case in declared(tmp_path, "Q4_K", "IQ2_S", "Q8_0", blocks=blocks):
        assert isinstance(case.input, RowsInput | BlocksInput)
        found[case.input.type, case.id.split("/")[-1].split("-")[0]] += blocks_of(case)
    searched = max(1, blocks // SEARCH_SHARE)
    wanted = {
        ("Q4_K", "rows"): blocks, ("Q4_K", "imatrix"): blocks, ("Q4_K", "bytes"): blocks,
        ("IQ2_S", "rows"): searched, ("IQ2_S", "imatrix"): searched, ("IQ2_S", "bytes"): blocks,
        ("Q8_0", "rows"): blocks, ("Q8_0", "bytes"): blocks,
    }  # fmt: skip
    assert found.keys() == wanted.keys()
    for key, count in wanted.items():
        assert count <= found[key] < count + 88  # the longest row: eleven times 256 elements, in blocks of 32


def test_the_rows_are_of_every_kind(tmp_path: Path) -> None:
    recipes = [
        case.input.recipe["random"] for case in declared(tmp_path, "Q4_K", blocks=60_000) if isinstance(case.input, RowsInput)
    ]
    assert {(r["distribution"], r.get("scale"), r.get("lo")) for r in recipes} >= {
        (r["distribution"], str(r["scale"]) if "scale" in r else None, str(r["lo"]) if "lo" in r else None)
        for r in (*sweep._TAME, *sweep._WILD)
    }
    assert {int(r["cols"]) // 256 for r in recipes} == set(sweep._ROW_BLOCKS)


@live
def test_it_asks_of_each_type_what_the_library_does(tmp_path: Path) -> None:
    cases = [(case.input, case.ask) for case in declared(tmp_path)]
    asked = {(source.type, op) for source, ask in cases for op in ask if isinstance(source, RowsInput | BlocksInput)}
    weighted = {source.type for source, _ in cases if isinstance(source, RowsInput) and source.imatrix}
    plain = {source.type for source, _ in cases if isinstance(source, RowsInput) and not source.imatrix}
    for op, have in (("quantize", declared_quantize()), ("dequantize", declared_dequantize()), ("dot", declared_dot())):
        assert {name for name, what in asked if what == op} == {name for name in have if ":" not in name} - {"F32"}
    needing = {name for name, kind in kinds().items() if libraries().base.ggml_quantize_requires_imatrix(kind.id)}
    assert needing == weighted - plain
    references = {name.removesuffix(":ref") for name in declared_quantize() if name.endswith(":ref")}
    alone = references - set(declared_quantize())
    assert {name for name, what in asked if what == "quantize:ref"} == {*alone, "IQ4_NL"}


def test_a_type_that_cannot_be_swept_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="type 'I32' cannot be swept"):
        Sweep(("Q4_K", "I32"), 10, 1).write(tmp_path)
    assert not list(tmp_path.iterdir())


@live
def test_the_command_runs_them_and_keeps_the_cases(tmp_path: Path) -> None:
    words = ["sweep", "-S", "impl", "-t", "q8_0", "-t", "F16", "--blocks", "300", "--seed", "9", "--jobs", "1"]
    words += ["--report", str(tmp_path / "out")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "impl: blocks compared, by type and op" in result.output
    assert (tmp_path / "out" / "declared" / "sweep" / "q8_0.yaml").is_file()
    assert (tmp_path / "out" / "summary.md").is_file()


@live
def test_what_an_earlier_sweep_declared_in_the_folder_is_not_run_again(tmp_path: Path) -> None:
    for kind, cases in (("Q8_0", 2), ("BF16", 2)):
        words = ["sweep", "-S", "impl", "-t", kind, "--blocks", "9", "--jobs", "1", "--report", str(tmp_path)]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        assert f"impl: {cases} pass" in result.output
    assert (tmp_path / "declared" / "sweep" / "q8_0.yaml").is_file()


def test_a_folder_that_takes_no_cases_is_told(tmp_path: Path) -> None:
    (tmp_path / "declared").write_text("in the way")
    with pytest.raises(ConfigurationError, match="cannot write the cases") as raised:
        Sweep(("Q8_0",), 1, 1).write(tmp_path / "declared")
    assert raised.value.where == str(tmp_path / "declared")
