"""Builds under adversity: a cache that cannot be used, two at once, what is left behind, paths that mean something to a shell."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from conformance.cli import main
from conformance.errors import ConfigurationError
from conformance.subjects.building import build
from conformance.subjects.manifest import Manifest, load_manifest
from conformance.subjects.shell_words import put_in
from tests.subjects.subject_helpers import MARK, carriers, wait_until


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "adapter"
    folder.mkdir()
    return folder


def written(folder: Path, *commands: str) -> Path:
    lines = "".join(f"  - '{command}'\n" for command in commands)
    (folder / "adapter.yaml").write_text(f'name: made\nlanguage: sh\ncommand: [sh, "{{build}}/made"]\nbuild:\n{lines}')
    return folder


def manifest(folder: Path, *commands: str) -> Manifest:
    return load_manifest(written(folder, *commands), check_command=False)


def command(folder: Path, cache: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["build", str(folder)], env={"GGUF_CONFORMANCE_CACHE": cache})
    return result.exit_code, result.stderr


def test_a_cache_that_is_a_file_or_cannot_be_made(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for cache in (str(tmp_path / "file"), "/proc/none"):
        code, told = command(written(folder, "touch {build}/made"), cache)
        assert code == 3
        assert "made cannot be built: " in told
        assert "set GGUF_CONFORMANCE_CACHE to another folder" in told
        assert "internal error" not in told


def test_a_full_disk(folder: Path) -> None:
    made = manifest(folder, "touch {build}/made; ln -s /dev/full {build}/.built-of")
    with pytest.raises(ConfigurationError, match="made cannot be built: No space left on device"):
        build(made, print)


def test_a_cache_without_a_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("GGUF_CONFORMANCE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", staticmethod(homeless))
    result = CliRunner().invoke(main, ["build", str(written(folder, "touch {build}/made"))])
    assert (result.exit_code, "set GGUF_CONFORMANCE_CACHE to a folder" in result.stderr) == (3, True)


def test_a_cache_given_from_here_is_the_same_for_commands_that_run_elsewhere(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = command(written(folder, "touch {build}/made"), "here")
    assert code == 0, told
    assert list(tmp_path.glob("here/adapters/*/made"))


@pytest.mark.parametrize("name", ["a space", "it's", 'a "quote"', "$HOME `x` \\ *", "ünï", "# no comment"])
def test_a_path_means_nothing_to_the_shell(name: str, folder: Path, tmp_path: Path) -> None:
    text = "".join(f"  - {line!r}\n" for line in ("touch {build}/made", 'cp "{build}/made" {build}/two'))
    inner = folder / name
    inner.mkdir()
    (inner / "source").touch()
    text += "  - [cp, '{dir}/source', '{build}/three']\n  - \"cp '{dir}/source' {build}/'four'\"\n"
    (inner / "adapter.yaml").write_text(f'name: made\nlanguage: sh\ncommand: [sh, "{{build}}/made"]\nbuild:\n{text}')
    code, told = command(inner, str(tmp_path / name))
    assert code == 0, told
    built = next((tmp_path / name / "adapters").glob("made-*/"))
    assert {"made", "two", "three", "four"} <= {path.name for path in built.iterdir()}


def test_a_quote_that_is_open_is_known() -> None:
    place = re.compile("@")
    assert put_in("@ '@' \"@\" \\'@ \"'@'\" '\"'@", place, lambda _: "a'b $c") == (
        "'a'\"'\"'b $c' 'a'\\''b $c' \"a'b \\$c\" \\''a'\"'\"'b $c' \"'a'b \\$c'\" '\"''a'\"'\"'b $c'"
    )
    assert put_in("-o @/x", place, lambda _: "/a/b") == "-o /a/b/x"


def test_what_was_deleted_from_the_cache_is_built_again(folder: Path) -> None:
    made = manifest(folder, "touch {build}/made")
    assert build(made, print) is not None
    (made.built / "made").unlink()
    assert build(made, print) is not None
    assert (made.built / "made").exists()
    assert build(made, print) is None


def test_two_at_once_build_once(folder: Path) -> None:
    made = manifest(folder, "echo built >> {build}/times; sleep 0.5; touch {build}/made")
    said: list[str] = []
    ended: list[float | None] = []
    both = [threading.Thread(target=lambda: ended.append(build(made, said.append))) for _ in range(2)]
    for one in both:
        one.start()
        time.sleep(0.1)
    for one in both:
        one.join(20)
    assert (made.built / "times").read_text() == "built\n"
    assert [seconds is None for seconds in ended] == [False, True]
    assert said == ["waiting for another process that builds made"]


def test_waiting_can_be_interrupted(folder: Path) -> None:
    made = manifest(folder, "touch {build}/made")
    made.built.mkdir(parents=True)
    with made.built.with_name(f"{made.built.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, "-m", "conformance.cli", "build", str(folder)], stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr is not None
        told = [waiting.stderr.readline(), waiting.stderr.readline()]
        time.sleep(0.2)
        waiting.send_signal(2)
        rest = waiting.communicate(timeout=10)[1]
    assert told[1] == "waiting for another process that builds made\n"
    assert (waiting.returncode, rest) == (130, "gguf-conformance: interrupted\n")


def test_a_question_is_not_waited_for(folder: Path) -> None:
    reader, writer = os.pipe()  # stays open: who reads from it waits
    try:
        done = subprocess.run(
            [sys.executable, "-m", "conformance.cli", "build", str(written(folder, "cat > {build}/made"))],
            stdin=reader, capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip
    finally:
        os.close(reader)
        os.close(writer)
    assert done.returncode == 0, done.stderr


def sleepers(mark: str) -> list[psutil.Process]:
    """Give the builds' processes, without the shell that ends them and takes a while itself."""
    return [process for process in carriers(mark) if _is_of_a_build(process)]


