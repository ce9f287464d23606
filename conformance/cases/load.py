"""From the YAML files below a root to cases. Strict: what is not in the grammar is an error with file and line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from conformance.cases.entry import Entry, nearest
from conformance.cases.expect import Admissible, check_asked, expand, parse_expect
from conformance.cases.family import FAMILY_KEYS, Member, unfold
from conformance.cases.float_recipe import parse_float_rows
from conformance.cases.inputs import INPUT_KEYS, parse_input
from conformance.cases.located import read_yaml
from conformance.cases.model import Before, BlocksInput, Case, DotInput, FileInput, Input, Limits, ModelInput, Put, RowsInput
from conformance.cases.putting import parse_put
from conformance.errors import ConfigurationError
from conformance.ggml_types import BY_ID

SUITE_KEYS = ("suite", "spec", "note", "defaults", "cases")
DEFAULT_KEYS = ("ask", "expect", "limits", "covers")
CASE_KEYS = (*INPUT_KEYS, *FAMILY_KEYS, "ask", "expect", "spec", "note", "covers", "limits", "nan", "requantize", "before", "put")
# Recorded answers live below the cases and are none.
GOLDEN = "golden"

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_MEMORY = re.compile(r"([0-9]+)\s*(B|KiB|MiB|GiB)")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# Ops that make sense for an input, variants included; the first list is asked where a case names none.
_DEFAULT_ASK: dict[type[Input], tuple[str, ...]] = {
    FileInput: ("header", "load"),
    ModelInput: ("header", "tensor", "dequantize"),
    RowsInput: ("quantize", "dequantize"),
    BlocksInput: ("dequantize",),
    DotInput: ("dot",),
}
# What values can be quantized to; a case may expect that an authority does not do it.
_QUANTIZED = tuple(kind.name for kind in BY_ID.values() if kind.block > 1)
_PRODUCTS = ("dot", "dot:simd", "matvec", "matvec:simd")
_ASKABLE: dict[type[Input], tuple[str, ...]] = {
    FileInput: ("header", "load", "tensor", "dequantize", "write"),
    ModelInput: ("header", "load", "tensor", "dequantize", "write"),
    RowsInput: ("quantize", "quantize:ref", "dequantize", *_PRODUCTS),
    BlocksInput: ("dequantize",),
    DotInput: _PRODUCTS,
}

# What needs no answer of an earlier op.
_ASKABLE_BEFORE: dict[type[Input], tuple[str, ...]] = {
    FileInput: ("header", "load"),
    RowsInput: ("quantize", "quantize:ref"),
    BlocksInput: ("dequantize",),
    DotInput: _PRODUCTS,
}


class _Suite(NamedTuple):
    """What a file says of all its cases."""

    name: str
    path: Path
    spec: str
    note: str
    defaults: dict[str, Entry]


def load_suites(root: Path) -> list[Case]:
    """Give the cases of all ``*.yaml`` below ``root`` (``golden/`` left out), sorted by id.

    Raises ConfigurationError for the first thing that is wrong, and where there is no case at all.
    """
    files = [path for path in sorted(root.rglob("*.y*ml")) if path.relative_to(root).parts[0] != GOLDEN]
    for path in files:
        if path.suffix != ".yaml":
            raise ConfigurationError("a case file that would be passed over", where=str(path), hint="name it .yaml")
    cases = [case for path in files for case in load_suite(path, root)]
    if not cases:
        raise ConfigurationError("no cases", where=str(root), hint="point to a folder with case files (*.yaml)")
    return sorted(cases, key=lambda case: case.id)


def load_suite(path: Path, root: Path) -> list[Case]:
    """Give the cases of one file in its order. Raises ConfigurationError."""
    top = Entry.of(read_yaml(path))
    parts = top.mapping(SUITE_KEYS)
    for key in ("suite", "cases"):
        if key not in parts:
            raise top.error(f"`{key}` is missing", "a case file has `suite: folder/file` and `cases:`")
    name = path.relative_to(root).with_suffix("").as_posix()
    if parts["suite"].text() != name:
        raise parts["suite"].error(f"{parts['suite'].shown()} is not the file's place", f"write `suite: {name}`, or move the file")
    defaults = parts["defaults"].mapping(DEFAULT_KEYS) if "defaults" in parts else {}
    if "expect" in defaults:
        parse_expect(defaults["expect"])
    suite = _Suite(name, path, _text(parts, "spec"), _text(parts, "note"), defaults)
    declared = parts["cases"].mapping()
    if not declared:
        raise parts["cases"].error("no cases", "declare one or delete the file")
    return [_case(suite, member) for member in _unfolded(declared)]


def _unfolded(declared: dict[str, Entry]) -> list[Member]:
    """Unfold families. Raises ConfigurationError where a member has the key of another case."""
    members: dict[str, Member] = {}
    for key, entry in declared.items():
        for member in unfold(key, entry):
            if member.key in members:
                line = members[member.key].entry.line
                raise entry.error(
                    f"`{member.key}` is declared in line {line} too", "change the key, or omit that member of the family"
                )
            members[member.key] = member
    return list(members.values())


def _case(suite: _Suite, member: Member) -> Case:
    key, entry = member.key, member.entry
    if not _KEY.fullmatch(key):
        raise entry.error(f"`{key}` cannot be the last part of an id", "use letters, digits, and . _ + - after the first")
    parts = entry.mapping(CASE_KEYS)
    source = parse_input(entry, parts)
    own_ask = parts.get("ask") or suite.defaults.get("ask")
    ask = _asked(own_ask, parts, source)
    requantize = _requantize(parts["requantize"], ask) if "requantize" in parts else ()
    if requantize:
        ask = (*ask, "quantize")
    return Case(
        id=f"{suite.name}/{key}",
        source=suite.path,
        line=entry.line,
        input=source,
        ask=ask,
        expect=_expect(suite, member, parts, ask, source),
        spec=_text(parts, "spec") or suite.spec,
        note=_text(parts, "note") or suite.note,
        covers=_covers(suite, parts),
        limits=_limits(parts.get("limits") or suite.defaults.get("limits")),
        requantize=requantize,
        nan_payload="nan" in parts and parts["nan"].choice(("payload",)) == "payload",
        before=tuple(_before(item) for item in parts["before"].sequence()) if "before" in parts else (),
        put=parse_put(parts["put"], source, ask) if "put" in parts else Put(),
    )


def _asked(entry: Entry | None, parts: dict[str, Entry], source: Input) -> tuple[str, ...]:
    ask = _ask(entry, source) if entry else _DEFAULT_ASK[type(source)]
    _check_vector(ask, parts, source)
    return ask


def _before(entry: Entry) -> Before:
    """Give a request that is put first. Raises ConfigurationError where it takes in what another one gives."""
    parts = entry.mapping((*INPUT_KEYS, "ask"))
    source = parse_input(entry, parts)
    if isinstance(source, ModelInput):
        raise entry.error("a model is not put before a case", "write a `build`, `rows`, `blocks` or `weights`")
    ask = _asked(parts.get("ask"), parts, source) if "ask" in parts else _DEFAULT_ASK[type(source)][:1]
    single = _ASKABLE_BEFORE[type(source)]
    for op in ask:
        if op not in single:
            raise parts["ask"].error(f"`{op}` is not put before a case", f"of this input can be: {', '.join(single)}")
    return Before(source, ask)


def _ask(entry: Entry, source: Input) -> tuple[str, ...]:
    """Give the ops, each at most once and each one that the input can be asked."""
    items = entry.sequence()
    if not items:
        raise entry.error("nothing is asked", f"name at least one of: {', '.join(_ASKABLE[type(source)])}")
    ask: list[str] = []
    for item in items:
        op = item.text()
        if op not in _ASKABLE[type(source)]:
            raise item.error(f"`{op}` cannot be asked of this input", nearest(op, _ASKABLE[type(source)]))
        if op in ask:
            raise item.error(f"`{op}` is asked twice", "take one out")
        ask.append(op)
    if isinstance(source, RowsInput):
        _check_rows_ask(entry, ask, source)
    if isinstance(source, FileInput | ModelInput) and {"tensor", "dequantize"} & set(ask) and not {"header", "load"} & set(ask):
        ask.insert(0, "header")  # which tensors there are is known by its answer
    return tuple(ask)


def _check_rows_ask(entry: Entry, ask: list[str], source: RowsInput) -> None:
    """Refuse ops that take in quantized rows or ``x`` where these are not there first."""
    takes_blocks = [op for op in ask if not op.startswith("quantize")]
    if takes_blocks and "quantize" not in ask[: ask.index(takes_blocks[0])]:
        raise entry.error(
            f"`{takes_blocks[0]}` takes in what `quantize` gives", "ask `quantize` before it, or give `blocks` or `weights`"
        )
    if any(op in _PRODUCTS for op in ask) != (source.x is not None):
        raise entry.error("products and `x` need each other", "ask `dot` or `matvec` and give `x` (float rows), or neither")


def _check_vector(ask: tuple[str, ...], parts: dict[str, Entry], source: Input) -> None:
    """Refuse ``matvec`` with more than one row of ``x``."""
    asked = next((op for op in ask if op.startswith("matvec")), None)
    if asked is None or not isinstance(source, RowsInput | DotInput):
        return
    rows = parse_float_rows(parts["x"], source.type).rows
    if rows != 1:
        raise parts["x"].error(f"x has {rows} rows, but `{asked}` multiplies all weights by one", "give x one row, or ask `dot`")


def _requantize(entry: Entry, ask: tuple[str, ...]) -> tuple[str, ...]:
    """Give the types that a file's dequantized values are quantized to. Raises ConfigurationError."""
    if "dequantize" not in ask or any(op not in _ASKABLE[ModelInput] for op in ask):
        raise entry.error("only dequantized values of a file are quantized again", "ask `dequantize` of a file or a model")
    names = tuple(item.choice(_QUANTIZED) for item in entry.sequence())
    if not names or len(set(names)) < len(names):
        raise entry.error("no type, or one twice", "name types, each once: [Q8_0, Q4_K]")
    return names


