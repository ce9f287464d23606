from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import impl
from conformance.cases.build import build
from conformance.cases.walk import walk
from conformance.search.file_documents import KEYS, NAMES, STRINGS, document
from conformance.search.file_draws import Seeded, Tape
from conformance.search.file_strategies import broken_files, documents, file_bytes
from conformance.search.file_texts import text_bytes, text_form
from conformance.values import VALUE_TYPES

QUICK = settings(max_examples=100, deadline=None, database=None)
DRAWN = [document(draw) for draw in [Seeded(7)] for _ in range(400)]


def holds_arrays_of_arrays(recipe: dict[str, Any]) -> bool:
    return any("array" in pair.get("array", {}) for pair in recipe.get("kv", ()))


@QUICK
@given(documents())
def test_sound_documents_are_read_to_their_end(recipe: dict[str, Any]) -> None:
    data = build(recipe).data
    if recipe.get("byteorder") == "big":
        return
    walked = walk(data)
    assert walked.problem == ""
    assert [tensor.type for tensor in walked.header.tensors] == [
        int.from_bytes(build(recipe).data[field.offset : field.end], "little")
        for index in range(len(walked.header.tensors))
        for field in [build(recipe).fields.find(f"tensors[{index}].type")]
    ]
    assert walked.fields.at(len(data)) is None
    assert "rest" not in {field.path for field in walked.fields}


def test_the_reference_takes_all_that_are_little_endian_and_hold_no_arrays_of_arrays() -> None:
    refused = []
    for recipe in DRAWN:
        try:
            impl.open(build(recipe).data).check_load()
        except impl.GgufError as error:
            refused.append((error.reject_class, recipe.get("byteorder") == "big", holds_arrays_of_arrays(recipe)))
    assert refused
    assert set(refused) <= {("byte-order", True, False), ("byte-order", True, True), ("bad-value-type", False, True)}


def test_documents_hold_every_value_type_and_every_shape() -> None:
    kinds = {next(iter(pair.keys() - {"key"})) for recipe in DRAWN for pair in recipe.get("kv", ())}
    tensors = [tensor for recipe in DRAWN for tensor in recipe.get("tensors", ())]
    assert kinds == set(VALUE_TYPES)
    assert {len(tensor["dims"]) for tensor in tensors} == {0, 1, 2, 3, 4}
    assert len({tensor["type"] for tensor in tensors}) > 30
    assert {0, 1} <= {dim for tensor in tensors for dim in tensor["dims"]}
    assert {recipe.get("version", 3) for recipe in DRAWN} == {2, 3}
    assert any("u32" in pair and pair["key"] == "general.alignment" for recipe in DRAWN for pair in recipe.get("kv", ()))
    keys = {text_bytes(pair["key"]) for recipe in DRAWN for pair in recipe.get("kv", ())}
    assert {b"a", b"general.architecture"} <= keys
    assert len(keys & set(KEYS.odd)) > 10
    assert sorted(len(build(recipe).data) for recipe in DRAWN)[len(DRAWN) * 9 // 10] < 1024


def test_the_seed_alone_says_which_document_it_is() -> None:
    one, two, other = ([document(draw) for draw in [Seeded(seed)] for _ in range(20)] for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_a_tape_of_zeros_or_none_is_the_simplest_document() -> None:
    assert document(Tape(b"")) == document(Tape(bytes(128))) == {}
    assert build({}).data == build(document(Tape(b""))).data


def test_keys_and_names_say_their_bytes() -> None:
    for raw in (*KEYS.plain, *KEYS.odd, *NAMES.plain, *NAMES.odd, *STRINGS.plain, *STRINGS.odd):
        assert text_bytes(text_form(raw)) == raw


@QUICK
@given(broken_files())
def test_broken_files_build_and_differ_from_the_sound_file(recipe: dict[str, Any]) -> None:
    sound = {key: value for key, value in recipe.items() if key not in {"patch", "cut", "append"}}
    assert sound != recipe
    assert build(recipe).data != build(sound).data


@QUICK
@given(file_bytes(st.just({})), file_bytes())
def test_bytes_are_those_of_the_recipes(empty: bytes, data: bytes) -> None:
    assert empty == build({}).data
    assert isinstance(data, bytes)
