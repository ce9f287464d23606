"""The reference with one fault of plumbing: ``python plumbing.py FAULT``. Each is one that an adapter has had, or could have.

Kept apart from the other fakes, which break at one request whatever it is: these break one rule, wherever it counts.
"""

from __future__ import annotations

import json
import os
import re
import select
import sys
import time
from pathlib import Path

from impl.serve import answer, to_json
from impl.subject import Subject

SUBJECT = Subject()
STATE: dict[str, object] = {"path": "", "times": 0, "refusal": None}
KNOWN = {"seq", "op", "protocol", "path", "index", "type", "rows", "cols", "in", "imatrix", "variant", "weights", "x", "out"}
KNOWN |= {"description", "data"}
TYPES_OF_INTEGERS = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"}


def sound(request):
    return answer(SUBJECT, json.dumps(request).encode())


# What is done to a request before it is answered.


def field(name, change):
    def fault(line):
        request = json.loads(line)
        if name in request:
            request[name] = change(request[name])
        return to_json(sound(request))

    return fault


def first_path_in_the_line(line):
    request = json.loads(line)
    found = re.search(rb'"path":("(?:[^"\\]|\\.)*")', line)
    return to_json(sound({**request, "path": json.loads(found[1])} if found else request))


def strict(line):
    request = json.loads(line)
    unknown = sorted(set(request) - KNOWN) or [
        name for name in ("imatrix", "variant") if name in request and request["op"] == "header"
    ]
    return to_json({"seq": request["seq"], "error": f"unknown fields {unknown}"} if unknown else sound(request))


def null_variant_is_one(line):
    request = json.loads(line)
    return to_json({"seq": request["seq"], "unsupported": "variant None"} if "variant" in request else sound(request))


def null_imatrix_is_a_file(line):
    request = json.loads(line)
    named = request["op"] == "quantize" and "imatrix" in request
    return to_json({"seq": request["seq"], "error": "no such file: None"} if named else sound(request))


# What comes of a path that is no file.


def of_what_is_no_file(is_it, do):
    def fault(line):
        request = json.loads(line)
        return do(request) if "path" in request and is_it(Path(request["path"])) else to_json(sound(request))

    return fault


def missing(path):
    return not path.exists()


def dies(_request):
    os._exit(1)


def keeps_silent(_request):
    time.sleep(3600)


def gives_an_empty_header(request):
    header = {"version": 3, "alignment": 32, "data_offset": 0, "kv": [], "tensors": []}
    return to_json({"seq": request["seq"], "ok": header})


# What comes of many requests.


def worn_out(line):
    request = json.loads(line)
    STATE["times"] = STATE["times"] + 1 if request.get("path") == STATE["path"] else 0
    STATE["path"] = request.get("path")
    return to_json({"seq": request["seq"], "error": "too many open files"} if STATE["times"] > 250 else sound(request))


def remembers_a_refusal(line):
    given = sound(json.loads(line))
    kept, STATE["refusal"] = STATE["refusal"], given.get("reject")
    return to_json({"seq": given["seq"], "reject": kept} if kept else given)


def exits_after_a_refusal(line):
    given = sound(json.loads(line))
    if "reject" in given:
        os._exit(1)
    return to_json(given)


# What is done to an answer.


def header(change):
    """Change the header of an answer that is one."""

    def fault(line):
        given = sound(json.loads(line))
        if "kv" in given.get("ok", {}):
            change(given["ok"])
        return to_json(given)

    return fault


def values(change):
    """Change each value that is no list, given its type."""

    def each(found):
        for pair in found["kv"]:
            if pair["type"] == "array":
                pair["value"] = [change(pair.get("items"), one) for one in pair["value"]]
            else:
                pair["value"] = change(pair["type"], pair["value"])

    return header(each)


def through_a_double(kind, value):
    return str(int(float(value))) if kind in TYPES_OF_INTEGERS else value


def quiet_nan(kind, value):
    return (
        {"0x7fc12345": "0x7fc00000", "0x7ff8000000012345": "0x7ff8000000000000"}.get(value, value)
        if kind in {"f32", "f64"}
        else value
    )


def no_sign_of_zero(kind, value):
    return (
        {"0x80000000": "0x00000000", "0x8000000000000000": "0x0000000000000000"}.get(value, value)
        if kind in {"f32", "f64"}
        else value
    )


def true_itself(kind, value):
    return value == "true" if kind == "bool" else value


def replaced(_kind, value):
    return bytes.fromhex(value["hex"]).decode("utf-8", "replace") if isinstance(value, dict) else value


