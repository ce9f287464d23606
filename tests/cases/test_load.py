from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from conformance.cases import located
from conformance.cases.build import build
from conformance.cases.load import load_suites
from conformance.cases.model import BlocksInput, Case, DotInput, Expect, FileInput, Limits, ModelInput, RowsInput
from conformance.errors import ConfigurationError

ACCEPT = (Expect("accept"),)
ALL = "{llama.cpp: accept, gguf-py: accept, spec: accept}"


def write(root: Path, text: str, name: str = "container/theme.yaml") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def load(root: Path, cases: str, top: str = "") -> list[Case]:
    """The cases of one suite; ``cases`` starts in line 3 (after ``top``)."""
    write(root, f"suite: container/theme\n{top}cases:\n{cases}")
    return load_suites(root)


def only(root: Path, case: str, top: str = "") -> Case:
    (loaded,) = load(root, f"  one:\n{case}", top)
    return loaded


def failure(root: Path, case: str, top: str = "") -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        only(root, case, top)
    return caught.value


def test_a_file_case_is_read_whole(tmp_path: Path) -> None:
    case = only(
        tmp_path,
        "    build: {kv: [{key: a, u32: 0x10}]}\n"
        "    patch: {n_kv: 2^40}\n"
        "    cut: -1\n"
        "    append: ff\n"
        "    ask: [load, header]\n"
        "    expect: {llama.cpp: {load: [{crash: SIGABRT}, {reject: bad-count}], header: timeout},\n"
        "      gguf-py: observe, spec: either}\n"
        "    note: why\n"
        "    covers: [C8, B01, C8]\n"
        "    limits: {time: 2.5, memory: 2GiB}\n"
        "    nan: payload\n",
        "spec: a sentence\n",
    )
    assert (case.id, case.suite, case.line) == ("container/theme/one", "container/theme", 4)
    assert case.source == tmp_path / "container/theme.yaml"
    assert isinstance(case.input, FileInput)
    assert build(case.input.recipe).data == build({"kv": [{"key": "a", "u32": 16}], "patch": {"n_kv": 2**40}}).data[:-1] + b"\xff"
    assert case.ask == ("load", "header")
    assert case.expect == {
        "llama.cpp": {"load": (Expect("crash", "SIGABRT"), Expect("reject", "bad-count")), "header": (Expect("timeout"),)},
        "gguf-py": {"load": (Expect("observe"),), "header": (Expect("observe"),)},
        "spec": {"load": (Expect("either"),), "header": (Expect("either"),)},
    }
    assert (case.spec, case.note, case.covers) == ("a sentence", "why", ("C8", "B01"))
    assert (case.limits, case.nan_payload) == (Limits(2.5, 2 * 2**30), True)


def test_raw_bytes_are_a_file(tmp_path: Path) -> None:
    case = only(tmp_path, f"    bytes: 4747\n    expect: {ALL}\n")
    assert isinstance(case.input, FileInput)
    assert build(case.input.recipe).data == b"GG"
    assert case.ask == ("header", "load")


def test_a_model_case(tmp_path: Path) -> None:
    digest = "ab" * 32
    case = only(
        tmp_path,
        f"    model: {{package: p, version: 1.10, archive: sdist, member: m/x.gguf, sha256: {digest}, size: 2^20}}\n"
        f"    expect: {ALL}\n",
    )
    assert case.input == ModelInput("p", "1.10", "sdist", "m/x.gguf", digest, 2**20)
    assert case.ask == ("header", "tensor", "dequantize")


