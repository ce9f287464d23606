"""A case as the rest of the harness sees it: one input, what is asked of it, what each authority is expected to answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

AUTHORITIES = ("llama.cpp", "gguf-py", "spec")
Authority = Literal["llama.cpp", "gguf-py", "spec"]


ExpectKind = Literal[
    "accept", "reject", "either", "near", "refuse", "observe", "unsupported", "crash", "timeout", "memory", "error", "fault"
]


class Expect(msgspec.Struct, frozen=True):
    """One admissible answer.

    ``kind``: "accept", "reject" (``detail`` the reject class), "either" (accept or reject, value compared if both accept),
    "near" (of a variant: as far from the authority's answer to the op itself as another order of additions explains),
    "refuse" (it does not accept: reject of any class, or error),
    "observe" (recorded, not judged), "unsupported" (the authority declares the op but not this), and, of authorities
    only, "crash" (``detail`` the signal, may be empty), "timeout", "memory", "error", and "fault" (it does ``detail``,
    "accept" or "reject", and is wrong: its answer is recorded, and a subject may accept or refuse).
    """

    kind: ExpectKind
    detail: str = ""


class Limits(msgspec.Struct, frozen=True):
    """Limits of one request: seconds, and bytes of resident memory; None leaves them to the manifest."""

    time: float | None = None
    memory: int | None = None


class FileInput(msgspec.Struct, frozen=True):
    """A file made by the builder from ``recipe`` (the YAML mapping as written; see docs/cases.md)."""

    recipe: dict[str, Any]


class ModelInput(msgspec.Struct, frozen=True):
    """A real file out of a published package.

    ``package`` and ``version`` name it on PyPI, ``archive`` says whether it is in the wheel or the source distribution,
    ``member`` is the path inside the archive (for an sdist, below its top folder).
    """

    package: str
    version: str
    archive: Literal["wheel", "sdist"]
    member: str
    sha256: str
    size: int


class RowsInput(msgspec.Struct, frozen=True):
    """Float rows to quantize to ``type``: ``recipe`` gives float32 of shape (rows, cols). ``imatrix``: a recipe of one row.

    ``x`` is a recipe of float rows (or of one for all) for ``dot``, whose weights are then what quantize gave.
    """

    type: str
    recipe: dict[str, Any]
    imatrix: dict[str, Any] | None = None
    x: dict[str, Any] | None = None


class BlocksInput(msgspec.Struct, frozen=True):
    """Raw block bytes of ``type`` to dequantize: ``recipe`` gives uint8 of shape (rows, row bytes)."""

    type: str
    recipe: dict[str, Any]


class DotInput(msgspec.Struct, frozen=True):
    """Weights (raw blocks of ``type``) and float32 rows ``x``, as many or one for all, for dot products."""

    type: str
    weights: dict[str, Any]
    x: dict[str, Any]


Input = FileInput | ModelInput | RowsInput | BlocksInput | DotInput


class Before(msgspec.Struct, frozen=True):
    """A request that a case puts to each process before its own, and whose answer is not judged."""

    input: Input
    ask: tuple[str, ...]


class Put(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """In what way a case's requests reach a process; the default is the plain way.

    ``folder``: below which folder, of that name, all files of the case lie; ``length``: the bytes of that folder's path instead.
    ``input``: "missing" or "folder" where a file to read is due. ``fields``: the JSON of an object whose fields each request has
    besides. ``over``: how many bytes the output file has before the request. ``times``: how often each request is put, one after
    the other; ``ahead``: how often at once, before the first answer is read.
    """

    folder: str = ""
    length: int = 0
    input: str = ""
    fields: str = ""
    over: int = 0
    times: int = 1
    ahead: int = 1


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One case. ``id`` is ``folder/file/key``; ``source`` and ``line`` say where it is declared.

    ``ask`` lists ops in order, variants as ``dot:simd``. ``expect[authority][op]`` is the non-empty tuple of admissible answers.
    ``covers`` are labels of the rules and reports that the case stands for (``C17``, ``B01``), defined in docs/. ``requantize``
    names types that a file's dequantized values are quantized to, where a row is a whole number of their blocks. ``before`` is put
    to the same process first: what it is asked then must not change what it answers. ``put`` says how the requests come.
    """

    id: str
    source: Path
    line: int
    input: Input
    ask: tuple[str, ...]
    expect: dict[str, dict[str, tuple[Expect, ...]]]
    spec: str = ""
    note: str = ""
    covers: tuple[str, ...] = ()
    limits: Limits = Limits()
    requantize: tuple[str, ...] = ()
    nan_payload: bool = False
    before: tuple[Before, ...] = ()
    put: Put = Put()

    @property
    def suite(self) -> str:
        """The id without its last part."""
        return self.id.rpartition("/")[0]
