"""The project's own cases: each one loads, and its input can be made as declared."""

from __future__ import annotations

import pytest

from conformance.cases.build import build
from conformance.cases.model import BlocksInput, Case, DotInput, FileInput, RowsInput
from conformance.cases.rows import block_rows, float_rows, row_names
from conformance.ggml_types import BY_NAME
from tests.corpus import corpus

from .test_fieldmap import assert_tiles

CASES = corpus()
# A path grows with its depth, so that going through the fields of a very deep nest takes time with the square of it.
DEEP = 10_000


def of_kind(*kinds: type) -> list[Case]:
    found = [case for case in CASES if isinstance(case.input, kinds)]
    assert found, f"no case with {kinds}: this test would check nothing"
    return found


def test_ids_are_sorted_and_unique() -> None:
    ids = [case.id for case in CASES]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("case", of_kind(FileInput), ids=lambda case: case.id)
def test_a_file_can_be_built_and_is_mapped_whole(case: Case) -> None:
    assert isinstance(case.input, FileInput)
    built = build(case.input.recipe)
    if len(built.fields) < DEEP:
        assert_tiles(built)
    elif built.data:
        last = built.fields.at(len(built.data) - 1)
        assert last is not None
        assert last.end == len(built.data)


@pytest.mark.parametrize("case", of_kind(RowsInput, BlocksInput, DotInput), ids=lambda case: case.id)
def test_rows_have_the_shape_that_their_type_needs(case: Case) -> None:
    match case.input:
        case RowsInput(type=name, recipe=recipe):
            rows = float_rows(recipe, name)
            assert rows.shape[1] % BY_NAME[name].block == 0
            assert len(row_names(recipe)) == len(rows)
        case BlocksInput(type=name, recipe=recipe) | DotInput(type=name, weights=recipe):
            blocks, cols = block_rows(recipe, name)
            assert blocks.shape[1] == BY_NAME[name].row_bytes(cols)
