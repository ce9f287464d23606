"""The authorities: the C library of llama.cpp and the Python package gguf, each behind an adapter of its own process.

``docs/authorities.md`` is their manual. The versions here are the ones that the recorded answers come from.
"""

from __future__ import annotations

LLAMA_CPP_PYTHON = "0.3.36"
GGUF_PY = "0.19.0"
