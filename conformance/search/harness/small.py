"""A corpus of a few cases, and a subject that answers them all well: what is searched is then only what is made wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance.cases.walk import walk
from conformance.subjects.protocol import DequantizeRequest, HeaderRequest, LoadRequest, QuantizeRequest, Request, TensorRequest

SUITE = "own/small"
CASES = """\
suite: own/small
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  plain:
    build: {kv: [{key: a, u32: 7}, {key: s, str: "h\u00e9"}], tensors: [{name: t, type: Q8_0, dims: [32]}]}
    ask: [header, load, tensor, dequantize]
  long: {build: {kv: [{key: n, array: {u8: {fill: 3, count: 1200}}}]}, ask: [header]}
  bad:
    build: {kv: [{key: general.alignment, u32: 0}]}
    expect: {llama.cpp: {reject: bad-alignment}, gguf-py: {reject: bad-alignment}, spec: {reject: bad-alignment}}
  rows: {type: Q8_0, rows: {random: {seed: 1, blocks: 2}}, expect: {gguf-py: observe}}
"""
HELLO = (
    b'{"seq":@,"ok":{"name":"small","version":"1","language":"python","protocol":1,"ops":{"header":{},"load":{},"tensor":{},'
    b'"dequantize":["Q8_0"],"quantize":["Q8_0"]}}}'
)
_REFUSED = b'{"seq":@,"reject":{"class":"bad-alignment","message":"it is 0","at":24}}'
_Q8_0_BYTES = 34


class Answered(NamedTuple):
    """A sound answer: the line, in which ``@`` stands for the number of the request, and what goes into the output file."""

    line: bytes
    output: bytes | None = None


def write_cases(root: Path) -> Path:
    """Write the case file below ``root``; gives ``root``."""
    path = root / f"{SUITE}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CASES, encoding="utf-8")
    return root


def golden_path(golden: Path) -> Path:
    """Give the place of the small cases' file in a folder of recorded answers, its folder made."""
    path = golden / f"{SUITE}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def answer(request: Request) -> Answered:
    """Answer a request as a right subject would, as far as the small cases ask; numbers are all zero bytes."""
    match request:
        case HeaderRequest(path=path) | LoadRequest(path=path):
            return Answered(_header_line(Path(path).read_bytes()))
        case TensorRequest(path=path, index=index):
            data = Path(path).read_bytes()
            header = walk(data).header
            start = header.data_offset + int(header.tensors[index].offset)
            return Answered(b'{"seq":@,"ok":{}}', data[start : start + int(header.tensors[index].nbytes or 0)])
        case QuantizeRequest(rows=rows, cols=cols):
            return Answered(b'{"seq":@,"ok":{}}', bytes(rows * cols // 32 * _Q8_0_BYTES))
        case DequantizeRequest(rows=rows, cols=cols):
            return Answered(b'{"seq":@,"ok":{}}', bytes(4 * rows * cols))
    return Answered(b'{"seq":@,"unsupported":"no"}')


def _header_line(data: bytes) -> bytes:
    header = walk(data).header
    if any(pair.key == "general.alignment" for pair in header.kv):
        return _REFUSED
    return b'{"seq":@,"ok":' + msgspec.json.encode(header) + b"}"
