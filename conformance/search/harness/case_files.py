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
_INTEGERS = st.sampled_from([0, 1, 7, 255, "2^32-1", "-1", "0x10"])
_REJECTS = st.sampled_from(["accept", "either", "observe", Pairs([("reject", "bad-value")]), Pairs([("header", "accept")]), "near"])


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


_OPTIONAL: dict[str, st.SearchStrategy[Tree]] = {
    "note": st.text(max_size=6),
    "ask": st.lists(st.sampled_from(["header", "load", "tensor", "dequantize", "write", "dot"]), max_size=3),
    "covers": st.lists(st.sampled_from(["C1", ""]), max_size=2),
    "n": st.lists(_INTEGERS, max_size=2),
}


@st.composite
def _made(draw: Any) -> Tree:
    cases = draw(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "c-1", "x{n}"]), _case()), min_size=1, max_size=3, unique_by=lambda pair: pair[0]
        )
    )
    head: list[tuple[str, Tree]] = [("suite", SUITE)]
    if draw(st.booleans()):
        head.append(("defaults", Pairs([("expect", Pairs([("llama.cpp", "accept"), ("gguf-py", "accept"), ("spec", "accept")]))])))
    return Pairs([*head, ("cases", Pairs(cases))])


@st.composite
def _case(draw: Any) -> Tree:
    pairs = draw(st.one_of(_file(), _numbers()))
    if draw(st.booleans()):
        pairs.append(("expect", Pairs([(who, draw(_REJECTS)) for who in ("llama.cpp", "gguf-py", "spec")])))
    for key, values in _OPTIONAL.items():
        if draw(st.integers(0, 3)) == 0:
            pairs.append((key, draw(values)))
    return Pairs(pairs)


def _file() -> st.SearchStrategy[list[tuple[str, Tree]]]:
    value = st.one_of(
        st.tuples(st.sampled_from(["u8", "u32", "i64", "f32", "bool"]), _INTEGERS),
        st.tuples(st.just("str"), st.text(max_size=4)),
        st.tuples(
            st.just("array"),
            st.sampled_from([Pairs([("u8", [1, 2])]), Pairs([("str", ["a", ""])]), Pairs([("array", [Pairs([("u8", [])])])])]),
        ),
    )
    pair = st.tuples(st.text(max_size=4), value).map(lambda drawn: Pairs([("key", drawn[0]), drawn[1]]))
    tensor = st.tuples(
        st.text(max_size=4),
        st.sampled_from(["F32", "Q8_0", "F16", 8, 99]),
        st.lists(st.sampled_from([0, 1, 32, "2^40"]), max_size=5),
    ).map(lambda drawn: Pairs([("name", drawn[0]), ("type", drawn[1]), ("dims", drawn[2])]))
    built = st.tuples(st.lists(pair, max_size=2), st.lists(tensor, max_size=2)).map(
        lambda both: [("build", Pairs([("kv", both[0]), ("tensors", both[1])]))]
    )
    return st.one_of(built, st.sampled_from(["00", "47475546", "zz", ""]).map(lambda digits: [("bytes", Pairs([("hex", digits)]))]))


def _numbers() -> st.SearchStrategy[list[tuple[str, Tree]]]:
    kinds = st.sampled_from(["Q8_0", "Q4_K", "F32", "X"])
    shape = Pairs([("seed", 1), ("blocks", 1)])
    rows = st.sampled_from(
        [Pairs([("random", shape)]), Pairs([("special", Pairs([("z", Pairs([("fill", 0)]))]))]), [Pairs([("values", [1, "nan"])])]]
    )
    return st.tuples(kinds, st.sampled_from(["rows", "blocks", "weights"]), rows).map(
        lambda drawn: [("type", drawn[0]), (drawn[1], drawn[2])]
    )
