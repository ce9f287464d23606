"""The container corpus: labels, boundaries, sizes and bytes are what the cases and docs/reader-rules.md say they are."""

from __future__ import annotations

import re
import struct
from collections import Counter
from itertools import chain
from math import prod
from pathlib import Path
from typing import Any

import pytest

from conformance.cases.build import Built, build
from conformance.cases.load import load_suite
from conformance.cases.model import Case, FileInput
from conformance.ggml_types import BY_NAME
from conformance.values import VALUE_TYPES

ROOT = Path(__file__).parent.parent
RULES = ROOT / "docs" / "reader-rules.md"
SUITES = sorted((ROOT / "cases" / "container").glob("*.yaml"))
CASES = {case.id.removeprefix("container/"): case for path in SUITES for case in load_suite(path, ROOT / "cases")}
TWO_64 = 2**64
# Classes for which the C reader has a message of its own, or a place where it stops.
C_READER_CLASSES = {
    "truncated",
    "bad-magic",
    "bad-version",
    "byte-order",
    "bad-count",
    "bad-length",
    "bad-key",
    "duplicate-key",
    "bad-value-type",
    "bad-alignment",
    "bad-name",
    "duplicate-tensor",
    "bad-dims",
    "bad-tensor-type",
    "bad-block",
    "bad-offset",
    "bad-size",
    "missing-data",
}


@pytest.fixture(scope="module")
def files() -> dict[str, Built]:
    return {key: build(recipe(case)) for key, case in CASES.items()}


def recipe(case: Case) -> dict[str, Any]:
    assert isinstance(case.input, FileInput), f"{case.id} is no file"
    return case.input.recipe


def kinds(case: Case, authority: str) -> set[str]:
    return {expect.kind for answers in case.expect[authority].values() for expect in answers}


def defined_labels() -> list[str]:
    return re.findall(r"^\| ([A-Z]+[0-9]+) \|", RULES.read_text("utf-8"), re.MULTILINE)


def patched(key: str, field: str) -> int:
    return int.from_bytes(field_bytes(build(recipe(CASES[key])), field), "little")


def field_bytes(built: Built, path: str) -> bytes:
    field = built.fields.find(path)
    assert field is not None, path
    return built.data[field.offset : field.end]


def dims(key: str) -> list[int]:
    built = build(recipe(CASES[key]))
    count = int.from_bytes(field_bytes(built, "tensors[0].n_dims"), "little")
    return [int.from_bytes(field_bytes(built, f"tensors[0].dims[{index}]"), "little") for index in range(count)]


# Labels.


def test_every_label_that_a_case_bears_is_defined() -> None:
    undefined = {label for case in CASES.values() for label in case.covers} - set(defined_labels())
    assert not undefined


def test_every_label_that_is_defined_has_a_case() -> None:
    written = [case for path in (ROOT / "cases" / "write").glob("*.yaml") for case in load_suite(path, ROOT / "cases")]
    borne = set(chain.from_iterable(case.covers for case in [*CASES.values(), *written]))
    assert [label for label in defined_labels() if label not in borne] == []


def test_labels_are_defined_once() -> None:
    assert [label for label, times in Counter(defined_labels()).items() if times > 1] == []


def test_all_35_rules_of_the_c_reader_and_its_3_aborts_are_defined() -> None:
    wanted = {f"C{number}" for number in range(1, 36)} | {"CA1", "CA2", "CA3"}
    assert wanted <= set(defined_labels())


@pytest.mark.parametrize("number", range(1, 36))
def test_a_rule_of_the_c_reader_has_a_case_that_keeps_or_breaks_it(number: int) -> None:
    cases = [case for case in CASES.values() if f"C{number}" in case.covers]
    assert kinds_of_all(cases) & {"accept", "reject"}


def kinds_of_all(cases: list[Case]) -> set[str]:
    return set(chain.from_iterable(kinds(case, "llama.cpp") for case in cases))


# These refuse nothing.
ONLY_KEPT = {15, 34, 35}
# Each file that is accepted keeps these, or (7, 8) one that is at the bound would be larger than any disk.
ONLY_BROKEN = {1, 2, 3, 4, 5, 7, 8, 25, 28}


@pytest.mark.parametrize("number", sorted(set(range(1, 36)) - ONLY_KEPT - ONLY_BROKEN))
def test_a_rule_with_a_boundary_has_cases_on_both_sides(number: int) -> None:
    cases = [case for case in CASES.values() if f"C{number}" in case.covers]
    assert {"accept", "reject"} <= kinds_of_all(cases)