def _expect(
    suite: _Suite, member: Member, parts: dict[str, Entry], ask: tuple[str, ...], source: Input
) -> dict[str, dict[str, Admissible]]:
    default = parse_expect(suite.defaults["expect"]) if "expect" in suite.defaults else {}
    own = [parse_expect(entry) for entry in ([parts["expect"]] if "expect" in parts else []) + list(member.expects)]
    for form in (form for forms in own for form in forms.values()):
        check_asked(form, ask)
    return expand(member.entry, [default, *own], ask, complete=isinstance(source, FileInput | ModelInput))


def _covers(suite: _Suite, parts: dict[str, Entry]) -> tuple[str, ...]:
    """Labels of the suite's defaults and of the case, each once."""
    lists = [suite.defaults.get("covers"), parts.get("covers")]
    return tuple(dict.fromkeys(item.text() for entry in lists if entry for item in entry.sequence()))


def _limits(entry: Entry | None) -> Limits:
    if entry is None:
        return Limits()
    parts = entry.mapping(("time", "memory"))
    time = parts["time"].float64() if "time" in parts else None
    if time is not None and time <= 0:
        raise parts["time"].error(f"{parts['time'].shown()} is no time limit", "write seconds above 0")
    return Limits(time, _memory(parts["memory"]) if "memory" in parts else None)


def _memory(entry: Entry) -> int:
    match = _MEMORY.fullmatch(entry.text())
    if not match or not int(match[1]):
        raise entry.error(f"{entry.shown()} is no size", "write 2GiB, 512MiB, 64KiB or 100000B")
    return int(match[1]) * _UNITS[match[2]]


def _text(parts: dict[str, Entry], key: str) -> str:
    return parts[key].text().strip() if key in parts else ""
