"""Compares the exact model with llama.cpp's library on random blocks: ``python -m conformance.judge.exact.check --blocks 1000``.

The library is called in this process. Its dequantizers take any bytes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import click
import numpy as np
import numpy.typing as npt

from conformance.errors import AuthorityMissingError, GgufConformanceError
from conformance.ggml_types import BY_NAME
from conformance.judge.exact import EXACT_TYPES, MODELS, exact_dequantize, explain
from conformance.judge.exact.real import CANONICAL_NAN
from conformance.judge.layouts import FIELDS
from conformance.judge.output import Bytes
from conformance.subjects.authorities.llama_cpp.blocks import FLOAT
from conformance.subjects.authorities.llama_cpp.kinds import dequantizer, kinds
from conformance.subjects.authorities.llama_cpp.library import libraries

Bits = npt.NDArray[np.uint32]

# Blocks made and compared at a time.
BATCH = 256


class Tally(NamedTuple):
    """What the comparison of one type found; ``first`` tells of the first difference."""

    blocks: int = 0
    values: int = 0
    different: int = 0
    first: str = ""

    def joined(self, other: Tally) -> Tally:
        """Give this and a later tally as one."""
        counts = (self.blocks + other.blocks, self.values + other.values, self.different + other.different)
        return Tally(*counts, self.first or other.first)


def library_dequantize(type_name: str, blocks: Bytes) -> Bits:
    """Dequantize blocks of shape (count, bytes) by the library; gives the float32 bits, of shape (count, elements), NaN canonical.

    The library has no function for Q8_1. Without its field ``s`` such a block is one of Q8_0, and is given as that.
    Raises AuthorityMissingError where there is no library, or none that knows the type.
    """
    if type_name == "Q8_1":
        return library_dequantize("Q8_0", np.delete(blocks, (2, 3), axis=1))
    convert = dequantizer(kinds()[type_name]) if type_name in kinds() else None
    if convert is None:
        raise AuthorityMissingError(
            f"this llama.cpp does not dequantize {type_name}",
            where=str(libraries().path),
            hint="Install the expected version with: python -m conformance.subjects.authorities.build",
        )
    count, elements = len(blocks), BY_NAME[type_name].block
    out = np.empty((count, elements * FLOAT), np.uint8)
    convert(blocks.tobytes(), out.ctypes.data, count * elements)
    values = out.view(np.float32)
    return np.where(np.isnan(values), np.uint32(CANONICAL_NAN), values.view(np.uint32))


def random_blocks(type_name: str, count: int, rng: np.random.Generator) -> Bytes:
    """Give ``count`` blocks of random bytes, of shape (count, bytes)."""
    return rng.integers(0, 256, (count, BY_NAME[type_name].nbytes), dtype=np.uint8)


def scale_blocks(type_name: str, rng: np.random.Generator) -> Iterator[Bytes]:
    """Give one random block with every pattern of each one or two bytes that hold a number; each time shape (256 or 65536, bytes).

    Gives nothing for a type whose scale is wider (Q8_K) or spread over the block (IQ1_M).
    """
    (body,) = random_blocks(type_name, 1, rng)
    for field in FIELDS[type_name]:
        if field.name not in MODELS[type_name].scales or field.width > 2:
            continue
        patterns = np.arange(1 << 8 * field.width, dtype=f"<u{field.width}").view(np.uint8).reshape(-1, field.width)
        for start in range(field.offset, field.offset + field.nbytes, field.width):
            blocks = np.repeat(body[None], len(patterns), axis=0)
            blocks[:, start : start + field.width] = patterns
            yield blocks


def compare(type_name: str, blocks: Bytes) -> Tally:
    """Hold the model to the library on blocks of shape (count, bytes)."""
    expected = library_dequantize(type_name, blocks)
    found = np.array([exact_dequantize(type_name, block.tobytes()) for block in blocks], np.uint32)
    wrong = np.argwhere(expected != found)
    first = ""
    if len(wrong):
        block, element = wrong[0].tolist()
        told = explain(type_name, blocks[block].tobytes(), element)
        first = f"block {blocks[block].tobytes().hex()} element {element}: 0x{expected[block, element]:08x}, but {told}"
    return Tally(len(blocks), expected.size, len(wrong), first)


def check(type_name: str, count: int | None, seed: int) -> Tally:
    """Compare ``count`` random blocks of one type or, where it is None, one block with every pattern of its scales."""
    rng = np.random.default_rng([seed, BY_NAME[type_name].id])
    total = Tally()
    for blocks in scale_blocks(type_name, rng) if count is None else _batches(type_name, count, rng):
        total = total.joined(compare(type_name, blocks))
    return total


def _batches(type_name: str, count: int, rng: np.random.Generator) -> Iterator[Bytes]:
    return (random_blocks(type_name, min(BATCH, count - start), rng) for start in range(0, count, BATCH))


@click.command()
@click.option("--blocks", default=1000, show_default=True, type=click.IntRange(1), help="Random blocks a type.")
@click.option("--type", "types", multiple=True, type=click.Choice(EXACT_TYPES), help="Only this type; may be repeated.")
@click.option("--scales", is_flag=True, help="Instead of random blocks, one block a type with every pattern of its scales.")
@click.option("--seed", default=0, show_default=True, help="Another seed gives other blocks.")
def main(blocks: int, types: tuple[str, ...], *, scales: bool, seed: int) -> None:
    """Compare the exact model of dequantization with llama.cpp. Exit code 1 if any value differs, 4 if the library is missing."""
    click.echo(f"{'type':<8} {'blocks':>10} {'values':>13} {'different':>10} {'values/s':>9}")
    different = 0
    for name in types or EXACT_TYPES:
        start = time.perf_counter()
        tally = _checked(name, None if scales else blocks, seed)
        rate = tally.values / (time.perf_counter() - start)
        click.echo(f"{name:<8} {tally.blocks:>10,} {tally.values:>13,} {tally.different:>10,} {rate:>9,.0f}")
        if tally.first:
            click.echo(f"  {tally.first}")
        different += tally.different
    sys.exit(1 if different else 0)


def _checked(name: str, blocks: int | None, seed: int) -> Tally:
    try:
        return check(name, blocks, seed)
    except GgufConformanceError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
