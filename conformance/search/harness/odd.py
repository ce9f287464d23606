"""What documents are made wrong with: values that readers of text, YAML or JSON have had trouble with, and edits."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from conformance.search.harness import trees
from conformance.search.harness.trees import Pairs, Raw, Tree

HUGE = (2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, -(2**63) - 1)
_SIGNS = ("", " ", "\0", "\ud800", "\udfff", "\n", "\u2028", "\x1b[2J", "\u202e", "\U0001f600", "x" * 300)
_MEANT = ("..", "/", "~", "null", "no", "0x10", "1e999", "nan", "-0", "{dir}", "{x}", "a: b", "!x", "*", "**", "[", "%s")
WORDS = (*_SIGNS, *_MEANT, "=a/b", "=llama.cpp/header")
_ANCHORS = ("*a", "&a [*a]", "&a {x: *a}", "{<<: *a}", "{<<: [*a]}", "{<<: {x: 1}}", "{<<: 1}")
_WRONG_TAGS = ("!!python/object:os.system x", "!!omap [a]", "!!map [a]", "!!seq {a: 1}", "!x y", "!!str [a]", "!!set {a, b}")
_TAGS = ("!!binary x", "!!binary '?'", "!!float x", "!!int x", "!!timestamp x", "!!null x", "!!bool x", "!!timestamp 2001-99-99")
_DATES = ("2001-01-01", "2001-13-45", "1:60")
_SCALARS = (*_DATES, "0o17", "1_000", "0b2", ".inf", ".nan", "~", "? x", "@x", "`x", "%x", "|", "---", "...")
_ODD_KEYS = ("{[a]: 1}", "{{a: 1}: 1}", "{1: 2}", "{null: 1}", "{.nan: 1}", "{true: 1}", "{2001-01-01: 1}", '"\\x00"', '"\\uD800"')
# What YAML has besides; to JSON these are no values.
YAML_RAW = (*_ANCHORS, *_TAGS, *_WRONG_TAGS, *_SCALARS, *_ODD_KEYS)
_NUMBERS = ("NaN", "Infinity", "-0", "-0.0", "1e999", "1e-999", "01", "0x1", "1.", "1E400", "9" * 400)
_STRINGS = ('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', "'x'", '"\\x"', '"')
JSON_RAW = (*_NUMBERS, *_STRINGS, "[,]", "{", "tru", '{"a":1,"a":2}', "\x00", "//")
_BYTES = (
    b"\0",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\t",
    b" ",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\x1b[31m",
)
_SYNTAX = (b"&a ", b"*a", b"!!", b"<<: ", b"? ", b": ", b"'", b'"', b"\\", b"#", b"%", b"---\n", b"{}", b"null")
PIECES = (*_BYTES, *_SYNTAX, b"9" * 40, b"[" * 300, b"{" * 300, b"- " * 200)


@cache
def odd_values(raw: tuple[str, ...]) -> st.SearchStrategy[Tree]:
    """Values of a kind that was not meant; ``raw`` stand as they are."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 300),
        st.sampled_from(HUGE),
        st.just(Raw("9" * 5000)),  # more digits than Python makes a number of
        st.sampled_from([0.5, 1.0, -0.0, 1e300, float("nan"), float("inf")]),
        st.sampled_from(WORDS),
        st.text(max_size=8),
        st.sampled_from(raw).map(Raw),
        st.just([]),
        st.builds(Pairs),
        st.integers(1, 8).map(lambda levels: _nested(4**levels)),
    )


def _nested(levels: int) -> Raw:
    """Give a list in a list in a list ..."""
    return Raw("[" * levels + "]" * levels)


@st.composite
def edited(draw: Any, tree: Tree, raw: tuple[str, ...], keys: tuple[str, ...]) -> Tree:
    """Make one to three edits: a value replaced, wrapped, taken from elsewhere, dropped, doubled; a key renamed or added."""
    for _ in range(draw(st.integers(1, 3))):
        places = list(trees.paths(tree))
        place = places[draw(st.integers(0, len(places) - 1))]
        tree = _edit(draw, tree, place, places, odd_values(raw), _names(raw, keys))
    return tree


