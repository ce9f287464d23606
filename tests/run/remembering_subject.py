"""The reference with a memory: once it was asked to dequantize Q4_0, zeros that it dequantizes after that are negative."""

import sys
from pathlib import Path

import numpy as np

import impl
from conformance.adapter import Adapter, Identity, Ops

ASKED = []


def dequantize(request):
    values = impl.dequantize(request.type, Path(request.input).read_bytes(), (request.rows, request.cols))
    if "Q4_0" in ASKED:
        values = np.where(values == 0, np.float32(-0.0), values)
    ASKED.append(request.type)
    Path(request.out).write_bytes(np.ascontiguousarray(values, np.float32).tobytes())


if __name__ == "__main__":
    identity = Identity(name="remembering", version="1", language="python", protocol=1, ops=Ops(dequantize=("Q8_0", "Q4_0")))
    sys.exit(Adapter(identity, {"dequantize": dequantize}).main(sys.argv[1:]))
