"""How far candle's quantizers leave numbers from themselves, beside ggml's: errors.py BUILT/release/candle-adapter.

Rows are normally distributed. An error is the mean square one, weighted by the importances where there are some, relative
to that of ggml's blocks, which the reference gives bit for bit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import impl

TYPES = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")


def main(program: str) -> None:
    """Print a line for each type, without and with importances."""
    random = np.random.default_rng(1)
    rows = random.standard_normal((256, 1024)).astype(np.float32)
    weights = (random.standard_normal(1024) ** 2 + 0.01).astype(np.float32)
    for name in TYPES:
        compare(program, name, rows, None)
        if name.endswith("K"):
            compare(program, name, rows, weights)


def compare(program: str, name: str, rows: np.ndarray, weights: np.ndarray | None) -> None:
    """Quantize by both and print how many blocks are the same, and the errors' ratio."""
    found = ask(program, name, rows, weights)
    expected = np.asarray(impl.quantize(name, rows, weights)).reshape(found.shape)
    size = found.shape[1] * (256 if name.endswith("K") else 32) // rows.shape[1]
    same = (found.reshape(-1, size) == expected.reshape(-1, size)).all(1).mean()
    ratio = error(name, found, rows, weights) / error(name, expected, rows, weights)
    what = name if weights is None else f"{name} imatrix"
    sys.stdout.write(f"{what:13} {same:6.1%} of the blocks are the same, error {ratio:.3f} times ggml's\n")


def error(name: str, blocks: np.ndarray, rows: np.ndarray, weights: np.ndarray | None) -> float:
    """Give the weighted square error of the blocks' values."""
    apart = np.asarray(impl.dequantize(name, blocks, rows.shape)).astype(np.float64) - rows
    return float((apart**2 * (1 if weights is None else weights)).sum())


def ask(program: str, name: str, rows: np.ndarray, imatrix: np.ndarray | None) -> np.ndarray:
    """Have candle quantize the rows, by the protocol."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        rows.tofile(path / "rows")
        request = {
            "seq": 1,
            "op": "quantize",
            "type": name,
            "rows": len(rows),
            "cols": rows.shape[1],
            "in": f"{path}/rows",
            "out": f"{path}/out",
        }
        if imatrix is not None:
            imatrix.tofile(path / "imatrix")
            request["imatrix"] = f"{path}/imatrix"
        said = subprocess.run([program], input=json.dumps(request) + "\n", capture_output=True, text=True, check=True).stdout
        if "ok" not in json.loads(said):
            sys.exit(said)
        return np.fromfile(path / "out", np.uint8).reshape(len(rows), -1)


main(sys.argv[1])
