"""The adapter: by its process where the process matters, else by its loop."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from impl_adapter import ENVIRONMENT, IMPL, ROOT, exchange, once
from impl_build import U8, gguf, pair, sound_file, tensor

import impl
from impl.container import last
from impl.serve import answer, main
from impl.subject import Subject

Json = dict[str, object]


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.gguf"
    path.write_bytes(sound_file())
    return path


def ask(request: Json, subject: Subject | None = None) -> Json:
    said = answer(subject or Subject(), json.dumps({"seq": 5, **request}).encode())
    assert said.pop("seq") == 5
    return said


def test_hello_says_what_is_done() -> None:
    (said,) = exchange([{"seq": 1, "op": "hello", "protocol": 1}])
    ok = said["ok"]
    assert isinstance(ok, dict)
    assert (ok["name"], ok["version"], ok["language"], ok["protocol"]) == ("impl", impl.__version__, "python", 1)
    assert list(ok["ops"]) == ["header", "load", "tensor", "dequantize", "quantize", "dot", "matvec", "write"]
    assert "Q8_1" not in ok["ops"]["quantize"]
    assert {"Q8_1:ref", "Q8_0", "Q8_0:ref", "F32"} <= set(ok["ops"]["quantize"])


def test_answers_come_in_order_and_one_a_line(sound: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = exchange(
        [
            {"seq": 1, "op": "header", "path": str(sound)},
            {"seq": 2, "op": "load", "path": str(sound)},
            {"seq": 3, "op": "tensor", "path": str(sound), "index": 1, "out": str(out)},
            "no json",
            {"seq": 9, "op": "header", "path": str(tmp_path / "none")},
            {"seq": 10, "op": "hello", "protocol": 1},
        ]
    )
    assert [one["seq"] for one in said] == [1, 2, 3, 0, 9, 10]
    assert said[0]["ok"] == said[1]["ok"]
    assert said[2] == {"seq": 3, "ok": {}}
    assert out.read_bytes() == bytes(range(34))
    assert "not a request: JSONDecodeError" in str(said[3]["error"])
    assert "FileNotFoundError" in str(said[4]["error"])


def test_a_refused_file_is_a_reject_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(gguf([pair(b"", U8, b"\0")]))
    assert ask({"op": "header", "path": str(path)}) == {
        "reject": {"class": "bad-key", "message": "the key is empty", "at": 32, "field": "kv[0].key"}
    }


def test_load_asks_for_the_data_and_header_does_not(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(gguf((), [tensor(b"t", [8])], data=bytes(31)))
    assert "ok" in ask({"op": "header", "path": str(path)})
    assert ask({"op": "load", "path": str(path)})["reject"]["class"] == "missing-data"
    refused = ask({"op": "tensor", "path": str(path), "index": 0, "out": str(tmp_path / "out")})
    assert refused["reject"]["field"] == "tensors[0].data"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("index", [-1, 3])
def test_a_tensor_that_is_not_there(sound: Path, tmp_path: Path, index: int) -> None:
    said = ask({"op": "tensor", "path": str(sound), "index": index, "out": str(tmp_path / "out")})
    assert said == {"reject": {"class": "bad-input", "message": f"tensor {index} of a file that has 3"}}


def numbers(tmp_path: Path, name: str, values: np.ndarray) -> str:
    path = tmp_path / name
    values.tofile(path)
    return str(path)


def test_blocks_go_by_files(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    x, w, y, s, v = numbers(tmp_path, "x", rows), *(str(tmp_path / name) for name in "wysv")
    one = numbers(tmp_path, "one", rows[1])
    shape: Json = {"type": "Q5_1", "rows": 3, "cols": 64}
    said = exchange(
        [
            {"seq": 1, "op": "quantize", **shape, "in": x, "imatrix": None, "variant": None, "out": w},
            {"seq": 2, "op": "dequantize", **shape, "in": w, "out": y},
            {"seq": 3, "op": "dot", **shape, "weights": w, "x": x, "variant": None, "out": s},
            {"seq": 4, "op": "matvec", **shape, "weights": w, "x": one, "variant": None, "out": v},
        ]
    )
    assert [answer.get("ok") for answer in said] == [{}] * 4
    blocks = impl.quantize("Q5_1", rows)
    assert (np.fromfile(w, np.uint8).reshape(3, -1) == blocks).all()
    assert (np.fromfile(y, np.float32).reshape(3, 64) == impl.dequantize("Q5_1", blocks, (3, 64))).all()
    assert (np.fromfile(s, np.float32) == impl.dot("Q5_1", blocks, rows)).all()
    assert (np.fromfile(v, np.float32) == impl.dot("Q5_1", blocks, rows[[1, 1, 1]])).all()


def test_the_reference_variant_gives_the_same_bytes(tmp_path: Path) -> None:
    x = numbers(tmp_path, "x", np.arange(32, dtype=np.float32))
    said = [
        ask(
            {
                "op": "quantize",
                "type": "Q8_0",
                "rows": 1,
                "cols": 32,
                "in": x,
                "variant": variant,
                "out": str(tmp_path / str(variant)),
            }
        )
        for variant in (None, "ref")
    ]
    assert said == [{"ok": {}}] * 2
    assert (tmp_path / "None").read_bytes() == (tmp_path / "ref").read_bytes()


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"op": "read"}, "op 'read'"),
        ({"op": "respond"}, "op 'respond'"),
        ({"op": "quantize", "type": "Q8_1"}, "quantize of Q8_1, variant None, is not done here"),
        ({"op": "quantize", "type": "F32", "variant": "ref"}, "variant ref"),
        ({"op": "quantize", "type": "Q8_0", "variant": "simd"}, "of this variant are: none"),
        ({"op": "dequantize", "type": "Q8_1"}, "dequantize of Q8_1 is not done here"),
        ({"op": "dequantize", "type": "Q9"}, "unknown ggml type 'Q9'"),
        ({"op": "dot", "type": "Q8_0", "variant": "simd"}, "dot of Q8_0:simd is not done here"),
        ({"op": "matvec", "type": "Q8_0", "variant": "f32"}, "matvec of Q8_0:f32 is not done here"),
    ],
)
def test_what_is_not_done_is_unsupported(tmp_path: Path, request_: Json, says: str) -> None:
    x = numbers(tmp_path, "x", np.zeros(32, np.float32))
    said = ask({"rows": 1, "cols": 32, "in": x, "x": x, "weights": x, "out": x, **request_})
    assert says in str(said["unsupported"])


@pytest.mark.parametrize(("kind", "counts"), [("Q4_0", True), ("Q8_0", False)])
def test_an_imatrix_counts_where_it_does_in_ggml(tmp_path: Path, kind: str, counts: bool) -> None:
    rng = np.random.default_rng(8)
    x = numbers(tmp_path, "x", rng.standard_normal(32).astype(np.float32))
    imatrix = numbers(tmp_path, "imatrix", rng.uniform(0, 9, 32).astype(np.float32))
    request: Json = {"op": "quantize", "type": kind, "rows": 1, "cols": 32, "in": x}
    assert ask({**request, "out": str(tmp_path / "plain")}) == {"ok": {}}
    assert ask({**request, "imatrix": imatrix, "out": str(tmp_path / "weighted")}) == {"ok": {}}
    assert ((tmp_path / "plain").read_bytes() != (tmp_path / "weighted").read_bytes()) == counts


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"op": "quantize", "rows": 2}, "holds 128 bytes, but float32 of shape (2, 32) takes 256"),
        ({"op": "quantize", "rows": -1}, "-1 rows of 32 elements"),
        ({"op": "quantize", "cols": 0}, "1 rows of 0 elements"),
        ({"op": "quantize", "rows": 2, "cols": 16}, "a row of 16 elements is no multiple of 32"),
        ({"op": "quantize", "imatrix": "y"}, "holds 68 bytes, but float32 of shape (32,) takes 128"),
        ({"op": "dequantize", "rows": 2**60}, "128 bytes of Q8_0, but the shape needs"),
        ({"op": "dot", "weights": "y"}, "68 bytes of Q8_0, but the shape needs 1 blocks, 34 bytes"),
        ({"op": "matvec", "weights": "y"}, "holds 2 rows of 32 elements, not 1"),
        ({"op": "matvec", "weights": "y", "cols": 96}, "holds 128 bytes, but float32 of shape (96,) takes 384"),
        ({"op": "matvec", "weights": "x"}, "128 bytes are no whole rows of 32 elements of Q8_0, which take 34 bytes each"),
    ],
)
def test_what_does_not_fit_is_a_bad_input(tmp_path: Path, request_: Json, says: str) -> None:
    x, y = numbers(tmp_path, "x", np.zeros(32, np.float32)), numbers(tmp_path, "y", np.zeros(17, np.float32))
    named = {key: {"x": x, "y": y}.get(str(value), value) for key, value in request_.items()}
    said = ask({"type": "Q8_0", "rows": 1, "cols": 32, "in": x, "x": x, "out": str(tmp_path / "out"), **named})["reject"]
    assert isinstance(said, dict)
    assert said["class"] == "bad-input"
    assert says in said["message"]


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"3", b'{"seq":1}', b'{"op":"header"}', b"\xff", b"[" * 100_000])
def test_a_line_that_is_no_request_is_answered(line: bytes) -> None:
    assert str(answer(Subject(), line)["error"]).startswith("not a request: ")


def test_a_request_without_its_fields_is_an_error() -> None:
    assert ask({"op": "header"}) == {"error": "KeyError: 'path'"}


@pytest.mark.parametrize("fault", [MemoryError("no more"), RuntimeError("two\nlines")])
def test_a_fault_of_its_own_is_an_error_in_one_line(fault: Exception) -> None:
    class Faulty(Subject):
        def header(self, _request: Json) -> Json:
            raise fault

    said = ask({"op": "header"}, Faulty())
    assert said == {"error": f"{type(fault).__name__}: {' '.join(str(fault).split())}"}


class TestLastFile:
    """One file stays open for its tensors; a file that has changed is read anew."""

    @staticmethod
    def _tensor(subject: Subject, path: Path) -> bytes:
        out = path.with_name("out")
        assert ask({"op": "tensor", "path": str(path), "index": 0, "out": str(out)}, subject) == {"ok": {}}
        return out.read_bytes()

    @staticmethod
    def _write(path: Path, byte: int) -> None:
        path.write_bytes(gguf((), [tensor(b"t", [byte], 24)], data=bytes([byte]) * 32))
        os.utime(path, ns=(0, time.time_ns() - 10**9 + byte))

    def test_a_settled_file_is_opened_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        opened: list[str] = []
        keep = last.open_file
        monkeypatch.setattr(last, "open_file", lambda path, **more: opened.append(path) or keep(path, **more))
        path, subject = tmp_path / "a.gguf", Subject()
        self._write(path, 1)
        assert [self._tensor(subject, path) for _ in range(3)] == [b"\1"] * 3
        assert len(opened) == 1
        ask({"op": "header", "path": str(path)}, subject)
        assert len(opened) == 2

    def test_a_file_that_changed_is_read_anew(self, tmp_path: Path) -> None:
        path, subject = tmp_path / "a.gguf", Subject()
        self._write(path, 1)
        assert self._tensor(subject, path) == b"\1"
        self._write(path, 2)
        assert self._tensor(subject, path) == b"\2\2"

    def test_another_file_of_the_same_size_and_time(self, tmp_path: Path) -> None:
        subject = Subject()
        for byte, name in ((1, "a.gguf"), (2, "b.gguf")):
            self._write(tmp_path / name, byte)
            assert self._tensor(subject, tmp_path / name) == bytes([byte] * byte)

    def test_a_young_file_is_never_trusted(self, tmp_path: Path) -> None:
        """It can change its header within one tick of the clock, at the same size."""
        path, subject, soon = tmp_path / "a.gguf", Subject(), time.time_ns() + 10**10
        for file in (gguf((), [tensor(b"t", [1], 24)], data=b"\1" * 32), gguf((), [tensor(b"u", [2], 24)], data=b"\2" * 32)):
            path.write_bytes(file)
            os.utime(path, ns=(soon, soon))  # the same tick, and not to be trusted for as long as the test takes
            said = self._tensor(subject, path)
        assert said == b"\2\2"

    @pytest.mark.parametrize(("age", "said"), [(0, b"\2\2"), (50_000_000, b"\2\2"), (500_000_000, b"\2")])
    def test_how_old_a_file_has_to_be(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: int, said: bytes) -> None:
        """Half a second on, its old header serves, though a clock was turned to hide a new one; a tick on it does not."""
        path, subject, written = tmp_path / "a.gguf", Subject(), 10**18
        monkeypatch.setattr(last.time, "time_ns", lambda: written + age)
        for byte in (1, 2):
            path.write_bytes(gguf((), [tensor(b"t", [byte], 24)], data=bytes([byte]) * 32))
            os.utime(path, ns=(written, written))
            answered = self._tensor(subject, path)
        assert answered == said


class TestOnce:
    """Used from a shell."""

    def test_header_and_load_print_the_header(self, sound: Path) -> None:
        code, out, err = once("header", str(sound))
        assert (code, err, out.count("\n")) == (0, "", 1)
        assert once("load", str(sound)) == (0, out, "")
        assert json.loads(out)["tensors"][1]["name"] == "b.weight"

    def test_a_reject_is_printed_with_exit_1(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.gguf"
        path.write_bytes(b"GGUF")
        code, out, err = once("header", str(path))
        assert (code, err) == (1, "")
        said = json.loads(out)
        assert (said["class"], said["field"], said["at"]) == ("truncated", "version", 4)

    @pytest.mark.parametrize("arguments", [["nonsense"], ["header"], ["header", "a", "b"], ["quantize", "a"]])
    def test_wrong_usage_is_exit_2_with_a_line_of_help(self, arguments: list[str]) -> None:
        code, out, err = once(*arguments)
        assert (code, out) == (2, "")
        assert err.splitlines()[0] == f"unknown arguments: {' '.join(arguments)}"
        assert err.splitlines()[1].startswith("usage: python -m impl ")

    @pytest.mark.parametrize(("path", "why"), [("none.gguf", "No such file or directory"), (".", "Is a directory")])
    def test_a_file_that_cannot_be_read_is_wrong_usage_too(self, path: str, why: str) -> None:
        code, out, err = once("header", path)
        assert (code, out, err.splitlines()[0]) == (2, "", f"cannot read {path}: {why}")

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "x.gguf")
        code, out, err = once("header", str(tmp_path / "x.gguf"))
        assert (code, out) == (2, "")
        assert "it is a pipe: copy what it gives to a file" in err

    def test_a_fault_of_its_own_is_exit_3(self, capsys: pytest.CaptureFixture[str], sound: Path) -> None:
        class Faulty(Subject):
            def header(self, _request: Json) -> Json:
                raise MemoryError

        assert main(Faulty(), ["header", str(sound)]) == 3
        assert capsys.readouterr().err == "MemoryError:\n"


def test_a_reader_that_leaves_ends_it_quietly(sound: Path) -> None:
    process = subprocess.Popen(IMPL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert process.stdin and process.stdout and process.stderr
    process.stdout.close()
    process.stdin.write(json.dumps({"seq": 1, "op": "header", "path": str(sound)}).encode() + b"\n")
    process.stdin.close()
    assert process.wait(10) == 3
    assert process.stderr.read() == b""
    process.stderr.close()


def test_it_ends_well_where_stderr_is_closed() -> None:
    asked = 'echo \'{"seq": 1, "op": "hello"}\' | "$0" -m impl 2>&-'
    done = subprocess.run(["/bin/sh", "-c", asked, sys.executable], env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["seq"]) == (0, 1)


def test_reading_a_header_does_not_wait_for_numpy(sound: Path) -> None:
    imports = "import sys; from impl.serve import main; from impl.subject import Subject"
    script = f"{imports}; main(Subject(), ['header', {str(sound)!r}]); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)


def test_importing_the_package_does_not_load_the_compiler() -> None:
    script = "import sys, impl; impl.quantize; impl.open; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, check=True)


def test_the_package_stands_on_numpy_numba_and_the_standard_library_alone() -> None:
    allowed = {*sys.stdlib_module_names, "numpy", "numba", "impl"}
    imported = set()
    for path in (ROOT / "impl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
    assert "struct" in imported
    assert imported <= allowed
