from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import impl
from conformance.cases.build import build
from conformance.errors import ConfigurationError
from conformance.search.file_documents import document
from conformance.search.file_draws import Seeded
from conformance.search.file_measure import too_large
from conformance.search.file_smaller import kept
from conformance.search.shrink_files import CANDIDATES, Candidate, shrink
from conformance.search.variants import variants

Recipe = dict[str, Any]

RICH: Recipe = {
    "version": 2,
    "kv": [
        {"key": "general.architecture", "str": "llama"},
        {"key": "general.alignment", "u32": 64},
        {"key": "b.c", "array": {"str": ["x", "yz", "é"]}},
        {"key": "flag", "bool": 1},
        {"key": "n", "nested": {"levels": 0, "f32": ["0x7fc00000"]}},
    ],
    "tensors": [
        {"name": "token_embd.weight", "type": "F32", "dims": [4, 2]},
        {"name": "uu", "type": "Q8_0", "dims": [64]},
        {"name": "vv", "type": "I8", "dims": [7]},
    ],
}


def said(data: bytes) -> str:
    """Give class and field of the reference's refusal, ``ok`` where there is none."""
    try:
        impl.open(data).check_load()
    except impl.GgufError as error:
        return f"{error.reject_class} {re.sub(r'[0-9]+', '*', error.field)}"
    return "ok"


class Asked:
    """An oracle that notes what it is asked."""

    def __init__(self, shows: Callable[[Mapping[str, Any]], bool]) -> None:
        self.one = shows
        self.batches: list[list[Mapping[str, Any]]] = []

    def __call__(self, candidates: Sequence[Candidate]) -> list[bool]:
        self.batches.append([candidate.recipe for candidate in candidates])
        return [self.one(candidate.recipe) for candidate in candidates]


def refuses(wanted: str) -> Asked:
    return Asked(lambda recipe: said(build(recipe).data) == wanted)


def whole(recipe: Mapping[str, Any]) -> bool:
    return "cut" not in recipe


def patched(**patch: Any) -> Recipe:
    return {**RICH, "patch": {path.replace("__", "."): value for path, value in patch.items()}}


NO_DIMS: Recipe = {"name": "", "type": "F32", "dims": []}
MINIMAL: list[tuple[str, Recipe, Recipe]] = [
    ("bad-alignment kv[*].value", {**RICH, "patch": {"kv[1].value": 24}}, {"kv": [{"key": "general.alignment", "u32": 0}]}),
    ("bad-alignment kv[*].type", {**RICH, "patch": {"kv[1].type": 5}}, {"kv": [{"key": "general.alignment", "u8": 0}]}),
    (
        "bad-dims tensors[*].n_dims",
        {**RICH, "patch": {"tensors[1].n_dims": 900}},
        {"tensors": [{**NO_DIMS, "dims": [0] * 5}], "cut": 36},
    ),
    (
        "bad-tensor-type tensors[*].type",
        {**RICH, "patch": {"tensors[2].type": 36}},
        {"tensors": [{**NO_DIMS, "type": 4}], "cut": 40},
    ),
    (
        "bad-block tensors[*].dims[*]",
        {**RICH, "patch": {"tensors[1].dims[0]": 63}},
        {"tensors": [{"name": "", "type": "Q4_0", "dims": [1]}], "cut": 48},
    ),
    (
        "bad-offset tensors[*].offset",
        {**RICH, "patch": {"tensors[1].offset": 2**40}},
        {"tensors": [{**NO_DIMS, "offset": 1, "data": "none"}]},
    ),
    (
        "bad-name tensors[*].name",
        {**RICH, "patch": {"tensors[0].name.length": 99}},
        {"tensors": [{**NO_DIMS, "name": "a" * 64}], "cut": 96},
    ),
    ("bad-value-type kv[*].type", {**RICH, "patch": {"kv[3].type": 2**31}}, {"kv": [{"key": "a", "raw": {"type": 13}}]}),
    (
        "bad-value-type kv[*].value.items",
        {**RICH, "patch": {"kv[2].value.items": 77}},
        {"kv": [{"key": "a", "array": {"array": []}}]},
    ),
    (
        "bad-length kv[*].value.length",
        {**RICH, "patch": {"kv[0].value.length": 2**63}},
        {"kv": [{"key": "a", "str": ""}], "patch": {"kv[0].value.length": 1}},
    ),
    ("duplicate-key kv[*].key", {**RICH, "kv": [*RICH["kv"], RICH["kv"][0]]}, {"kv": [{"key": "a", "u8": 0}] * 2, "cut": 47}),
    ("bad-count n_kv", {**RICH, "patch": {"n_kv": 2**64 - 1}}, {"n_kv": 209622091746699451}),
    ("bad-version version", {**RICH, "patch": {"version": 1234}}, {"version": 0, "cut": 8}),
    ("bad-magic magic", {**RICH, "patch": {"magic": {"hex": "47475501"}}}, {"magic": "aaaa", "cut": 4}),
    ("byte-order version", {**RICH, "byteorder": "big"}, {"byteorder": "big", "cut": 8}),
    ("missing-data data", {**RICH, "cut": -1}, {"tensors": [NO_DIMS], "data": "none"}),
    ("truncated kv[*].value", {**RICH, "cut": 100}, {"kv": [{"key": "a", "u8": 0}], "cut": 37}),
]


