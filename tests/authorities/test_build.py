"""The build of llama-cpp-python, with other commands in the place of pip and compiler."""

from __future__ import annotations

import sys

import msgspec
import pytest

from conformance import logged
from conformance.errors import AuthorityMissingError, ConfigurationError
from conformance.subjects.authorities import LLAMA_CPP_PYTHON, build
from tests.authorities.test_doctor import LLAMA_CPP, changed

WHEEL = f"llama_cpp_python-{LLAMA_CPP_PYTHON}-py3-none-linux_x86_64.whl"


@pytest.fixture
def said():
    return []


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(build.WHEELS_VARIABLE, str(tmp_path / "wheels"))
    monkeypatch.setattr(logged, "PROGRESS_SECONDS", 0.1)
    monkeypatch.setattr(logged, "POLL_SECONDS", 0.01)


@pytest.fixture
def pip(monkeypatch):
    """Give a function that puts a script in pip's place; WORKSHOP is the folder where the wheel is due."""

    def put(script):
        monkeypatch.setattr(build, "_wheel_command", lambda folder: [sys.executable, "-c", f"WORKSHOP = {str(folder)!r}\n{script}"])

    return put


def test_the_folder_names_all_that_makes_the_wheel(monkeypatch, tmp_path):
    folder = build.wheel_folder()
    assert folder.parent == tmp_path / "wheels"
    assert folder.name.startswith(f"{LLAMA_CPP_PYTHON}-")
    assert build.wheel_folder() == folder
    for target, value in (
        ("conformance.subjects.authorities.build.FLAGS", "-DGGML_NATIVE=ON"),
        ("platform.machine", lambda: "riscv64"),
        ("sys.implementation.cache_tag", "other-312"),
        ("conformance.subjects.authorities.build.LLAMA_CPP_PYTHON", "0.3.37"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(target, value)
            assert build.wheel_folder() != folder, target


def test_without_the_variable_wheels_lie_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.delenv(build.WHEELS_VARIABLE)
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    assert build.wheels_root() == tmp_path / "cache" / "wheels"


def test_a_shells_flags_do_not_get_in(pip, said, monkeypatch):
    monkeypatch.setenv("CFLAGS", "-Ofast")
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=ON")
    pip(f"import os; print(os.environ.get('CFLAGS'), os.environ['CMAKE_ARGS']); open(WORKSHOP + '/{WHEEL}', 'w')")
    build.build_wheel(said.append)
    assert (build.wheel_folder() / "build.log").read_text().strip() == f"None {build.FLAGS}"


def test_the_command_leaves_pips_own_wheels_out(tmp_path):
    command = build._wheel_command(tmp_path)
    assert command[:3] == [sys.executable, "-m", "pip"]
    assert {"--no-cache-dir", "--no-deps", f"llama-cpp-python=={LLAMA_CPP_PYTHON}"} <= set(command)
    assert command[command.index("--no-binary") + 1] == "llama-cpp-python"


def test_a_build(pip, said):
    assert build.cached_wheel() is None
    pip(f"import time; print('[57/193] compiling', flush=True); time.sleep(0.5); open(WORKSHOP + '/{WHEEL}', 'w').write('whole')")
    wheel = build.build_wheel(said.append)
    assert wheel == build.cached_wheel() == build.wheel_folder() / WHEEL
    assert wheel.read_text() == "whole"
    assert sorted(path.name for path in wheel.parent.iterdir()) == ["build.log", WHEEL]
    assert "six minutes" in said[0]
    assert any(line.endswith("[57/193]") for line in said[1:])


def test_a_build_that_fails_shows_the_end_of_its_log(pip, said):
    pip("print('line one'); print('\\n'.join(f'error {i}' for i in range(20))); raise SystemExit(1)")
    with pytest.raises(ConfigurationError) as error:
        build.build_wheel(said.append)
    shown = str(error.value)
    assert "failed (pip: exit 1)" in shown
    assert str(build.wheel_folder() / "build.log") in shown
    assert "error 19" in shown
    assert "line one" not in shown
    assert build.cached_wheel() is None


def test_pip_that_says_it_went_well_without_a_wheel(pip, said):
    pip("print('done')")
    with pytest.raises(ConfigurationError, match="failed"):
        build.build_wheel(said.append)


def test_an_interrupt_ends_what_was_started(pip, said, monkeypatch, tmp_path):
    pip(f"import time\nopen({str(tmp_path / 'started')!r}, 'w').close()\ntime.sleep(60)")
    seen = []

    def interrupted(process, _say, _step):
        seen.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(logged, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build.build_wheel(said.append)
    assert seen[0].poll() == -9


def test_no_compiler(said, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ConfigurationError, match=r"no C compiler: none of cc, gcc, clang is on PATH"):
        build.build_wheel(said.append)
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(ConfigurationError, match="none of no-such-compiler is on PATH"):
        build.build_wheel(said.append)


def test_no_pip(said, monkeypatch, tmp_path):
    monkeypatch.setattr(build, "find_spec", lambda _name: None)
    for act in (lambda: build.build_wheel(said.append), lambda: build.install(tmp_path / WHEEL)):
        with pytest.raises(ConfigurationError, match="no pip"):
            act()


def test_a_wheel_that_pip_refuses(tmp_path):
    wheel = tmp_path / "nothing_here-1.0-py3-none-any.whl"
    wheel.write_bytes(b"no archive")
    with pytest.raises(ConfigurationError, match="pip could not install nothing_here"):
        build.install(wheel)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (LLAMA_CPP, None),
        (msgspec.structs.replace(LLAMA_CPP, version="0.3.35"), "version 0.3.35 is installed"),
        (changed(LLAMA_CPP, contraction_dot="on"), "the installed library contracts multiply and add (dot)"),
        (changed(LLAMA_CPP, contraction_base="Q4_0 on, Q5_0 off"), "the installed library contracts multiply and add (base)"),
        (changed(LLAMA_CPP, vector_units="avx avx512"), "the installed library was compiled for one machine (avx512)"),
        (AuthorityMissingError("llama.cpp does not answer"), "llama.cpp does not answer"),
    ],
)
def test_why_what_is_installed_will_not_do(monkeypatch, found, reason):
    def answer(_name, *, without):
        assert without == ("GGUF_CONFORMANCE_GGML_LIB",)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(build, "identify", answer)
    monkeypatch.setattr(build, "find_spec", lambda _name: True)
    assert build.why_not_installed() == reason


def test_what_is_not_installed_is_not_asked(monkeypatch):
    monkeypatch.setattr(build, "find_spec", lambda _name: None)
    assert build.why_not_installed() == "llama-cpp-python is not installed"


@pytest.fixture
def installs(monkeypatch):
    """Make `install` note its wheel, and mend what is wrong."""
    noted = []
    reasons = ["version 0.3.35 is installed", None]
    monkeypatch.setattr(build, "why_not_installed", lambda: reasons[min(len(noted), 1)])
    monkeypatch.setattr(build, "install", noted.append)
    return noted


def test_main_installs_the_wheel_of_the_cache(installs, capsys):
    folder = build.wheel_folder()
    folder.mkdir(parents=True)
    (folder / WHEEL).touch()
    assert build.main([]) == 0
    assert installs == [folder / WHEEL]
    assert capsys.readouterr().out.splitlines() == [
        "version 0.3.35 is installed",
        f"wheel in the cache: {folder / WHEEL}",
        f"installed {WHEEL}",
    ]


def test_main_builds_what_the_cache_lacks(installs, pip, capsys):
    pip(f"open(WORKSHOP + '/{WHEEL}', 'w')")
    assert build.main(["--wheel-only"]) == 0
    assert installs == []
    assert build.cached_wheel() is not None
    assert build.main([]) == 0
    assert installs == [build.cached_wheel()]


def test_main_says_when_installing_did_not_help(monkeypatch, capsys):
    build.wheel_folder().mkdir(parents=True)
    (build.wheel_folder() / WHEEL).touch()
    monkeypatch.setattr(build, "why_not_installed", lambda: "version 0.3.35 is installed")
    monkeypatch.setattr(build, "install", lambda _wheel: None)
    assert build.main([]) == 3
    assert "after installing it, version 0.3.35 is installed" in capsys.readouterr().err


def test_main_does_nothing_where_the_right_one_is(monkeypatch, capsys):
    monkeypatch.setattr(build, "why_not_installed", lambda: None)
    assert build.main([]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert not build.wheels_root().exists()
