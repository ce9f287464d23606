"""What an adapter written in Python needs: the protocol's loop, one-shot use, and clean refusals.

An adapter is a program that puts one implementation behind protocol 1 (``docs/protocol.md``). It says who it is and gives
a function for each op::

    from conformance.adapter import Adapter, Identity, Ops, Reject, View

    def header(request):
        try:
            return to_header(mylib.open(request.path))      # a conformance.values.Header
        except mylib.FormatError as error:
            raise Reject("other", str(error)) from error

    def dequantize(request):                                # ops with an output file return None
        Path(request.out).write_bytes(mylib.dequantize(request.type, Path(request.input).read_bytes()))

    identity = Identity(name="mylib", version="1.0", language="python", protocol=1,
                        ops=Ops(header=View(), dequantize=("Q8_0",)))
    sys.exit(Adapter(identity, {"header": header, "dequantize": dequantize}).main(sys.argv[1:]))

The program then serves requests (no argument, or ``serve``), and works once from a shell: ``hello``, ``header FILE``,
``load FILE``.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec

from conformance.outcomes import REJECT_CLASSES
from conformance.subjects.protocol import (
    OPS,
    PROTOCOL,
    Done,
    Header,
    HeaderRequest,
    Hello,
    Identity,
    LoadRequest,
    Ops,
    Rejected,
    Request,
    Response,
    View,
)
from conformance.values import Boxed, Pair, TensorInfo

__all__ = ["PROTOCOL", "Adapter", "Boxed", "Header", "Identity", "Ops", "Pair", "Reject", "TensorInfo", "Unsupported", "View"]

# Exit codes of one-shot use.
EXIT_OK = 0
EXIT_REJECT = 1
EXIT_USAGE = 2
EXIT_ERROR = 3

Handler = Callable[[Any], Header | None]
"""Takes the request's message of ``conformance.subjects.protocol``; gives a Header, or None for an op with an output file."""


class Reject(Exception):  # noqa: N818 - named as the protocol names the answer
    """Raised by a handler to refuse the input cleanly.

    ``reject_class`` is one of ``conformance.outcomes.REJECT_CLASSES`` ("other" if the implementation does not say);
    ``at`` is the file offset and ``field`` the path (``kv[0].key.length``) that the implementation blames.

    Raises ValueError for a class that the protocol does not have.
    """

    def __init__(self, reject_class: str, message: str = "", at: int | None = None, field: str | None = None) -> None:
        if reject_class not in REJECT_CLASSES:
            raise ValueError(f"reject class {reject_class!r} does not exist; one of: {', '.join(REJECT_CLASSES)}")
        super().__init__(message)
        self.answer = Rejected(reject_class=reject_class, message=_text(message), at=at, field=field)


class Unsupported(Exception):  # noqa: N818 - named as the protocol names the answer
    """Raised by a handler for what the implementation does not do."""


