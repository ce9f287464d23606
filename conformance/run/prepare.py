"""A case's input, made into files: what the requests name, and what the reports show of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from conformance.cases.build import build
from conformance.cases.fieldmap import FieldMap
from conformance.cases.model import BlocksInput, Case, DotInput, FileInput, ModelInput, Put, RowsInput
from conformance.cases.rows import block_rows, float_rows, row_names
from conformance.run.description import Described, describe_file

Locate = Callable[[ModelInput], Path]


class NumbersInput(NamedTuple):
    """Numbers on disk: float32 rows or raw blocks, and what goes with them.

    ``x_path`` holds a float row for each row of weights (for ``dot``), ``x_row_path`` the only one there is (for ``matvec``),
    None where there are several.
    """

    type: str
    rows: int
    cols: int
    rows_path: Path | None = None
    blocks_path: Path | None = None
    x_path: Path | None = None
    x_row_path: Path | None = None
    imatrix_path: Path | None = None
    values: npt.NDArray[np.float32] | None = None
    names: Sequence[str] = ()


class Prepared(NamedTuple):
    """The input of a case: ``path`` for files and models, ``numbers`` for the rest; ``data`` and ``fields`` of built files.

    ``described`` is what a file says, for those who are asked to write it.
    """

    path: Path | None = None
    data: bytes | None = None
    fields: FieldMap | None = None
    numbers: NumbersInput | None = None
    is_model: bool = False
    described: Described | None = None


def prepare(case: Case, folder: Path, locate: Locate) -> Prepared:
    """Write the input of ``case`` into ``folder``; ``locate`` finds, or fetches, a model file.

    Raises ConfigurationError where a recipe or a model is wrong.
    """
    match case.input:
        case FileInput(recipe=recipe):
            built = build(recipe)
            path = folder / "input.gguf"
            path.write_bytes(built.data)
            return Prepared(path=path, data=built.data, fields=built.fields, described=_described(case, path, folder))
        case ModelInput():
            path = locate(case.input)
            return Prepared(path=path, is_model=True, described=_described(case, path, folder))
        case RowsInput():
            return Prepared(numbers=_rows(case.input, folder))
        case BlocksInput(type=name, recipe=recipe):
            blocks, cols = block_rows(recipe, name)
            return Prepared(numbers=NumbersInput(name, len(blocks), cols, blocks_path=_save(folder / "blocks.bin", blocks)))
        case DotInput(type=name, weights=weights, x=x):
            blocks, cols = block_rows(weights, name)
            saved = _save_x(folder, x, name, (len(blocks), cols))
            source = _save(folder / "weights.bin", blocks)
            return Prepared(numbers=NumbersInput(name, len(blocks), cols, None, source, *saved))


def place_below(scratch: Path, put: Put) -> Path:
    """Make the folder for the files of a case whose requests are put so, below (or, without its word, at) ``scratch``.

    Raises OSError.
    """
    lacking = put.length - len(os.fsencode(scratch))
    # Names of 200 letters and a slash; the last one takes what is left, and is at least one letter.
    deep = "/".join("x" * min(200, lacking - start - 1) for start in range(0, lacking - 1, 201))
    folder = scratch / (put.folder or deep)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def spoil_input(path: Path, word: str) -> None:
    """Take the file away (``missing``), or put a folder in its place (``folder``)."""
    path.unlink()
    if word == "folder":
        path.mkdir()


def _described(case: Case, path: Path, folder: Path) -> Described | None:
    return describe_file(path, folder) if "write" in case.ask else None


def _rows(source: RowsInput, folder: Path) -> NumbersInput:
    values = float_rows(source.recipe, source.type)
    rows, cols = values.shape
    imatrix = float_rows(source.imatrix, source.type) if source.imatrix else None
    x_path, x_row_path = _save_x(folder, source.x, source.type, (rows, cols)) if source.x else (None, None)
    return NumbersInput(
        source.type,
        rows,
        cols,
        rows_path=_save(folder / "rows.f32", values),
        x_path=x_path,
        x_row_path=x_row_path,
        imatrix_path=None if imatrix is None else _save(folder / "imatrix.f32", imatrix),
        values=values,
        names=row_names(source.recipe),
    )


def _save_x(folder: Path, recipe: dict[str, Any], type_name: str, shape: tuple[int, int]) -> tuple[Path, Path | None]:
    """Write the float rows of products: one for each row of weights, and the one that serves all, if it is alone."""
    x = float_rows(recipe, type_name)
    for_all = _save(folder / "x-row.f32", x) if len(x) == 1 else None
    return _save(folder / "x.f32", np.broadcast_to(x, shape)), for_all


def _save(path: Path, values: npt.NDArray[Any]) -> Path:
    path.write_bytes(np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes())
    return path
