"""The reference implementation: reads GGUF files as llama.cpp does, and ggml's blocks bit for bit as ggml does.

The library's face is ``open``, ``open_split``, ``Prefix``, ``write``, ``rewrite``, ``quantize``, ``dequantize``, ``dot``,
``matvec``, ``check`` and ``validate``; ``python -m impl`` is its adapter. numpy is loaded only when numbers are asked for, so
that reading a header starts fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from impl.errors import DescriptionError, GgufError, InputError, UnsupportedError

if TYPE_CHECKING:
    from impl.blocks.api import dequantize, dot, quantize
    from impl.blocks.matvec import matvec
    from impl.checking import check
    from impl.container.byteswap import byteswap
    from impl.container.file import File, Tensor
    from impl.container.file import open_file as open  # noqa: A004 - the face's verb, as in gzip.open
    from impl.container.making import value
    from impl.container.new_tensor import NewTensor
    from impl.container.prefix import Prefix
    from impl.container.split import SplitFile, open_split
    from impl.container.strings import load_compiled as load_compiled_scan
    from impl.container.writer import Writer, rewrite, write
    from impl.validation import BadBlock, validate

__version__ = "0.1.0"

__all__ = [
    "BadBlock",
    "DescriptionError",
    "File",
    "GgufError",
    "InputError",
    "NewTensor",
    "Prefix",
    "SplitFile",
    "Tensor",
    "UnsupportedError",
    "Writer",
    "byteswap",
    "check",
    "dequantize",
    "dot",
    "load_compiled_scan",
    "matvec",
    "open",
    "open_split",
    "quantize",
    "rewrite",
    "validate",
    "value",
    "write",
]

_LAZY = {
    "File": ("impl.container.file", "File"),
    "Tensor": ("impl.container.file", "Tensor"),
    "open": ("impl.container.file", "open_file"),
    "open_split": ("impl.container.split", "open_split"),
    "SplitFile": ("impl.container.split", "SplitFile"),
    "Prefix": ("impl.container.prefix", "Prefix"),
    "load_compiled_scan": ("impl.container.strings", "load_compiled"),
    "value": ("impl.container.making", "value"),
    "NewTensor": ("impl.container.new_tensor", "NewTensor"),
    "Writer": ("impl.container.writer", "Writer"),
    "rewrite": ("impl.container.writer", "rewrite"),
    "write": ("impl.container.writer", "write"),
    "byteswap": ("impl.container.byteswap", "byteswap"),
    "quantize": ("impl.blocks.api", "quantize"),
    "dequantize": ("impl.blocks.api", "dequantize"),
    "dot": ("impl.blocks.api", "dot"),
    "matvec": ("impl.blocks.matvec", "matvec"),
    "check": ("impl.checking", "check"),
    "validate": ("impl.validation", "validate"),
    "BadBlock": ("impl.validation", "BadBlock"),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'impl' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)
