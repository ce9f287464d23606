"""Compiled loops: where a search or a running sum has to keep its order, a plain loop is the clearest text and the fastest program.

Compiled by numba at first use and kept on disk beside the module (or in the user's cache). No fast-math: each float32
operation is rounded on its own, in the order written, and none is fused with another.

Three habits keep short innermost loops fast. The count comes from an array's shape: a constant one is unrolled before the loop
could be vectorised. The distance between two stores is a constant: with one that is only known at run time, they might overlap. An
index is a loop variable, or that plus a constant: what might be negative is looked at each time, so a row is cut off first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.dispatcher import Dispatcher

Function = TypeVar("Function", bound=Callable[..., Any])

# Nothing here is called from C; a wrapper for that takes a fifth of the time that compiling takes.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: Function) -> Function:
    """Compile ``function``; it runs without the interpreter's lock, and division by zero gives infinity or NaN as in C.

    What is kept on disk is used again while the function's module, the loops that it calls and the constants that it reads are
    the same. numba by itself would look at the module alone, and run a changed loop as it was before.
    """
    return cast("Function", _compiled(function, **_OPTIONS))


def inner(function: Function) -> Function:
    """Compile ``function``, which only compiled loops call; a call from Python raises TypeError.

    The way in from Python, left out here, is a fifth of what there is to compile, most of it where arguments are many arrays.
    """
    compiled = _compiled(function, no_cpython_wrapper=True, **_OPTIONS)

    def refuse(*_: object, **__: object) -> None:
        raise TypeError(f"{function.__module__}.{function.__name__} is called by compiled loops only")

    # numba would call an address that is not there. It shall find nothing to call, and ask for a compilation.
    compiled._insert = lambda *_: None
    compiled._compile_for_args = refuse
    return cast("Function", compiled)


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    compiled: Any = njit(**options)(function)
    kept = compiled._cache._cache_file
    kept._source_stamp = _stamp(function, kept._source_stamp)
    # numba reads this first: what was kept of another state, whose classes may be gone, is then not even looked at.
    kept._version = f"{kept._version} {kept._source_stamp}"
    return compiled


def _stamp(function: Callable[..., Any], source: object) -> str:
    """Make one stamp of the module's and of what the function reads of it: a loop has its own stamp, a constant its bytes."""
    digest = hashlib.sha256(repr(source).encode())
    for name in function.__code__.co_names:
        value: Any = function.__globals__.get(name)
        if isinstance(value, Dispatcher):
            digest.update(cast("Any", value)._cache._cache_file._source_stamp.encode())
        elif isinstance(value, np.ndarray | np.generic):
            digest.update(value.tobytes())
        elif isinstance(value, bool | int | float | tuple):
            digest.update(repr(value).encode())
    return digest.hexdigest()
