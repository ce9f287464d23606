"""The authorities behind the harness's own process isolation; every line is checked against the protocol's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from conformance.outcomes import Outcome
from conformance.subjects.manifest import find_manifest
from conformance.subjects.process import Subject
from conformance.subjects.protocol import HeaderRequest, LoadRequest, TensorRequest


@pytest.fixture(scope="session")
def llama_cpp() -> Iterator[Subject]:
    if find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed; python -m conformance.subjects.authorities.build installs it")
    with Subject(find_manifest("llama.cpp"), validate=True) as subject:
        yield subject


@pytest.fixture(scope="session")
def gguf_py() -> Iterator[Subject]:
    if find_spec("gguf") is None:
        pytest.skip("the package gguf is not installed; the extra `test` brings it")
    with Subject(find_manifest("gguf-py"), validate=True) as subject:
        yield subject


Ask = Callable[[Subject, str, bytes], Outcome]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Give a function that writes a file and asks a subject for its header, or to load it."""

    def ask_about(subject: Subject, op: str, data: bytes) -> Outcome:
        path = tmp_path / "asked.gguf"
        path.write_bytes(data)
        request = HeaderRequest(seq=0, path=str(path)) if op == "header" else LoadRequest(seq=0, path=str(path))
        return subject.ask(request).outcome

    return ask_about


@pytest.fixture
def tensor_bytes(tmp_path: Path) -> Callable[[Subject, Path, int], bytes]:
    """Give a function that asks for the bytes of a file's tensor."""

    def ask_for(subject: Subject, path: Path, index: int) -> bytes:
        out = tmp_path / "tensor.bin"
        answer = subject.ask(TensorRequest(seq=0, path=str(path), index=index, out=str(out)))
        assert type(answer.outcome).__name__ == "Ok", answer
        return out.read_bytes()

    return ask_for
