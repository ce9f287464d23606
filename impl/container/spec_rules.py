"""The profile ``spec``: what docs/gguf.md of ggml-org/ggml says of a file's structure.

Where the text is silent (a key or a name twice, rows of no whole blocks) a file is refused as llama.cpp refuses it; dimensions of 0
and tensors without dimensions are taken.
"""

from __future__ import annotations

import re

from impl.container.cursor import show
from impl.container.directory import SIZE_MAX, TensorInfo
from impl.container.rules import Header, Pair, Rules, check_within_file
from impl.container.text_rules import check_bools, check_texts, is_utf8
from impl.errors import GgufError

_KEY = re.compile(rb"[a-z0-9_]+(\.[a-z0-9_]+)*")
_LONGEST_KEY = 65535


class SpecRules(Rules):
    """What gguf.md allows."""

    name = "spec"
    who = "gguf.md"
    max_tensors = max_pairs = max_string = max_array = max_levels = SIZE_MAX
    max_name = 64
    max_dim = SIZE_MAX
    max_elements = None
    checks_as_it_reads = False

    def key_problem(self, key: bytes) -> str:
        """Say why a key is no lower_snake_case in ASCII, or too long."""
        if len(key) > _LONGEST_KEY:
            return f"the key has {len(key)} bytes: gguf.md allows {_LONGEST_KEY}"
        if not _KEY.fullmatch(key):
            return f"the key {show(key)} is no lower_snake_case, in ASCII, with dots between"
        return ""

    def name_problem(self, name: bytes) -> str:
        """Say why a name is no UTF-8, or too long."""
        return super().name_problem(name) or ("" if is_utf8(name) else f"the tensor name {show(name)} is not UTF-8")

    def is_alignment(self, key: bytes) -> bool:
        """All bytes of the key count."""
        return key == b"general.alignment"

    def alignment_problem(self, alignment: int) -> str:
        """Say what an alignment must be, if it is something else."""
        return "a multiple of 8" if alignment == 0 or alignment % 8 else ""

    def check_values(self, pairs: list[Pair]) -> None:
        """Text is UTF-8, a bool 0 or 1."""
        for index, pair in enumerate(pairs):
            check_texts(index, pair)
            check_bools(index, pair)

    def check_offsets(self, tensors: list[TensorInfo], alignment: int) -> int:
        """Check that each tensor is aligned; order and gaps are free. Give where the last one ends."""
        for index, info in enumerate(tensors):
            if info.offset % alignment:
                problem = f"offset {info.offset} of tensor {show(info.name)} is no multiple of the alignment, {alignment}"
                raise GgufError("bad-offset", problem, field=f"tensors[{index}].offset", at=info.offset_at)
        return max((info.offset + info.nbytes for info in tensors), default=0)

    def check_load(self, header: Header, file_size: int) -> None:
        """Each tensor lies within the file; the padding behind the last one is not demanded."""
        check_within_file(header, file_size)
