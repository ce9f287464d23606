"""The command that holds the exact model to llama.cpp: what it prints, and its exit codes."""

import re

import numpy as np
import pytest
from click.testing import CliRunner
from exact_blocks import library

from conformance.ggml_types import BY_NAME
from conformance.judge.exact import check
from conformance.subjects.authorities.llama_cpp import library as loading


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(check.main, list(arguments))
    return result.exit_code, result.output


def test_equal_values_are_counted() -> None:
    library()
    code, output = _run("--blocks", "3", "--type", "Q4_0", "--type", "Q8_1")
    rows = [line.split()[:4] for line in output.splitlines()]
    assert rows == [
        ["type", "blocks", "values", "different"],
        ["Q4_0", "3", "96", "0"],
        ["Q8_1", "3", "96", "0"],
    ]
    assert code == 0


def test_all_types_are_compared_unless_one_is_named() -> None:
    library()
    code, output = _run("--blocks", "1")
    assert [line.split()[0] for line in output.splitlines()[1:]] == list(check.EXACT_TYPES)
    assert code == 0


def test_a_difference_is_counted_shown_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    real = check.library_dequantize

    def wrong(type_name: str, blocks: np.ndarray) -> np.ndarray:
        values = real(type_name, blocks)
        values[1, 5] ^= 1
        values[2, 0] ^= 1
        return values

    monkeypatch.setattr(check, "library_dequantize", wrong)
    monkeypatch.setattr(check, "BATCH", 4)
    code, output = _run("--blocks", "8", "--type", "Q8_0")
    assert code == 1
    assert output.splitlines()[1].split()[:4] == ["Q8_0", "8", "256", "4"]
    shown = re.search(r"block ([0-9a-f]{68}) element 5: (0x[0-9a-f]{8}), but d = .* -> (0x[0-9a-f]{8})$", output.strip())
    assert shown
    made = check.random_blocks("Q8_0", 4, np.random.default_rng([0, BY_NAME["Q8_0"].id]))
    assert bytes.fromhex(shown[1]) == made[1].tobytes()
    assert int(shown[2], 16) ^ int(shown[3], 16) == 1


def test_batches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    monkeypatch.setattr(check, "BATCH", 4)
    assert check.check("Q1_0", 10, seed=1) == check.Tally(10, 1280, 0)


def test_without_the_library_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv(loading.LIBRARY_VARIABLE, str(tmp_path))
    loading.libraries.cache_clear()
    check.kinds.cache_clear()
    try:
        code, output = _run("--blocks", "1", "--type", "F16")
    finally:
        loading.libraries.cache_clear()
        check.kinds.cache_clear()
    assert code == 4
    assert "error: " in output
    assert str(tmp_path) in output
    assert "Traceback" not in output
