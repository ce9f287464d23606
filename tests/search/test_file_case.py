from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.cases.build import build
from conformance.cases.load import load_suite
from conformance.cases.model import FileInput
from conformance.cases.written import to_yaml
from conformance.search.file_case import case_of, focus
from conformance.search.file_documents import document
from conformance.search.file_draws import Seeded
from conformance.search.file_strategies import broken_files, documents
from conformance.search.variants import variants

Recipe = dict[str, Any]
OBSERVED = {"llama.cpp": "observe", "gguf-py": "observe", "spec": "observe"}


def reloaded(case: Recipe, folder: Path, dump: Any) -> bytes:
    """Write a case into a suite, load it, and build what it asks about."""
    path = folder / "found.yaml"
    path.write_text(dump({"suite": "found", "cases": {"one": case}}), encoding="utf-8")
    (loaded,) = load_suite(path, folder)
    assert isinstance(loaded.input, FileInput)
    assert loaded.ask[-1:] == tuple(case["ask"])
    return build(loaded.input.recipe).data


@settings(max_examples=120, deadline=None, database=None)
@given(recipe=st.one_of(documents(), broken_files()), op=st.sampled_from(["header", "load", "tensor", "write"]))
def test_the_case_builds_the_very_same_bytes(recipe: Recipe, op: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    case = case_of(recipe, op, expect=OBSERVED, note="found by search")
    folder = tmp_path_factory.getbasetemp()
    assert reloaded(case, folder, to_yaml) == build(recipe).data


def test_variants_too_also_by_another_emitter(tmp_path: Path) -> None:
    for number, recipe in enumerate([document(draw) for draw in [Seeded(4)] for _ in range(3)]):
        for probe in variants(recipe, number, 64):
            case = case_of(probe.recipe, probe.op, expect=OBSERVED)
            assert reloaded(case, tmp_path, yaml.safe_dump) == probe.data, probe.label


def test_plain_bytes_are_a_raw_case(tmp_path: Path) -> None:
    case = case_of({"bytes": "47475546"}, "header", expect=OBSERVED)
    assert case == {"bytes": "47475546", "ask": ["header"], "expect": OBSERVED}
    assert reloaded(case, tmp_path, to_yaml) == b"GGUF"


def test_texts_that_nobody_could_read_are_written_as_bytes() -> None:
    recipe = {"kv": [{"key": "a\0b", "str": "\ufeffx"}, {"key": {"repeat": "k", "count": 70}, "array": {"str": ["é", "\x85"]}}]}
    case = case_of(recipe, "load")
    assert case["build"]["kv"] == [
        {"key": {"hex": "610062"}, "str": {"hex": "efbbbf78"}},
        {"key": {"repeat": "k", "count": "70"}, "array": {"str": ["é", {"hex": "c285"}]}},
    ]
    assert build(case["build"]).data == build(recipe).data


def test_yes_and_no_are_written_as_the_grammar_reads_them(tmp_path: Path) -> None:
    recipe = {"pad_header": False, "pad_last": True, **tensor("F32", 3)}
    assert reloaded(case_of(recipe, "header", expect=OBSERVED), tmp_path, to_yaml) == build(recipe).data
    assert build(recipe).data != build(tensor("F32", 3)).data


def pair(key: Any = "a", **value: Any) -> Recipe:
    return {"kv": [{"key": key, **value}]}


def tensor(kind: Any = "F32", *dims: int, name: Any = "", **more: Any) -> Recipe:
    return {"tensors": [{"name": name, "type": kind, "dims": list(dims), **more}]}


FOCUS: list[tuple[Recipe, str]] = [
    ({}, "empty"),
    ({"bytes": "00"}, "bytes"),
    (pair(u64=1), "kv[*].value:u64"),
    (pair(str="x"), "kv[*].value:str"),
    (pair(array={"u8": [1]}), "kv[*].value:array-of-u8"),
    (pair(array={"u8": []}), "kv[*].value:array-of-u8:empty-array"),
    (pair(array={"array": []}), "kv[*].value:array-of-array"),
    (pair(nested={"levels": 3, "u8": []}), "kv[*].value:array-of-array"),
    (pair(raw={"type": 13}), "kv[*].value:type:unknown"),
    (pair(bool=2), "kv[*].value:bool:other"),
    (pair(bool=1), "kv[*].value:bool"),
    (pair(str={"hex": "ff"}), "kv[*].value:str:not-utf8"),
    (pair("", u8=0), "kv[*].key:empty"),
    (pair("a..b", u8=0), "kv[*].key:empty-part"),
    (pair("A", u8=0), "kv[*].key:capitals"),
    (pair("é", u8=0), "kv[*].key:not-ascii"),
    (pair({"hex": "6100"}, u8=0), "kv[*].key:nul"),
    (pair({"hex": "ff"}, u8=0), "kv[*].key:not-utf8"),
    (pair({"repeat": "k", "count": 65536}, u8=0), "kv[*].key:length>65535"),
    (pair("GGUF.version", u8=0), "kv[*].key:GGUF.version"),
    (pair("general.alignment", u32=24), "general.alignment"),
    (pair("general.alignment", u8=0), "general.alignment"),
    (pair({"hex": b"general.alignment\0x".hex()}, u8=0), "general.alignment:nul"),
    ({**pair("general.alignment", u32=8), "patch": {"kv[0].value": 0}}, "general.alignment"),
    ({"kv": [{"key": "a", "u8": 0}] * 2}, "kv[*].key:twice"),
    (tensor("Q4_K", 256), "tensors[*].type:Q4_K"),
    (tensor(4, 32), "tensors[*].type:unknown"),
    (tensor(99, 32), "tensors[*].type:unknown"),
    (tensor("F32"), "tensors[*].n_dims:0"),
    (tensor("F32", 4, 0), "tensors[*].dims:0"),
    (tensor("F32", 1, 1, 1, 1, 1), "tensors[*].n_dims>4"),
    (tensor("F32", 2**32, 2**32), "tensors[*].dims:huge"),
    (tensor("Q8_0", 31), "tensors[*].dims:block"),
    (tensor("F32", 1, name={"repeat": "n", "count": 64}), "tensors[*].name:length>=64"),
    (tensor("F32", 1, name={"hex": "7400"}), "tensors[*].name:nul"),
    (tensor("F32", offset=1, data="none"), "tensors[*].offset"),
    ({"tensors": tensor()["tensors"] * 2}, "tensors[*].name:twice"),
    ({**tensor("F32", 1), "patch": {"tensors[0].n_dims": 5}}, "tensors[*].n_dims"),
    ({**tensor(), "patch": {"tensors[0].name.length": 64}}, "tensors[*].name.length"),
    ({**tensor("F32", 4), "cut": 60}, "cut:padding"),
    ({**tensor("F32", 4), "cut": -1}, "cut:data[*].padding"),
    ({**pair(u8=0), "cut": 36}, "cut:kv[*].type"),
    ({"cut": 24}, "cut:end"),
    ({"append": "00"}, "appended"),
    ({"version": 0}, "version"),
    ({"byteorder": "big", **pair(u8=0)}, "byteorder"),
    ({"n_kv": 3}, "n_kv"),
    ({**tensor("F32", 4), "data": "none"}, "data:none"),
    ({**tensor("F32"), "data": "none"}, "data:none"),
    ({**tensor("F32", 0, 2), "pad_last": False}, "pad_last"),
    ({**tensor("F32", 2**62), "pad_header": False}, "tensors[*].dims:huge"),
    ({**pair("A", u8=0), **tensor("F32", 1, name="t"), "patch": {"data[0]": {"fill": 0}}}, "data[*] + kv[*].key:capitals"),
]


@pytest.mark.parametrize(("recipe", "word"), FOCUS, ids=[word for _, word in FOCUS])
def test_the_focus_is_what_the_file_is_about(recipe: Recipe, word: str) -> None:
    assert build(recipe) is not None
    assert focus(recipe) == word


def test_the_focus_leaves_indices_out() -> None:
    one = {"kv": [{"key": "a", "u8": 0}, {"key": "b", "array": {"str": ["x", "y"]}}], "patch": {"kv[1].value[1].length": 9}}
    assert focus(one) == "kv[*].value[*].length"
    assert "[0" not in "".join(focus(probe.recipe) for probe in variants(document(Seeded(9)), 2, 400))
