"""The helper for adapters: its loop, its one-shot use, and what it does when the implementation misbehaves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conformance.adapter import PROTOCOL, Adapter, Header, Identity, Ops, Reject, Unsupported, View
from conformance.values import Pair, TensorInfo

ROOT = Path(__file__).parents[1]
HEADER = Header(version=3, alignment=32, data_offset=96, kv=[Pair("k", "u8", "7")], tensors=[TensorInfo("t", 0, ["4"], "0", "16")])

TOY = """
import ctypes, os, sys
from conformance.adapter import Adapter, Header, Identity, Ops, Reject, Unsupported, View

def header(request):
    print("read by print")
    os.write(1, b"read by os.write\\n")
    ctypes.CDLL(None).puts(b"read by puts")
    ctypes.CDLL(None).fflush(None)
    name = os.path.basename(request.path)
    if name == "stdin":
        print(repr(sys.stdin.read()), repr(os.read(0, 10)))
    if name == "bad":
        raise Reject("bad-magic", "not\\na GGUF", at=0, field="magic")
    if name == "broken":
        raise RuntimeError("two\\nlines and \\udcff")
    if name == "exotic":
        raise Unsupported("exotic files")
    if name == "nothing":
        return None
    return Header(version=3, alignment=32, data_offset=24, kv=[], tensors=[])

def dequantize(request):
    open(request.out, "wb").write(open(request.input, "rb").read())

identity = Identity(name="toy", version="1", language="python", protocol=1,
                    ops=Ops(header=View(), dequantize=("Q8_0",), quantize=("Q8_0:ref",)))
if __name__ == "__main__":
    sys.exit(Adapter(identity, {"header": header, "dequantize": dequantize, "quantize": dequantize}).main(sys.argv[1:]))
