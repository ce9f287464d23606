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
    "impl.blocks.iq4": ("IQ4_NL", "IQ4_XS"),
    "impl.blocks.q8_k": ("Q8_K",),
    "impl.blocks.ternary": ("TQ1_0", "TQ2_0"),
    "impl.blocks.fp4": ("MXFP4", "NVFP4"),
    "impl.blocks.few_bits": ("Q1_0", "Q2_0"),
}

SUPPORTED: dict[str, tuple[str, ...]] = {
    "quantize": ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "IQ4_XS"),
    "ref": ("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q8_K", "IQ4_NL", "IQ4_XS"),
    "dequantize": (
        "F32",
        "F16",
        "BF16",
        "Q4_0",
        "Q4_1",
        "Q5_0",
        "Q5_1",
        "Q8_0",
        "Q2_K",
        "Q3_K",
        "Q4_K",
        "Q5_K",
        "Q6_K",
        "Q8_K",
        "IQ4_NL",
        "IQ4_XS",
    ),
    "dot": ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "IQ4_XS"),
}
