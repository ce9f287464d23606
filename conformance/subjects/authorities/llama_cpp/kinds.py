"""The ggml types as the loaded library describes them, and what it can do with each."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from conformance.errors import AuthorityMissingError
from conformance.subjects.authorities.llama_cpp.library import (
    ConvertRows,
    InitParams,
    TypeTraits,
    TypeTraitsCpu,
    VecDot,
    libraries,
)
from conformance.subjects.authorities.llama_cpp.log import logged_errors

Function = Any
"""A C function as ctypes calls it; ctypes makes a class for each prototype, which no type checker can name."""

# Handled by ggml_quantize_chunk (ggml/src/ggml.c) without a function quantize_<type> of their own.
_CONVERTED = frozenset({"f32", "f16", "bf16"})


class Kind(NamedTuple):
    """One ggml type: its number, ggml's own name of it, elements a block, bytes a block."""

    id: int
    label: str
    block: int
    nbytes: int

    @property
    def name(self) -> str:
        """The name as the protocol writes it, in capitals."""
        return self.label.upper()

    @property
    def traits(self) -> TypeTraits:
        """``ggml_type_traits`` of the base library."""
        traits: TypeTraits = libraries().base.ggml_get_type_traits(self.id).contents
        return traits

    @property
    def traits_cpu(self) -> TypeTraitsCpu:
        """``ggml_type_traits_cpu`` of the CPU library; without one, traits that name no function."""
        cpu = libraries().cpu
        traits: TypeTraitsCpu = TypeTraitsCpu() if cpu is None else cpu.ggml_get_type_traits_cpu(self.id).contents
        return traits

    def row_bytes(self, cols: int) -> int:
        """Give the bytes of a row of ``cols`` elements, a multiple of the block."""
        return cols // self.block * self.nbytes


def _file_with_type(number: int) -> bytes:
    """Make a file whose only tensor has the given type."""
    info = struct.pack("<Q1sIQIQ", 1, b"t", 1, 0, number, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info


def _type_count() -> int:
    """Ask the library how many types it knows: its reader names the bound when it refuses one beyond.

    ``ggml_get_type_traits`` itself checks nothing, so a number out of range would read beyond its table.
    """
    with logged_errors(echo=False) as errors:
        data = _file_with_type(0x7FFFFFFF)
        libraries().base.gguf_init_from_buffer(data, len(data), InitParams(True, None))
    found = re.search(r"should be in \[0, (\d+)\)", errors[0]) if errors else None
    if found is None:
        raise RuntimeError(f"the library does not say how many types it knows: {errors}")
    return int(found[1])


def _require_known_traits() -> None:
    """Raise AuthorityMissingError where ``ggml_type_traits`` is laid out otherwise than here: the fields of F32 tell.

    A field more or less moves ``type_size``, and with the next type's name what would be read there is no address.
    """
    first = libraries().base.ggml_get_type_traits(0).contents
    if (first.blck_size, first.type_size, first.type_name) != (1, 4, b"f32"):
        raise AuthorityMissingError(
            "the library describes its types in another layout than ggml_type_traits has here",
            where=str(libraries().path),
            hint="It is too old or too new for this adapter.",
        )


@cache
def kinds() -> dict[str, Kind]:
    """Give the library's types by name; withdrawn ones, which have no block, are left out.

    Raises AuthorityMissingError for a library that describes them in another layout.
    """
    _require_known_traits()
    found = {}
    for number in range(_type_count()):
        traits = libraries().base.ggml_get_type_traits(number).contents
        if traits.blck_size:
            kind = Kind(number, traits.type_name.decode(), traits.blck_size, traits.type_size)
            found[kind.name] = kind
    return found


def kind_by_id(number: int) -> Kind:
    """Give the type with this number."""
    return next(kind for kind in kinds().values() if kind.id == number)


def dequantizer(kind: Kind) -> Function | None:
    """Give the function from blocks to float32: the traits' ``to_float``, else ``dequantize_row_<type>`` if exported."""
    return _function(ConvertRows, kind.traits.to_float, libraries().base, f"dequantize_row_{kind.label}")


def reference_quantizer(kind: Kind) -> Function | None:
    """Give the reference function from float32: the traits' ``from_float_ref``, else ``quantize_row_<type>_ref``.

    Some of them assert that ``ggml_quantize_init`` was called for the type.
    """
    return _function(ConvertRows, kind.traits.from_float_ref, libraries().base, f"quantize_row_{kind.label}_ref")


def chunk_quantizes(kind: Kind) -> bool:
    """Tell whether ``ggml_quantize_chunk`` has the type; asked for another, it aborts."""
    return kind.label in _CONVERTED or hasattr(libraries().base, f"quantize_{kind.label}")


def dot_partner(kind: Kind) -> Kind | None:
    """Give the type that ``x`` is quantized to before a dot product with ``kind``, None if there is no dot product."""
    traits = kind.traits_cpu
    return kind_by_id(traits.vec_dot_type) if traits.vec_dot else None


def scalar_dot(kind: Kind, partner: Kind) -> Function | None:
    """Give the scalar dot product, None for the float types, which have none.

    Where a machine has no vector version of a quantized type's dot product, ggml's arch-fallback.h gives the scalar one the
    plain name, and no symbol ends in ``_generic``.
    """
    plain = kind.traits_cpu.vec_dot if kind.traits.is_quantized else None
    symbol = f"ggml_vec_dot_{kind.label}_{partner.label}_generic"
    return _function(VecDot, None, libraries().cpu, symbol) or _function(VecDot, plain, libraries().cpu, "")


def vector_dot(kind: Kind, partner: Kind) -> Function | None:
    """Give the vectorised dot product of this build, None where the scalar one is all there is."""
    plain = _function(VecDot, kind.traits_cpu.vec_dot, libraries().cpu, "")
    scalar = scalar_dot(kind, partner)
    return None if plain is None or (scalar is not None and _address(plain) == _address(scalar)) else plain


def _function(
    prototype: Callable[[int], Function], address: int | None, library: ctypes.CDLL | None, symbol: str
) -> Function | None:
    """Give the function at ``address``, else the one exported as ``symbol``, else None."""
    if address:
        return prototype(address)
    exported = getattr(library, symbol, None) if symbol else None
    return None if exported is None else prototype(_address(exported))


def _address(function: Function) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
