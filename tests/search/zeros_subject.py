"""Whatever Q4_0 blocks it is given, it dequantizes zeros; told to remember, negative ones from the second time on.

It loads no compiler: a search that shortens a sequence of requests starts dozens of these.
"""

import sys
from pathlib import Path

import numpy as np

from conformance.adapter import Adapter, Identity, Ops

ASKED = []


def dequantize(request):
    zero = -0.0 if ASKED and "remember" in sys.argv else 0.0
    ASKED.append(request.seq)
    Path(request.out).write_bytes(np.full(request.rows * request.cols, zero, np.float32).tobytes())


if __name__ == "__main__":
    identity = Identity(name="zeros", version="1", language="python", protocol=1, ops=Ops(dequantize=("Q4_0",)))
    sys.exit(Adapter(identity, {"dequantize": dequantize}).main([word for word in sys.argv[1:] if word != "remember"]))