@pytest.mark.parametrize(("wanted", "recipe", "least"), MINIMAL, ids=[wanted for wanted, *_ in MINIMAL])
def test_the_least_file_that_is_refused_for_this(wanted: str, recipe: Recipe, least: Recipe) -> None:
    assert said(build(recipe).data) == wanted
    found = shrink(recipe, refuses(wanted))
    assert found == least
    assert said(build(found).data) == wanted


def hits(seed: int, count: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Give one broken file for each kind of refusal."""
    draw, found = Seeded(seed), dict[str, Mapping[str, Any]]()
    for number in range(count):
        for probe in variants(document(draw), number, 30):
            found.setdefault(said(probe.data), probe.recipe)
    return [(wanted, recipe) for wanted, recipe in found.items() if wanted != "ok"]


@pytest.mark.parametrize(("wanted", "recipe"), hits(11, 5))
def test_nothing_can_be_left_out_of_what_is_found(wanted: str, recipe: Recipe) -> None:
    asked = refuses(wanted)
    found = shrink(recipe, asked)
    data = build(found).data
    smaller = [{**found, "cut": size} for size in range(len(data))]
    smaller += [
        kept(found, part, set(range(len(found[part]))) - {index})
        for part in ("kv", "tensors")
        for index in range(len(found.get(part, ())))
    ]
    smaller += [
        {**found, "patch": {path: value for path, value in found["patch"].items() if path != gone}}
        for gone in found.get("patch", ())
    ]
    smaller += [
        {key: value for key, value in found.items() if key != gone} for gone in found if gone not in {"kv", "tensors", "patch"}
    ]
    assert asked.one(found)
    for each in smaller:
        try:
            less = Candidate.of(each).measure < Candidate.of(found).measure
        except ConfigurationError:
            continue
        assert not (less and asked.one(each)), each


@pytest.mark.parametrize("least", [0, 1, 37, 2**30 + 1, 2**62, 53624256028225441])
def test_a_number_ends_at_the_least_that_shows_it(least: int) -> None:
    found = shrink({"n_kv": 2**64 - 3}, Asked(lambda recipe: whole(recipe) and int(recipe.get("n_kv", 0)) >= least))
    assert found == ({"n_kv": least} if least else {})


def test_a_float_and_a_negative_number_end_at_zero() -> None:
    for form, value, zero in (("f64", "0x7ff8000000000001", "0x0000000000000000"), ("i16", -5, 0)):
        recipe = {"kv": [{"key": "k", form: value}]}
        found = shrink(recipe, Asked(lambda each, form=form: whole(each) and any(form in pair for pair in each.get("kv", ()))))  # type: ignore[misc] # a default
        assert found == {"kv": [{"key": "", form: zero}]}


def test_text_that_matters_stays() -> None:
    recipe = {**RICH, "kv": [*RICH["kv"], {"key": "some.long.key", "str": {"hex": "6869ff21"}}]}
    found = shrink(recipe, Asked(lambda each: b"\xff" in build(each).data))
    assert found == {"kv": [{"key": "", "str": {"hex": "ff"}}]}


def test_the_cut_follows_what_is_left_out_before_it() -> None:
    wanted = "truncated tensors[*].offset"
    recipe = {**RICH, "cut": build(RICH).fields.find("tensors[2].offset").offset + 3}  # type: ignore[union-attr] # it is there
    assert said(build(recipe).data) == wanted
    assert shrink(recipe, refuses(wanted)) == {"tensors": [NO_DIMS], "cut": 40}


def test_the_cut_within_the_data_follows_the_alignment() -> None:
    tensors = [{"name": "keep", "type": "F32", "dims": [1]}]
    recipe = {"kv": [{"key": "general.alignment", "u32": 256}], "tensors": tensors, "cut": 259}
    lacks = refuses("missing-data data").one
    found = shrink(recipe, Asked(lambda each: lacks(each) and build(each).data[-3:] == b"\1\2\3" and b"keep" in build(each).data))
    assert found == {"tensors": [{"name": "keep", "type": "F32", "dims": []}], "cut": 67}


def test_patches_follow_their_pairs_and_tensors() -> None:
    recipe = patched(
        **{"kv[3]__value": 7, "kv[0]__key": {"hex": "61" * 20}, "tensors[2]__type": 9, "data[2]": {"fill": 3}, "n_kv": 9}
    )
    assert kept(recipe, "kv", {3})["patch"] == {"kv[0].value": 7, "tensors[2].type": 9, "data[2]": {"fill": 3}, "n_kv": 9}
    assert kept(recipe, "tensors", {1, 2})["patch"] == {
        "kv[3].value": 7,
        "kv[0].key": {"hex": "61" * 20},
        "tensors[1].type": 9,
        "data[1]": {"fill": 3},
        "n_kv": 9,
    }


def test_what_is_asked_is_what_its_recipe_builds() -> None:
    def shows(candidates: Sequence[Candidate]) -> list[bool]:
        assert all(candidate.data == build(candidate.recipe).data for candidate in candidates)
        return [False] * len(candidates)

    shrink({**RICH, "patch": {"kv[1].value": 24}}, shows)


def test_what_is_asked_builds_and_comes_once_in_batches() -> None:
    asked = refuses("bad-alignment kv[*].value")
    shrink({**RICH, "patch": {"kv[1].value": 24}}, asked)
    all_asked = [repr(recipe) for batch in asked.batches for recipe in batch]
    assert len(all_asked) == len(set(all_asked)) > 100
    assert all(0 < len(batch) <= CANDIDATES for batch in asked.batches)
    assert all(build(recipe) for batch in asked.batches for recipe in batch)


@pytest.mark.parametrize("start", [{**RICH, "patch": {"kv[1].value": 24}}, {"cut": 37, "kv": [{"key": "a", "u8": 0}]}])
def test_what_is_asked_is_smaller_than_the_smallest_so_far(start: Recipe) -> None:
    asked = refuses(said(build(start).data))
    shrink(start, asked)
    least = Candidate.of(start).measure
    for batch in asked.batches:
        sizes = [Candidate.of(dict(recipe)).measure for recipe in batch]
        assert all(size < least for size in sizes)
        least = min([least, *(size for size, recipe in zip(sizes, batch, strict=True) if asked.one(recipe))])


def test_a_key_that_is_there_twice_is_made_plainer_in_both_places() -> None:
    pairs = [{"key": "Some.Key", "u8": 1}, *RICH["kv"], {"key": "Some.Key", "u8": 2}]
    twice = refuses("duplicate-key kv[*].key").one
    found = shrink({**RICH, "kv": pairs}, Asked(lambda recipe: whole(recipe) and twice(recipe) and len(build(recipe).data) >= 54))
    assert found == {"kv": [{"key": "aa", "u8": 0}] * 2}


def test_it_ends_after_the_rounds_that_it_is_given() -> None:
    asked = refuses("bad-alignment kv[*].value")
    found = shrink({**RICH, "patch": {"kv[1].value": 24}}, asked, rounds=2)
    assert len(asked.batches) == 2
    assert asked.one(found)


def test_few_candidates_at_a_time_where_each_takes_long() -> None:
    asked = refuses("bad-alignment kv[*].value")
    found = shrink({**RICH, "patch": {"kv[1].value": 24}}, asked, candidates=3)
    assert max(map(len, asked.batches)) == 3
    assert found == {"kv": [{"key": "general.alignment", "u32": 0}]}


def test_the_same_answers_give_the_same_result() -> None:
    recipe = {**RICH, "patch": {"tensors[1].offset": 2**40, "kv[0].key": {"hex": "ff" * 20}}, "append": "0102"}
    one, other = (shrink(recipe, refuses("bad-offset tensors[*].offset")) for _ in range(2))
    assert one == other


def test_what_shows_only_as_it_is_stays_as_it_is() -> None:
    recipe = patched(n_kv=4)
    assert shrink(recipe, Asked(lambda _recipe: False)) == recipe


def test_plain_bytes_become_fewer() -> None:
    recipe = {"bytes": (b"abcd" + b"\xff" + bytes(90)).hex()}
    assert shrink(recipe, Asked(lambda each: b"\xff" in build(each).data)) == {"bytes": b"abcd\xff".hex()}


def test_numbers_written_as_text_are_read() -> None:
    recipe = {"kv": [{"key": "general.alignment", "u32": "2^4+8"}], "tensors": [{"name": "t", "type": "8", "dims": ["2^5"]}]}
    assert shrink(recipe, refuses("bad-alignment kv[*].value")) == {"kv": [{"key": "general.alignment", "u32": 0}]}


def test_files_of_megabytes_are_not_built() -> None:
    assert too_large({"tensors": [{"name": "t", "type": "F32", "dims": [2**20]}]})
    assert too_large({"tensors": [{"name": "t", "type": "F32", "dims": [1], "offset": 2**28 - 4}]})
    assert too_large({"kv": [{"key": "general.alignment", "u32": 2**29}], "tensors": [NO_DIMS]})
    assert not too_large({"tensors": [{"name": "t", "type": "F32", "dims": [2**62]}]})
    assert not too_large({"tensors": [{"name": "t", "type": "F32", "dims": [2**20], "data": "none"}]})


def test_a_recipe_that_does_not_build_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no field"):
        shrink(patched(**{"kv[9]__key": 1}), refuses("ok"))
