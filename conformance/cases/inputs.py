"""The grammar of a case's input: a built file, a published model, rows, blocks, or weights and x."""

from __future__ import annotations

from typing import Any, Literal

from conformance.cases.block_recipe import parse_block_rows
from conformance.cases.entry import Entry
from conformance.cases.float_recipe import parse_float_rows
from conformance.cases.located import LocatedDict
from conformance.cases.model import BlocksInput, DotInput, FileInput, Input, ModelInput, RowsInput
from conformance.cases.recipe import parse_file
from conformance.ggml_types import BY_NAME

# The keys that make an input, by the key that names its kind.
FORMS: dict[str, tuple[str, ...]] = {
    "build": ("build", "patch", "cut", "append"),
    "bytes": ("bytes",),
    "model": ("model",),
    "rows": ("type", "rows", "imatrix", "x"),
    "blocks": ("type", "blocks"),
    "weights": ("type", "weights", "x"),
}
INPUT_KEYS = tuple(dict.fromkeys(key for keys in FORMS.values() for key in keys))
_MODEL_KEYS = ("package", "version", "archive", "member", "sha256", "size")


def parse_input(case: Entry, parts: dict[str, Entry]) -> Input:
    """Give the one input that a case's keys declare. Raises ConfigurationError for none, two, or a part that is wrong."""
    given = [key for key in parts if key in INPUT_KEYS]
    forms = [form for form in FORMS if form in parts]
    if len(forms) != 1:
        found = f"found {', '.join(forms)}" if forms else "found none"
        raise case.error(f"a case has exactly one input, {found}", f"write one of: {', '.join(FORMS)}")
    form = forms[0]
    if extra := [key for key in given if key not in FORMS[form]]:
        raise parts[extra[0]].error(f"`{extra[0]}` does not go with `{form}`", f"a `{form}` case has: {', '.join(FORMS[form])}")
    return _PARSERS[form](case, parts)


def _file(case: Entry, parts: dict[str, Entry]) -> Input:
    """Take the keys that stand beside the recipe into it."""
    recipe = LocatedDict(case.file, case.line)
    if "build" in parts:
        _take(recipe, parts["build"].mapping())
    beside: dict[str, Entry] = {key: parts[key] for key in ("bytes", "patch", "cut", "append") if key in parts}
    if twice := [key for key in beside if key in recipe]:
        raise beside[twice[0]].error(f"`{twice[0]}` stands in `build` too", "keep one of them")
    _take(recipe, beside)
    parse_file(Entry(recipe, case.file, case.line, case.path))
    return FileInput(recipe)


def _take(recipe: LocatedDict, entries: dict[str, Entry]) -> None:
    for key, entry in entries.items():
        recipe[key] = entry.value
        recipe.lines[key] = entry.line


def _model(_case: Entry, parts: dict[str, Entry]) -> Input:
    model = parts["model"]
    given = model.mapping(_MODEL_KEYS)
    if missing := [key for key in _MODEL_KEYS if key not in given]:
        raise model.error(f"`{missing[0]}` is missing", f"a model names: {', '.join(_MODEL_KEYS)}")
    archive: Literal["wheel", "sdist"] = "wheel" if given["archive"].choice(("wheel", "sdist")) == "wheel" else "sdist"
    digest = given["sha256"].hexadecimal().hex()
    if len(digest) != 64:
        raise given["sha256"].error(f"{given['sha256'].shown()} is no SHA-256", "write its 64 hex digits")
    return ModelInput(
        package=given["package"].text(),
        version=given["version"].text(),
        archive=archive,
        member=given["member"].text(),
        sha256=digest,
        size=given["size"].integer(1, 2**63 - 1),
    )


def _rows(case: Entry, parts: dict[str, Entry]) -> Input:
    name = _type(case, parts)
    plan = parse_float_rows(parts["rows"], name)
    if "imatrix" in parts:
        weights = parse_float_rows(parts["imatrix"], name)
        if (weights.rows, weights.cols) != (1, plan.cols):
            found = f"{weights.rows} rows of {weights.cols}"
            raise parts["imatrix"].error(f"the imatrix has {found}", f"it is one row of {plan.cols}, as long as the rows")
    if "x" in parts:
        _check_x(parts["x"], name, plan.rows, plan.cols)
    imatrix, x = (_recipe(parts[key]) if key in parts else None for key in ("imatrix", "x"))
    return RowsInput(name, _recipe(parts["rows"]), imatrix, x)


def _blocks(case: Entry, parts: dict[str, Entry]) -> Input:
    name = _type(case, parts)
    parse_block_rows(parts["blocks"], name)
    return BlocksInput(name, _recipe(parts["blocks"]))


def _dot(case: Entry, parts: dict[str, Entry]) -> Input:
    """Raw blocks as weights, and ``x``."""
    name = _type(case, parts)
    if "x" not in parts:
        raise case.error("`x` is missing", "write the float rows that the weights are multiplied with")
    weights = parse_block_rows(parts["weights"], name)
    _check_x(parts["x"], name, weights.rows, weights.cols)
    return DotInput(name, _recipe(parts["weights"]), _recipe(parts["x"]))


def _check_x(entry: Entry, type_name: str, rows: int, cols: int) -> None:
    """Require of ``x`` the weights' cols, and as many rows as they have or one for all."""
    x = parse_float_rows(entry, type_name)
    if x.cols != cols or x.rows not in (1, rows):
        shapes = f"x has {x.rows} rows of {x.cols}, the weights {rows} of {cols}"
        raise entry.error(shapes, "give x the same cols, and as many rows or one for all")


def _type(case: Entry, parts: dict[str, Entry]) -> str:
    if "type" not in parts:
        raise case.error("`type` is missing", "name the ggml type, in capitals: Q8_0")
    return parts["type"].choice([name for name, kind in BY_NAME.items() if not kind.removed])


def _recipe(entry: Entry) -> dict[str, Any]:
    recipe: dict[str, Any] = entry.value
    return recipe


_PARSERS = {"build": _file, "bytes": _file, "model": _model, "rows": _rows, "blocks": _blocks, "weights": _dot}
