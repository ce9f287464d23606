"""How large a case's input is."""

from __future__ import annotations

from conformance.cases.build import build
from conformance.cases.model import BlocksInput, Case, DotInput, FileInput, ModelInput, RowsInput
from conformance.cases.rows import block_rows, float_rows


def input_size(case: Case) -> int:
    """Give the bytes of a case's input: of its file, or of its rows or blocks with what goes with them."""
    match case.input:
        case FileInput(recipe=recipe):
            return len(build(recipe).data)
        case ModelInput(size=size):
            return size
        case RowsInput(type=name, recipe=recipe, imatrix=imatrix, x=x):
            return sum(float_rows(rows, name).nbytes for rows in (recipe, imatrix, x) if rows)
        case BlocksInput(type=name, recipe=recipe):
            return block_rows(recipe, name)[0].nbytes
        case DotInput(type=name, weights=weights, x=x):
            return block_rows(weights, name)[0].nbytes + float_rows(x, name).nbytes
