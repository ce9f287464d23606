"""Divergences files: entries for what the faulty subject shows, some right, some not, with things made wrong in them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.search.harness.odd import YAML_RAW, edited, mangled, retouched, written
from conformance.search.harness.oracles.known import signatures
from conformance.search.harness.trees import Pairs, Tree

_KEYS = ("divergences", "pattern", "signature", "kind", "reason", "link", "smallest", "sometimes")
_SOUND = ("**", "own/**", "own/small", "own/small/*", "own/small/plain", "own/small/plain/", "?", "*")
_PATTERNS = (*_SOUND, "nothing", "", "[", "***", "**/", "\\", "(", "a" * 200)


def documents() -> st.SearchStrategy[bytes]:
    """Give files as bytes."""
    return st.one_of(
        written(_made()),
        written(_made().flatmap(retouched)),
        written(_made().flatmap(lambda tree: edited(tree, YAML_RAW, _KEYS))),
        written(_made()).flatmap(mangled),
    )


@st.composite
def _entry(draw: Any) -> Tree:
    case, signature = draw(st.sampled_from(signatures()))
    pattern = draw(st.one_of(st.just(case), st.sampled_from(_PATTERNS)))
    shown = draw(
        st.one_of(
            st.just(signature),
            st.sampled_from(["", ":", ":::", "header:-:value:x", "x", "tensor:Q8_0:digest:blocks"]),
            st.text(max_size=4),
        )
    )
    kind = draw(st.sampled_from(["bug", "policy", "limit", "bug", "other"]))
    if draw(st.booleans()):
        pattern = [pattern, *draw(st.lists(st.sampled_from(_PATTERNS), max_size=2))]
    if draw(st.booleans()):
        shown = [shown, *draw(st.lists(st.sampled_from([one for _, one in signatures()]), max_size=2))]
    more = {
        "link": st.text(max_size=6),
        "smallest": st.sampled_from([case, "own/small/none"]),
        "sometimes": st.sampled_from(["true", "maybe"]),
    }
    pairs: list[tuple[str, Tree]] = [
        ("pattern", pattern),
        ("signature", shown),
        ("kind", kind),
        ("reason", draw(st.text(max_size=6))),
    ]
    return Pairs([*pairs, *((name, draw(value)) for name, value in more.items() if draw(st.booleans()))])


def _made() -> st.SearchStrategy[Tree]:
    return st.lists(_entry(), max_size=4).map(lambda entries: Pairs([("divergences", entries)]))
