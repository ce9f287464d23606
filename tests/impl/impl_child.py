"""The live library in a process of its own, for what it aborts on."""

from __future__ import annotations

import faulthandler
import os
import signal

import numpy as np
import numpy.typing as npt
from impl_live import Live

Floats = npt.NDArray[np.float32]


def in_a_child(live: Live, kind: str, rows: Floats, imatrix: Floats | None) -> npt.NDArray[np.uint8] | None:
    """Give what the library quantizes ``rows`` to; None where it aborts."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.write(send, live.quantize_chunk(kind, rows, imatrix).tobytes())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGABRT
    return np.frombuffer(answer, np.uint8) if os.WIFEXITED(status) else None