# Expectations.


def test_every_reject_class_of_the_c_reader_has_a_case() -> None:
    declared = {
        expect.detail
        for case in CASES.values()
        for answers in case.expect["llama.cpp"].values()
        for expect in answers
        if expect.kind == "reject"
    }
    assert declared == C_READER_CLASSES


def test_a_crash_of_llama_cpp_stands_among_the_aborts_and_only_on_loading() -> None:
    crashing = [
        (key, op)
        for key, case in CASES.items()
        for op, answers in case.expect["llama.cpp"].items()
        if any(expect.kind == "crash" for expect in answers)
    ]
    assert crashing
    assert {key.partition("/")[0] for key, _ in crashing} == {"aborts"}
    assert {op for _, op in crashing} == {"load"}


@pytest.mark.parametrize("label", ["CA1", "CA2", "CA3"])
def test_each_abort_is_shown(label: str) -> None:
    assert any("crash" in kinds(case, "llama.cpp") for case in CASES.values() if label in case.covers)


def test_there_are_many_plain_sound_files() -> None:
    sound = [key for key, case in CASES.items() if all(kinds(case, who) == {"accept"} for who in case.expect)]
    assert len(sound) >= 100
    assert len([key for key in sound if key.startswith("valid/")]) >= 30


def test_sound_files_are_accepted_by_both_readers() -> None:
    valid = [case for key, case in CASES.items() if key.startswith("valid/")]
    assert all(kinds(case, who) == {"accept"} for case in valid for who in ("llama.cpp", "gguf-py"))


def test_waiting_for_a_timeout_is_short_and_rare() -> None:
    waiting = [case for case in CASES.values() if any("timeout" in kinds(case, who) for who in case.expect)]
    assert 1 <= len(waiting) <= 2
    assert all(case.limits.time is not None and case.limits.time <= 2 and case.limits.memory for case in waiting)


def test_every_case_says_what_the_text_says() -> None:
    assert [key for key, case in CASES.items() if not case.spec] == []


def test_a_case_on_which_the_readers_part_says_why() -> None:
    assert [key for key, case in CASES.items() if readers_part(case) and not case.note] == []


def readers_part(case: Case) -> bool:
    return kinds(case, "llama.cpp") != kinds(case, "gguf-py")


# Files.


def test_no_two_cases_are_the_same_file(files: dict[str, Built]) -> None:
    by_bytes: dict[bytes, list[str]] = {}
    for key, built in files.items():
        by_bytes.setdefault(built.data, []).append(key)
    assert [keys for keys in by_bytes.values() if len(keys) > 1] == []


def test_files_are_small(files: dict[str, Built]) -> None:
    large = {key for key, built in files.items() if len(built.data) > 150_000}
    behind_a_piece = {f"pieces/string-across-{boundary}" for boundary in ("2-20", "2-million", "2-21", "2-22")}
    assert large == {"articles/nested-1000000", *behind_a_piece}


def test_the_fields_of_every_file_tile_it(files: dict[str, Built]) -> None:
    for key, built in files.items():
        if key != "articles/nested-1000000":  # a path grows with its level, so that walking all of them takes too long
            position = 0
            for field in built.fields:
                assert field.offset == position, key
                position = field.end
            assert position == len(built.data), key


def pair_head(key: str, value_type: str) -> bytes:
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", VALUE_TYPES.index(value_type))


@pytest.mark.parametrize(
    ("key", "size", "expected"),
    [
        ("alignment-zero", 57, b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair_head("general.alignment", "u32") + bytes(4)),
        (
            "string-of-2-40-bytes",
            64,
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair_head("general.architecture", "str") + struct.pack("<Q", 1 << 40),
        ),
        ("tensors-2-40", 24, b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0)),
        (
            "nested-100",
            1249,
            b"GGUF"
            + struct.pack("<IQQ", 3, 0, 1)
            + pair_head("general.tags", "array")
            + struct.pack("<IQ", 9, 1) * 99
            + struct.pack("<IQB", 0, 1, 7),
        ),
    ],
)
def test_small_headers_byte_by_byte(key: str, size: int, expected: bytes) -> None:
    data = build(recipe(CASES[f"articles/{key}"])).data
    assert len(data) == size
    assert data == expected


def test_a_million_levels_are_a_million_arrays(files: dict[str, Built]) -> None:
    data = files["articles/nested-1000000"].data
    assert data.count(struct.pack("<IQ", 9, 1)) == 999_999


