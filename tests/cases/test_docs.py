from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.cases import expect, inputs, load, putting, recipe
from conformance.cases.build import build
from conformance.cases.float_recipe import SIGNIFICANDS
from conformance.cases.load import load_suites
from conformance.cases.located import read_yaml
from conformance.cases.model import BlocksInput, DotInput, RowsInput
from conformance.cases.rows import block_rows, float_rows
from conformance.outcomes import REJECT_CLASSES

TEXT = (Path(__file__).parents[2] / "docs" / "cases.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
SUITES = [example for example in EXAMPLES if example.startswith("suite: ")]


def test_every_example_is_a_suite_or_a_file() -> None:
    assert len(SUITES) == 11
    assert [example.splitlines()[0] for example in EXAMPLES if example not in SUITES] == ["# build"]


@pytest.mark.parametrize("example", SUITES, ids=lambda example: example.splitlines()[0])
def test_an_example_suite_loads_and_its_inputs_can_be_made(tmp_path: Path, example: str) -> None:
    path = tmp_path / (example.splitlines()[0].removeprefix("suite: ") + ".yaml")
    path.parent.mkdir(parents=True)
    path.write_text(example)
    cases = load_suites(tmp_path)
    assert len(cases) >= len(read_yaml(path)["cases"])  # a family is several
    for case in cases:
        match case.input:
            case RowsInput(type=name, recipe=rows):
                float_rows(rows, name)
            case BlocksInput(type=name, recipe=rows) | DotInput(type=name, weights=rows):
                block_rows(rows, name)


def test_the_example_file_can_be_built(tmp_path: Path) -> None:
    (example,) = (example for example in EXAMPLES if example not in SUITES)
    path = tmp_path / "build.yaml"
    path.write_text(example)
    built = build(read_yaml(path))
    patched = built.fields.find("kv[1].value")
    assert patched is not None
    assert built.data[patched.offset : patched.end] == b"\xff" * 4


@pytest.mark.parametrize(
    "words",
    [
        load.SUITE_KEYS,
        load.CASE_KEYS,
        putting.PUT_KEYS,
        putting.INPUTS,
        inputs.FORMS,
        recipe.FILE_KEYS,
        [form for form in recipe.VALUE_FORMS if form not in recipe.WIDTHS],
        recipe.TENSOR_KEYS,
        expect.WORDS,
        REJECT_CLASSES,
    ],
)
def test_every_word_of_the_grammar_is_in_the_manual(words: list[str]) -> None:
    assert [word for word in words if f"`{word}`" not in TEXT] == []


def test_the_significands_are_listed() -> None:
    listed = re.search(r"The significands of `exponents`: ([^.]*)\.", TEXT)
    assert listed is not None
    assert [int(each, 16) for each in re.findall("0x[0-9a-f]{6}", listed[1])] == list(SIGNIFICANDS)
