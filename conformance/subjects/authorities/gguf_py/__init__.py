"""The authority ``gguf-py``: the reader and the quantizers of the Python package ``gguf``.

``python -m conformance.subjects.authorities.gguf_py`` speaks protocol 1.
"""
