"""Manifests: the repository's own and made ones, with a few things made wrong in them, or with bytes damaged."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from conformance.places import adapters_root
from conformance.search.harness import trees
from conformance.search.harness.odd import WORDS, YAML_RAW, edited, mangled, odd_values, written
from conformance.search.harness.oracles.manifests import HARMLESS
from conformance.search.harness.trees import Pairs, Tree

_KEYS = (
    "name",
    "language",
    "command",
    "build",
    "limits",
    "profile",
    "env",
    "divergences",
    "one_shot",
    "time",
    "memory",
    "line",
    "hello",
)
_TEXTS = st.one_of(st.text(max_size=4), st.sampled_from(WORDS))
# What words are in that a process is given: said more often than the rest.
_WORDS = ("env", "build", "command")
_TIMES = st.sampled_from([1, 0.5, 120, "1e3", "5s"])
_SIZES = st.sampled_from(["2GiB", "64KiB", "1", 4096, "1 MB", "99999999999999999999GiB"])


def documents() -> st.SearchStrategy[bytes]:
    """Give files as bytes."""
    sound = st.one_of(_made(), st.sampled_from(_real()).map(lambda both: both[1]))
    texts = st.one_of(st.sampled_from(_real()).map(lambda both: both[0]), written(_made()))
    wrong = written(sound.flatmap(lambda tree: edited(tree, YAML_RAW, _KEYS)))
    return st.one_of(written(_made()), written(_made()), wrong, texts.flatmap(mangled))


@cache
def _real() -> list[tuple[bytes, Tree]]:
    return [(path.read_bytes(), trees.of_yaml(path, typed=True)) for path in sorted(adapters_root().glob("*/adapter.yaml"))]


@st.composite
def _made(draw: Any) -> Tree:
    pairs: list[tuple[str, Tree]] = [("name", "x"), ("language", "x"), ("command", list(HARMLESS))]
    optional = {
        "limits": st.tuples(_TIMES, _SIZES).map(lambda both: Pairs([("time", both[0]), ("memory", both[1])])),
        "env": st.tuples(_TEXTS, _TEXTS).map(lambda pair: Pairs([pair])),
        "build": st.one_of(st.sampled_from([["make"], [["make", "a b"]], [], "make"]), st.lists(_TEXTS, max_size=2)),
        "command": st.lists(_TEXTS, min_size=1, max_size=2).map(lambda words: [*HARMLESS, *words]),
        "profile": st.sampled_from(["llama.cpp", "gguf-py", "spec", "ggml"]),
        "divergences": st.sampled_from(["known.yaml", "", "x" * 300, "\0"]),
        "one_shot": st.one_of(st.booleans(), odd_values(YAML_RAW)),
        "name": _TEXTS,
    }
    for key, values in optional.items():
        if draw(st.integers(0, 2 if key in _WORDS else 9)) == 0:
            pairs = [pair for pair in pairs if pair[0] != key]
            pairs.append((key, draw(values)))
    return Pairs(pairs)
