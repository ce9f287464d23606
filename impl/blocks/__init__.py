"""Blocks: one module a quantization family, each with the block layouts as numpy dtypes and what can be done with them.

This module says only which family does what, so that it can be told without loading numpy.
"""

from __future__ import annotations

# Families by module; a test holds the two tables to what the modules register.
FAMILIES: dict[str, tuple[str, ...]] = {
    "impl.blocks.floats": ("F32", "F16", "BF16"),
    "impl.blocks.q4": ("Q4_0", "Q4_1"),
    "impl.blocks.q5": ("Q5_0", "Q5_1"),
    "impl.blocks.q8": ("Q8_0", "Q8_1"),
    "impl.blocks.k_quants": ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
    "impl.blocks.iq2": ("IQ2_XXS", "IQ2_XS", "IQ2_S"),
    "impl.blocks.iq3": ("IQ3_XXS", "IQ3_S"),
    "impl.blocks.iq1": ("IQ1_S", "IQ1_M"),
    "impl.blocks.iq4": ("IQ4_NL", "IQ4_XS"),
    "impl.blocks.q8_k": ("Q8_K",),
    "impl.blocks.ternary": ("TQ1_0", "TQ2_0"),
    "impl.blocks.fp4": ("MXFP4", "NVFP4"),
    "impl.blocks.few_bits": ("Q1_0", "Q2_0"),
}

_FLOATS = ("F32", "F16", "BF16")
# In the order of ggml's ids, but for the floats.
_QUANTIZED = (
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
    "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "IQ1_M", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0", "Q2_0",
)  # fmt: skip
# ggml has no `_ref` function of these; Q8_1 and Q8_K, made for dot products, are quantized by theirs alone.
_WITHOUT_REFERENCE = ("IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M")

SUPPORTED: dict[str, tuple[str, ...]] = {
    "quantize": (*_FLOATS, *_QUANTIZED),
    "ref": ("F16", "BF16", *(name for name in _QUANTIZED if name not in _WITHOUT_REFERENCE), "Q8_1", "Q8_K"),
    "dequantize": (*_FLOATS, *_QUANTIZED, "Q8_K"),
    "dot": _QUANTIZED,
}
"""What can be done with which type; ``ref``: the functions ``quantize_row_*_ref``."""