def test_block_cases_and_what_they_ask_by_default(tmp_path: Path) -> None:
    blocks = "{random: {seed: 1, blocks: 2}}"
    cases = load(
        tmp_path,
        f"  rows: {{type: Q4_K, rows: {blocks}, imatrix: {blocks}}}\n"
        f"  dotted: {{type: Q4_K, rows: {blocks}, x: {blocks}, ask: [quantize, 'dot:simd']}}\n"
        f"  blocks: {{type: Q4_K, blocks: {blocks}}}\n"
        f"  weights: {{type: Q4_K, weights: {{random: {{seed: 1, rows: 3, cols: 512}}}}, x: {blocks}}}\n",
    )
    by_key = {case.id.rpartition("/")[2]: case for case in cases}
    recipe = {"random": {"seed": "1", "blocks": "2"}}
    assert by_key["rows"].input == RowsInput("Q4_K", recipe, recipe)
    assert by_key["dotted"].input == RowsInput("Q4_K", recipe, None, recipe)
    assert by_key["blocks"].input == BlocksInput("Q4_K", recipe)
    assert by_key["weights"].input == DotInput("Q4_K", {"random": {"seed": "1", "rows": "3", "cols": "512"}}, recipe)
    asked = {key: case.ask for key, case in by_key.items()}
    assert asked == {
        "rows": ("quantize", "dequantize"),
        "dotted": ("quantize", "dot:simd"),
        "blocks": ("dequantize",),
        "weights": ("dot",),
    }
    assert by_key["rows"].expect == {
        name: dict.fromkeys(("quantize", "dequantize"), ACCEPT) for name in ("llama.cpp", "gguf-py", "spec")
    }


def test_defaults_merge_op_by_op(tmp_path: Path) -> None:
    top = (
        "defaults:\n  ask: [header, load]\n  covers: [A]\n  limits: {time: 9}\n"
        "  expect: {llama.cpp: {header: accept, load: {reject: other}}, gguf-py: accept, spec: accept}\n"
    )
    case = only(tmp_path, "    build: {}\n    covers: [B]\n    expect: {llama.cpp: {load: timeout}, spec: either}\n", top)
    assert case.expect["llama.cpp"] == {"header": ACCEPT, "load": (Expect("timeout"),)}
    assert case.expect["gguf-py"] == {"header": ACCEPT, "load": ACCEPT}
    assert case.expect["spec"] == {"header": (Expect("either"),), "load": (Expect("either"),)}
    assert (case.covers, case.limits) == (("A", "B"), Limits(9.0, None))


def test_an_op_speaks_for_its_variants_unless_they_are_named(tmp_path: Path) -> None:
    one = "{random: {seed: 1, blocks: 1}}"
    weights = f"    type: Q8_0\n    weights: {one}\n    x: {one}\n    ask: [dot, 'dot:simd']\n"
    assert only(tmp_path, weights + "    expect: {llama.cpp: {dot: observe}}\n").expect["llama.cpp"] == dict.fromkeys(
        ("dot", "dot:simd"), (Expect("observe"),)
    )
    named = only(tmp_path, weights + "    expect: {llama.cpp: {dot: observe, 'dot:simd': unsupported}}\n").expect
    assert named["llama.cpp"] == {"dot": (Expect("observe"),), "dot:simd": (Expect("unsupported"),)}
    assert named["gguf-py"] == {"dot": ACCEPT, "dot:simd": ACCEPT}


@pytest.mark.parametrize(
    ("ask", "expect", "says"),
    [
        ("[dot]", "{dot: near}", "`dot` cannot be `near`"),
        ("['dot:simd']", "{'dot:simd': near}", "`dot:simd` has nothing to be near to"),
        ("['dot:simd', dot]", "{'dot:simd': near, dot: accept}", "`dot:simd` has nothing to be near to"),
    ],
)
def test_near_is_for_sums_after_those_in_order(tmp_path: Path, ask: str, expect: str, says: str) -> None:
    one = "{random: {seed: 1, blocks: 1}}"
    problem = failure(
        tmp_path, f"    type: Q8_0\n    weights: {one}\n    x: {one}\n    ask: {ask}\n    expect: {{llama.cpp: {expect}}}\n"
    )
    assert says in str(problem)


def test_an_anchor_may_be_used_again(tmp_path: Path) -> None:
    cases = load(tmp_path, f"  a: {{build: &same {{kv: []}}, expect: {ALL}}}\n  b: {{build: *same, expect: {ALL}}}\n")
    assert [case.input for case in cases] == [FileInput({"kv": []})] * 2


