"""Compiled loops: where a search or a running sum has to keep its order, a plain loop is the clearest text and the fastest program.

Compiled by numba at first use and kept on disk beside the module (or in the user's cache). No fast-math: each float32
operation is rounded on its own, in the order written, and none is fused with another.

Three habits keep short innermost loops fast. The count comes from an array's shape: a constant one is unrolled before the loop
could be vectorised. The distance between two stores is a constant: with one that is only known at run time, they might overlap. An
index is a loop variable, or that plus a constant: what might be negative is looked at each time, so a row is cut off first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile ``function``; it runs without the interpreter's lock, and division by zero gives infinity or NaN as in C."""
    return cast("Function", njit(cache=True, nogil=True, error_model="numpy")(function))
