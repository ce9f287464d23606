"""Case files: the repository's own and made ones, whole, with a few things made wrong in them, or with bytes damaged."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from conformance.cases.load import CASE_KEYS, SUITE_KEYS
from conformance.places import cases_root
from conformance.search.harness import trees
from conformance.search.harness.odd import YAML_RAW, edited, mangled, written
from conformance.search.harness.oracles.case_files import SUITE
from conformance.search.harness.trees import Pairs, Tree

# A larger file is read no differently, and fewer can be tried.
_LARGEST = 3000
_KEYS = (
    *SUITE_KEYS, *CASE_KEYS, "kv", "tensors", "key", "name", "dims", "u32", "array", "str", "random", "special", "values", "hex",
    "repeat", "count", "fill", "each", "omit", "llama.cpp", "gguf-py", "spec", "reject", "time", "memory", "version", "align",
    "n_kv", "data",
)  # fmt: skip
_REJECTS = st.sampled_from(["accept", "either", "observe", Pairs([("reject", "bad-value")]), "accept"])


def documents() -> st.SearchStrategy[bytes]:
    """Give files as bytes."""
    sound = st.one_of(_made(), st.sampled_from(_real()).map(lambda named: named[1]))
    wrong = sound.flatmap(lambda tree: edited(tree, YAML_RAW, _KEYS))
    texts = st.one_of(st.sampled_from(_real()).map(lambda named: named[0]), written(_made()))
    return st.one_of(written(sound), written(wrong), texts.flatmap(mangled))


@cache
def _real() -> list[tuple[bytes, Tree]]:
    """Give the repository's smaller case files, the smallest first, as if they stood at the place searched: bytes and tree."""
    root = cases_root()
    files = sorted(root.rglob("*.yaml"), key=lambda path: (path.stat().st_size, path))
    small = [path for path in files if path.stat().st_size <= _LARGEST and path.parent.name != "models"]
    return [(_moved(path, root), trees.put(tree, [_place(tree)], SUITE)) for path in small for tree in [trees.of_yaml(path)]]


def _moved(path: Path, root: Path) -> bytes:
    name = path.relative_to(root).with_suffix("").as_posix()
    return path.read_bytes().replace(f"suite: {name}".encode(), f"suite: {SUITE}".encode())


def _place(tree: Tree) -> int:
    return next(index for index, (key, _) in enumerate(tree) if key == "suite")


_AUTHORITIES = ("llama.cpp", "gguf-py", "spec")


@st.composite
def _made(draw: Any) -> Tree:
    keys = st.sampled_from(["a", "b", "c-1", "d.2"])
    cases = draw(st.lists(st.tuples(keys, _case()), min_size=1, max_size=3, unique_by=lambda pair: pair[0]))
    head: list[tuple[str, Tree]] = [("suite", SUITE)]
    if draw(st.booleans()):
        head.append(("defaults", Pairs([("covers", draw(_COVERS))])))
    return Pairs([*head, ("cases", Pairs(cases))])


_COVERS = st.lists(st.one_of(st.sampled_from(["C1", ""]), st.text(max_size=3)), max_size=2)


@st.composite
def _case(draw: Any) -> Tree:
    pairs = draw(st.one_of(_file(), _numbers()))
    optional = {"note": st.text(max_size=6), "spec": st.text(max_size=6), "covers": _COVERS}
    return Pairs([*pairs, *((key, draw(values)) for key, values in optional.items() if draw(st.booleans()))])


def _file() -> st.SearchStrategy[list[tuple[str, Tree]]]:
    """Give a file's case, which has to say what is expected."""
    expects = st.tuples(_REJECTS, _REJECTS, _REJECTS).map(lambda drawn: Pairs(zip(_AUTHORITIES, drawn, strict=True)))
    asks = st.lists(st.sampled_from(["header", "load", "tensor", "dequantize"]), min_size=1, max_size=3, unique=True)
    built = st.tuples(st.lists(_pair(), max_size=2), st.lists(_tensor(), max_size=2))
    inputs = st.one_of(
        built.map(lambda both: ("build", Pairs([("kv", both[0]), ("tensors", both[1])]))),
        st.sampled_from(["00", "47475546 03000000", "ff"]).map(lambda digits: ("bytes", digits)),
    )
    return st.tuples(inputs, expects, asks).map(lambda drawn: [drawn[0], ("expect", drawn[1]), ("ask", drawn[2])])


def _pair() -> st.SearchStrategy[Tree]:
    arrays = [Pairs([("u8", [1, 2])]), Pairs([("str", ["a", ""])]), Pairs([("array", [Pairs([("u8", [])])])])]
    value = st.one_of(
        st.tuples(st.sampled_from(["u8", "u32", "i64"]), st.sampled_from(["0", "1", "7", "100"])),
        st.tuples(st.just("str"), st.text(max_size=4)),
        st.tuples(st.just("array"), st.sampled_from(arrays)),
    )
    return st.tuples(st.text(max_size=4), value).map(lambda drawn: Pairs([("key", drawn[0]), drawn[1]]))


def _tensor() -> st.SearchStrategy[Tree]:
    dims = st.lists(st.sampled_from(["0", "1", "32", "64"]), min_size=1, max_size=4)
    return st.tuples(st.text(max_size=4), st.sampled_from(["F32", "Q8_0", "F16"]), dims).map(
        lambda drawn: Pairs([("name", drawn[0]), ("type", drawn[1]), ("dims", drawn[2])])
    )


def _numbers() -> st.SearchStrategy[list[tuple[str, Tree]]]:
    kinds = st.sampled_from(["Q8_0", "Q4_K"])
    random = Pairs([("random", Pairs([("seed", "1"), ("blocks", "1")]))])
    inputs = st.sampled_from([[("rows", random)], [("blocks", random)], [("weights", random), ("x", random)]])
    return st.tuples(kinds, inputs).map(lambda drawn: [("type", drawn[0]), *drawn[1]])