def test_cases_are_sorted_and_golden_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, f"suite: b\ncases:\n  z: {{build: {{}}, expect: {ALL}}}\n  a: {{build: {{}}, expect: {ALL}}}\n", "b.yaml")
    write(tmp_path, f"suite: a/c\ncases:\n  24: {{build: {{}}, expect: {ALL}}}\n", "a/c.yaml")
    write(tmp_path, "not: a suite\n", "golden/x.yaml")
    assert [case.id for case in load_suites(tmp_path)] == ["a/c/24", "b/a", "b/z"]


@pytest.mark.parametrize(
    ("case", "line", "message", "hint"),
    [
        ("    build: {}\n    bytes: ''\n", 3, "exactly one input, found build, bytes", "build, bytes, model"),
        ("    note: x\n", 3, "exactly one input, found none", "build, bytes, model"),
        ("    buidl: {}\n", 4, "unknown key `buidl`", "did you mean `build`?"),
        (f"    build: {{}}\n    expect: {ALL}\n    nots: x\n", 6, "unknown key `nots`", "did you mean `note`?"),
        ("    build: {}\n    x: {}\n", 5, "`x` does not go with `build`", "build, patch, cut, append"),
        ("    build: {cut: 1}\n    cut: 1\n", 5, "`cut` stands in `build` too", "keep one"),
        ("    build:\n      kv:\n        - {key: a, u33: 1}\n", 6, "unknown key `u33`", "did you mean `u32`?"),
        ("    build: {}\n    cut: 1x\n", 5, "`1x` is no integer", "write an integer"),
        ("    build: {}\n", 3, "nothing is expected of `llama.cpp` for header, load", "write `llama.cpp: accept`"),
        (
            "    build: {}\n    expect: {llama.cpp: accept, spec: accept}\n",
            3,
            "nothing is expected of `gguf-py`",
            "`gguf-py: accept`",
        ),
        ("    build: {}\n    expect: {llama.cpp: {load: accept}}\n", 3, "of `llama.cpp` for header", "llama.cpp"),
        ("    build: {}\n    expect: {lama.cpp: accept}\n", 5, "unknown key `lama.cpp`", "did you mean `llama.cpp`?"),
        ("    build: {}\n    expect: {spec: acept}\n", 5, "`acept` is not known here", "did you mean `accept`?"),
        ("    build: {}\n    expect: {spec: reject}\n", 5, "`reject` names no class", "{reject: CLASS}"),
        ("    build: {}\n    expect: {spec: {reject: bad-magick}}\n", 5, "`bad-magick` is not known", "did you mean `bad-magic`?"),
        (
            "    build: {}\n    expect: {spec: {load: accept, reject: other}}\n",
            5,
            "unknown key `load`",
            "admissible: reject, crash",
        ),
        ("    build: {}\n    expect: {spec: {lod: accept}}\n", 5, "unknown key `lod`", "did you mean `load`?"),
        ("    build: {}\n    expect: {spec: []}\n", 5, "an empty list admits nothing", "at least one"),
        ("    build: {}\n    expect: {spec: {crash: SIGSEGV}}\n", 5, "the spec cannot `crash`", "either or observe"),
        ("    build: {}\n    expect: {spec: timeout}\n", 5, "the spec cannot `timeout`", "either or observe"),
        ("    build: {}\n    expect: {spec: {tensor: accept}}\n", 5, "`tensor` is not asked", "asked are: header, load"),
        ("    build: {}\n    ask: [header, laod]\n", 5, "`laod` cannot be asked", "did you mean `load`?"),
        ("    build: {}\n    ask: [quantize]\n", 5, "`quantize` cannot be asked", "header, load, tensor"),
        ("    build: {}\n    ask: [load, load]\n", 5, "`load` is asked twice", "take one out"),
        ("    build: {}\n    ask: []\n", 5, "nothing is asked", "header"),
        ("    type: Q8_1x\n    blocks: {}\n", 4, "`Q8_1x` is not known here", "did you mean `Q8_1`?"),
        ("    type: Q4_2\n    blocks: {}\n", 4, "`Q4_2` is not known here", "Q4_0"),
        ("    blocks: {}\n", 3, "`type` is missing", "Q8_0"),
        ("    type: Q8_0\n    blocks: {}\n", 5, "exactly one key, found none", "random"),
        ("    type: Q8_0\n    rows: {special: {a: {fil: 0}}}\n", 5, "unknown key `fil`", "did you mean `fill`?"),
        (
            "    type: Q8_0\n    rows: {random: {seed: 1, blocks: 2}}\n    imatrix: {random: {seed: 1, blocks: 1}}\n",
            6,
            "1 rows of 32",
            "one row of 64",
        ),
        (
            "    type: Q8_0\n    rows: {random: {seed: 1, blocks: 1}}\n    ask: [dequantize]\n",
            6,
            "takes in what `quantize` gives",
            "ask `quantize`",
        ),
        (
            "    type: Q8_0\n    rows: {random: {seed: 1, blocks: 1}}\n    ask: [quantize, dot]\n",
            6,
            "products and `x` need each other",
            "give `x`",
        ),
        (
            "    type: Q8_0\n    rows: {random: {seed: 1, blocks: 1}}\n    ask: [quantize, matvec]\n",
            6,
            "products and `x` need each other",
            "give `x`",
        ),
        (
            "    type: Q8_0\n    weights: {random: {seed: 1, rows: 3, cols: 32}}\n    x: {random: {seed: 1, rows: 3, cols: 32}}\n"
            '    ask: ["matvec:simd"]\n',
            6,
            "x has 3 rows, but `matvec:simd` multiplies all weights by one",
            "one row, or ask `dot`",
        ),
        ("    type: Q8_0\n    weights: {random: {seed: 1, blocks: 1}}\n", 3, "`x` is missing", "float rows"),
        (
            "    type: Q8_0\n    weights: {random: {seed: 1, blocks: 1}}\n    x: {random: {seed: 1, blocks: 2}}\n",
            6,
            "x has 1 rows of 64",
            "same cols",
        ),
        (
            "    type: Q8_0\n    weights: {random: {seed: 1, rows: 3, cols: 32}}\n    x: {random: {seed: 1, rows: 2, cols: 32}}\n",
            6,
            "x has 2 rows",
            "as many rows",
        ),
        (
            "    type: Q8_0\n    rows: {random: {seed: 1, blocks: 1}}\n    x: {random: {seed: 1, blocks: 2}}\n",
            6,
            "the weights 1 of 32",
            "same cols",
        ),
        ("    model: {package: p}\n", 4, "`version` is missing", "package, version, archive"),
        (
            "    model: {package: p, version: 1, archive: zip, member: m, sha256: ab, size: 1}\n",
            4,
            "`zip` is not known here",
            "wheel",
        ),
        (
            "    model: {package: p, version: 1, archive: wheel, member: m, sha256: ab, size: 1}\n",
            4,
            "`ab` is no SHA-256",
            "64 hex",
        ),
        (f"    build: {{}}\n    expect: {ALL}\n    limits: {{time: 0}}\n", 6, "`0` is no time limit", "above 0"),
        (f"    build: {{}}\n    expect: {ALL}\n    limits: {{memory: 2GB}}\n", 6, "`2GB` is no size", "2GiB"),
        (f"    build: {{}}\n    expect: {ALL}\n    nan: any\n", 6, "`any` is not known here", "payload"),
        (f"    build: {{}}\n    expect: {ALL}\n    covers: C1\n", 6, "`C1` is no list", "[a, b, ...]"),
        ("    build: {}\n    build: {}\n", 5, "duplicate key `build`", "stands first in line 4"),
        (
            "    build: !!python/name:os.system x\n",
            4,
            "tag `tag:yaml.org,2002:python/name:os.system` is not used",
            "leave the tag out",
        ),
        ("    build: &a {kv: [*a]}\n", 4, "an anchor contains itself", "write the value out"),
        ("    ? [a]\n    : x\n", 4, "a key must be text", "quote it"),
        ("    build: {\n", 5, "not YAML", "indentation"),
    ],
)
def test_a_wrong_case_says_where_and_what_to_do(tmp_path: Path, case: str, line: int, message: str, hint: str) -> None:
    error = failure(tmp_path, case)
    assert error.where == f"{tmp_path / 'container/theme.yaml'}:{line}"
    assert message in error.message
    assert hint in error.hint


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "the file is empty", "delete"),
        ("# nothing\n", "the file is empty", "delete"),
        ("- a\n", "top level is no mapping", "key: value"),
        ("suite: container/theme\n", "`cases` is missing", "cases:"),
        ("cases: {}\n", "`suite` is missing", "suite: folder/file"),
        ("suite: container/them\ncases: {}\n", "`container/them` is not the file's place", "suite: container/theme"),
        ("suite: container/theme\ncases: {}\n", "no cases", "declare one"),
        ("suite: container/theme\ncases: {a b: {build: {}}}\n", "`a b` cannot be the last part of an id", "letters"),
        ("suite: container/theme\ndefaults: {exect: {}}\ncases: {}\n", "unknown key `exect`", "did you mean `expect`?"),
        ("suite: container/theme\ndefaults: {expect: {spec: no}}\ncases: {}\n", "`no` is not known here", "accept"),
        ("suite: container/theme\ncase: {}\n", "unknown key `case`", "did you mean `cases`?"),
        ("a: b\n---\nc: d\n", "not YAML", "quote"),
    ],
)
def test_a_wrong_file_says_what_to_do(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_suites(tmp_path)
    assert caught.value.where.startswith(str(path))
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_files_that_would_be_passed_over_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no cases"):
        load_suites(tmp_path)
    write(tmp_path, "x: y\n", "a.yml")
    with pytest.raises(ConfigurationError, match="would be passed over"):
        load_suites(tmp_path)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"suite: \xff\n")
    with pytest.raises(ConfigurationError, match="cannot read the file"):
        load_suites(tmp_path)


