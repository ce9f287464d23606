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
    "impl.blocks.q8_k": ("Q8_K",),
}

SUPPORTED: dict[str, tuple[str, ...]] = {
    "quantize": ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"),
    "ref": ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q8_K"),
    "dequantize": ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K"),
    "dot": ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"),
}
