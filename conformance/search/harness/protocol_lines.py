"""Lines that a subject may say: sound answers with things made wrong in them, damaged bytes, and files that are not as due."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from conformance.search.harness import small, trees
from conformance.search.harness.odd import JSON_RAW, edited, mangled, odd_values, retouched, written
from conformance.search.harness.oracles.protocol_lines import Said
from conformance.search.harness.oracles.subject_runs import Script
from conformance.search.harness.trees import Pairs, Raw, Tree

HEADER = (
    b'{"seq":@,"ok":{"version":3,"alignment":32,"data_offset":128,"kv":[{"key":"a","type":"u64","value":"7"},'
    b'{"key":"s","type":"str","value":{"hex":"ff"}},'
    b'{"key":"n","type":"array","items":"array","value":[{"items":"u8","value":["1"]}]},'
    b'{"key":"f","type":"f32","value":"0x7fc00000"}],'
    b'"tensors":[{"name":"t","type":8,"dims":["32"],"offset":"0","nbytes":"34"}]}}'
)
ANSWERS = (
    HEADER, b'{"seq":@,"ok":{}}',
    b'{"seq":@,"reject":{"class":"bad-alignment","message":"it is 0","at":24,"field":"kv[0].value"}}',
    b'{"seq":@,"unsupported":"no"}', b'{"seq":@,"error":"no"}',
)  # fmt: skip
_KEYS = (
    "seq", "ok", "reject", "unsupported", "error", "class", "message", "at", "field", "version", "alignment", "data_offset", "kv",
    "tensors", "key", "type", "value", "items", "hex", "name", "dims", "offset", "nbytes", "ops", "header", "load", "tensor",
    "strings", "integers", "ordered", "protocol", "details",
)  # fmt: skip
_FRAGMENTS = (
    *JSON_RAW, "@", '"@"', '{"hex":"f"}', '{"hex":""}', '"18446744073709551616"', '"-0"', '"array"', '"f64"', '"lossy"',
    '"double"', '["Q8_0:simd"]', '{"strings":"c"}', '{"data_offset":"tensors"}', '{"integers":"double"}',
)  # fmt: skip
# What an interface may not show is taken out of both answers before they are compared: values are then not only text.
_VIEW = b'{"ordered":false,"strings":"%s","dims":"ne","integers":"double","data_offset":"tensors"}'
_HELLOS = (small.HELLO, *(small.HELLO.replace(b'"header":{}', b'"header":' + _VIEW % strings) for strings in (b"c", b"lossy")))
# Requests of the small cases by their numbers: a run has nine, of which these ask for a header that is taken.
_REQUESTS = 9
_HEADER_REQUESTS = (4, 5, 3)


def documents() -> st.SearchStrategy[Said]:
    """Give a line, where it stands, and the bytes of an output file."""
    hello = st.tuples(_lines((small.HELLO,)), st.just(0))
    others = st.one_of(
        st.tuples(_lines((HEADER,)), st.sampled_from(_HEADER_REQUESTS)), st.tuples(_lines(ANSWERS), st.integers(1, _REQUESTS))
    )
    outputs = st.one_of(
        st.none(), st.sampled_from([b"", bytes(34), bytes(68), bytes(128), bytes(256), b"\xff" * 34, b"\xff" * 128, bytes(35)])
    )
    lines = st.one_of(others, others, hello)
    return st.tuples(lines, outputs, st.sampled_from(_HELLOS)).map(lambda drawn: Said(*drawn[0], *drawn[1:]))


def scripts() -> st.SearchStrategy[Script]:
    """Give what a process says over a run, with and without the line's end."""
    ends = st.sampled_from([b"\n", b"\n", b"\n", b"", b"\r\n", b"\n\n", b"\nx", b"\0\n"])
    hello = st.one_of(st.just(small.HELLO + b"\n"), st.just(small.HELLO + b"\n"), _ended(_lines((small.HELLO,)), ends))
    answers = st.lists(_ended(st.one_of(st.sampled_from(ANSWERS), _lines(ANSWERS)), ends), max_size=3)
    piped = st.tuples(hello, answers, st.booleans()).map(lambda drawn: Script((drawn[0], *drawn[1]), validate=drawn[2]))
    once = st.tuples(_bare(small.HELLO), st.one_of(*map(_bare, ANSWERS)), st.booleans()).map(
        lambda drawn: Script((drawn[0], drawn[1]), True, drawn[2])
    )
    return st.one_of(piped, piped, once)


def _tree(line: bytes) -> Tree:
    return trees.put(tree := trees.of_value(json.loads(line.replace(b"@", b"0"))), [0], Raw("@")) if line else tree


def _lines(sound: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Sound lines made wrong; none has a newline in it."""
    wrong = st.sampled_from([_tree(line) for line in sound]).flatmap(lambda tree: edited(tree, _FRAGMENTS, _KEYS))
    other = st.sampled_from([_tree(line) for line in sound]).flatmap(retouched)
    damaged = st.sampled_from(sound).flatmap(mangled)
    flat = st.one_of(st.sampled_from(sound), written(wrong), written(other), damaged, written(odd_values(_FRAGMENTS)))
    return flat.map(lambda line: line.replace(b"\n", b" "))


def _ended(lines: st.SearchStrategy[bytes], ends: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.tuples(lines, ends).map(b"".join)


def _bare(line: bytes) -> st.SearchStrategy[bytes]:
    """Give what a one-shot subject prints, its exit status in front."""
    inner = next(value for key, value in _tree(line) if key != "seq")
    wrong = edited(inner if isinstance(inner, list) else Pairs([("x", inner)]), _FRAGMENTS, _KEYS)
    return st.tuples(st.sampled_from([b"0", b"1"]), st.one_of(st.just(trees.emit(inner).encode()), written(wrong))).map(b"".join)