"""


@pytest.fixture
def toy(tmp_path):
    """Give a function that runs the toy adapter to its end."""
    script = tmp_path / "toy.py"
    script.write_text(TOY)

    def run(*arguments, stdin=b"", **options):
        env = {"PYTHONPATH": str(ROOT), "PATH": ""}
        command = [sys.executable, str(script), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, env=env, timeout=30, check=False, **options)

    return run


def lines(*requests):
    return b"".join(json.dumps(request).encode() + b"\n" for request in requests)


def answers(run):
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_what_the_implementation_prints_goes_to_stderr(toy):
    run = toy(stdin=lines({"seq": 1, "op": "header", "path": "good"}))
    assert answers(run) == [{"seq": 1, "ok": {"version": 3, "alignment": 32, "data_offset": 24, "kv": [], "tensors": []}}]
    assert {b"read by print", b"read by os.write", b"read by puts"} <= set(run.stderr.splitlines())
    assert run.returncode == 0


def test_outcomes(toy, tmp_path):
    (tmp_path / "in").write_bytes(b"data")
    block = {"type": "Q8_0", "rows": 1, "cols": 32, "in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    run = toy(
        stdin=lines(
            {"seq": 1, "op": "hello", "protocol": 1},
            {"seq": 2, "op": "header", "path": "bad"},
            {"seq": 3, "op": "header", "path": "broken"},
            {"seq": 4, "op": "header", "path": "exotic"},
            {"seq": 5, "op": "header", "path": "nothing"},
            {"seq": 6, "op": "dequantize", **block},
            {"seq": 7, "op": "dequantize", **block, "type": "Q4_0"},
            {"seq": 8, "op": "quantize", **block},
            {"seq": 9, "op": "quantize", **block, "variant": "ref"},
            {"seq": 10, "op": "load", "path": "good"},
            {"seq": 11, "op": "fly"},
            {"seq": 12, "op": "header"},
            {"seq": 13, "op": "header", "path": "good", "new in protocol 1.1": True},
        )
    )
    hello, *rest = answers(run)
    assert hello["ok"]["name"] == "toy"
    assert hello["ok"]["ops"] == {"header": {}, "dequantize": ["Q8_0"], "quantize": ["Q8_0:ref"]}
    assert rest[:-1] == [
        {"seq": 2, "reject": {"class": "bad-magic", "message": "not a GGUF", "at": 0, "field": "magic"}},
        {"seq": 3, "error": "RuntimeError: two lines and ?"},
        {"seq": 4, "unsupported": "exotic files"},
        {"seq": 5, "error": "TypeError: the handler of header returned None where a Header is due"},
        {"seq": 6, "ok": {}},
        {"seq": 7, "unsupported": "dequantize of Q4_0"},
        {"seq": 8, "unsupported": "quantize of Q8_0"},
        {"seq": 9, "ok": {}},
        {"seq": 10, "unsupported": "op load"},
        {"seq": 11, "unsupported": "op 'fly'"},
        {"seq": 12, "error": "not a request of op header: Object missing required field `path`"},
    ]
    assert "ok" in rest[-1]
    assert (tmp_path / "out").read_bytes() == b"data"
    assert b"Traceback" in run.stderr


@pytest.mark.parametrize("line", [b"not json\n", b"\n", b"[1]\n", b'{"seq":"x","op":"hello"}\n', b'"\xff\xfe"\n', b'{"seq":1,'])
def test_a_line_that_is_no_request(toy, line):
    run = toy(stdin=line + b"\n" + lines({"seq": 2, "op": "header", "path": "good"}))
    first, *_, last = answers(run)
    assert first["seq"] == 0
    assert first["error"].startswith("not a request")
    assert "ok" in last


def test_answers_come_at_once_and_requests_are_not_eaten(tmp_path):
    """The next request is written only after the answer to the last one was read.

    The implementation reads its standard input to the end; if that were the requests', it would wait for us, and we for it.
    """
    script = tmp_path / "toy.py"
    script.write_text(TOY)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(ROOT)},
    ) as process:
        patience = threading.Timer(20, process.kill)
        patience.start()
        for seq in range(1, 4):
            process.stdin.write(lines({"seq": seq, "op": "header", "path": "stdin"}))
            process.stdin.flush()
            assert json.loads(process.stdout.readline() or b"{}").get("seq") == seq
        process.stdin.close()
        assert process.wait(10) == 0
        patience.cancel()


@pytest.mark.parametrize(
    ("arguments", "code", "stdout", "stderr"),
    [
        (("header", "good"), 0, {"version": 3, "alignment": 32, "data_offset": 24, "kv": [], "tensors": []}, b"read by puts"),
        (("header", "bad"), 1, {"class": "bad-magic", "message": "not a GGUF", "at": 0, "field": "magic"}, b""),
        (("header", "exotic"), 2, None, b"unsupported: exotic files"),
        (("load", "good"), 2, None, b"unsupported: op load"),
        (("header", "broken"), 3, None, b"RuntimeError: two lines"),
        (("header",), 2, None, b"usage: [serve] | hello | header FILE | load FILE"),
        (("header", "a", "b"), 2, None, b"unknown arguments: header a b"),
        (("--help",), 2, None, b"usage:"),
    ],
)
def test_once(toy, arguments, code, stdout, stderr):
    run = toy(*arguments)
    assert run.returncode == code
    assert (json.loads(run.stdout) if run.stdout else None) == stdout
    assert stderr in run.stderr


def test_hello_once(toy):
    run = toy("hello")
    assert (run.returncode, json.loads(run.stdout)["name"]) == (0, "toy")


def test_a_reader_that_goes_away_gets_no_traceback(toy, tmp_path):
    script = tmp_path / "toy.py"
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(ROOT)},
    ) as process:
        process.stdout.close()
        process.stdin.write(lines({"seq": 1, "op": "header", "path": "good"}))
        process.stdin.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(10) == 3


def identity(**ops):
    return Identity(name="made", version="1", language="python", protocol=PROTOCOL, ops=Ops(**ops))


def test_an_identity_may_be_a_function_that_is_called_once():
    calls = []

    def who():
        calls.append(1)
        return identity(header=View())

    adapter = Adapter(who, {"header": lambda _request: HEADER})
    assert not calls
    for seq in (1, 2):
        adapter.answer(lines({"seq": seq, "op": "hello", "protocol": 1}))
        adapter.answer(lines({"seq": seq, "op": "header", "path": ""}))
    assert calls == [1]


def test_an_identity_that_fails_is_an_error():
    def who():
        raise OSError("no library")

    adapter = Adapter(who, {})
    for request in ({"seq": 1, "op": "hello", "protocol": 1}, {"seq": 1, "op": "header", "path": ""}):
        assert json.loads(adapter.answer(lines(request))) == {"seq": 1, "error": "OSError: no library"}


def test_what_is_declared_needs_a_handler():
    adapter = Adapter(identity(header=View(), dot=("Q8_0",), tensor=View()), {"header": lambda _request: HEADER})
    with pytest.raises(ValueError, match="declared without a handler: tensor, dot"):
        _ = adapter.identity
    with pytest.raises(ValueError, match="no such op: dequantise"):
        Adapter(identity(), {"dequantise": lambda _request: None})


def test_a_handler_without_a_declaration_is_not_asked():
    adapter = Adapter(identity(), {"header": lambda _request: HEADER})
    assert json.loads(adapter.answer(b'{"seq":4,"op":"header","path":"x"}')) == {"seq": 4, "unsupported": "op header"}


def test_reject_classes_are_those_of_the_protocol():
    with pytest.raises(ValueError, match="reject class 'bad-luck' does not exist; one of: truncated, bad-magic"):
        Reject("bad-luck")
    assert str(Unsupported("why")) == "why"


def test_it_starts_without_what_is_heavy():
    heavy = ("numpy", "yaml", "click", "jsonschema", "importlib.metadata")
    script = f"import sys, conformance.adapter; sys.exit(' '.join(m for m in {heavy} if m in sys.modules) or 0)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (run.returncode, run.stderr) == (0, "")
