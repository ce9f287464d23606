"""The steps that a tensor directory leads to: whose bytes are dequantized, and how many tensors are asked for."""

from pathlib import Path

import pytest

from conformance.cases.build import build
from conformance.cases.load import load_suites
from conformance.run.prepare import Prepared
from conformance.run.steps import CRAFTED_TENSORS, Step, file_steps
from conformance.values import Header, TensorInfo

# Two tensors behind a pair, so that the data section starts neither at 0 nor at 32.
CASES = """
suite: a
defaults: {expect: {llama.cpp: accept, gguf-py: accept, spec: accept}}
cases:
  two:
    build:
      kv: [{key: k, str: some text that is longer than one alignment}]
      tensors:
        - {name: t, type: F32, dims: [2], data: 0102030405060708}
        - {name: u, type: Q8_0, dims: [32], data: {fill: 9}}
    ask: [header, tensor, dequantize]
"""
DIRECTORY = [TensorInfo("t", 0, ["2"], "0", "8"), TensorInfo("u", 8, ["32"], "32", "34")]


def _steps(folder: Path, directory: Header, *, is_model: bool = False) -> list[tuple[Step, bytes]]:
    """Give the steps, each with the bytes of its input at the time that it is to be asked."""
    (folder / "a.yaml").write_text(CASES)
    (case,) = load_suites(folder)
    path = folder / "case.gguf"
    path.write_bytes(build(case.input.recipe).data)  # type: ignore[union-attr]  # a built file, see CASES
    steps = file_steps(case, Prepared(path=path, is_model=is_model), directory, folder)
    return [(step, step.input.read_bytes() if step.input else b"") for step in steps]


def test_a_tensors_own_bytes_are_dequantized(tmp_path: Path) -> None:
    """What all participants take in is cut out of the file: if the wrong bytes were, they would agree on them."""
    steps = _steps(tmp_path, Header(3, 32, 160, [], DIRECTORY))
    assert [(step.name, data) for step, data in steps if step.op == "dequantize"] == [
        ("dequantize[0]", bytes.fromhex("0102030405060708")),
        ("dequantize[1]", b"\x09" * 34),
    ]
    assert [(step.name, step.tensor_index, step.tensor_bytes) for step, _ in steps if step.op == "tensor"] == [
        ("tensor[0]", 0, 8),
        ("tensor[1]", 1, 34),
    ]


@pytest.mark.parametrize(("is_model", "asked"), [(False, 64), (True, 100)])
def test_of_a_crafted_file_the_first_64_tensors_are_asked_for_of_a_model_all(tmp_path: Path, is_model: bool, asked: int) -> None:
    directory = Header(3, 32, 160, [], [TensorInfo(str(n), 0, ["2"], "0", "8") for n in range(100)])
    steps = _steps(tmp_path, directory, is_model=is_model)
    assert CRAFTED_TENSORS == 64
    for op in ("tensor", "dequantize"):
        assert [step.name for step, _ in steps if step.op == op] == [f"{op}[{n}]" for n in range(asked)]


@pytest.mark.parametrize(("offset", "nbytes", "cut"), [("18446744073709551584", "8", b""), ("0", "4611686018427387904", None)])
def test_a_tensor_that_no_file_holds_is_cut_where_the_file_ends(
    tmp_path: Path, offset: str, nbytes: str, cut: bytes | None
) -> None:
    """gguf-py takes offsets up to 2^64, and llama.cpp a size that wraps."""
    steps = _steps(tmp_path, Header(3, 32, 160, [], [TensorInfo("t", 0, ["2"], offset, nbytes)]))
    (data,) = [data for step, data in steps if step.op == "dequantize"]
    assert data == ((tmp_path / "case.gguf").read_bytes()[160:] if cut is None else cut)