@pytest.mark.parametrize(("key", "padding"), [("ends-on-unit", 0), ("one-before-unit", 1), ("one-after-unit", 31)])
def test_directories_end_where_their_names_say(key: str, padding: int) -> None:
    field = build(recipe(CASES[f"valid/directory-{key}"])).fields.find("padding")
    assert field is not None
    assert field.length == padding


def test_truncated_files_are_beginnings_of_the_whole(files: dict[str, Built]) -> None:
    whole = files["truncation/whole"]
    others = {"truncation/whole", "truncation/after-empty-array"}  # the latter is another file
    cut = [built.data for key, built in files.items() if key.startswith("truncation/") and key not in others]
    assert len(cut) >= 35
    assert all(whole.data.startswith(data) and len(data) < len(whole.data) for data in cut)


def test_a_file_is_cut_at_each_of_its_bytes(files: dict[str, Built]) -> None:
    whole = files["cuts-tensors/whole"].data
    beginnings = {built.data for built in files.values()}
    assert [size for size in range(len(whole) + 1) if whole[:size] not in beginnings] == []


@pytest.mark.parametrize(
    ("alignment", "name"), [(8, "residues/8"), (32, "residues/32"), (32, "residues/none"), (64, "residues-64/64")]
)
def test_a_directory_ends_at_each_residue_of_the_alignment(files: dict[str, Built], alignment: int, name: str) -> None:
    ends = [built.fields.find("tensors[0].offset") for key, built in files.items() if key.rpartition("-")[0] == name]
    assert {field.end % alignment for field in ends if field} == set(range(alignment))


BOUNDARIES_OF_64_BITS = {0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1}


@pytest.mark.parametrize("suite", ["fields-lengths", "fields-tensors"])
def test_each_field_of_64_bits_is_at_each_boundary_and_one_off(files: dict[str, Built], suite: str) -> None:
    """All counts, lengths, dimensions and offsets, but the length of an array of numbers: gguf-py would count up to it."""
    values: dict[str, set[int]] = {}
    for key in (key for key in files if key.startswith(f"{suite}/")):
        for path in recipe(CASES[key]).get("patch", {}):
            if not key.endswith("32-bits") and path != "tensors[0].n_dims":
                values.setdefault(path, set()).add(patched(key, path))
    assert {path for path, found in values.items() if not found >= BOUNDARIES_OF_64_BITS} <= {"kv[3].value.length"}
    for path, found in values.items():
        true = int.from_bytes(field_bytes(WHOLE[suite], path), "little")
        assert {true - 1, true + 1} <= found | ({-1} if true == 0 else set()), path


WHOLE = {
    "fields-lengths": build(recipe(CASES["fields-lengths/whole"])),
    "fields-tensors": build(recipe(CASES["fields-tensors/offset-0"])),
}


def test_truncation_ends_in_every_kind_of_field(files: dict[str, Built]) -> None:
    """The last byte that is left, or the first that is missing, lies in a field of each kind that a header has."""
    whole = files["truncation/whole"].fields
    cuts = {len(built.data) for key, built in files.items() if key.startswith("truncation/") and key != "truncation/whole"}
    missing = {whole.at(cut) for cut in cuts}
    paths = {re.sub(r"\[\d+\]", "[]", field.path) for field in missing if field}
    assert paths >= {
        "version",
        "n_tensors",
        "n_kv",
        "kv[].key.length",
        "kv[].key",
        "kv[].type",
        "kv[].value.items",
        "kv[].value.length",
        "kv[].value",
        "kv[].value[].length",
        "kv[].value[]",
        "tensors[].name.length",
        "tensors[].name",
        "tensors[].n_dims",
        "tensors[].dims[]",
        "tensors[].type",
        "tensors[].offset",
        "padding",
        "data[]",
        "data[].padding",
    }


# Boundaries: the numbers in the cases are the ones that the rules give.


def test_count_limits_are_those_of_llama_cpps_structs() -> None:
    assert patched("counts/tensors-at-limit", "n_tensors") == (TWO_64 - 1) // 344
    assert patched("counts/tensors-above-limit", "n_tensors") == (TWO_64 - 1) // 344 + 1
    assert patched("counts/pairs-at-limit", "n_kv") == (TWO_64 - 1) // 88
    assert patched("counts/pairs-above-limit", "n_kv") == (TWO_64 - 1) // 88 + 1


