"""Compiled loops that are kept on disk: changed ones are compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLED = """
from impl.blocks.kernel import kernel

STEP = {step}

@kernel
def add(x):
    return x + {added}
"""
CALLER = """
from called import STEP, add
from impl.blocks.kernel import kernel

@kernel
def twice(x):
    return add(add(x)) + STEP
"""
ASK = "import caller; print(caller.twice(1), sum(caller.twice.stats.cache_hits.values()))"


def answer(folder: Path, added: int, step: int) -> list[int]:
    """Give what the caller computes, and whether it was taken from the disk."""
    (folder / "called.py").write_text(CALLED.format(added=added, step=step))
    (folder / "caller.py").write_text(CALLER)
    return run(folder, ASK)


def run(folder: Path, program: str) -> list[int]:
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[2])])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, cwd=folder)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize(("added", "step", "expected"), [(20, 0, 41), (10, 5, 26)])
def test_what_a_loop_calls_or_reads_of_another_module_may_change(tmp_path: Path, added: int, step: int, expected: int) -> None:
    assert answer(tmp_path, 10, 0) == [21, 0]
    assert answer(tmp_path, 10, 0) == [21, 1]
    assert answer(tmp_path, added, step) == [expected, 0]


TUPLED = """
from typing import NamedTuple
from impl.blocks.kernel import kernel

class {name}(NamedTuple):
    x: int

@kernel
def first(pair):
    return pair.x
"""


def test_a_class_that_loops_took_may_be_gone(tmp_path: Path) -> None:
    for name in ("Before", "After"):
        (tmp_path / "tupled.py").write_text(TUPLED.format(name=name))
        assert run(tmp_path, f"import tupled; print(tupled.first(tupled.{name}(7)))") == [7]


INNER = """
from impl.blocks.kernel import inner, kernel

@inner
def half(x):
    return x // 2

@kernel
def quarter(x):
    return half(half(x))
"""
CALL_INNER = """
import inners
refused = 0
for _ in range(2):
    try:
        inners.half(8)
    except TypeError as error:
        refused += "inners.half is called by compiled loops only" in str(error)
    print(inners.quarter(8))
print(refused)
"""


def test_what_only_loops_call_is_refused_to_others(tmp_path: Path) -> None:
    """Before it is compiled and after, which without a refusal would end the process."""
    (tmp_path / "inners.py").write_text(INNER)
    for _ in range(2):  # compiled, then taken from the disk
        assert run(tmp_path, CALL_INNER) == [2, 2, 2]
