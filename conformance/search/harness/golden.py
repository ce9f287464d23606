"""Files of recorded answers: those of the small cases, with a few things made wrong in them, or with bytes damaged."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from conformance.search.harness import trees
from conformance.search.harness.odd import JSON_RAW, edited, mangled, retouched, written
from conformance.search.harness.stub import golden_file

_KEYS = (
    "format", "authorities", "cases", "plain", "long", "bad", "rows", "llama.cpp", "gguf-py", "spec", "header", "load",
    "tensor[0]", "tensor[1]", "quantize", "dequantize", "outcome", "output", "arrays", "0", "1", "kind", "base64", "nbytes",
    "unit", "range", "digests", "count", "view", "version", "reject_class", "message", "at", "kv", "tensors", "type", "value",
    "items", "key", "name", "dims", "offset", "hex",
)  # fmt: skip


def documents() -> st.SearchStrategy[bytes]:
    """Give files as bytes."""
    sound = trees.of_value(json.loads(golden_file()))
    parts = sorted({json.dumps(item) for item in _values(sound)})
    raw = (*JSON_RAW, *parts)  # a part of the file in the place of another: an outcome, a header, an output
    wrong = written(edited(sound, raw, _KEYS))
    return st.one_of(st.just(golden_file()), wrong, written(retouched(sound)), mangled(golden_file()))


def _values(tree: trees.Tree) -> list[object]:
    """Give the scalars of a tree and some that fit in their places."""
    leaves = [node for path in trees.paths(tree) if not isinstance(node := trees.get(tree, path), list)]
    digests = (
        {"outcome": "ok"},
        {"kind": "digests", "nbytes": 68, "unit": 34, "range": 16, "digests": ["0"]},
        {"kind": "bytes", "base64": ""},
    )
    return [
        *leaves,
        *digests,
        {"outcome": "timeout", "seconds": 1.0},
        {"outcome": "crash", "how": ""},
        {"hex": "ff"},
        {"items": "u8", "value": ["1"]},
    ]
