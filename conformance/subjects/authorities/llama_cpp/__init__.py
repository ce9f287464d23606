"""The authority ``llama.cpp``: ggml's reader and quantizers, called through ctypes.

``python -m conformance.subjects.authorities.llama_cpp`` speaks protocol 1. numpy is not imported, so that it starts fast.
"""