def _bomb(levels: int) -> str:
    """Give a file of a few lines that stands for 9^levels values."""
    lines = [f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]\n" for level in range(1, levels)]
    return "x0: &x0 [a, a, a, a, a, a, a, a, a]\n" + "".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_bomb(9), "aliases stand for more than 100,000 values"),
        ("cases: " + "[" * 5000, "exceeded maximum nesting depth"),
        ("cases: " + "[" * 900 + "]" * 900, "nested more than 100 levels deep"),
        ("cases: " + "{a: " * 900 + "1" + "}" * 900, "nested more than 100 levels deep"),
        ("cases:\n " + "- " * 900 + "1\n", "nested more than 100 levels deep"),
    ],
)
def test_a_file_without_end_is_refused_at_once(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load_suites(tmp_path)
    assert message in caught.value.message
    assert caught.value.where.startswith(f"{path}:")


def test_without_the_c_parser_deep_nesting_is_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located, "_LOADER", yaml.BaseLoader)
    write(tmp_path, "cases: " + "[" * 900 + "]" * 900)
    with pytest.raises(ConfigurationError, match=r"nested too deeply|nested more than 100 levels deep"):
        load_suites(tmp_path)


def test_aliases_that_spare_some_writing_are_no_bomb(tmp_path: Path) -> None:
    text = "suite: container/theme\ndefaults: {expect: &all {llama.cpp: accept, gguf-py: accept, spec: accept}}\ncases:\n"
    write(tmp_path, text + "".join(f"  k{number}: {{build: {{}}, expect: *all}}\n" for number in range(2000)))
    assert len(load_suites(tmp_path)) == 2000


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "container").mkdir()
    path = tmp_path / "container" / "theme.yaml"
    os.mkfifo(path)
    with pytest.raises(ConfigurationError) as caught:
        load_suites(tmp_path)
    assert (caught.value.where, caught.value.message) == (str(path), "cannot read the file: it is a named pipe, not a regular file")
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigurationError, match="it is a folder"):
        load_suites(tmp_path)


def test_a_link_to_a_case_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "container").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("suite: container/theme\ncases: {k: {type: Q8_0, rows: {random: {seed: 1, blocks: 1}}}}\n")
    (tmp_path / "container" / "theme.yaml").symlink_to(elsewhere)
    assert [case.id for case in load_suites(tmp_path)] == ["container/theme/k"]


def test_errors_know_their_line_exactly(tmp_path: Path) -> None:
    for text, line in [("    build: {}\n    x: {}\n", 5), ("    build:\n      n_kv: 1\n      kv:\n        - u8: 1\n", 7)]:
        assert failure(tmp_path, text).where == f"{tmp_path / 'container/theme.yaml'}:{line}"
