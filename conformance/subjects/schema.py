"""The JSON Schema of protocol 1, made from the message types, and the check of single lines against it.

``python -m conformance.subjects.schema`` writes ``conformance/schemas/protocol-1.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.outcomes import REJECT_CLASSES
from conformance.subjects.answers import ok_type
from conformance.subjects.protocol import OPS, PROTOCOL, Request, Response

SCHEMA_FILE = Path(__file__).resolve().parents[1] / "schemas" / f"protocol-{PROTOCOL}.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ANSWERS = ("ok", "reject", "unsupported", "error")
_EXACTLY_ONE = f"exactly one of {', '.join(_ANSWERS)} is there and not null"


def response_name(op: str) -> str:
    """Give the name of the definition that describes the answers to ``op``."""
    return f"{ok_type(op).__name__}Response"


def build_schema() -> dict[str, Any]:
    """Give the JSON Schema of one line, in either direction; ``$defs`` holds each message by its name."""
    responses = {response_name(op): _response_type(op) for op in ("hello", *OPS)}
    (requests, *_), definitions = msgspec.json.schema_components([Request, *responses.values()], ref_template="#/$defs/{name}")
    for name in responses:
        definitions[name]["oneOf"] = [_present(answer) for answer in _ANSWERS]
        definitions[name]["description"] = f"{definitions[name].get('description', '')} Of the answers, {_EXACTLY_ONE}.".strip()
    definitions["Rejected"]["properties"]["class"]["enum"] = list(REJECT_CLASSES)
    definitions["Request"] = {"anyOf": requests["anyOf"]}
    definitions["Response"] = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in responses]}
    return {
        "$schema": DIALECT,
        "title": f"gguf-conformance protocol {PROTOCOL}",
        "description": "One line on stdin (Request) or stdout (Response) of a subject. Unknown fields are to be ignored.",
        "anyOf": [{"$ref": "#/$defs/Request"}, {"$ref": "#/$defs/Response"}],
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """Give the schema file's content."""
    return json.dumps(build_schema(), indent=2, ensure_ascii=False) + "\n"


def _response_type(op: str) -> type[msgspec.Struct]:
    """Give the type Response with its ``ok`` typed for ``op``."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(Response)}
    kinds["ok"] = ok_type(op) | None
    fields: list[Any] = [("seq", kinds["seq"]), *((name, kinds[name], None) for name in _ANSWERS)]
    return msgspec.defstruct(response_name(op), fields, kw_only=True, namespace={"__doc__": f"The answer to {_asked(op)}."})


def _asked(op: str) -> str:
    return ", ".join(other for other in ("hello", *OPS) if ok_type(other) is ok_type(op))


def _present(name: str) -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


class LineCheck:
    """Checks lines against the schema; each definition is compiled once."""

    def __init__(self) -> None:
        import jsonschema  # noqa: PLC0415 - slow to import, and most runs do not validate

        self._validators = jsonschema.Draft202012Validator
        self._definitions = build_schema()["$defs"]
        self._compiled: dict[str, Any] = {}

    def request(self, line: bytes) -> str | None:
        """Give what is wrong with a request line and where, or None."""
        return self._problem(line, "Request")

    def response(self, line: bytes, op: str) -> str | None:
        """Give what is wrong with an answer to ``op`` and where, or None.

        A line that is no JSON, or nested too deep to be checked, is left to its reader.
        """
        return self._problem(line, response_name(op))

    def _problem(self, line: bytes, name: str) -> str | None:
        try:
            value = json.loads(line)
            errors = list(self._validator(name).iter_errors(value))
        except ValueError:
            return None
        except RecursionError:
            return None  # deeper than the check can go; what reads the line has its own word on depth
        if not errors:
            return None
        if any(error.validator == "oneOf" for error in errors):
            return f"$: {_EXACTLY_ONE}"
        error = _deepest(errors)
        return f"{error.json_path}: {error.message[:300]}"

    def _validator(self, name: str) -> Any:
        if name not in self._compiled:
            schema = {"$schema": DIALECT, "$defs": self._definitions, "$ref": f"#/$defs/{name}"}
            self._compiled[name] = self._validators(schema)
        return self._compiled[name]


def _deepest(errors: Sequence[Any]) -> Any:
    """Give the error that lies deepest in the line, of alternatives the one that says more than "not null"."""
    error = max(errors, key=lambda one: len(one.absolute_path))
    telling = [one for one in error.context if one.validator_value != "null"]
    return _deepest(telling) if telling else error


def main() -> int:
    """Write the schema file."""
    SCHEMA_FILE.parent.mkdir(exist_ok=True)
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    sys.stdout.write(f"wrote {SCHEMA_FILE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
