"""What the adapter does for each op of the protocol. numpy is imported by the ops that need it, not by the others."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from impl import __version__
from impl.blocks import SUPPORTED
from impl.container.describe import describe
from impl.container.last import LastFile
from impl.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PROTOCOL = 1
Json = dict[str, Any]

# The variants of quantize: ggml's normal path, and the ``_ref`` functions, which some types have not and some have alone.
_QUANTIZE: dict[str | None, tuple[str, ...]] = {None: SUPPORTED["quantize"], "ref": SUPPORTED["ref"]}

# Bytes of tensor data that are copied in one go.
_PIECE = 1 << 20


class Subject:
    """Answers requests with this package; each op is a method. ``name`` is what hello says.

    An op raises GgufError, InputError or UnsupportedError, which are answers too. What else it raises is a fault of its own.
    """

    name = "impl"

    def __init__(self) -> None:
        self._profile = "llama.cpp"
        self._files = LastFile()

    def reading_as(self, profile: str) -> Self:
        """Read files by the rules of another profile from now on; give this subject."""
        self._profile = profile
        self._files = LastFile(profile)
        return self

    def hello(self, _request: Json) -> Json:
        """Say who this is and what it does."""
        quantize = [*_QUANTIZE[None], *(f"{kind}:ref" for kind in _QUANTIZE["ref"])]
        blocks = {"dequantize": list(SUPPORTED["dequantize"]), "quantize": quantize}
        blocks |= {op: list(SUPPORTED["dot"]) for op in ("dot", "matvec")}
        # To gguf.md a file without tensors has no place where its data would start.
        view = {"data_offset": "tensors"} if self._profile == "spec" else {}
        ops: Json = {"header": view, "load": view, "tensor": {}, **blocks}
        if self._profile == "llama.cpp":
            ops["write"] = {}  # there is one writer, ggml's: the other profiles are rules of reading
        return {"name": self.name, "version": __version__, "language": "python", "protocol": PROTOCOL, "ops": ops}

    def header(self, request: Json) -> Json:
        """Give the header; the data may be missing."""
        return describe(self._files.reread(request["path"]).header)

    def load(self, request: Json) -> Json:
        """Give the header of a file whose data is all there."""
        opened = self._files.reread(request["path"])
        opened.check_load()
        return describe(opened.header)

    def tensor(self, request: Json) -> Json:
        """Write one tensor's bytes."""
        tensors = self._files.get(request["path"]).tensors
        index = request["index"]
        if not 0 <= index < len(tensors):
            raise InputError(f"tensor {index} of a file that has {len(tensors)}")
        Path(request["out"]).write_bytes(tensors[index].raw)
        return {}

    def dequantize(self, request: Json) -> Json:
        """Turn a file of blocks into a file of float32."""
        from impl.blocks.api import dequantize  # noqa: PLC0415 - loads numpy

        dequantize(request["type"], Path(request["in"]).read_bytes(), _shape(request)).tofile(request["out"])
        return {}

    def quantize(self, request: Json) -> Json:
        """Turn a file of float32 into a file of blocks."""
        kind, variant = request["type"], request.get("variant")
        if kind not in _QUANTIZE.get(variant, ()):
            done = ", ".join(_QUANTIZE.get(variant, ())) or "none"
            raise UnsupportedError(f"quantize of {kind}, variant {variant}, is not done here; of this variant are: {done}")
        shape = _shape(request)
        imatrix = request.get("imatrix")
        weights = None if imatrix is None else _floats(imatrix, shape[1:])
        self.quantize_rows(kind, _floats(request["in"], shape), weights, reference=variant == "ref").tofile(request["out"])
        return {}

    def quantize_rows(
        self, kind: str, rows: npt.NDArray[np.float32], imatrix: npt.NDArray[np.float32] | None, *, reference: bool
    ) -> npt.NDArray[np.uint8]:
        """Quantize float32 rows of shape (rows, cols), imatrix of shape (cols,), to uint8 of shape (rows, row bytes)."""
        from impl.blocks.api import quantize  # noqa: PLC0415 - loads numpy

        return quantize(kind, rows, imatrix, reference=reference)

    def dot(self, request: Json) -> Json:
        """Multiply rows of blocks by rows of float32."""
        from impl.blocks.api import dot  # noqa: PLC0415 - loads numpy

        _scalar_only(request)
        x = _floats(request["x"], _shape(request))
        dot(request["type"], Path(request["weights"]).read_bytes(), x).tofile(request["out"])
        return {}

    def matvec(self, request: Json) -> Json:
        """Multiply rows of blocks by one row of float32."""
        from impl.blocks.matvec import matvec  # noqa: PLC0415 - loads numpy

        _scalar_only(request)
        rows, cols = _shape(request)
        weights = Path(request["weights"]).read_bytes()
        products = matvec(request["type"], weights, _floats(request["x"], (cols,)))
        if len(products) != rows:
            raise InputError(f"{request['weights']} holds {len(products)} rows of {cols} elements, not {rows}")
        products.tofile(request["out"])
        return {}

    def write(self, request: Json) -> Json:
        """Write the file that a header describes, with the tensors' bytes out of another file."""
        from impl.container.told import told_pairs, told_tensors  # noqa: PLC0415 - only this op makes files
        from impl.container.writer import Writer  # noqa: PLC0415 - the same

        said = json.loads(Path(request["description"]).read_bytes())
        tensors = told_tensors(said["tensors"])
        with (
            Writer(request["out"], told_pairs(said["kv"]), tensors, version=said["version"]) as writer,
            Path(request["data"]).open("rb") as data,
        ):
            for entry in writer.layout.entries:
                for start in range(0, entry.nbytes, _PIECE):
                    writer.write(data.read(min(_PIECE, entry.nbytes - start)))
            if data.read(1):
                raise InputError(f"{request['data']} holds more bytes than the tensors take")
        return {}


def _scalar_only(request: Json) -> None:
    if request.get("variant") is not None:
        asked = f"{request['op']} of {request['type']}:{request['variant']}"
        raise UnsupportedError(f"{asked} is not done here: there is only the scalar one")


def _shape(request: Json) -> tuple[int, int]:
    rows, cols = request["rows"], request["cols"]
    if rows < 0 or cols < 1:
        raise InputError(f"{rows} rows of {cols} elements: rows must be 0 or more, and a row have elements")
    return rows, cols


def _floats(path: str, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Read float32 of ``shape`` from a file that holds just them. Raises InputError."""
    import numpy as np  # noqa: PLC0415 - only block ops need it

    size, expected = Path(path).stat().st_size, 4 * math.prod(shape)
    if size != expected:
        raise InputError(f"{path} holds {size} bytes, but float32 of shape {shape} takes {expected}")
    return np.fromfile(path, dtype="<f4").reshape(shape)