def test_products_lie_where_the_notes_say() -> None:
    assert prod(dims("aborts/largest-product")) < 2**63 <= prod(dims("dims/one-above-largest-product"))
    assert prod(dims("dims/wraps-to-four")) % TWO_64 == 4
    assert prod(dims("dims/two-2-32")) % TWO_64 == 0


@pytest.mark.parametrize(("key", "block_bytes", "wrapped"), [("q4_0", 18, 4), ("q8_0", 34, 26)])
def test_row_sizes_wrap_to_what_the_data_hold(key: str, block_bytes: int, wrapped: int) -> None:
    (elements,) = dims(f"aborts/{key}-size-wraps")
    assert elements % 32 == 0
    assert elements * block_bytes % TWO_64 // 32 == wrapped


def test_names_have_the_bytes_that_their_keys_say(files: dict[str, Built]) -> None:
    for size in (63, 64, 65, 127):
        assert len(field_bytes(files[f"names/bytes-{size}"], "tensors[0].name")) == size
    for place in (63, 64):
        first, second = (field_bytes(files[f"names/differ-at-byte-{place}"], f"tensors[{number}].name") for number in (0, 1))
        assert len(first) == place
        assert first[:-1] == second[:-1]
        assert first != second


# Sweeps: nothing is left out.


def test_every_type_of_ggml_has_a_tensor_with_a_marker_behind_it() -> None:
    live = {name for name, kind in BY_NAME.items() if not kind.removed}
    assert live <= {key.removeprefix("tensor-types/") for key in CASES}
    for name in live:
        tensors = recipe(CASES[f"tensor-types/{name}"])["tensors"]
        assert [tensor["type"] for tensor in tensors] == [name, "F32"]
        assert tensors[1]["data"] == ["1", "2", "3", "4"]


def test_every_removed_type_is_refused() -> None:
    for name, kind in BY_NAME.items():
        if kind.removed:
            case = CASES[f"tensor-types-removed/{name}"]
            assert recipe(case)["tensors"][0]["type"] == name
            assert all(kinds(case, who) == {"reject"} for who in case.expect)


@pytest.mark.parametrize("kind", VALUE_TYPES)
def test_every_value_type_has_a_value_with_a_sentinel_behind_it(kind: str) -> None:
    pairs = recipe(CASES[f"values/{kind}"])["kv"]
    assert kind in pairs[0]
    assert pairs[-1] == {"key": "s", "u32": "42"}


@pytest.mark.parametrize("kind", [kind for kind in VALUE_TYPES if kind != "array"])
def test_every_element_type_has_an_array_with_a_sentinel_behind_it(kind: str) -> None:
    pairs = recipe(CASES[f"arrays/{kind}"])["kv"]
    assert list(pairs[0]["array"]) == [kind]
    assert len(pairs[0]["array"][kind]) >= 3
    assert pairs[-1] == {"key": "s", "u32": "42"}


def test_each_integer_type_has_its_smallest_and_largest_value() -> None:
    for bits in (8, 16, 32, 64):
        assert {0, 2**bits - 1} <= integers(f"u{bits}")
        assert {-(2 ** (bits - 1)), 2 ** (bits - 1) - 1} <= integers(f"i{bits}")


def integers(kind: str) -> set[int]:
    built = build(recipe(CASES[f"values/{kind}"]))
    count = int.from_bytes(field_bytes(built, "n_kv"), "little") - 1
    signed = kind.startswith("i")
    return {int.from_bytes(field_bytes(built, f"kv[{index}].value"), "little", signed=signed) for index in range(count)}


# Where readers part: the page's letters are what some case with the label declares.


def parting_rows() -> list[tuple[str, str, str]]:
    rows = [line.split(" | ") for line in RULES.read_text("utf-8").splitlines() if re.match(r"\| T\d\d \|", line)]
    return [(row[0].strip("| "), who, row[cell]) for row in rows for cell, who in ((2, "llama.cpp"), (3, "gguf-py"), (4, "spec"))]


@pytest.mark.parametrize(("label", "who", "cell"), parting_rows(), ids=lambda each: each)
def test_what_the_page_says_of_a_question_a_case_declares(label: str, who: str, cell: str) -> None:
    wanted = {"A": {"accept", "fault"}, "R": {"reject"}, "silent": {"either"}}
    said = cell.replace(",", " ").split(maxsplit=1)[0]
    declared = set(chain.from_iterable(kinds(case, who) for case in CASES.values() if label in case.covers))
    assert declared
    assert said not in wanted or declared & wanted[said]


def test_all_58_questions_on_which_readers_part_are_asked() -> None:
    assert len(parting_rows()) == 3 * 58
