from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import impl
from conformance.bench import blocks, command
from conformance.bench.blocks import Data, Measured, measure, run, tasks
from conformance.bench.turns import Times
from conformance.bench.view import HEAD, line, to_json
from conformance.cli import main
from conformance.errors import UsageError
from conformance.subjects.authorities.llama_cpp.library import LIBRARY_VARIABLE, package_folder
from impl.blocks import SUPPORTED

live = pytest.mark.skipif(package_folder() is None, reason="needs the live library: pip install 'gguf-conformance[live]'")
ROW = Measured("Q4_0", "quantize", 2, 8_000_000, 12, 0.04, 0.08, 0.5, 0.45, 0.75, True)


@live
def test_all_that_is_done_is_measured() -> None:
    done = {(task.kind.name, task.op) for task in tasks((), (1,))}
    quantized = {name for name, op in done if op != "dequantize"}
    assert quantized == set(SUPPORTED["quantize"]) - {"F32"}
    assert {name for name, op in done if op == "dequantize"} == set(SUPPORTED["dequantize"]) - {"F32"}
    assert {name for name, op in done if op == "quantize with imatrix"} == {
        name for name in quantized if name.endswith("_K") or name.startswith("IQ") or name in {"Q4_0", "Q4_1", "Q5_0", "Q5_1"}
    }


@live
@pytest.mark.parametrize("threads", [1, 2])
def test_every_task_gives_the_same_on_both_sides(threads: int) -> None:
    data = Data(rows=16, cols=512)
    said: list[str] = []
    todo = tasks(("F16", "Q4_0", "IQ2_XXS", "Q8_K"), (threads,))
    rows = list(run(todo, 0, said.append, data))
    assert [row.op for row in rows] == [task.op for task in todo]
    assert said[0] == f"F16 quantize, {'1 thread' if threads == 1 else '2 threads'}"
    assert all(row.same and row.rounds == 5 and row.lowest <= row.ratio <= row.highest for row in rows)


@live
def test_rounds_go_through_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    task, spans = tasks(("F16",), (1,))[0], list[tuple[int, int]]()
    monkeypatch.setattr(blocks, "_rows_a_round", lambda *_: 3)
    monkeypatch.setattr(blocks, "quantize_chunk", lambda _kind, _x, _weights, _out, start, stop: spans.append((start, stop)))
    measure(task, Data(rows=10, cols=64), 0)
    assert spans == [(0, 3), (3, 6), (6, 9), (0, 3), (3, 6)]


@live
def test_two_threads_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    task, spans = tasks(("F16",), (2,))[0], list[tuple[int, int]]()
    monkeypatch.setattr(blocks, "_rows_a_round", lambda *_: 5)
    monkeypatch.setattr(blocks, "quantize_chunk", lambda _kind, _x, _weights, _out, start, stop: spans.append((start, stop)))
    measure(task, Data(rows=5, cols=64), 0)
    assert sorted(set(spans)) == [(0, 3), (3, 5)]


@live
def test_other_results_are_told_and_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plain = impl.quantize

    def wrong(*args: Any, out: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], **kwargs: Any) -> object:
        plain(*args, out=out, **kwargs)
        out[0, 0] ^= 1
        return out

    monkeypatch.setattr(blocks.impl, "quantize", wrong)
    monkeypatch.setattr(blocks, "Data", lambda: Data(rows=4, cols=64))
    monkeypatch.setattr(command, "tasks", lambda *_: [task for task in tasks(("F16",), (1,)) if task.op == "quantize"])
    assert command.bench_blocks((), 0, (1,), as_json=False) == 1
    assert capsys.readouterr().out.endswith("DIFFERS\n")


@live
def test_a_type_that_is_not_measured() -> None:
    with pytest.raises(UsageError, match=r"type 'F32' is not measured\n  These are: .*Q4_0"):
        tasks(("F32",), (1,))


def test_a_line_has_speeds_and_ratios() -> None:
    assert line(ROW).split() == ["Q4_0", "quantize", "2", "200.0", "100.0", "0.50", "0.45", "0.75", "12", "same"]
    assert len(line(ROW)) == len(HEAD.rstrip("result")) + len("same")


def test_json_has_seconds() -> None:
    (row,) = json.loads(to_json([ROW]))
    assert (row["type"], row["ours"], row["theirs"], row["ratio"]) == ("Q4_0", 0.04, 0.08, 0.5)


@live
def test_the_command_prints_json_and_tells_its_progress_aside() -> None:
    said = CliRunner().invoke(main, ["bench", "blocks", "--type", "BF16", "--seconds", "0", "--threads", "1", "--json"])
    assert said.exit_code == 0
    assert [row["op"] for row in json.loads(said.stdout)] == ["quantize", "dequantize"]
    assert said.stderr.splitlines() == ["measuring BF16 quantize, 1 thread", "measuring BF16 dequantize, 1 thread"]


def test_without_the_library_the_command_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(LIBRARY_VARIABLE, str(tmp_path))
    blocks.kinds.cache_clear()
    blocks.libraries.cache_clear()
    said = CliRunner().invoke(main, ["bench", "blocks"])
    assert said.exit_code == 4
    assert f"in {tmp_path}" in said.stderr


def test_what_starting_threads_costs_does_not_make_a_round_short() -> None:
    """A call costs 10 ms by itself and 10 us a row: two sides at 4096 rows take 102 ms, 1/12 of 2 s is 167 ms."""
    clock = 0.0

    def call(start: int, stop: int) -> None:
        nonlocal clock
        clock += 0.01 + 1e-5 * (stop - start)

    def turns(ours: Any, theirs: Any, _seconds: float) -> Times:
        before = clock
        ours(0)
        middle = clock
        theirs(0)
        return Times((middle - before,), (clock - middle,))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "take_turns", turns)
        assert blocks._rows_a_round(call, call, 4096, 2.0, 2) > 1500