@cache
def _names(raw: tuple[str, ...], keys: tuple[str, ...]) -> st.SearchStrategy[Tree]:
    return st.one_of(st.sampled_from(keys), odd_values(raw))


def _edit(
    draw: Any,
    tree: Tree,
    place: trees.Place,
    places: list[trees.Place],
    values: st.SearchStrategy[Tree],
    names: st.SearchStrategy[Tree],
) -> Tree:
    match draw(st.sampled_from(("value", "drop", "double", "rename"))):
        case "drop":
            return trees.drop(tree, place)
        case "double":
            return trees.double(tree, place)
        case "rename":
            return trees.rename(tree, place, draw(names))
    others = st.integers(0, len(places) - 1).map(lambda index: trees.get(tree, places[index]))
    return trees.put(tree, place, _other(draw, trees.get(tree, place), others, values, names))


def _other(
    draw: Any, node: Tree, others: st.SearchStrategy[Tree], values: st.SearchStrategy[Tree], names: st.SearchStrategy[Tree]
) -> Tree:
    """Give what stands in a node's place: another value, the node wrapped or added to, a node of another place."""
    match draw(st.sampled_from(("value", "value", "in a list", "in a mapping", "from elsewhere", "more"))):
        case "in a list":
            return [node]
        case "in a mapping":
            return Pairs([("x", node)])
        case "from elsewhere":
            return draw(others)
        case "more" if isinstance(node, Pairs):
            return Pairs([*node, (draw(names), draw(values))])
    return draw(values)


@st.composite
def retouched(draw: Any, tree: Tree) -> Tree:
    """Put one or two values in the places of others of their kind: what is made so is well-formed, and says another thing."""
    for _ in range(draw(st.integers(1, 2))):
        places = list(trees.paths(tree))
        place = places[draw(st.integers(0, len(places) - 1))]
        node = trees.get(tree, place)
        if isinstance(node, int | float):
            other = draw(st.sampled_from((0, 1, -1, node + 1, node * 2, *HUGE)))
            tree = trees.put(tree, place, not node if isinstance(node, bool) else other)
        else:
            alike = [one for one in places if type(trees.get(tree, one)) is type(node)]
            tree = trees.put(tree, place, trees.get(tree, alike[draw(st.integers(0, len(alike) - 1))]))
    return tree


@st.composite
def mangled(draw: Any, data: bytes) -> bytes:
    """Make one to three edits of bytes: cut off, left out, put in, lines doubled, left out, moved; line ends, a BOM."""
    for _ in range(draw(st.integers(1, 3))):
        data = draw(_mangle(data))
    return data


def _mangle(data: bytes) -> st.SearchStrategy[bytes]:
    at = st.integers(0, len(data))
    lines = data.splitlines(keepends=True) or [b""]
    line = st.integers(0, len(lines) - 1)
    return st.one_of(
        at.map(lambda end: data[:end]),
        st.tuples(at, st.sampled_from(PIECES)).map(lambda drawn: data[: drawn[0]] + drawn[1] + data[drawn[0] :]),
        st.tuples(at, st.integers(1, 20)).map(lambda drawn: data[: drawn[0]] + data[drawn[0] + drawn[1] :]),
        st.tuples(at, st.binary(max_size=4)).map(lambda drawn: data[: drawn[0]] + drawn[1] + data[drawn[0] + len(drawn[1]) :]),
        line.map(lambda one: b"".join(lines[:one] + lines[one + 1 :])),
        line.map(lambda one: b"".join(lines[: one + 1] + lines[one:])),
        st.tuples(line, line).map(lambda two: b"".join(_moved(lines, *two))),
        st.sampled_from([data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + data, data.rstrip(b"\n")]),
        st.sampled_from([data + data, data.decode("utf-8", "replace").encode("utf-16")]),
    )


def _moved(lines: list[bytes], source: int, target: int) -> list[bytes]:
    rest = lines[:source] + lines[source + 1 :]
    return [*rest[:target], lines[source], *rest[target:]]


def written(tree: st.SearchStrategy[Tree]) -> st.SearchStrategy[bytes]:
    """Write trees as bytes; lone surrogates, which UTF-8 does not have, become bytes that are none."""
    return tree.map(lambda one: trees.emit(one).encode("utf-8", "surrogatepass"))
