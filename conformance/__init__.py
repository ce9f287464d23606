"""Differential conformance harness for GGUF files and ggml's quantized blocks."""

__version__ = "0.1.0"
