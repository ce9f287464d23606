"""The judge's block layouts, held to the type table and to gguf-py's decoders."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

from conformance.ggml_types import BY_NAME
from conformance.judge.layouts import FIELDS, place

DECODED = [name for name, fields in FIELDS.items() if any(field.elements for field in fields)]
# gguf-py cannot decode these; Q8_1 and Q8_K are no weight types, Q1_0 and Q2_0 are newer than it.
NOT_IN_GGUF_PY = {"Q8_1", "Q8_K", "Q1_0", "Q2_0"}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_tile_the_block(name: str) -> None:
    end = 0
    for field in FIELDS[name]:
        assert field.offset == end
        assert field.nbytes % field.width == 0
        end += field.nbytes
    assert end == BY_NAME[name].nbytes


@pytest.mark.parametrize("name", sorted(set(DECODED) - NOT_IN_GGUF_PY))
def test_a_changed_byte_changes_just_the_elements_that_are_named(name: str) -> None:
    kind = BY_NAME[name]
    rng = np.random.default_rng(7)
    base = _finite_block(name, rng)
    before = _decode(name, base)
    for byte in range(kind.nbytes):
        spot = place(name, byte)
        if not spot.elements:
            continue
        changed: set[int] = set()
        for bit in range(8):
            flipped = base.copy()
            flipped[byte] ^= 1 << bit
            changed |= set(np.flatnonzero(_decode(name, flipped) != before).tolist())
        assert changed == set(spot.elements), (name, byte, spot)


def _decode(name: str, block: np.ndarray) -> np.ndarray:
    return dequantize(block[None, :], GGMLQuantizationType[name])[0]


def _finite_block(name: str, rng: np.random.Generator) -> np.ndarray:
    """Random bytes with every scale set to an ordinary value, so that no element decodes to zero or NaN by its scale."""
    block = rng.integers(0, 256, BY_NAME[name].nbytes, dtype=np.uint8)
    for field in FIELDS[name]:
        part = block[field.offset : field.offset + field.nbytes]
        if field.name in {"d", "dmin", "m"} and field.width == 2:
            part[:] = np.frombuffer(np.float16(1.5).tobytes(), np.uint8)
        elif field.name in {"d", "e"}:
            part[:] = 0x40 if field.name == "d" else 127
        elif field.name.startswith("scales"):
            part[:] = 0x2B
    return block


def test_places_are_named_by_entry() -> None:
    assert place("Q8_0", 5) == ("qs", "qs[3]", (3,))
    assert place("Q8_0", 1) == ("d", "d", ())
    assert place("IQ2_XXS", 5) == ("qs", "qs[1]", ())
    assert place("I64", 3) == ("byte", "byte[3]", ())
