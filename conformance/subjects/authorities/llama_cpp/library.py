"""Finds and loads ggml's shared libraries; declares what is called of them.

Sources: ggml/include/gguf.h, ggml/include/ggml.h (``ggml_type_traits``), ggml/include/ggml-cpu.h (``ggml_type_traits_cpu``).
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int8,
    c_int16,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path
from typing import NamedTuple

from conformance.errors import AuthorityMissingError

LIBRARY_VARIABLE = "GGUF_CONFORMANCE_GGML_LIB"
LOG_ERROR = 4  # GGML_LOG_LEVEL_ERROR, ggml/include/ggml.h

ConvertRows = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int64)
"""``ggml_to_float_t`` and ``ggml_from_float_t``: source, destination, number of elements."""

VecDot = ctypes.CFUNCTYPE(None, c_int, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t, c_int)
"""``ggml_vec_dot_t``: n, result, its stride, x, its stride, y, its stride, number of rows."""

LogCallback = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
ReadCallback = ctypes.CFUNCTYPE(c_size_t, c_void_p, c_void_p, c_uint64, c_size_t)


class TypeTraits(ctypes.Structure):
    """``ggml_type_traits``."""

    _fields_ = (
        ("type_name", c_char_p),
        ("blck_size", c_int64),
        ("blck_size_interleave", c_int64),
        ("type_size", c_size_t),
        ("is_quantized", c_bool),
        ("to_float", c_void_p),
        ("from_float_ref", c_void_p),
    )


class TypeTraitsCpu(ctypes.Structure):
    """``ggml_type_traits_cpu``."""

    _fields_ = (
        ("from_float", c_void_p),
        ("vec_dot", c_void_p),
        ("vec_dot_type", c_int),
        ("nrows", c_int64),
    )


class InitParams(ctypes.Structure):
    """``gguf_init_params``; ``ctx`` is the address of a ``ggml_context *`` or null."""

    _fields_ = (("no_alloc", c_bool), ("ctx", c_void_p))


class ContextParams(ctypes.Structure):
    """``ggml_init_params``: bytes of memory, the memory or null, and whether tensors get none of it for their data."""

    _fields_ = (("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool))


class Libraries(NamedTuple):
    """The loaded libraries and where ``base`` came from; ``cpu`` may be the same one, or missing."""

    base: ctypes.CDLL
    cpu: ctypes.CDLL | None
    path: Path


_BASE_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "ggml_version": (c_char_p, ()),
    "ggml_commit": (c_char_p, ()),
    "ggml_log_set": (None, (LogCallback, c_void_p)),
    "ggml_free": (None, (c_void_p,)),
    "ggml_get_first_tensor": (c_void_p, (c_void_p,)),
    "ggml_get_next_tensor": (c_void_p, (c_void_p, c_void_p)),
    "ggml_get_data": (c_void_p, (c_void_p,)),
    "ggml_get_type_traits": (POINTER(TypeTraits), (c_int,)),
    "ggml_quantize_init": (None, (c_int,)),
    "ggml_quantize_requires_imatrix": (c_bool, (c_int,)),
    "ggml_quantize_chunk": (c_size_t, (c_int, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p)),
    "ggml_init": (c_void_p, (ContextParams,)),
    "ggml_new_tensor": (c_void_p, (c_void_p, c_int, c_int, POINTER(c_int64))),
    "ggml_set_name": (c_void_p, (c_void_p, c_char_p)),
    "ggml_get_name": (c_char_p, (c_void_p,)),
    "ggml_nbytes": (c_size_t, (c_void_p,)),
    "gguf_init_from_file": (c_void_p, (c_char_p, InitParams)),
    "gguf_init_from_buffer": (c_void_p, (c_char_p, c_size_t, InitParams)),
    "gguf_init_from_callback": (c_void_p, (ReadCallback, c_void_p, c_size_t, c_uint64, InitParams)),
    "gguf_free": (None, (c_void_p,)),
    "gguf_get_version": (c_uint32, (c_void_p,)),
    "gguf_get_alignment": (c_size_t, (c_void_p,)),
    "gguf_get_data_offset": (c_size_t, (c_void_p,)),
    "gguf_get_n_kv": (c_int64, (c_void_p,)),
    "gguf_get_key": (c_char_p, (c_void_p, c_int64)),
    "gguf_get_kv_type": (c_int, (c_void_p, c_int64)),
    "gguf_get_val_str": (c_char_p, (c_void_p, c_int64)),
    "gguf_get_val_data": (c_void_p, (c_void_p, c_int64)),
    "gguf_get_arr_type": (c_int, (c_void_p, c_int64)),
    "gguf_get_arr_n": (c_size_t, (c_void_p, c_int64)),
    "gguf_get_arr_data": (c_void_p, (c_void_p, c_int64)),
    "gguf_get_arr_str": (c_char_p, (c_void_p, c_int64, c_size_t)),
    "gguf_get_n_tensors": (c_int64, (c_void_p,)),
    "gguf_get_tensor_name": (c_char_p, (c_void_p, c_int64)),
    "gguf_get_tensor_ne": (POINTER(c_int64), (c_void_p, c_int64)),
    "gguf_get_tensor_type": (c_int32, (c_void_p, c_int64)),
    "gguf_get_tensor_offset": (c_size_t, (c_void_p, c_int64)),
    "gguf_get_tensor_size": (c_size_t, (c_void_p, c_int64)),
    "gguf_remove_key": (c_int64, (c_void_p, c_char_p)),
    "gguf_set_val_u8": (None, (c_void_p, c_char_p, c_uint8)),
    "gguf_set_val_i8": (None, (c_void_p, c_char_p, c_int8)),
    "gguf_set_val_u16": (None, (c_void_p, c_char_p, c_uint16)),
    "gguf_set_val_i16": (None, (c_void_p, c_char_p, c_int16)),
    "gguf_set_val_u32": (None, (c_void_p, c_char_p, c_uint32)),
    "gguf_set_val_i32": (None, (c_void_p, c_char_p, c_int32)),
    "gguf_set_val_f32": (None, (c_void_p, c_char_p, c_float)),
    "gguf_set_val_u64": (None, (c_void_p, c_char_p, c_uint64)),
    "gguf_set_val_i64": (None, (c_void_p, c_char_p, c_int64)),
    "gguf_set_val_f64": (None, (c_void_p, c_char_p, c_double)),
    "gguf_set_val_bool": (None, (c_void_p, c_char_p, c_bool)),
    "gguf_set_val_str": (None, (c_void_p, c_char_p, c_char_p)),
    "gguf_set_arr_data": (None, (c_void_p, c_char_p, c_int, c_void_p, c_size_t)),
    "gguf_set_arr_str": (None, (c_void_p, c_char_p, POINTER(c_char_p), c_size_t)),
    "gguf_add_tensor": (None, (c_void_p, c_void_p)),
    "gguf_set_tensor_data": (None, (c_void_p, c_char_p, c_void_p)),
    "gguf_write_to_file": (c_bool, (c_void_p, c_char_p, c_bool)),
}
_CPU_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "ggml_cpu_init": (None, ()),
    "ggml_get_type_traits_cpu": (POINTER(TypeTraitsCpu), (c_int,)),
}


def package_folder() -> Path | None:
    """Give the folder of the installed package ``llama_cpp`` without importing it, or None."""
    spec = importlib.util.find_spec("llama_cpp")
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def package_version() -> str | None:
    """Give the version that the installed package ``llama_cpp`` says it has, without importing it."""
    folder = package_folder()
    if folder is None:
        return None
    found = re.search(r'^__version__ = "([^"]+)"', (folder / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else None


def _library_folder() -> Path:
    chosen = os.environ.get(LIBRARY_VARIABLE)
    if chosen:
        path = Path(chosen)
        return path if path.is_dir() else path.parent
    package = package_folder()
    if package is None:
        raise AuthorityMissingError(
            "llama.cpp is not installed: this Python has no package llama_cpp",
            where=sys.executable,
            hint="Build it with: python -m conformance.subjects.authorities.build",
        )
    return package / "lib"


def _whole_library() -> Path | None:
    """Give the file that the variable names where it holds both parts, such as a Python module that ggml is linked into."""
    path = Path(os.environ.get(LIBRARY_VARIABLE, ""))
    return path if path.is_file() and not path.name.startswith("libggml-") else None


def _name(folder: Path, stem: str) -> Path:
    return folder / f"lib{stem}{'.dylib' if sys.platform == 'darwin' else '.so'}"


def _shared_library(folder: Path, stem: str) -> Path:
    path = _name(folder, stem)
    if not path.is_file():
        raise AuthorityMissingError(
            f"no {path.name} in {folder}",
            where=os.environ.get(LIBRARY_VARIABLE, ""),
            hint=f"Set {LIBRARY_VARIABLE} to the folder that holds it, or unset it to use the installed package.",
        )
    return path


def _load(path: Path, functions: dict[str, tuple[object, tuple[object, ...]]]) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, arguments) in functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise AuthorityMissingError(
            f"the library cannot be used: {error}",
            where=str(path),
            hint="Install the expected version with: python -m conformance.subjects.authorities.build",
        ) from None
    return library


@cache
def libraries() -> Libraries:
    """Load ggml-base and ggml-cpu, once.

    Raises AuthorityMissingError if they are not there, do not load, or lack a function. A library from another place may come
    without ggml-cpu; the installed package has both.
    """
    path = _whole_library()
    if path is not None:
        return Libraries(_load(path, _BASE_FUNCTIONS), _initialised(path), path)
    folder = _library_folder()
    path = _shared_library(folder, "ggml-base")
    base = _load(path, _BASE_FUNCTIONS)
    if os.environ.get(LIBRARY_VARIABLE) and not _name(folder, "ggml-cpu").exists():
        return Libraries(base, None, path)
    return Libraries(base, _initialised(_shared_library(folder, "ggml-cpu")), path)


def _initialised(path: Path) -> ctypes.CDLL:
    cpu = _load(path, _CPU_FUNCTIONS)
    cpu.ggml_cpu_init()  # fills the tables that the dot products convert their f16 scales with
    return cpu
