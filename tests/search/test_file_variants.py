from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from conformance.cases.build import build
from conformance.errors import ConfigurationError
from conformance.search.file_documents import document
from conformance.search.file_draws import Seeded
from conformance.search.file_fields import anatomy, claimed
from conformance.search.file_forms import FORMS
from conformance.search.variants import MUCH_DATA, TWO, variants
from conformance.values import VALUE_TYPES

DOCUMENTS = [document(draw) for draw in [Seeded(3)] for _ in range(40)]
RICH = {
    "kv": [
        {"key": "general.alignment", "u32": 32},
        {"key": "aa", "str": "hello"},
        {"key": "bb", "array": {"str": ["x", "yz"]}},
        {"key": "flag", "bool": 1},
        {"key": "GGUF.version", "f32": "0x7fc00000"},
    ],
    "tensors": [
        {"name": "tt", "type": "F32", "dims": [4, 2]},
        {"name": "uu", "type": "Q8_0", "dims": [32]},
        {"name": "vv", "type": "I8", "dims": [7]},
    ],
}
DRAWN = list(variants(RICH, 5, 12_000))
MEANT = {
    "zero": lambda new, _old, _size, _width: new == 0,
    "more": lambda new, old, _size, _width: new == old + 1,
    "less": lambda new, old, _size, _width: new == old - 1,
    "negative": lambda new, _old, size, width: new > size and new >> 8 * width - 1,
    "huge": lambda new, _old, size, width: new > max(size, 2**30) and not new >> 8 * width - 1,
    "large": lambda new, _old, size, _width: size < new <= 2**30,
    "beyond": lambda new, _old, size, _width: new <= size,
    "other": lambda new, _old, size, _width: new <= size,
    "flipped": lambda new, old, _size, _width: (new ^ old).bit_count() == 1,
    "bytes": lambda new, old, _size, _width: new != old,
}


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_each_recipe_builds_exactly_the_bytes(number: int) -> None:
    for probe in variants(DOCUMENTS[number], number, 150):
        assert build(probe.recipe).data == probe.data, probe.label


def test_the_first_is_the_file_itself_and_all_others_differ() -> None:
    sound = build(RICH).data
    assert (DRAWN[0].label, DRAWN[0].data, DRAWN[0].recipe) == ("valid", sound, RICH)
    assert len(DRAWN) == 12_001
    same = [probe.label for probe in DRAWN[1:] if probe.data == sound]
    assert set(same) <= {name for name, _ in FORMS}  # laid out otherwise, and yet the same


