"""A request with fields that its op does not have, or that are null: what an adapter has to pass over."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from conformance.subjects.protocol import Request


def extended(request: Request, given: dict[str, Any]) -> Request:
    """Give ``request`` with the fields ``given`` before its own; null takes the place of a field that may be left out.

    They come first, so that who looks for a name in the line instead of reading JSON finds the wrong one. What is given back is no
    instance of the request's class, but has its op, its attributes and its ``seq``.
    """
    own = [field for field in msgspec.structs.fields(type(request)) if field.encode_name not in given]
    kept = [(field.name, Any, msgspec.field(name=field.encode_name, default=field.default)) for field in own]
    fields = [(f"given_{index}", Any, msgspec.field(name=name)) for index, name in enumerate(given)]
    tag = type(request).__struct_config__.tag
    kind = msgspec.defstruct(
        type(request).__name__, [*fields, *kept], frozen=True, kw_only=True, tag=tag, tag_field="op", omit_defaults=True
    )
    values = {field.name: getattr(request, field.name) for field in own}
    return cast("Request", kind(**values, **{f"given_{index}": value for index, value in enumerate(given.values())}))
