from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.load import load_suites
from conformance.cases.model import ModelInput
from conformance.cases.size import input_size
from tests.corpus import corpus

TEXT = """
suite: a/b
defaults: {expect: {llama.cpp: either, gguf-py: either, spec: either}}
cases:
  CASE
"""


@pytest.mark.parametrize(
    ("case", "size"),
    [
        ("x: {build: {}}", 24),
        ("x: {build: {}, cut: 7}", 7),
        ("x: {build: {tensors: [{name: t, type: F32, dims: [4]}]}}", 96),
        ("x: {type: Q8_0, rows: {random: {seed: 1, rows: 2, cols: 32}}}", 2 * 32 * 4),
        ("x: {type: Q4_0, rows: {random: {seed: 1, rows: 2, cols: 32}}, imatrix: {values: [[RAMP]]}}", 3 * 32 * 4),
        ("x: {type: Q8_0, blocks: {random: {seed: 1, blocks: 3}}}", 3 * 34),
        ("x: {type: Q8_0, weights: {random: {seed: 1, blocks: 3}}, x: {random: {seed: 1, rows: 1, cols: 96}}}", 3 * 34 + 96 * 4),
    ],
)
def test_the_bytes_of_an_input(tmp_path: Path, case: str, size: int) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.yaml").write_text(TEXT.replace("CASE", case).replace("RAMP", ", ".join(str(n) for n in range(32))))
    (loaded,) = load_suites(tmp_path)
    assert input_size(loaded) == size


def test_a_model_has_the_size_that_it_declares() -> None:
    (model,) = [case for case in corpus() if case.id == "models/smollm2/q4_1"]
    assert isinstance(model.input, ModelInput)
    assert input_size(model) == model.input.size > 90_000_000
