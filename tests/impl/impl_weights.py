"""Rows as weights are, and importance matrices, for quantizers that search: float32 of shape (rows, cols), and (cols,)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def _f32(values: object, shape: tuple[int, int]) -> Floats:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values), shape), np.float32)


def searched_rows(rows: int, cols: int, seed: int = 1) -> Iterator[tuple[str, Floats]]:
    """Give rows of every size that a block's search meets: what it tries is decided by ties, overflow and underflow."""
    rng = np.random.default_rng(seed)
    shape = (rows, cols)
    normal = rng.standard_normal(shape)

    def each_block(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        return np.repeat(values, 32, axis=1)

    blocks = (rows, cols // 32)
    yield "normal", _f32(normal, shape)
    yield "with far ones", _f32(rng.standard_t(2, shape), shape)
    yield "rounded to f16", _f32(rng.laplace(size=shape).astype(np.float16), shape)
    yield "half-integers", _f32(rng.integers(-254, 255, shape) / 2, shape)
    yield "few values", _f32(rng.integers(-3, 4, shape), shape)
    yield "two values", _f32(rng.choice([-1.0, 1.0], shape), shape)
    yield "all sizes within a block", _f32(normal * 10.0 ** rng.uniform(-30, 30, shape), shape)
    yield "blocks of very different size", _f32(normal * each_block(10.0 ** rng.uniform(-6, 6, blocks)), shape)
    yield "some blocks zero", _f32(normal * each_block(rng.random(blocks) < 0.5), shape)
    yield "each block constant", _f32(each_block(rng.standard_normal(blocks)), shape)
    yield "one outlier a block", _f32(np.where(np.arange(cols) % 32 == 5, 1000, normal), shape)
    yield "positive", _f32(np.abs(normal), shape)
    yield "zeros of both signs", _f32(np.where(rng.random(shape) < 0.8, rng.choice([0.0, -0.0], shape), normal), shape)
    yield "0.0", _f32(0.0, shape)
    yield "-0.0", _f32(-0.0, shape)
    for size in (1e-6, 3e-8, 1e-8, 3e-13, 3e-16, 1e-18, 1e-23, 1e-40, 3e4, 1e15, 1e19):
        yield f"of size {size}", _f32(normal * size, shape)
    yield "the smallest subnormals", _f32(rng.integers(-40, 41, shape) * 2.0**-149, shape)
    yield "huge", _f32(np.clip(normal * 1e38, -3.4e38, 3.4e38), shape)
    bits = rng.integers(0, 2**32, shape, dtype=np.uint32).view(np.float32)
    yield "bits of finite floats", np.where(np.isfinite(bits), bits, np.float32(1))


def imatrices(cols: int, seed: int = 2) -> Iterator[tuple[str, Floats]]:
    """Give importances, sound and odd ones: nothing in ggml checks them."""
    rng = np.random.default_rng(seed)
    some = rng.uniform(0.1, 10, cols)
    column = np.arange(cols)
    yield "positive", _imatrix(some)
    yield "all zero", _imatrix(0 * some)
    yield "zero for one sub-block", _imatrix(np.where(column // 32 == 1, 0, some))
    yield "zero for one column", _imatrix(np.where(column == 5, 0, some))
    yield "zero for half of the columns", _imatrix(np.where(rng.random(cols) < 0.5, 0, some))
    yield "zero for half of the eights", _imatrix(np.where(np.repeat(rng.random(cols // 8) < 0.5, 8), 0, some))
    yield "tiny", _imatrix(some * 1e-10)
    yield "huge", _imatrix(some * 1e20)
    yield "of all sizes", _imatrix(10.0 ** rng.uniform(-12, 12, cols))


def _imatrix(values: npt.NDArray[np.float64]) -> Floats:
    return np.ascontiguousarray(values, np.float32)
