"""The live llama.cpp library by ctypes: what the reference is held to. Nothing here reads the package under test."""

from __future__ import annotations

import ctypes
import importlib.util
from ctypes import POINTER, Structure, c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

_LOG = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_void_p)
_errors: list[str] = []


@_LOG
def _take(level: int, text: bytes, _data: int) -> None:
    if level == 4:  # GGML_LOG_LEVEL_ERROR
        _errors.append(text.decode("utf-8", "replace"))


class _Params(Structure):
    _fields_ = (("no_alloc", c_bool), ("ctx", POINTER(c_void_p)))


class _Traits(Structure):
    """The start of ``ggml_type_traits`` (ggml/include/ggml.h)."""

    _fields_ = (("name", c_char_p), ("block", c_int64), ("interleave", c_int64), ("nbytes", c_size_t), ("is_quantized", c_bool))


_GETTERS = {
    **dict.fromkeys(["version"], c_uint32),
    **dict.fromkeys(["kv_type", "arr_type", "tensor_type"], c_int),
    **dict.fromkeys(["n_kv", "n_tensors"], c_int64),
    **dict.fromkeys(["alignment", "data_offset", "arr_n", "tensor_offset", "tensor_size"], c_size_t),
    **dict.fromkeys(["key", "tensor_name"], c_char_p),
}


class Verdict(NamedTuple):
    """What the C reader did: the errors that it logged where it refused, else what it read."""

    errors: list[str] | None
    summary: dict[str, object]


class Live:
    def __init__(self, folder: Path) -> None:
        self.base = ctypes.CDLL(str(folder / "libggml-base.so"))
        self.cpu = ctypes.CDLL(str(folder / "libggml-cpu.so"))
        self.cpu.ggml_cpu_init()
        self.base.ggml_log_set(_take, None)
        self.base.gguf_init_from_buffer.restype = c_void_p
        self.base.gguf_init_from_buffer.argtypes = [c_char_p, c_size_t, _Params]
        self.base.ggml_get_type_traits.restype = POINTER(_Traits)
        self.base.ggml_tensor_overhead.restype = c_size_t
        for name, restype in _GETTERS.items():
            function = getattr(self.base, f"gguf_get_{name}")
            function.restype, function.argtypes = restype, [c_void_p, c_int64]

    def traits(self, number: int) -> _Traits:
        return self.base.ggml_get_type_traits(number).contents

    def _sizes(self, name: str) -> tuple[int, int]:
        found = next(t for number in range(43) if (t := self.traits(number)).name.decode().upper() == name)
        return found.block, found.nbytes

    def quantize(self, name: str, x: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
        """Quantize by the type's reference function (F16, BF16: as ``ggml_quantize_chunk`` converts them)."""
        block, nbytes = self._sizes(name)
        converts = {"F16": "ggml_fp32_to_fp16_row", "BF16": "ggml_fp32_to_bf16_row_ref"}
        out = np.full(x.size // block * nbytes, 0xAA, np.uint8)
        getattr(self.base, converts.get(name, f"quantize_row_{_c_name(name)}_ref"))(_at(x), _at(out), c_int64(x.size))
        return out

    def quantize_chunk(
        self, name: str, x: npt.NDArray[np.float32], imatrix: npt.NDArray[np.float32] | None
    ) -> npt.NDArray[np.uint8]:
        """Quantize rows of shape (rows, cols) as ``ggml_quantize_chunk`` does."""
        block, nbytes = self._sizes(name)
        number = next(number for number in range(43) if self.traits(number).name.decode().upper() == name)
        rows, cols = x.shape
        out = np.full(x.size // block * nbytes, 0xAA, np.uint8)
        weights = None if imatrix is None else _at(imatrix)
        self.base.ggml_quantize_chunk(number, _at(x), _at(out), c_int64(0), c_int64(rows), c_int64(cols), weights)
        return out

    def dequantize(self, name: str, blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        block, nbytes = self._sizes(name)
        converts = {"F16": "ggml_fp16_to_fp32_row", "BF16": "ggml_bf16_to_fp32_row"}
        out = np.full(len(blocks) // nbytes * block, 123, np.float32)
        getattr(self.base, converts.get(name, f"dequantize_row_{_c_name(name)}"))(_at(blocks), _at(out), c_int64(out.size))
        return out

    def dot(self, name: str, partner: str, w: npt.NDArray[np.uint8], y: npt.NDArray[np.uint8], cols: int) -> np.float32:
        """One row by the scalar function; ``y`` are blocks of ``partner``."""
        out = c_float()
        plain = f"ggml_vec_dot_{_c_name(name)}_{_c_name(partner)}"  # where there is no vector version, this one is scalar
        function = getattr(self.cpu, f"{plain}_generic", None) or getattr(self.cpu, plain)
        function(c_int(cols), ctypes.byref(out), c_size_t(0), _at(w), c_size_t(0), _at(y), c_size_t(0), c_int(1))
        return np.float32(out.value)

    def read(self, data: bytes, *, full: bool = False) -> Verdict:
        """Read a file from memory: the header only, or ``full`` with its data."""
        _errors.clear()
        ggml = c_void_p()
        context = self.base.gguf_init_from_buffer(data, len(data), _Params(False, ctypes.pointer(ggml) if full else None))
        if not context:
            return Verdict(list(_errors), {})
        summary = self._summary(context)
        self.base.gguf_free(c_void_p(context))
        self.base.ggml_free(ggml)
        return Verdict(None, summary)

    def _summary(self, context: int) -> dict[str, object]:
        def get(name: str, index: int = 0) -> int:
            return getattr(self.base, f"gguf_get_{name}")(context, index)

        tensors = [tuple(get(f"tensor_{part}", i) for part in ("name", "type", "offset", "size")) for i in range(get("n_tensors"))]
        pairs = [
            (get("key", i), get("kv_type", i), *((get("arr_type", i), get("arr_n", i)) if get("kv_type", i) == 9 else ()))
            for i in range(get("n_kv"))
        ]
        head = {name: get(name) for name in ("version", "alignment", "data_offset")}
        return {**head, "pairs": pairs, "tensors": tensors}


def _c_name(name: str) -> str:
    return name.lower().replace("_k", "_K")


def _at(array: npt.NDArray[np.generic]) -> c_void_p:
    assert array.flags.c_contiguous
    return c_void_p(array.ctypes.data)


@cache
def _library() -> Live | None:
    spec = importlib.util.find_spec("llama_cpp")
    folder = Path(spec.origin).parent / "lib" if spec and spec.origin else None
    return Live(folder) if folder and (folder / "libggml-base.so").exists() else None


def live_or_skip() -> Live:
    """Give the library; skip, visibly, where it is not installed."""
    library = _library()
    if library is None:
        pytest.skip("needs the live library: pip install 'gguf-conformance[live]' (llama-cpp-python)")
    return library


def bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    """The bits of float32, every NaN as the same one: a NaN's payload is not compared."""
    flat = np.ascontiguousarray(values, np.float32).reshape(-1)
    return np.where(np.isnan(flat), np.uint32(0x7FC00000), flat.view(np.uint32))
