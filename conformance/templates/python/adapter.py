"""Puts @NAME@ behind protocol 1 of gguf-conformance: a line of JSON comes in, a line of JSON goes out."""

import json
import logging
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class RejectError(Exception):
    """The input is refused: a verdict on the file. The classes are listed in docs/protocol.md; `other` fits all."""

    def __init__(self, kind: str, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.answer = {"class": kind, "message": message, "at": at}


# ---- The library. Replace all of this part: call yours in `header`, and give what it found in this form. ----------------------

# By the number of a value's type: its name, and the form that `struct` reads it in. Of floats the bits are shown.
NUMBERS = {0: ("u8", "<B"), 1: ("i8", "<b"), 2: ("u16", "<H"), 3: ("i16", "<h"), 4: ("u32", "<I"), 5: ("i32", "<i")}
NUMBERS |= {6: ("f32", "<I"), 7: ("bool", "<B"), 10: ("u64", "<Q"), 11: ("i64", "<q"), 12: ("f64", "<Q")}
STRING, ARRAY = 8, 9


class _Reader:
    """A little reader of the header, so that the adapter works before your library is in it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int, kind: str = "truncated") -> bytes:
        if count > len(self.data) - self.at:
            raise RejectError(kind, f"{count} bytes are due, {len(self.data) - self.at} are left", self.at)
        self.at += count
        return self.data[self.at - count : self.at]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def string(self) -> str | Json:
        return text(self.take(self.u64(), "bad-length"))

    def values(self, number: int, count: int) -> tuple[str, list[Any]]:
        if number == STRING:
            return "str", [self.string() for _ in range(count)]
        if number not in NUMBERS:
            raise RejectError("bad-value-type", f"value type {number}", self.at)
        name, form = NUMBERS[number]
        raw = self.take(count * struct.calcsize(form), "bad-length" if count > 1 else "truncated")
        return name, [_shown(name, value) for (value,) in struct.iter_unpack(form, raw)]

    def pair(self) -> Json:
        key, number = self.string(), self.u32()
        if number == ARRAY:
            items, values = self.values(self.u32(), self.u64())
            return {"key": key, "type": "array", "value": values, "items": items}
        name, (value,) = self.values(number, 1)
        return {"key": key, "type": name, "value": value}

    def tensor(self) -> Json:
        name = self.string()
        dims = [str(self.u64()) for _ in range(self.u32())]
        return {"name": name, "dims": dims, "type": self.u32(), "offset": str(self.u64())}


def _shown(name: str, value: int) -> str:
    if name in {"f32", "f64"}:
        return f"0x{value:0{8 if name == 'f32' else 16}x}"
    return ("true" if value else "false") if name == "bool" else str(value)


def header(request: Json) -> Json:
    """Answer `header`: what stands before the data. What it raises but RejectError is answered by `error`."""
    reader = _Reader(Path(request["path"]).read_bytes())
    if reader.take(4) != b"GGUF":
        raise RejectError("bad-magic", "no GGUF at the start", 0)
    version = reader.u32()
    if version not in {2, 3}:
        raise RejectError("bad-version", f"version {version}", 4)
    count, pairs = reader.u64(), reader.u64()
    kv = [reader.pair() for _ in range(pairs)]
    given = [int(pair["value"]) for pair in kv if pair["key"] == "general.alignment" and pair["type"] == "u32"]
    alignment = given[0] if given else 32
    if alignment == 0 or alignment & (alignment - 1):
        raise RejectError("bad-alignment", f"alignment {alignment}")
    tensors = [reader.tensor() for _ in range(count)]
    offset = reader.at + (-reader.at % alignment if tensors else 0)
    return {"version": version, "alignment": alignment, "data_offset": offset, "kv": kv, "tensors": tensors}


# ---- The protocol. What you add here and to `hello` is asked; what is not there is never asked, nor counted against you. ------


def hello(_request: Json) -> Json:
    """Say who this is, and what may be asked."""
    return {"name": "@NAME@", "version": "0", "language": "python", "protocol": 1, "ops": {"header": {}}}


OPS: dict[str, Callable[[Json], Json]] = {"hello": hello, "header": header}


def text(raw: bytes) -> str | Json:
    """Give bytes as the text that they are, or else by their hex digits."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": raw.hex()}


def answer(line: bytes) -> Json:
    """Give the answer to one line. Only RejectError is a verdict on the input; whatever else is raised is a fault: `error`."""
    seq = 0
    try:
        request = json.loads(line)
        seq, op = request["seq"], request["op"]
        return {"seq": seq, "ok": OPS[op](request)} if op in OPS else {"seq": seq, "unsupported": f"op {op}"}
    except RejectError as reject:
        return {"seq": seq, "reject": reject.answer}
    except Exception as error:
        logging.exception("request %s", seq)  # to stderr, of which the last lines go into a report
        return {"seq": seq, "error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer each line of stdin until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints goes to stderr: stdout is for answers alone
    for line in sys.stdin.buffer:
        answers.write(json.dumps(answer(line)) + "\n")
        answers.flush()


main()