class Adapter:
    """One implementation behind the protocol.

    ``identity`` is the answer to hello, or a function that makes it (called once, at the first request). ``handlers`` maps
    an op to its function. What the identity does not declare is answered by ``unsupported`` and never reaches a handler.
    """

    def __init__(self, identity: Identity | Callable[[], Identity], handlers: Mapping[str, Handler]) -> None:
        unknown = sorted(set(handlers) - set(OPS))
        if unknown:
            raise ValueError(f"no such op: {', '.join(unknown)}; the protocol has: {', '.join(OPS)}")
        self._identity = identity
        self._handlers = handlers

    @property
    def identity(self) -> Identity:
        """The answer to hello. Raises ValueError if it declares an op that has no handler."""
        if not isinstance(self._identity, Identity):
            self._identity = self._identity()
        ops = self._identity.ops
        missing = [op for op in OPS if getattr(ops, op) not in (None, ()) and op not in self._handlers]
        if missing:
            raise ValueError(f"declared without a handler: {', '.join(missing)}")
        return self._identity

    def main(self, arguments: Sequence[str]) -> int:
        """Do what the command line says (without the program's name); give the exit code."""
        match list(arguments):
            case [] | ["serve"]:
                return self.serve()
            case ["hello"]:
                return self._once(Hello(seq=1, protocol=PROTOCOL))
            case ["header", path]:
                return self._once(HeaderRequest(seq=1, path=path))
            case ["load", path]:
                return self._once(LoadRequest(seq=1, path=path))
        print(f"unknown arguments: {' '.join(arguments)}\nusage: [serve] | hello | header FILE | load FILE", file=sys.stderr)  # noqa: T201 - a usage message
        return EXIT_USAGE

    def serve(self) -> int:
        """Answer requests from stdin until it ends.

        While serving, file descriptor 1 is the same as 2 and descriptor 0 is empty: what the implementation prints, from
        Python or from C, goes to stderr, and it cannot eat requests.
        """
        requests, answers = _take_standard_streams()
        try:
            for line in requests:
                answers.write(self.answer(line) + b"\n")
                answers.flush()
        except (BrokenPipeError, KeyboardInterrupt):
            return EXIT_ERROR  # nobody is left to answer to
        return EXIT_OK

    def answer(self, line: bytes) -> bytes:
        """Give the answer line (without its line end) to one request line. Raises no Exception."""
        try:
            request = _REQUESTS.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            return _ENCODER.encode(_refuse(line, str(problem)))
        return _ENCODER.encode(self._respond(request))

    def _respond(self, request: Request) -> Response:
        try:
            return Response(seq=request.seq, ok=msgspec.Raw(_ENCODER.encode(self._result(request))))
        except Reject as reject:
            return Response(seq=request.seq, reject=reject.answer)
        except Unsupported as reason:
            return Response(seq=request.seq, unsupported=_text(str(reason)))
        except Exception as error:  # noqa: BLE001 - whatever the implementation raises is an answer, never the adapter's end
            traceback.print_exc(file=sys.stderr)
            return Response(seq=request.seq, error=_text(f"{_name(type(error))}: {error}"))

    def _result(self, request: Request) -> Identity | Header | Done:
        if isinstance(request, Hello):
            return self.identity
        op = type(request).__struct_config__.tag
        self._check_declared(str(op), request)
        header = self._handlers[str(op)](request)
        if isinstance(request, HeaderRequest | LoadRequest):
            if header is None:
                raise TypeError(f"the handler of {op} returned None where a Header is due")
            return header
        return Done()

    def _check_declared(self, op: str, request: Request) -> None:
        declared = getattr(self.identity.ops, op)
        if declared in (None, ()):
            raise Unsupported(f"op {op}")
        if isinstance(declared, tuple):
            wanted = _kind(request)
            if wanted not in declared:
                raise Unsupported(f"{op} of {wanted}")

    def _once(self, request: Request) -> int:
        """Print the answer's JSON to stdout, or why there is none to stderr; give the exit code."""
        _requests, answers = _take_standard_streams()
        response = self._respond(request)
        if response.error is not None or response.unsupported is not None:
            code, text = (EXIT_ERROR, response.error) if response.error else (EXIT_USAGE, f"unsupported: {response.unsupported}")
            os.write(2, f"{text}\n".encode())
            return code
        answer = bytes(response.ok) if response.reject is None else _ENCODER.encode(response.reject)
        try:
            answers.write(answer + b"\n")
            answers.flush()
        except BrokenPipeError:
            return EXIT_ERROR  # whoever asked has heard enough
        return EXIT_OK if response.reject is None else EXIT_REJECT


class _Head(msgspec.Struct):
    """As much of a line as it takes to answer one that is no request."""

    seq: int = 0
    op: str = ""


_ENCODER = msgspec.json.Encoder()
_REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_HEADS = msgspec.json.Decoder(_Head)


def _refuse(line: bytes, problem: str) -> Response:
    """Answer a line that is no request: an op that protocol 1 does not have, a wrong field, or no JSON at all."""
    try:
        head = _HEADS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Response(seq=0, error=_text(f"not a request: {error}"))
    if head.op not in (*OPS, "hello"):
        return Response(seq=head.seq, unsupported=_text(f"op {head.op!r}"))
    return Response(seq=head.seq, error=_text(f"not a request of op {head.op}: {problem}"))


def _kind(request: Any) -> str:
    """Give what a block op asks for as hello declares it: ``Q8_0`` or ``Q8_0:simd``."""
    variant = getattr(request, "variant", None)
    return f"{request.type}:{variant}" if variant else str(request.type)


def _name(kind: type) -> str:
    """Name an exception so that it is told from others of its name: ``struct.error``, ``ValueError``."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _text(text: str) -> str:
    """Make one line of valid UTF-8, which JSON needs (a file's name may bring lone surrogates)."""
    return " ".join(text.encode("utf-8", "replace").decode("utf-8").split())


def _take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take stdin and stdout for the protocol; leave stderr in stdout's place and nothing in stdin's."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    sys.stdout.flush()
    os.dup2(2, 1)
    return requests, answers
