"""The process that libFuzzer drives: ``python -m conformance.fuzz.target [libFuzzer's options] FOLDER...``.

It ends as libFuzzer ends it: after its time, or at the first input on which the reader breaks a rule of the oracle.
"""

from __future__ import annotations

import sys
import tracemalloc

import atheris

with atheris.instrument_imports(include=["impl"]):
    from conformance.fuzz.oracle import check
    from impl.container.strings import load_compiled


def one_input(data: bytes) -> None:
    """Hold the reader to the oracle on one input."""
    check(data)


if __name__ == "__main__":
    load_compiled()  # files at hand are then read by the compiled loop, those in pieces by the other: both must say the same
    tracemalloc.start()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