def _is_of_a_build(process: psutil.Process) -> bool:
    try:
        return process.name() in ("sleep", "sh") and "guard" not in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def test_what_a_build_leaves_running_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mark = str(tmp_path)
    monkeypatch.setenv(MARK, mark)
    written(folder, "(sleep 60 &) ; (setsid sleep 60 &) ; touch {build}/made")
    spawned = [sys.executable, "-m", "conformance.cli", "build", str(folder)]
    done = subprocess.run(spawned, capture_output=True, text=True, check=False, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    monkeypatch.delenv(MARK)
    try:
        assert wait_until(lambda: not sleepers(mark), 2)
    finally:
        for process in sleepers(mark):
            process.kill()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_build_ends_with_who_started_it(end: signal.Signals, folder: Path, tmp_path: Path) -> None:
    mark = str(tmp_path)
    written(folder, "trap : TERM HUP; touch {build}/begun; sleep 60 & sleep 60")
    with subprocess.Popen(
        [sys.executable, "-m", "conformance.cli", "build", str(folder)], stderr=subprocess.DEVNULL, env={**os.environ, MARK: mark}
    ) as building:
        assert wait_until(lambda: list(tmp_path.glob("cache/adapters/made-*/begun")))
        building.send_signal(end)
    try:
        assert wait_until(lambda: not sleepers(mark))
    finally:
        for process in sleepers(mark):
            process.kill()


def test_a_log_moves_no_cursor(folder: Path) -> None:
    code, told = command(written(folder, 'printf "\\033[2J\\033[31mred\\r\\n"; exit 4'), str(folder / "cache"))
    assert code == 3
    assert "\\x1b[2J\\x1b[31mred" in told
    assert "\x1b" not in told


def test_a_user_who_is_none() -> None:
    for words in (["build", "~no-such-user"], ["run", "--subject", "~no-such-user/x", "--no-report"]):
        result = CliRunner().invoke(main, words)
        assert (result.exit_code, "no subject '~no-such-user" in result.stderr) == (2, True), result.stderr