def test_the_same_seed_gives_the_same_and_another_one_others() -> None:
    one, two, other = ([(probe.op, probe.data, probe.label) for probe in variants(RICH, seed, 300)] for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_labels_say_what_became_of_a_number() -> None:
    sound = build(RICH)
    seen = set()
    for probe in DRAWN:
        general, _, word = probe.label.partition("=")
        patch = probe.recipe.get("patch", {})
        if word not in MEANT or len(patch) != 1 or general.endswith((".type", ".items", "magic")):
            continue
        ((path, _),) = patch.items()
        field = sound.fields.find(path)
        old, new = (int.from_bytes(data[field.offset : field.end], "little") for data in (sound.data, probe.data))
        assert general in {re.sub(r"\[\d+\]", "[*]", path), "general.alignment"}
        assert MEANT[word](new, old, len(sound.data), field.length), (probe.label, path, old, new)
        seen.add(word)
    assert seen == set(MEANT)


def test_labels_say_which_type_is_claimed() -> None:
    for probe in DRAWN:
        general, _, word = probe.label.partition("=")
        if general in {"kv[*].type", "kv[*].value.items"} and word not in {"flipped", "bytes"} and "patch" in probe.recipe:
            ((_, number),) = probe.recipe["patch"].items()
            assert word == (VALUE_TYPES[number] if number < len(VALUE_TYPES) else "unknown")
        if general == "tensors[*].type" and "patch" in probe.recipe and word in {"removed", "unknown"}:
            ((_, number),) = probe.recipe["patch"].items()
            assert (word == "unknown") == (number > 42)


def test_labels_say_what_became_of_a_text() -> None:
    twins = [probe.recipe["patch"] for probe in DRAWN if probe.label == "kv[*].key=twin"]
    assert {path: value for patch in twins for path, value in patch.items()} == {
        "kv[1].key": {"hex": b"bb".hex()},
        "kv[2].key": {"hex": b"aa".hex()},
    }
    names = {value["hex"] for probe in DRAWN if probe.label == "tensors[*].name=twin" for value in probe.recipe["patch"].values()}
    assert names == {b"tt".hex(), b"uu".hex(), b"vv".hex()}
    for word, byte in (("nul", b"\0"), ("dot", b"."), ("control", b"\n")):
        found = [probe for probe in DRAWN if probe.label == f"kv[*].key={word}"]
        assert found
        assert all(byte in bytes.fromhex(next(iter(probe.recipe["patch"].values()))["hex"]) for probe in found)


def test_labels_cover_fields_places_cuts_and_forms() -> None:
    labels = {probe.label for probe in DRAWN}
    assert {name for name, _ in FORMS} <= labels
    assert {"cut", "appended", TWO, "magic=other", "version=zero", "tensors[*].dims=wrapping"} <= labels
    assert {f"tensors[*].offset={word}" for word in ("swapped", "overlap", "shifted", "far", "wrapped")} <= labels
    assert {"general.alignment=zero", "general.alignment=negative", "kv[*].value=nul", "kv[*].value[*]=not-utf8"} <= labels
    assert len(labels) < 400


def test_every_field_is_changed_and_the_file_cut_before_it_and_elsewhere() -> None:
    paths = {path for probe in DRAWN for path in probe.recipe.get("patch", {})}
    fields = [field for field in build(RICH).fields if field.length]
    assert {field.path for field in fields} <= paths
    cuts = {probe.recipe["cut"] for probe in DRAWN if probe.label == "cut"}
    assert {field.offset for field in fields} <= cuts
    assert len(build(RICH).data) / 2 < len(cuts) <= len(build(RICH).data)


def test_who_claims_much_data_is_rarely_asked_to_load_it() -> None:
    taken = anatomy(RICH)
    shapes = [probe for probe in DRAWN if probe.label.startswith("tensors[*].dims") and "patch" in probe.recipe]
    much = [probe.op for probe in shapes if claimed(taken, probe.data) > MUCH_DATA]
    little = [probe.op for probe in shapes if claimed(taken, probe.data) <= MUCH_DATA]
    assert len(much) > 200
    assert much.count("load") < len(much) / 20
    assert len(little) / 3 < little.count("load") < len(little) * 2 / 3


def test_what_is_claimed_counts_zeros_as_one_and_does_not_wrap() -> None:
    def of(*dims: int) -> int:
        recipe = {"tensors": [{"name": "t", "type": "Q8_0", "dims": list(dims)}]}
        return claimed(anatomy(recipe), build(recipe).data)

    assert of(32) == 34
    assert of(64, 3) == 204
    assert of(2**62, 0, 4) == 2**57 * 34 * 4


def test_what_a_recipe_cuts_holds_for_the_file_itself_only() -> None:
    first, *others = variants({**RICH, "cut": 100, "append": "ff"}, 1, 50)
    assert first.data == build(RICH).data[:100] + b"\xff"
    assert all(build(probe.recipe).data == probe.data for probe in others)
    assert any(len(probe.data) == len(build(RICH).data) for probe in others)


@pytest.mark.parametrize(
    "recipe",
    [
        {"bytes": "474755460300"},
        {**RICH, "patch": {"n_kv": 2, "kv[1].key": {"hex": "ffff"}}},
        {"version": 1, "kv": RICH["kv"]},
        {"byteorder": "big", **RICH},
    ],
)
def test_any_recipe_has_variants(recipe: dict[str, Any]) -> None:
    for probe in variants(recipe, 1, 200):
        assert build(probe.recipe).data == probe.data, probe.label


def test_a_recipe_that_does_not_build_has_none() -> None:
    with pytest.raises(ConfigurationError, match="no_such"):
        next(variants({"no_such": 1}, 1, 1))


def test_recipes_are_plain_mappings_where_somebody_looks() -> None:
    probe = next(probe for probe in DRAWN if probe.label == "cut")
    assert dict(probe.recipe) == {**RICH, "cut": probe.recipe["cut"]} == copy.copy(probe.recipe)
    assert repr(probe.recipe) == repr(dict(probe.recipe))
    assert len(probe.recipe) == 3