def no_empty_arrays(found):
    found["kv"] = [pair for pair in found["kv"] if pair["value"] != []]


def null_for_an_empty_list(found):
    found["kv"] = found["kv"] or None


def dims_reversed(found):
    for tensor in found["tensors"]:
        tensor["dims"].reverse()


def other_line(change):
    """Change the line that is printed."""
    return lambda line: change(to_json(sound(json.loads(line))))


# What is done to an output file.


def output(change):
    """Change what stands in the output file: ``change`` takes the request, what stood there and what was written."""

    def fault(line):
        request = json.loads(line)
        out = Path(request.get("out", "/nowhere"))
        before = out.read_bytes() if out.exists() else b""
        given = sound(request)
        if "ok" in given and "out" in request:
            out.write_bytes(change(request, before, out.read_bytes()))
        return to_json(given)

    return fault


def over_what_stood_there(_request, before, written):
    return written + before[len(written) :]


def first_row_alone(request, _before, written):
    return written[: len(written) // request.get("rows", 1)]


def last_row_first(request, _before, written):
    width = len(written) // request.get("rows", 1)
    return b"".join(written[at : at + width] for at in range(len(written) - width, -1, -width))


def with_padding(request, _before, written):
    return written + bytes(-len(written) % 32) if request["op"] == "tensor" else written


FAULTS = {
    "path-ends-at-space": field("path", lambda path: path.partition(" ")[0]),
    "path-without-quotes": field("path", lambda path: path.replace('"', "")),
    "path-without-controls": field("path", lambda path: path.replace("\n", "n")),
    "path-through-a-shell": field("path", os.path.expandvars),
    "path-in-ascii": field("path", lambda path: path.encode("ascii", "replace").decode()),
    "path-in-a-buffer": field("path", lambda path: path[:1024]),
    "in-ends-at-space": field("in", lambda path: path.partition(" ")[0]),
    "first-path-in-the-line": first_path_in_the_line,
    "strict": strict,
    "null-variant-is-one": null_variant_is_one,
    "null-imatrix-is-a-file": null_imatrix_is_a_file,
    "missing-dies": of_what_is_no_file(missing, dies),
    "missing-silent": of_what_is_no_file(missing, keeps_silent),
    "missing-is-empty": of_what_is_no_file(missing, gives_an_empty_header),
    "folder-dies": of_what_is_no_file(Path.is_dir, dies),
    "worn-out": worn_out,
    "remembers-a-refusal": remembers_a_refusal,
    "exits-after-a-refusal": exits_after_a_refusal,
    "through-a-double": values(through_a_double),
    "quiet-nan": values(quiet_nan),
    "no-sign-of-zero": values(no_sign_of_zero),
    "true-itself": values(true_itself),
    "replaced": values(replaced),
    "no-empty-arrays": header(no_empty_arrays),
    "null-for-an-empty-list": header(null_for_an_empty_list),
    "dims-reversed": header(dims_reversed),
    "control-as-it-is": other_line(lambda line: line.replace(b"\\n", b"\n")),
    "nul-as-it-is": other_line(lambda line: line.replace(b"\\u0000", b"\0")),
    "line-of-a-mebibyte": other_line(lambda line: line[: 1 << 20]),
    "line-of-a-pipe": other_line(lambda line: line[: 1 << 16]),
    "over-what-stood-there": output(over_what_stood_there),
    "first-row-alone": output(first_row_alone),
    "last-row-first": output(last_row_first),
    "with-padding": output(with_padding),
}


def say(line):
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def serve(fault):
    for line in sys.stdin.buffer:
        say(fault(line))


def drop_what_is_read_ahead():
    """Take what a read gives for one request."""
    while taken := os.read(0, 1 << 16):
        say(to_json(sound(json.loads(taken.partition(b"\n")[0]))))


def answer_the_last_first():
    """Answer what has come, the last of it first. What comes at once is in the first read: the wait for more is short."""
    rest = b""
    while taken := os.read(0, 1 << 16):
        while select.select([0], [], [], 0.001)[0] and (more := os.read(0, 1 << 16)):
            taken += more
        *lines, rest = (rest + taken).split(b"\n")
        for line in reversed(lines):
            say(to_json(sound(json.loads(line))))


LOOPS = {"drop-what-is-read-ahead": drop_what_is_read_ahead, "answer-the-last-first": answer_the_last_first}

if __name__ == "__main__":
    name = sys.argv[1]
    LOOPS[name]() if name in LOOPS else serve(FAULTS[name])
