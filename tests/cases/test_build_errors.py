from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.cases.build import build, check_recipe
from conformance.cases.located import read_yaml
from conformance.errors import ConfigurationError

PAIR: dict[str, Any] = {"key": "a", "u8": 1}
TENSOR: dict[str, Any] = {"name": "t", "type": "F32", "dims": [4]}


@pytest.mark.parametrize(
    ("recipe", "path", "message", "hint"),
    [
        ({"vesion": 3}, "", "unknown key `vesion`", "did you mean `version`? admissible: version, byteorder, magic,"),
        ({"version": "3.0"}, "version", "`3.0` is no integer", "2^63-1"),
        ({"version": "2^32"}, "version", "`2^32` is out of range", "0 to 4294967295"),
        ({"byteorder": "middle"}, "byteorder", "`middle` is not known here", "little, big"),
        ({"magic": "GGUFF"}, "magic", "the magic has 5 bytes", "{hex: 47475546}"),
        ({"kv": {"key": "a"}}, "kv", "is no list", "[a, b, ...]"),
        ({"kv": ["a"]}, "kv[0]", "`a` is no mapping", "write a mapping of: key"),
        ({"kv": [PAIR, {"key": "b"}]}, "kv[1]", "a pair is `key` and one value, not key", "values: u8"),
        ({"kv": [{"key": "b", "u8": 1, "i8": 1}]}, "kv[0]", "not key, u8, i8", "values: u8"),
        ({"kv": [{"key": "b", "u33": 1}]}, "kv[0]", "unknown key `u33`", "did you mean `u32`?"),
        ({"kv": [{"key": "b", "u8": 256}]}, "kv[0].u8", "`256` is out of range", "0 to 255"),
        ({"kv": [{"key": "b", "i8": -129}]}, "kv[0].i8", "`-129` is out of range", "-128 to 127"),
        ({"kv": [{"key": "b", "bool": "yes"}]}, "kv[0].bool", "`yes` is no integer", "write an integer"),
        ({"kv": [{"key": "b", "f32": "0x1"}]}, "kv[0].f32", "`0x1` is no bit pattern of f32", "8 hex digits"),
        ({"kv": [{"key": "b", "str": 7}]}, "kv[0].str", "`7` is no text", "quoted"),
        ({"kv": [{"key": {"hex": "f"}, "u8": 1}]}, "kv[0].key.hex", "`f` is no hex text", "two hex digits"),
        ({"kv": [{"key": {"repeat": "x"}, "u8": 1}]}, "kv[0].key", "no such string", "{repeat: x, count: 65536}"),
        ({"kv": [{"key": {"repeat": "xy", "count": "2^30"}, "u8": 1}]}, "kv[0].key.count", "out of range", "0 to 536870912"),
        (
            {"kv": [{"key": "b", "array": {"u8": [1], "i8": [1]}}]},
            "kv[0].array",
            "expected exactly one key, found u8, i8",
            "u8, i8",
        ),
        ({"kv": [{"key": "b", "array": {"u8": [1, 300]}}]}, "kv[0].array.u8[1]", "`300` is out of range", "0 to 255"),
        ({"kv": [{"key": "b", "array": {"u8": {"fill": 1}}}]}, "kv[0].array.u8", "no such array", "{fill: 0, count: 1000}"),
        ({"kv": [{"key": "b", "array": {"u64": {"fill": 1, "count": "2^28"}}}]}, "kv[0].array.u64", "are too much", "1073741824"),
        (
            {"kv": [{"key": "b", "nested": {"u8": [1]}}]},
            "kv[0].nested",
            "a nest is `levels` and one innermost array",
            "levels: 100",
        ),
        ({"kv": [{"key": "b", "array": {"str": {"fill": "", "count": "2^30"}}}]}, "kv[0].array.str", "are too much", "1073741824"),
        ({"kv": [{"key": "b", "raw": {"hex": "00"}}]}, "kv[0].raw", "`type` is missing", "{type: 13, hex: 00}"),
        ({"tensors": [{"name": "t", "type": "F32"}]}, "tensors[0]", "`dims` is missing", "{name: t, type: F32, dims: [4]}"),
        ({"tensors": [{**TENSOR, "type": "Q4_k"}]}, "tensors[0].type", "`Q4_k` is not known here", "did you mean `Q4_K`?"),
        ({"tensors": [{**TENSOR, "dims": [1.5]}]}, "tensors[0].dims[0]", "`1.5` is no integer", "write an integer"),
        ({"tensors": [{**TENSOR, "dims": {"fill": 1, "count": "2^21"}}]}, "tensors[0].dims", "are too much", "limit"),
        ({"tensors": [{**TENSOR, "type": "Q8_0", "data": [1]}]}, "tensors[0].data", "cannot be data of Q8_0", "{f32: [...]}"),
        ({"tensors": [{**TENSOR, "data": {"fil": 0}}]}, "tensors[0].data", "unknown key `fil`", "did you mean `fill`?"),
        (
            {"tensors": [{**TENSOR, "offset": "2^40", "data": "00"}]},
            "tensors[0]",
            "its data would end at 1099511627777",
            "data: none",
        ),
        ({"data": "some"}, "data", "`some` is not known here", "none"),
        ({"align": 0}, "align", "`0` is out of range", "1 to"),
        ({"pad_last": "maybe"}, "pad_last", "`maybe` is not known here", "true, false"),
        ({"append": {"fill": 0}}, "append", "`count` is missing", "{count: 7, fill: 0}"),
        ({"cut": 25}, "cut", "cannot cut a file of 24 bytes at 25", "-24 to 24"),
        ({"cut": -25}, "cut", "cannot cut a file of 24 bytes at -25", "-24 to 24"),
        ({"bytes": "00", "kv": []}, "", "`bytes` is the whole file, `kv` cannot stand beside it", "keep one"),
        ({"patch": {"n_kvs": 1}}, "patch.n_kvs", "there is no field `n_kvs` to patch", "did you mean `n_kv`?"),
        ({"patch": {"magic": 1}}, "patch.magic", "`magic` is no number but bytes", "{hex: ...} with 4 bytes"),
        ({"patch": {"magic": {"hex": "00"}}}, "patch.magic", "1 bytes for `magic`", "the field has 4"),
        ({"patch": {"version": "2^32"}}, "patch.version", "`2^32` is out of range", "0 to 4294967295"),
        ({"patch": {"version": "-2^31-1"}}, "patch.version", "out of range", "-2147483648"),
        ({"patch": {"version": [1]}}, "patch.version", "a patch is no list", "{hex: 00ff}"),
        ({"patch": {"version": {"hx": "00"}}}, "patch.version", "unknown key `hx`", "did you mean `hex`?"),
    ],
)
def test_a_wrong_recipe_says_where_and_what_to_do(recipe: dict[str, Any], path: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build(recipe)
    error = caught.value
    assert error.message.startswith(f"{path}: " if path else "")
    assert message in error.message
    assert hint in error.hint


def test_a_file_that_is_too_large_is_refused_before_it_is_made() -> None:
    with pytest.raises(ConfigurationError, match="the file would have 1073741"):
        build({"kv": [{"key": "a", "str": {"repeat": "x", "count": "2^30"}}]})


def test_an_alignment_too_large_to_be_laid_out_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the file would have 2147483648 bytes"):
        build({"kv": [{"key": "general.alignment", "u32": "2^31"}], "tensors": [TENSOR]})


def test_check_recipe_finds_errors_without_building() -> None:
    huge = {"kv": [{"key": "a", "str": {"repeat": "x", "count": "2^30"}}]}
    check_recipe(huge)
    with pytest.raises(ConfigurationError, match="unknown key `u33`"):
        check_recipe({"kv": [{"key": "b", "u33": 1}]})


def test_the_error_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "kv:\n  - key: a\n    u8: 1\n  - key: b\n    array:\n      u8:\n        - 1\n        - 999\npatch:\n  nothing: 1\n"
    )
    with pytest.raises(ConfigurationError) as caught:
        build(read_yaml(path))
    assert caught.value.where == f"{path}:8"
    path.write_text(path.read_text().replace("999", "9"))
    with pytest.raises(ConfigurationError) as caught:
        build(read_yaml(path))
    assert caught.value.where == f"{path}:10"
