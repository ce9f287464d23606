"""The pass over a whole file: what is compared, in which pieces, and that a difference is told with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import impl
from conformance.bench import model
from conformance.bench.model import ModelCheck, same_places
from conformance.cases.build import build
from conformance.cli import main
from conformance.errors import UsageError
from conformance.subjects.authorities.llama_cpp.library import package_folder

pytestmark = pytest.mark.skipif(package_folder() is None, reason="needs the live library: pip install 'gguf-conformance[live]'")
TENSORS = [
    {"name": "a", "type": "Q4_1", "dims": ["288", "5"], "data": {"random": "1"}},
    {"name": "b", "type": "F32", "dims": ["3"]},
    {"name": "c", "type": "Q8_0", "dims": ["512", "2", "3"], "data": {"random": "2"}},
    {"name": "d", "type": "Q6_K", "dims": ["256"], "data": {"random": "3"}},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "small.gguf"
    made.write_bytes(build({"tensors": TENSORS}).data)
    return made


def checked(path: Path, *requantize: str, threads: int = 1) -> model.Checked:
    return ModelCheck(impl.open(str(path)), requantize, threads).run()


@pytest.mark.parametrize("threads", [1, 2])
def test_everything_is_compared_once(path: Path, threads: int) -> None:
    found = checked(path, "q4_0", "Q4_K", "Q4_0", threads=threads)  # a type named twice is one
    assert {key: tally.blocks for key, tally in found.by_op.items()} == {
        ("Q4_1", "dequantize"): 45, ("Q4_1", "quantize to Q4_0"): 45,
        ("Q8_0", "dequantize"): 96, ("Q8_0", "quantize to Q4_0"): 96, ("Q8_0", "quantize to Q4_K"): 12,
        ("Q6_K", "dequantize"): 1, ("Q6_K", "quantize to Q4_0"): 8, ("Q6_K", "quantize to Q4_K"): 1,
    }  # fmt: skip
    assert (found.elements, found.left_out, found.different) == (5 * 288 + 6 * 512 + 256, ("F32",), 0)


def test_pieces_are_of_whole_rows_and_no_larger_than_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "PIECE", 1024)
    seen: list[tuple[int, int]] = []
    true = impl.dequantize

    def spy(name: str, raw: Any, shape: tuple[int, int], **rest: Any) -> Any:
        seen.append(shape)
        return true(name, raw, shape, **rest)

    monkeypatch.setattr(impl, "dequantize", spy)
    found = checked(path)
    pieces = [(3, 288), (2, 288), (2, 512), (2, 512), (2, 512), (1, 256)]
    assert seen[-len(pieces) :] == pieces  # before them, one of each to compile the loops
    assert found.elements == sum(rows * cols for rows, cols in pieces)


def test_a_row_longer_than_a_piece_is_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "PIECE", 256)
    path = tmp_path / "long.gguf"
    path.write_bytes(build({"tensors": [{"name": "long", "type": "Q8_0", "dims": ["1024", "2"], "data": {"random": "4"}}]}).data)
    assert checked(path, "Q4_K").by_op["Q8_0", "quantize to Q4_K"].blocks == 8


@pytest.mark.parametrize(("function", "op"), [("dequantize", "dequantize"), ("quantize", "quantize to Q4_0")])
def test_a_difference_is_counted_and_placed(path: Path, monkeypatch: pytest.MonkeyPatch, function: str, op: str) -> None:
    true = getattr(impl, function)

    def wrong(name: str, source: Any, *rest: Any, out: Any) -> Any:
        made = true(name, source, *rest, out=out)
        if out.shape[0] == 6:
            out.reshape(-1).view(np.uint8)[7] ^= 1
        return made

    monkeypatch.setattr(impl, function, wrong)
    found = checked(path, "Q4_0")
    assert found.different == found.by_op["Q8_0", op].different == 1
    assert found.by_op["Q8_0", op].first == "c, rows 0 to 5"


def test_a_nan_is_a_nan() -> None:
    one, other = (np.array([bits, 0x3F800000], np.uint32).view(np.float32) for bits in (0x7FC00000, 0xFFC00001))
    assert model._same_floats(one, other)
    assert not model._same_floats(one, np.array([np.nan, 2], np.float32))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_nan_on_one_side_alone_is_a_difference(swapped: bool) -> None:
    nan, number = np.array([1, np.nan], np.float32), np.array([1, 2], np.float32)
    assert not model._same_floats(*((number, nan) if swapped else (nan, number)))


def test_places_are_held_to_the_librarys(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = impl.open(str(path))
    assert same_places(path, file) == 4
    file.tensors[2].offset += 32
    assert same_places(path, file) == 3


def test_the_cost_is_measured_in_turn(path: Path) -> None:
    times = ModelCheck(impl.open(str(path)), (), 1).cost(0)
    assert len(times.ours) == len(times.theirs) == 5


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["bench", "model", *words, "--seconds", "0"])


def test_the_command_prints_what_it_compared(path: Path) -> None:
    result = run(str(path), "-q", "Q4_0", "--threads", "2")
    assert result.exit_code == 0, result.output
    assert "4 of 4 tensors lie at the same offset" in result.output
    assert "quantize to Q4_0" in result.output
    assert "by C alone" in result.output
    assert "most memory held" in result.output


def test_the_command_for_a_machine(path: Path) -> None:
    facts = json.loads(run(str(path), "-q", "Q4_0", "--json").output)
    assert {(op["type"], op["op"], op["blocks"], op["different"]) for op in facts["ops"]} >= {("Q8_0", "dequantize", 96, 0)}
    assert (facts["tensors"], facts["places"]) == (4, 4)


def test_a_difference_is_exit_1(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "_same_floats", lambda _ours, _theirs: False)
    result = run(str(path))
    assert result.exit_code == 1
    assert "DIFFERS in 1 pieces, first in a, rows 0 to 4" in result.output


def test_what_cannot_be_done_is_said(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is quantized to 'IQ2_XXS' here"):
        checked(path, "IQ2_XXS")
    empty = tmp_path / "empty.gguf"
    empty.write_bytes(build({}).data)
    result = run(str(empty))
    assert (result.exit_code, "no tensors" in result.output) == (2, True)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(path.read_bytes()[:-40])
    assert "missing-data" in run(str(cut)).output
