"""How long the first use of each op of each type takes: the reference's loops are compiled then, once a machine.

Each op has a process and an empty directory for compiled loops of its own, so that no op finds what another one has compiled. A
second process then takes the loops from that directory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import ConfigurationError, UsageError
from impl.blocks import SUPPORTED
from impl.blocks.api import codec

OPS = ("quantize", "quantize with imatrix", "dequantize", "dot")

# Run by a fresh interpreter: what is measured begins after ``import impl``, which loads neither the compiler nor a type's module.
# Processor time is counted, not the clock on the wall: compiling is done by one thread, and others may be at work.
_FIRST_USE = """
import json, sys, time
import numpy as np
import impl
from impl.blocks.api import codec, dot
name, op = sys.argv[1:]
start = time.process_time()
found = codec(name)
x, weights = np.linspace(-1, 1, 256, dtype=np.float32), np.ones(256, np.float32)
blocks = np.zeros(found.type.row_bytes(256), np.uint8)
if op == "dequantize":
    impl.dequantize(name, blocks, (256,))
elif op == "dot":
    dot(name, blocks, x)
else:
    impl.quantize(name, x, weights if op == "quantize with imatrix" else None)
print(json.dumps(time.process_time() - start))
"""

Run = Callable[[Sequence[str], Path], float]
"""Runs the first use of (type, op) in a fresh process, with its compiled loops in a directory; gives seconds."""


@dataclass(frozen=True)
class FirstUse:
    """One op of one type, in seconds of processor time, imports counted: nothing compiled yet, and with the loops from the disk."""

    type: str
    op: str
    first: float
    again: float


def first_uses(types: Iterable[str]) -> list[tuple[str, str]]:
    """List type and op of all that is compiled of ``types``, or of all types. Raises UsageError for a type that is not compiled."""
    known = sorted({name for names in SUPPORTED.values() for name in names} - {"F32"})
    wanted = list(types) or known
    for name in wanted:
        if name not in known:
            raise UsageError(f"type {name!r} is not compiled here", hint=f"These are: {', '.join(known)}.")
    return [(name, op) for name in wanted for op in OPS if _does(name, op)]


def _does(name: str, op: str) -> bool:
    if op == "quantize":
        return name in SUPPORTED[op] and not codec(name).needs_imatrix
    if op == "quantize with imatrix":
        return codec(name).uses_imatrix
    return name in SUPPORTED[op]


def _python(arguments: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise ConfigurationError(f"the first use of {' '.join(arguments[-2:])} ended with {done.returncode}: {''.join(last)}")
    return done.stdout


def run_once(arguments: Sequence[str], kept: Path) -> float:
    """Measure the first use of an op in a fresh process that keeps compiled loops in ``kept``."""
    return float(json.loads(_python(["-c", _FIRST_USE, *arguments], {**os.environ, "NUMBA_CACHE_DIR": str(kept)})))


def run_each(todo: Iterable[tuple[str, str]], say: Callable[[str], object], run: Run = run_once) -> Iterator[FirstUse]:
    """Measure each (type, op) twice; ``say`` is told what is being measured."""
    for name, op in todo:
        say(f"{name} {op}")
        with tempfile.TemporaryDirectory() as kept:
            yield FirstUse(name, op, run((name, op), Path(kept)), run((name, op), Path(kept)))
