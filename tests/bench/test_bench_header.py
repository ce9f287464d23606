"""Opening a file, measured: who takes part in which round, what is counted, and what the table says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import impl
from conformance.bench import child, header, header_command
from conformance.bench.child import Cost, between_marks
from conformance.bench.header import C_FILE, C_MEMORY, OURS, Opened, made_files, rounds
from conformance.cases.build import build
from conformance.cli import main
from conformance.subjects.authorities.llama_cpp.library import package_folder

live = pytest.mark.skipif(package_folder() is None, reason="needs the live library: pip install 'gguf-conformance[live]'")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "small.gguf"
    made.write_bytes(
        build({"kv": [{"key": "a", "array": {"str": ["x", "yz"]}}], "tensors": [{"name": "t", "type": "F32", "dims": [4]}]}).data
    )
    return made


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []

    def __call__(self) -> float:
        return self.now

    def turn(self, who: str, seconds: float) -> header.Turn:
        def work() -> None:
            self.done.append(who)
            self.now += seconds

        return work


def test_all_do_each_round_and_who_begins_changes() -> None:
    clock = Clock()
    times = rounds({"a": clock.turn("a", 1), "b": clock.turn("b", 2), "c": clock.turn("c", 3)}, 0, set(), clock)
    assert "".join(clock.done) == "abcbcacababcbca"
    assert times == {"a": (1.0,) * 5, "b": (2.0,) * 5, "c": (3.0,) * 5}


def test_the_slow_one_takes_part_as_long_as_it_leaves_the_others_time() -> None:
    clock = Clock()
    times = rounds({"a": clock.turn("a", 1), "slow": clock.turn("slow", 10)}, 50, {"slow"}, clock)
    assert len(times["slow"]) == 2  # after the second round it has had 20 of 50 seconds, more than its share
    assert len(times["a"]) == 50
    clock = Clock()
    assert len(rounds({"a": clock.turn("a", 1), "slow": clock.turn("slow", 99)}, 0, {"slow"}, clock)["slow"]) == 1


def test_ratios_are_taken_round_by_round() -> None:
    row = Opened("x", 1, 1, True, {OURS: (1.0, 2.0, 3.0), C_FILE: (2.0, 2.0, 12.0)})
    assert (row.ratios(C_FILE), row.median(OURS)) == ((0.5, 1.0, 0.25), 2.0)


def test_calls_between_the_marks_are_counted() -> None:
    trace = [
        '7 openat(AT_FDCWD, "early") = 3',
        f'7 access("{child.BEGIN}", F_OK) = -1 ENOENT',
        '7 openat(AT_FDCWD, "x") = 3',
        "7 read(3,  <unfinished ...>",
        "8 futex(0x1) = 0",
        '7 <... read resumed> "GGUF", 4) = 4',
        "7 --- SIGCHLD {si_signo=SIGCHLD} ---",
        f'7 access("{child.END}", F_OK) = -1 ENOENT',
        "7 close(3) = 0",
    ]
    assert between_marks(trace) == 3
    assert between_marks(trace[:4]) == "the trace has no end"
    assert between_marks(trace[5:]) == "the trace has an end and no beginning"


@pytest.mark.skipif(shutil.which("strace") is None, reason=child.NO_STRACE)
def test_the_reference_asks_the_system_at_most_twenty_times(path: Path) -> None:
    calls = child.count_calls("impl", path)
    assert isinstance(calls, int), calls
    assert 3 <= calls <= 20  # it opens, maps and closes at least


def test_without_strace_it_says_how_to_get_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert child.count_calls("impl", path) == child.NO_STRACE


def test_a_child_that_fails_is_told(tmp_path: Path) -> None:
    assert "no-such-file" in str(child.peak_growth("impl", tmp_path / "no-such-file"))


def test_memory_grows_with_the_header_not_with_the_data(tmp_path: Path) -> None:
    strings, sparse = made_files(tmp_path)
    grown = [child.peak_growth("impl", made) for made in (strings, sparse)]
    assert all(isinstance(each, int) for each in grown), grown
    assert 8_000_000 < int(grown[0]) < 60_000_000  # 8 bytes an end, and the 20 MB of the header that it walked over
    assert int(grown[1]) < 4_000_000


def test_the_made_files_are_what_they_are_called(tmp_path: Path) -> None:
    strings, sparse = made_files(tmp_path)
    words = impl.open(strings).metadata["words"]
    assert isinstance(words, list)
    assert (len(words), words[-1]) == (1_000_000, "token 999999")
    assert sparse.stat().st_size > 100 * 10**9
    assert sparse.stat().st_blocks * 512 < 10**6
    impl.open(sparse, full=True)


@live
def test_a_file_is_measured_and_told(path: Path) -> None:
    done = CliRunner().invoke(main, ["bench", "header", str(path), "--seconds", "0", "--json"])
    assert done.exit_code == 0, done.output
    (facts,) = json.loads(done.stdout)
    assert (facts["name"], facts["bytes"], facts["same"]) == ("small.gguf", path.stat().st_size, True)
    assert facts["header"] == impl.open(path).data_offset
    assert {name: len(times) for name, times in facts["seconds"].items()}.items() >= {OURS: 5, C_FILE: 5, C_MEMORY: 5}.items()
    assert "gguf-py" in facts["seconds"]
    told = CliRunner().invoke(main, ["bench", "header", str(path), "--seconds", "0", "--no-gguf-py"])
    assert "small.gguf" in told.stdout
    assert told.stdout.rstrip().splitlines()[2].endswith("same")


@live
def test_readers_that_find_different_headers_are_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header, "_same", lambda *_: False)
    done = CliRunner().invoke(main, ["bench", "header", str(path), "--seconds", "0", "--no-gguf-py"])
    assert done.exit_code == 1
    assert "DIFFERS" in done.stdout


@live
@pytest.mark.parametrize(("data", "shown"), [(b"GGML", "not with 'GGUF'"), (None, "No such file")])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, data: bytes | None, shown: str) -> None:
    other = tmp_path / "x.gguf"
    if data:
        other.write_bytes(data)
    done = CliRunner().invoke(main, ["bench", "header", str(other)])
    assert done.exit_code == 2
    assert shown in done.stderr


@live
def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["bench", "header", str(tmp_path)])
    assert done.exit_code == 2, done.output
    assert "no regular file" in done.stderr


@live
def test_a_file_that_gguf_py_alone_refuses_is_told(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-24])  # 8 of the 16 bytes of data are there, which only gguf-py wants to see
    words = ["bench", "header", str(path), "--seconds", "0"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2, done.output
    assert "gguf-py refuses it" in done.stderr
    assert "--no-gguf-py" in done.stderr
    assert CliRunner().invoke(main, [*words, "--no-gguf-py"]).exit_code == 0


def test_what_was_not_counted_is_told_once() -> None:
    times = {OURS: (1.0,), C_FILE: (2.0,), C_MEMORY: (2.0,)}
    row = Opened("x", 1, 1, True, times, {OURS: Cost(child.NO_STRACE, 5), C_FILE: Cost(child.NO_STRACE, 2**20)})
    assert list(header_command.reasons([row, row])) == [f"not counted: {child.NO_STRACE}"]
    assert header_command.line(row).split()[-6:] == ["-", "-", "0.0", "1.0", "1", "same"]
