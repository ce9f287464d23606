"""A subject whose products are also added backwards, as ``:simd``; ``drop`` as its argument leaves the last block out."""

import sys
from pathlib import Path

import numpy as np

from impl.blocks.api import dot
from impl.serve import main
from impl.subject import Json, Subject

BLOCK, NBYTES = 32, 34


class Vector(Subject):
    """Does Q8_0 only."""

    name = "vector"

    def __init__(self, dropped: int) -> None:
        super().__init__()
        self.dropped = dropped

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        return {**said, "ops": {**said["ops"], "dot": ["Q8_0", "Q8_0:simd"]}}

    def dot(self, request: Json) -> Json:
        if request.get("variant") is None:
            return super().dot(request)
        weights = Path(request["weights"]).read_bytes()
        x = np.fromfile(request["x"], np.float32).reshape(-1, BLOCK)
        terms = dot("Q8_0", np.frombuffer(weights, np.uint8).reshape(-1, NBYTES), x).reshape(request["rows"], -1)
        backwards = terms[:, : terms.shape[1] - self.dropped][:, ::-1]
        np.add.accumulate(backwards, axis=1, dtype=np.float32)[:, -1].copy().tofile(request["out"])
        return {}


if __name__ == "__main__":
    sys.exit(main(Vector(dropped=int("drop" in sys.argv)), []))
