"""Hypothesis strategies of inputs on which GGUF implementations differ, for any project's own tests.

They need the package hypothesis; what else is in ``conformance.search`` does not.

    from hypothesis import given
    from conformance.search.strategies import float_rows

    @given(float_rows("Q4_K"))
    def test_my_quantizer(rows):
        ...
"""

from __future__ import annotations

from conformance.search.file_strategies import broken_files, documents, file_bytes
from conformance.search.number_strategies import float_rows, imatrices, number_plans, number_sequences, raw_blocks

__all__ = ["broken_files", "documents", "file_bytes", "float_rows", "imatrices", "number_plans", "number_sequences", "raw_blocks"]
