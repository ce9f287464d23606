"""``python -m conformance.subjects.authorities.llama_cpp``: the adapter of the authority ``llama.cpp``."""

from __future__ import annotations

import os
import sys

from conformance.adapter import PROTOCOL, Adapter, Header, Identity, Ops, View
from conformance.errors import AuthorityMissingError
from conformance.subjects.authorities.llama_cpp import blocks, probe, writer
from conformance.subjects.authorities.llama_cpp.kinds import kinds
from conformance.subjects.authorities.llama_cpp.library import LIBRARY_VARIABLE, libraries, package_version
from conformance.subjects.authorities.llama_cpp.loaded import Loader
from conformance.subjects.authorities.llama_cpp.reader import read_header
from conformance.subjects.protocol import HeaderRequest

# Strings are C strings; of a shape the library keeps four numbers.
VIEW = View(strings="c", dims="ne")


def identity() -> Identity:
    """Say which library answers, what it does, and to what arithmetic it was compiled."""
    library = libraries()
    ggml = library.base.ggml_version().decode()
    package = None if os.environ.get(LIBRARY_VARIABLE) else package_version()
    details = {
        "library": str(library.path),
        "ggml": ggml,
        "ggml_commit": library.base.ggml_commit().decode(),
        "contraction_base": probe.contraction_base(),
        "contraction_dot": probe.contraction_dot(),
        "vector_units": probe.vector_units(),
    }
    if package is not None:
        details["llama_cpp_python"] = package
    return Identity(
        name="llama.cpp" if package else f"ggml-{ggml}",
        version=package or f"ggml {ggml}",
        language="c",
        protocol=PROTOCOL,
        ops=_ops(),
        details=details,
    )


def _ops() -> Ops:
    dots = blocks.declared_dot()
    return Ops(
        header=VIEW,
        load=VIEW,
        tensor=VIEW,
        dequantize=blocks.declared_dequantize(),
        quantize=blocks.declared_quantize(),
        dot=dots,
        matvec=dots,
        write=View(),
    )


def header(request: HeaderRequest) -> Header:
    """Answer the op ``header``."""
    return read_header(request.path)


def adapter() -> Adapter:
    """Put the library behind the protocol."""
    loader = Loader()
    return Adapter(
        identity,
        {
            "header": header,
            "load": loader.load,
            "tensor": loader.tensor,
            "dequantize": blocks.dequantize,
            "quantize": blocks.quantize,
            "dot": blocks.dot,
            "matvec": blocks.matvec,
            "write": writer.write,
        },
    )


def main(arguments: list[str]) -> int:
    """Run the adapter; give its exit code."""
    try:
        kinds()
    except AuthorityMissingError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the adapter's own stderr, where the harness looks for it
        return error.exit_code
    return adapter().main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
