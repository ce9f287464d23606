"""Asking an authority who it is, when it does not say."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from conformance.errors import AuthorityMissingError
from conformance.subjects.authorities import GGUF_PY, LLAMA_CPP_PYTHON, identify
from conformance.subjects.authorities.llama_cpp.library import LIBRARY_VARIABLE
from conformance.subjects.protocol import Identity, Ops


@pytest.fixture
def authority(tmp_path, monkeypatch):
    """Give a function that puts a script in the place of llama.cpp."""

    def put(script, time=20):
        (tmp_path / "script.py").write_text(script)
        manifest = tmp_path / "made.yaml"
        manifest.write_text(
            f'name: llama.cpp\nlanguage: python\ncommand: ["{{python}}", "{{dir}}/script.py"]\nlimits: {{time: {time}}}\n'
        )
        monkeypatch.setitem(identify.MANIFESTS, "llama.cpp", manifest)

    return put


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import os; os.abort()", "it ended with signal 6 and no word"),
        ("import sys; sys.exit(3)", "it ended with exit 3 and no word"),
        ("import sys; sys.exit('no library here')", "no library here"),
        ("print('hello')", "it ended with exit 0 and no word"),
    ],
)
def test_a_process_that_tells_nothing(authority, script, said):
    authority(script)
    with pytest.raises(AuthorityMissingError) as error:
        identify.identify("llama.cpp")
    assert error.value.message == f"llama.cpp does not answer: {said}"


def test_a_process_that_does_not_end(authority):
    authority("import time; time.sleep(60)", time=0.3)
    with pytest.raises(AuthorityMissingError, match=r"no answer within 0\.3 s"):
        identify.identify("llama.cpp")


def test_variables_are_kept_from_it(authority, monkeypatch):
    authority(
        "import json, os\n"
        "print(json.dumps({'name': os.environ.get('MADE_UP', 'unset'), 'version': '', 'language': '', 'protocol': 1, 'ops': {}}))"
    )
    monkeypatch.setenv("MADE_UP", "set")
    assert identify.identify("llama.cpp").name == "set"
    assert identify.identify("llama.cpp", without=("MADE_UP",)).name == "unset"


def test_a_library_that_is_not_where_the_variable_says(monkeypatch, tmp_path):
    monkeypatch.setenv(LIBRARY_VARIABLE, str(tmp_path))
    with pytest.raises(AuthorityMissingError) as error:
        identify.identify("llama.cpp")
    assert str(tmp_path) in error.value.message
    assert LIBRARY_VARIABLE in error.value.message
    assert "Traceback" not in error.value.message


def put_libraries(folder, monkeypatch, put):
    for name in ("libggml-base.so", "libggml-cpu.so"):
        put(folder / name)
    monkeypatch.setenv(LIBRARY_VARIABLE, str(folder / "libggml-base.so"))


def test_a_file_that_is_no_library(monkeypatch, tmp_path):
    put_libraries(tmp_path, monkeypatch, lambda path: path.write_bytes(b"text"))
    with pytest.raises(AuthorityMissingError, match="cannot be used"):
        identify.identify("llama.cpp")


def test_a_library_without_the_functions(monkeypatch, tmp_path, llama_cpp):
    base = llama_cpp.identity.details["library"]
    put_libraries(tmp_path, monkeypatch, lambda path: path.symlink_to(base))
    with pytest.raises(AuthorityMissingError, match="undefined symbol: ggml_cpu_init"):
        identify.identify("llama.cpp")


def test_a_library_from_another_place_goes_by_its_own_version(monkeypatch, llama_cpp):
    details = llama_cpp.identity.details
    monkeypatch.setenv(LIBRARY_VARIABLE, os.fspath(Path(details["library"]).parent))
    assert identify.identify("llama.cpp").version == f"ggml {details['ggml']}"


def test_units_of_one_machine_only():
    def built(units):
        return Identity(name="", version="", language="", protocol=1, ops=Ops(), details={"vector_units": units})

    assert identify.native_units(built("sse3 ssse3 avx avx2 bmi2 f16c fma")) == []
    assert identify.native_units(built("avx avx_vnni avx2 avx512")) == ["avx_vnni", "avx512"]
    assert identify.native_units(built("")) == []


def test_the_expected_versions_are_those_of_the_extra():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    live = project["project"]["optional-dependencies"]["live"]
    assert live == [f"gguf=={GGUF_PY}", f"llama-cpp-python=={LLAMA_CPP_PYTHON}"]
