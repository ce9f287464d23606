"""What the doctor says of environments that are as they should be, and that are not."""

from __future__ import annotations

import msgspec
import pytest

from conformance import doctor
from conformance.errors import AuthorityMissingError
from conformance.subjects.authorities import GGUF_PY, LLAMA_CPP_PYTHON
from conformance.subjects.authorities.llama_cpp.library import LIBRARY_VARIABLE
from conformance.subjects.protocol import Identity, Ops

LLAMA_CPP = Identity(
    name="llama.cpp",
    version=LLAMA_CPP_PYTHON,
    language="c",
    protocol=1,
    ops=Ops(),
    details={
        "ggml": "0.25.3",
        "ggml_commit": "0c1e570",
        "contraction_base": "off",
        "contraction_dot": "off",
        "vector_units": "avx avx2",
    },
)
PY = Identity(
    name="gguf-py", version=GGUF_PY, language="python", protocol=1, ops=Ops(), details={"origin": "pypi", "package": "/p/gguf"}
)


@pytest.fixture
def diagnosed(monkeypatch, tmp_path):
    """Give a function that diagnoses a made-up environment: a check by its name."""
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GGUF_CONFORMANCE_WHEELS", raising=False)
    monkeypatch.delenv(LIBRARY_VARIABLE, raising=False)

    def diagnose(llama_cpp=LLAMA_CPP, gguf_py=PY, installed=("llama_cpp", "gguf")):
        def answer(name):
            found = {"llama.cpp": llama_cpp, "gguf-py": gguf_py}[name]
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(doctor, "identify", answer)
        monkeypatch.setattr(doctor, "find_spec", lambda package: package in installed or None)
        return {check.name: check for check in doctor.diagnose()}

    return diagnose


def changed(identity, **details):
    return msgspec.structs.replace(identity, details={**identity.details, **details})


def test_all_is_well(diagnosed):
    assert {check.state for check in diagnosed().values()} == {"ok"}
    assert not any(check.hint for check in diagnosed().values())


def test_a_missing_authority_is_a_warning(diagnosed):
    checks = diagnosed(installed=())
    for name in ("llama.cpp", "gguf-py"):
        assert (checks[name].state, checks[name].found) == ("warn", "not installed")
    assert "gguf-conformance build-authority" in checks["llama.cpp"].hint
    assert f"gguf=={GGUF_PY}" in checks["gguf-py"].hint


def test_an_authority_that_does_not_answer(diagnosed):
    check = diagnosed(llama_cpp=AuthorityMissingError("llama.cpp does not answer: signal 6"))["llama.cpp"]
    assert (check.state, check.found) == ("fail", "llama.cpp does not answer: signal 6")
    assert "gguf-conformance build-authority" in check.hint


def test_another_version(diagnosed):
    check = diagnosed(llama_cpp=msgspec.structs.replace(LLAMA_CPP, version="0.3.35"))["llama.cpp"]
    assert (check.state, check.wanted) == ("fail", LLAMA_CPP_PYTHON)
    assert check.found.startswith("0.3.35")
    assert diagnosed(gguf_py=msgspec.structs.replace(PY, version="0.18.0"))["gguf-py"].state == "fail"


def test_another_library_by_the_variable_is_told(diagnosed, monkeypatch):
    monkeypatch.setenv(LIBRARY_VARIABLE, "/other")
    other = changed(msgspec.structs.replace(LLAMA_CPP, version="ggml 0.9"), library="/other/x.so")
    check = diagnosed(llama_cpp=other, installed=["gguf"])["llama.cpp"]
    assert check.state == "warn"
    assert check.found == "ggml 0.9 (ggml 0.25.3, commit 0c1e570) in /other/x.so"
    assert LIBRARY_VARIABLE in check.hint


@pytest.mark.parametrize(("detail", "what"), [("contraction_base", "quantizers"), ("contraction_dot", "dot products")])
def test_fused_arithmetic(diagnosed, detail, what):
    checks = diagnosed(llama_cpp=changed(LLAMA_CPP, **{detail: "Q8_0 on, Q6_K off"}))
    wrong = [check for check in checks.values() if check.state != "ok"]
    assert [(check.name, check.state, check.found) for check in wrong] == [
        (f"llama.cpp: fused multiply-add in {what}", "fail", "Q8_0 on, Q6_K off")
    ]


def test_a_build_for_one_machine_is_a_warning(diagnosed):
    check = diagnosed(llama_cpp=changed(LLAMA_CPP, vector_units="avx avx2 avx512"))["llama.cpp: vector units"]
    assert check.state == "warn"
    assert "avx512" in check.hint


def test_the_gguf_of_the_sources(diagnosed):
    check = diagnosed(gguf_py=changed(PY, origin="llama.cpp sources"))["gguf-py: origin"]
    assert check.state == "fail"
    assert "/p/gguf" in check.found


def test_a_cache_that_cannot_be_written(diagnosed, monkeypatch, tmp_path):
    (tmp_path / "file").touch(0o777)  # what is wrong with it is only that it is no folder
    monkeypatch.setenv("GGUF_CONFORMANCE_CACHE", str(tmp_path / "file" / "below"))
    checks = diagnosed()
    for name in ("cache", "cache of wheels"):
        assert checks[name].state == "fail"
        assert str(tmp_path / "file") in checks[name].hint


def test_this_environment(llama_cpp, gguf_py):
    """The live one, whatever it is: the doctor and the authorities themselves agree."""
    checks = {check.name: check for check in doctor.diagnose()}
    assert llama_cpp.identity.details["ggml_commit"] in checks["llama.cpp"].found
    assert checks["gguf-py"].found == gguf_py.identity.version
    assert checks["llama.cpp: fused multiply-add in dot products"].found == llama_cpp.identity.details["contraction_dot"]
