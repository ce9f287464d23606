"""Puts the package ``gguf`` behind the protocol."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from conformance.adapter import PROTOCOL, Adapter, Identity, Ops, View
from conformance.subjects.authorities.gguf_py import blocks
from conformance.subjects.authorities.gguf_py.reader import Reader
from conformance.subjects.authorities.gguf_py.writer import write

VIEW = View()


def identity() -> Identity:
    """Say which gguf answers and what it does."""
    return Identity(
        name="gguf-py",
        version=metadata.version("gguf"),
        language="python",
        protocol=PROTOCOL,
        ops=Ops(
            header=VIEW,
            load=VIEW,
            tensor=VIEW,
            dequantize=blocks.declared_dequantize(),
            quantize=blocks.declared_quantize(),
            write=VIEW,
        ),
        details={"package": str(Path(gguf.__file__).parent), "origin": origin(), "numpy": np.__version__},
    )


def origin() -> str:
    """Tell PyPI's 0.19.0 from the newer one inside llama.cpp's sources, which gives itself the same version.

    They differ in the bytes of a block of Q8_1: 40 (wrong) on PyPI, 36 in the sources.
    """
    return {40: "pypi", 36: "llama.cpp sources"}.get(GGML_QUANT_SIZES[GGMLQuantizationType.Q8_1][1], "unknown")


def adapter() -> Adapter:
    """Make the adapter of the authority ``gguf-py``."""
    reader = Reader()
    return Adapter(
        identity,
        {
            "header": reader.header,
            "load": reader.header,
            "tensor": reader.tensor,
            "dequantize": blocks.dequantize,
            "quantize": blocks.quantize,
            "write": write,
        },
    )
