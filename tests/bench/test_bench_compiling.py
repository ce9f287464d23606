"""The first use of each op, measured in processes of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.bench import command
from conformance.bench.compiling import FirstUse, first_uses, run_each, run_once
from conformance.bench.view import FIRST_HEAD, first_line
from conformance.cli import main
from conformance.errors import ConfigurationError, UsageError
from impl.blocks import SUPPORTED

ROW = FirstUse("Q4_0", "quantize with imatrix", 3.104, 0.26)


def test_all_that_is_done_is_measured() -> None:
    todo = first_uses(())
    for op in ("dequantize", "dot"):
        assert {name for name, measured in todo if measured == op} == set(SUPPORTED[op]) - {"F32"}
    quantized = {name for name, op in todo if op.startswith("quantize")}
    assert quantized == set(SUPPORTED["quantize"]) - {"F32"}
    assert [op for name, op in todo if name == "IQ2_XXS"] == ["quantize with imatrix", "dequantize", "dot"]
    assert [op for name, op in todo if name == "Q4_K"] == ["quantize", "quantize with imatrix", "dequantize", "dot"]


def test_an_unknown_type() -> None:
    with pytest.raises(UsageError, match="'F32' is not compiled"):
        first_uses(("F32",))


def test_the_second_process_finds_what_the_first_has_compiled() -> None:
    """Each op begins with an empty directory."""
    seen: list[tuple[tuple[str, ...], int]] = []

    def run(arguments: Sequence[str], kept: Path) -> float:
        seen.append((tuple(arguments), len(list(kept.iterdir()))))
        (kept / f"loop{len(seen)}").touch()
        return float(len(seen))

    said: list[str] = []
    rows = list(run_each([("Q8_0", "dot"), ("F16", "quantize")], said.append, run))
    assert rows == [FirstUse("Q8_0", "dot", 1, 2), FirstUse("F16", "quantize", 3, 4)]
    assert seen == [(("Q8_0", "dot"), 0), (("Q8_0", "dot"), 1), (("F16", "quantize"), 0), (("F16", "quantize"), 1)]
    assert said == ["Q8_0 dot", "F16 quantize"]


@pytest.mark.parametrize("op", ["quantize", "dequantize"])
def test_loops_are_compiled_in_one_process_and_kept_for_the_next(op: str, tmp_path: Path) -> None:
    first = run_once(("BF16", op), tmp_path)
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("floats.*.nb?")}
    again = run_once(("BF16", op), tmp_path)
    assert first > 0 < again
    assert kept
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("floats.*.nb?")} == kept


def test_a_process_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"first use of Q9_9 dot ended with 1: .*Q9_9"):
        run_once(("Q9_9", "dot"), tmp_path)


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "run_each", lambda todo, say: (say(str(len(todo))), [ROW])[1])
    table = CliRunner().invoke(main, ["bench", "compiling", "--type", "Q4_0"])
    assert table.exit_code == 0
    assert table.stdout.splitlines()[1:] == [FIRST_HEAD, first_line(ROW)]
    assert first_line(ROW).split() == ["Q4_0", "quantize", "with", "imatrix", "3.10", "0.26"]
    as_json = CliRunner().invoke(main, ["bench", "compiling", "--type", "Q4_0", "--json"])
    assert json.loads(as_json.stdout) == [{"type": "Q4_0", "op": "quantize with imatrix", "first": 3.104, "again": 0.26}]
