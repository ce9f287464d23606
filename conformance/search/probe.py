"""What is put to both sides of a search: a file, or numbers, before it is a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Blocks = npt.NDArray[np.uint8]

FileOp = Literal["header", "load", "tensor", "write"]
NumberOp = Literal["quantize", "dequantize", "dot", "matvec"]


class FileProbe(NamedTuple):
    """A file and what is asked of it. ``data`` are its bytes, ``recipe`` builds them (the mapping below a case's ``build``).

    ``label`` says in one word what is unusual in it (``kv[*].key.length=huge``, ``cut``, ``valid``): it tells apart findings that
    have a signature in common, before they are shrunk. Of op ``tensor`` every tensor is asked for, of op ``write`` that the file be
    written again.
    """

    op: FileOp
    data: bytes
    recipe: Mapping[str, Any]
    label: str


class NumberProbe(NamedTuple):
    """Rows of ``cols`` elements of a ggml type, many at a time: what one request of a block op works on.

    ``quantize``: ``rows``, float32 of shape (n, cols), and ``imatrix``, float32 of shape (cols,), or None. The others: ``blocks``,
    uint8 of shape (n, row bytes). ``dot`` and ``matvec``: ``x``, float32 of shape (n, cols) or (1, cols). ``variant`` is empty or a
    variant of the op (``ref``).
    """

    op: NumberOp
    type: str
    cols: int
    rows: Floats | None = None
    blocks: Blocks | None = None
    x: Floats | None = None
    imatrix: Floats | None = None
    variant: str = ""
    label: str = ""

    @property
    def n(self) -> int:
        """The number of rows."""
        taken = self.rows if self.blocks is None else self.blocks
        return 0 if taken is None else len(taken)
