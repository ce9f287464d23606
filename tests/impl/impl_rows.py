"""Float rows of every kind that block arithmetic can trip over; float32 of shape (rows, 256)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
ROWS = 64
COLS = 256


def _f32(values: object) -> Rows:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values, np.float32).reshape(-1, COLS)


def finite_rows(seed: int = 1) -> Iterator[tuple[str, Rows]]:
    rng = np.random.default_rng(seed)
    shape = (ROWS, COLS)
    normal = rng.standard_normal(shape)
    zeros = np.where(rng.random(shape) < 0.5, -0.0, 0.0)
    yield "random", _f32(normal)
    yield "random, rounded to f16", _f32(normal.astype(np.float16))
    yield "half-integers", _f32(rng.integers(-254, 255, shape) / 2)
    yield "half-integers over a scale of 1", _f32(np.where(np.arange(COLS) % 32 == 7, 127, rng.integers(-127, 127, shape) + 0.5))
    odd = 2 * rng.integers(50, 5000, (ROWS, COLS // 32)) + 1
    ties = (rng.integers(-126, 126, shape) + 0.5) * np.repeat(odd, 32, axis=1)
    yield "ties over odd scales", _f32(np.where(np.arange(COLS) % 32 == 7, 127 * np.repeat(odd, 32, axis=1), ties))
    yield "beside the ties of Q8", beside_ties(rng, 127)
    yield "beside the ties of Q5", beside_ties(rng, 16)
    yield "beside the ties of Q4", beside_ties(rng, 8)
    yield "small", _f32(normal * 1e-6)
    yield "scales that f16 stores as subnormals", _f32(normal * 10.0 ** rng.uniform(-9, -4, (ROWS, 1)))
    yield "subnormal", _f32(normal * 1e-40)
    yield "the smallest subnormals", _f32(rng.integers(-40, 41, shape) * 2.0**-149)
    yield "reciprocals about to overflow", _f32(normal * 2.0 ** rng.uniform(-130, -120, (ROWS, 1)))
    yield "large", _f32(normal * 3e4)
    yield "scales about to overflow f16", _f32(normal * 10.0 ** rng.uniform(5, 8, (ROWS, 1)))
    yield "huge", _f32(np.clip(normal * 1e38, -3.4e38, 3.4e38))
    yield "all -0.0", _f32(np.full(shape, -0.0))
    yield "both zeros", _f32(zeros)
    yield "both zeros, the rest positive", _f32(np.where(rng.random(shape) < 0.9, zeros, np.abs(normal)))
    yield "both zeros, the rest negative", _f32(np.where(rng.random(shape) < 0.9, zeros, -np.abs(normal)))
    yield "constant", _f32(np.repeat(normal[:, :8], 32))
    yield "two of the greatest magnitude", _f32(rng.choice([-1.0, 1.0, 0.5], shape))
    yield "bits of finite floats", _f32(finite_bits(rng, shape))


def beside_ties(rng: np.random.Generator, steps: int) -> Rows:
    """Numbers within a few units in the last place of half-integer multiples of the block's scale, 1/steps of its greatest."""
    greatest = np.repeat(rng.uniform(1, 2, (ROWS, COLS // 32)).astype(np.float32), 32, axis=1)
    ties = _f32((rng.integers(1 - steps, steps - 1, (ROWS, COLS)) + 0.5) * greatest.astype(np.float64) / steps)
    near = (ties.view(np.int32) + rng.integers(-3, 4, ties.shape, dtype=np.int32)).view(np.float32)
    return _f32(np.where(np.arange(COLS) % 32 == 7, greatest, near))


def finite_bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Rows:
    bits = rng.integers(0, 2**32, shape, dtype=np.uint32)
    values = bits.view(np.float32)
    return np.where(np.isfinite(values), values, np.float32(1))


def rows_with_specials(seed: int = 2) -> Iterator[tuple[str, Rows]]:
    rng = np.random.default_rng(seed)
    shape = (ROWS, COLS)
    normal = rng.standard_normal(shape)
    wide = normal * 10.0 ** rng.integers(-3, 5, shape)
    some = rng.random(shape)
    yield "a NaN here and there", _f32(np.where(some < 0.01, np.nan, normal))
    yield "NaNs among numbers of all sizes", _f32(np.where(some < 0.05, np.nan, wide))
    yield "infinities", _f32(np.where(some < 0.01, np.inf, np.where(some > 0.99, -np.inf, normal)))
    yield "all NaN", _f32(np.full(shape, np.nan))
    yield "all infinite", _f32(np.full(shape, np.inf))
    yield "all -infinite", _f32(np.full(shape, -np.inf))
    yield "nothing but specials", _f32(rng.choice([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 3e38, -3e38, 1e-40], shape))
