"""Asks an authority who it is, in a process of its own: a library that aborts must not take its asker with it."""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path

import msgspec

from conformance.errors import AuthorityMissingError
from conformance.subjects.manifest import AUTHORITIES_FOLDER, load_manifest
from conformance.subjects.protocol import Identity

MANIFESTS = {"llama.cpp": AUTHORITIES_FOLDER / "llama.cpp.yaml", "gguf-py": AUTHORITIES_FOLDER / "gguf-py.yaml"}

# Vector units that ggml's CMake leaves out of a build with GGML_NATIVE=OFF: where they are, the building machine chose.
_NATIVE_UNITS = {
    "avx512",
    "avx512_vbmi",
    "avx512_vnni",
    "avx512_bf16",
    "avx_vnni",
    "amx_int8",
    "fp16_va",
    "dotprod",
    "matmul_int8",
    "sve",
    "sme",
    "sme2",
}


def identify(name: str, *, without: Collection[str] = ()) -> Identity:
    """Give the answer of the authority ``name`` to hello; its process starts without the environment variables ``without``.

    Raises AuthorityMissingError, with what the process said, if it gives none.
    """
    manifest = load_manifest(MANIFESTS[name])
    try:
        run = subprocess.run(
            [*manifest.command, "hello"],
            env={key: value for key, value in manifest.environment.items() if key not in without},
            capture_output=True,
            check=False,
            timeout=manifest.limits.time,
        )
    except subprocess.TimeoutExpired:
        raise _silent(manifest.source, name, f"no answer within {manifest.limits.time:g} s") from None
    try:
        return msgspec.json.decode(run.stdout, type=Identity)
    except msgspec.DecodeError:
        said = run.stderr.decode("utf-8", "replace").strip()
        raise _silent(manifest.source, name, said or f"it ended with {_how(run.returncode)} and no word") from None


def native_units(identity: Identity) -> list[str]:
    """Name the vector units of a library that was compiled for the machine it was built on, in order."""
    return [unit for unit in identity.details.get("vector_units", "").split() if unit in _NATIVE_UNITS]


def _how(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit {status}"


def _silent(source: Path, name: str, said: str) -> AuthorityMissingError:
    return AuthorityMissingError(f"{name} does not answer: {said}", where=str(source), hint="Try: gguf-conformance doctor")
