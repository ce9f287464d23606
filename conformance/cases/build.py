"""The GGUF builder: any file, sound or broken, from a recipe, together with its field map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from conformance.cases.directory import Placed, place, section
from conformance.cases.entry import Entry, nearest
from conformance.cases.fieldmap import Field, FieldMap, Single
from conformance.cases.pieces import Writer
from conformance.cases.plan import WIDTHS, FilePlan, Pair, Scalar, Tensor
from conformance.cases.recipe import PATCH_FORMS, parse_file, scalar_bits

_ALIGNMENT_KEY = b"general.alignment"
_DEFAULT_ALIGNMENT = 32


class Built(NamedTuple):
    """A file's bytes and the map of its fields."""

    data: bytes
    fields: FieldMap


def build(recipe: Mapping[str, Any]) -> Built:
    """Build the file that ``recipe`` describes (docs/cases.md has the grammar).

    Raises ConfigurationError for an unknown key, a value that does not fit, a patch of a field that does not exist, and
    a file above 1 GiB.
    """
    plan = parse_file(Entry.of(recipe))
    if plan.raw is not None:
        return Built(plan.raw, FieldMap([Single(Field("bytes", 0, len(plan.raw), "bytes"))] if plan.raw else []))
    return _finished(_laid_out(plan), plan)


def check_recipe(recipe: Mapping[str, Any]) -> None:
    """Find every error of ``recipe`` that shows without building it. Raises ConfigurationError."""
    parse_file(Entry.of(recipe))


def _laid_out(plan: FilePlan) -> Built:
    """Header, pairs, directory, padding and data, before patches."""
    writer = Writer(plan.order, 4 if plan.version == 1 else 8, plan.entry)
    writer.raw("magic", "bytes", plan.magic)
    writer.number("version", "u32", plan.version)
    writer.length("n_tensors", len(plan.tensors) if plan.n_tensors is None else plan.n_tensors)
    writer.length("n_kv", len(plan.pairs) if plan.n_kv is None else plan.n_kv)
    for index, pair in enumerate(plan.pairs):
        writer.text(f"kv[{index}].key", pair.key)
        writer.typed_value(f"kv[{index}]", pair.value)
    placed = place(plan.tensors, _alignment(plan))
    for index, (tensor, spot) in enumerate(zip(plan.tensors, placed, strict=True)):
        _write_tensor(writer, f"tensors[{index}]", tensor, spot)
    extra = _write_data(writer, plan, placed)
    return Built(writer.joined(), FieldMap(writer.spans, extra))


def _alignment(plan: FilePlan) -> int:
    """Give the layout's alignment: ``align``, else a usable value of general.alignment, else 32."""
    if plan.align is not None:
        return plan.align
    values = [pair.value.bits for pair in plan.pairs if _sets_alignment(pair) and isinstance(pair.value, Scalar)]
    return values[0] if values and values[0] else _DEFAULT_ALIGNMENT


def _sets_alignment(pair: Pair) -> bool:
    return isinstance(pair.value, Scalar) and pair.value.kind == "u32" and pair.key.raw == _ALIGNMENT_KEY


def _write_tensor(writer: Writer, path: str, tensor: Tensor, spot: Placed) -> None:
    writer.text(f"{path}.name", tensor.name)
    writer.number(f"{path}.n_dims", "u32", len(tensor.dims))
    for index, dim in enumerate(tensor.dims):
        writer.length(f"{path}.dims[{index}]", dim)
    writer.number(f"{path}.type", "u32", tensor.type)
    writer.number(f"{path}.offset", "u64", spot.offset)


def _write_data(writer: Writer, plan: FilePlan, placed: list[Placed]) -> list[Field]:
    """Write the header's padding and the data section; give the fields that lie over others."""
    alignment = _alignment(plan)
    if plan.pad_header if plan.pad_header is not None else bool(plan.tensors):
        writer.raw("padding", "padding", b"\0", -writer.position % alignment)
    elif plan.tensors:
        return []
    if not plan.with_data:
        return []
    start = writer.position
    data, tiles, overlapped = section(placed, plan.order, alignment if plan.pad_last else 1)
    writer.tiles(data, [tile._replace(offset=start + tile.offset) for tile in tiles])
    whole = [Field("data", start, len(data), "data")] if data else []
    return whole + [field._replace(offset=start + field.offset) for field in overlapped]


def _finished(built: Built, plan: FilePlan) -> Built:
    """Patches, then the cut, then what is appended."""
    data, fields = built
    if plan.patches:
        patched = bytearray(data)
        for patch in plan.patches:
            field = fields.find(patch.path)
            if field is None:
                raise patch.value.error(f"there is no field `{patch.path}` to patch", nearest(patch.path, fields.paths()))
            patched[field.offset : field.end] = _patch_bytes(patch.value, field, plan.order)
        data = bytes(patched)
    if plan.cut is not None:
        data, fields = _cut(data, fields, plan.entry, plan.cut)
    if plan.append.count:
        tail = plan.append.raw
        if tail:
            data, fields = data + tail, fields.joined(Field("appended", len(data), len(tail), "bytes"))
    return Built(data, fields)


def _patch_bytes(entry: Entry, field: Field, order: str) -> bytes:
    """Give what a patch writes over ``field``: exactly the field's width."""
    if entry.is_mapping():
        form, body = entry.one_of(PATCH_FORMS)
        if form == "fill":
            return bytes([body.integer(0, 255)]) * field.length
        raw = body.hexadecimal()
        if len(raw) != field.length:
            raise entry.error(f"{len(raw)} bytes for `{field.path}`", f"the field has {field.length}; write as many")
        return raw
    if field.kind not in WIDTHS:
        raise entry.error(
            f"`{field.path}` is no number but {field.kind}", f"write {{hex: ...}} with {field.length} bytes, or {{fill: 0}}"
        )
    signed = f"i{field.kind[1:]}" if field.kind.startswith("u") and str(entry.value).strip().startswith("-") else field.kind
    return scalar_bits(signed, entry).to_bytes(field.length, "little" if order == "little" else "big")


def _cut(data: bytes, fields: FieldMap, entry: Entry, cut: int) -> tuple[bytes, FieldMap]:
    """Keep the first ``cut`` bytes; a negative ``cut`` drops that many from the end."""
    size = cut if cut >= 0 else len(data) + cut
    if not 0 <= size <= len(data):
        raise entry.mapping()["cut"].error(f"cannot cut a file of {len(data)} bytes at {cut}", f"write {-len(data)} to {len(data)}")
    return data[:size], fields.cut(size)
