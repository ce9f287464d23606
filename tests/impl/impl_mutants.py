"""Small files damaged at random, always the same ones: what two ways of reading a file are held against each other on."""

from __future__ import annotations

import random
from collections.abc import Iterator

from impl_build import sound_file

from conformance.cases.build import build

TENSORS = [
    {"name": "t", "type": "F32", "dims": [4, 2]},
    {"name": "u", "type": "Q8_0", "dims": [32]},
    {"name": "v", "type": "BF16", "dims": [3]},
]
NESTED = {"array": [{"u32": [1, 2]}, {"str": ["x", "yz"]}, {"array": [{"u8": [1]}]}]}
TEXTS = {"array": [{"str": ["x", "yz"]}, {"str": []}, {"u16": [65, 66]}]}

SEEDS: tuple[bytes, ...] = (
    sound_file(),
    build({"kv": [{"key": "a", "array": NESTED}, {"key": "s", "str": "abc"}], "tensors": TENSORS}).data,
    build({"kv": [{"key": "a", "array": TEXTS}, {"key": "l", "array": {"u16": [1, 2, 3]}}]}).data,
    build({"kv": [{"key": "l", "u64": 7}]}).data,
    build(
        {
            "byteorder": "big",
            "kv": [{"key": "general.alignment", "u32": 64}, {"key": "w", "array": {"str": ["ab", "c"]}}],
            "tensors": [{"name": "t", "type": "I16", "dims": [4, 2]}],
        }
    ).data,
)
# No length of an array becomes so large that a reader which loops up to it takes long.
_BYTES = (0, 1, 2, 3, 4, 8, 9, 10, 12, 13, 31, 32, 64, 128, 255)


def mutants(count: int, seed: int) -> Iterator[bytes]:
    """Give ``count`` files, each with one to three bytes changed, put in or taken out, or cut."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    for _ in range(count):
        data = bytearray(rng.choice(SEEDS))
        for _ in range(rng.choice((1, 1, 2, 3))):
            _damage(data, rng)
        yield bytes(data)


def _damage(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data)) if data else 0
    match rng.randrange(4):
        case 0:
            del data[at + 1 :]
        case 1:
            del data[at : at + rng.choice((1, 2, 4, 8))]
        case 2:
            data[at:at] = bytes(rng.choice((1, 2, 4, 8)))
        case _:
            data[at : at + 1] = bytes([rng.choice(_BYTES)])
