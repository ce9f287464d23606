"""What ggml does with the blocks of a type: which ops it has, and how it quantizes.

Source: ``ggml_quantize_chunk`` and ``ggml_quantize_requires_imatrix`` in ggml/src/ggml.c, the functions ``quantize_row_*_ref`` in
ggml/src/ggml-quants.c, and the dot products in ggml/src/ggml-cpu/quants.c. A test holds the tables to the live library.
"""

from __future__ import annotations

PLAIN = ("F16", "BF16", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0")
WEIGHTED = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS")
"""Quantizes without an imatrix and, to other bytes, with one."""
NEEDING = ("IQ2_XXS", "IQ2_XS", "IQ1_S")
"""Does not quantize without an imatrix."""
SEARCHED = ("IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_M", *NEEDING)
"""Its quantizer looks through a grid for each few elements, which takes a hundred times as long as the others."""
REFERENCE_ONLY = ("Q8_1", "Q8_K")
"""Only the reference function quantizes to it."""
OTHER_REFERENCE = ("IQ4_NL",)
"""The reference function gives other bytes than the normal path."""
NO_DOT = (*REFERENCE_ONLY, "F16", "BF16")
"""Without a dot product in ggml's CPU library, or (the float types) without a scalar one."""
NO_DEQUANTIZE = ("Q8_1",)

UNDEFINED = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_0", "TQ1_0", "TQ2_0", "MXFP4", *SEARCHED)
"""What becomes of an infinity or a NaN is undefined in C, or the library aborts: cases observe it, and a clean refusal is right."""

SEARCH_SHARE = 20
"""Where a grid is searched, one block is quantized where others quantize so many."""

ALL = (*PLAIN, *WEIGHTED, *SEARCHED, *REFERENCE_ONLY)

TYPES_OF: dict[str, tuple[str, ...]] = {
    "quantize": tuple(name for name in ALL if name not in REFERENCE_ONLY),
    "quantize:ref": (*OTHER_REFERENCE, *REFERENCE_ONLY),
    "dequantize": tuple(name for name in ALL if name not in NO_DEQUANTIZE),
    "dot": tuple(name for name in ALL if name not in NO_DOT),
    "matvec": tuple(name for name in ALL if name not in NO_DOT),
}
"""Op, or op and variant -> the types that it is worth asking for: ``ref`` only where it gives other bytes than ``quantize``."""


def takes_imatrix(type_name: str) -> bool:
    """Tell whether importances change what the type's quantizer gives."""
    return type_name in WEIGHTED or type_name in SEARCHED
