"""The profile ``gguf-py``: what ``GGUFReader`` of gguf 0.19.0 takes, and what it makes of it.

Source: gguf/gguf_reader.py. It maps a file and slices it, and a slice past the end is shorter, not an error. So it takes a last
string, array or number that is cut off. It is not followed where its arithmetic wraps: an offset that wraps to a place before
the data is refused here (``missing-data``).
"""

from __future__ import annotations

from impl.container.cursor import Cursor, show
from impl.container.directory import SIZE_MAX, TensorInfo
from impl.container.gguf_py_shapes import MISSING, settled
from impl.container.rules import Header, Pair, Rules, missing_value, padded
from impl.container.text_rules import check_texts, is_utf8
from impl.container.values import Nested, Number, Strings
from impl.errors import GgufError
from impl.types import TYPES, TensorType

# Each level is a call within a call; how many Python allows depends a little on who calls. Measured with the harness's adapter.
_LEVELS = 979


def _known(kind: TensorType) -> TensorType:
    """Give a type as its table has it: 40 bytes a block of Q8_1, where ggml has 36."""
    return kind._replace(nbytes=40) if kind.name == "Q8_1" else kind


class GgufPyRules(Rules):
    """What gguf-py takes."""

    name = "gguf-py"
    who = "gguf-py"
    byteorder = "either"
    max_tensors = max_pairs = max_string = max_array = SIZE_MAX
    max_levels = _LEVELS
    cuts_at_end = True
    types_empty_arrays = False
    reserved_keys = frozenset({b"GGUF.version", b"GGUF.tensor_count", b"GGUF.kv_count"})
    max_dims = 2**32
    max_dim = SIZE_MAX
    max_name = SIZE_MAX
    max_elements = None
    types = tuple(_known(kind) for kind in TYPES[:42])
    checks_as_it_reads = False

    def key_problem(self, key: bytes) -> str:
        """Say why a key is no UTF-8; it may be empty."""
        return "" if is_utf8(key) else f"the key {show(key)} is not UTF-8"

    def name_problem(self, name: bytes) -> str:
        """Say why a name is no UTF-8; it may be empty, and of any length."""
        return "" if is_utf8(name) else f"the tensor name {show(name)} is not UTF-8"

    def is_alignment(self, key: bytes) -> bool:
        """All bytes of the key count."""
        return key == b"general.alignment"

    def data_offset(self, cursor: Cursor, n_tensors: int, alignment: int) -> int:
        """Give the next multiple of the alignment, with or without tensors, and behind the end of the file too."""
        del n_tensors
        return padded(cursor.pos, alignment)

    def check_offsets(self, tensors: list[TensorInfo], alignment: int) -> int:
        """Give where the last one ends; offsets are not looked at."""
        del alignment
        return max((info.offset + info.nbytes for info in tensors), default=0)

    def read_entry(self, cursor: Cursor, index: int, seen: set[bytes]) -> TensorInfo:
        """Read an entry's fields; what they mean is looked at in ``settle``, once the alignment is known to be right.

        So are whole fields that the file ends before: the data of the tensors before this one is looked for first.
        """
        del seen
        field = f"tensors[{index}]"
        name = cursor.string(f"{field}.name")
        n_dims = cursor.u32(f"{field}.n_dims")
        dims_at = cursor.pos
        if cursor.lacks(n_dims * cursor.width):
            n_dims = -(-cursor.remaining // cursor.width)
        ne = tuple(cursor.word(f"{field}.dims[{j}]") for j in range(n_dims))
        type_at = cursor.pos
        number = MISSING if cursor.lacks(1) else cursor.u32(f"{field}.type")
        offset_at = cursor.pos
        offset = MISSING if cursor.lacks(1) else cursor.u64(f"{field}.offset")
        if problem := self.name_problem(name):
            raise GgufError("bad-name", problem, field=f"{field}.name", at=dims_at - 4 - len(name))
        return TensorInfo(name, TensorType(number, ""), ne, offset, 0, dims_at, type_at, offset_at)

    def settle(self, tensors: list[TensorInfo], data_offset: int, file_size: int | None) -> list[TensorInfo]:
        """Check names, types and shapes, and that each tensor lies within the file."""
        seen: set[bytes] = set()
        taken = []
        for index, info in enumerate(tensors):
            if info.name in seen:
                problem = f"an earlier tensor is named {show(info.name)} too"
                raise GgufError("duplicate-tensor", problem, field=f"tensors[{index}].name", at=info.dims_at - 4 - len(info.name))
            seen.add(info.name)
            taken.append(settled(info, index, self.types, data_offset, file_size))
        return taken

    def check_values(self, pairs: list[Pair]) -> None:
        """Ask for each value: a number that is not there and text that is not UTF-8 then show."""
        for index, pair in enumerate(pairs):
            if isinstance(pair.value, Number) and not pair.value.raw:
                missing_value(index, pair)
            if not isinstance(pair.value, Nested) or shows_text(pair.value):
                check_texts(index, pair)

    def check_load(self, header: Header, file_size: int) -> None:
        """Check what opening a file whose size is known checks."""
        self.settle(header.tensors, header.data_offset, file_size)


def shows_text(value: Nested) -> bool:
    """Tell whether it gives the innermost elements as text: it goes by the first one."""
    return bool(value.leaves) and isinstance(value.leaves[0], Strings) and len(value.leaves[0].ends) > 0
