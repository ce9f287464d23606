"""Families: what they unfold into, and what is said of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.family import MAX_MEMBERS
from conformance.cases.load import load_suite
from conformance.cases.model import Case, Expect, FileInput
from conformance.errors import ConfigurationError

ACCEPT = "  expect: {llama.cpp: accept, gguf-py: accept, spec: accept}"


def load(tmp_path: Path, cases: str) -> dict[str, Case]:
    (tmp_path / "s").mkdir(exist_ok=True)
    path = tmp_path / "s/f.yaml"
    path.write_text(f"suite: s/f\ndefaults:\n{ACCEPT}\ncases:\n{cases}", "utf-8")
    return {case.id.removeprefix("s/f/"): case for case in load_suite(path, tmp_path)}


def recipe(case: Case) -> dict[str, object]:
    assert isinstance(case.input, FileInput)
    return case.input.recipe


def test_a_range_includes_both_ends(tmp_path: Path) -> None:
    cases = load(tmp_path, "  cut-<n>: {each: {n: {from: 3, to: 5}}, build: {}, cut: <n>}\n")
    assert {key: recipe(case)["cut"] for key, case in cases.items()} == {"cut-3": "3", "cut-4": "4", "cut-5": "5"}


def test_a_range_has_steps(tmp_path: Path) -> None:
    assert list(load(tmp_path, "  at-<n>: {each: {n: {from: 0, to: 9, step: 4}}, build: {}, cut: <n>}\n")) == [
        "at-0",
        "at-4",
        "at-8",
    ]


def test_a_name_stands_in_key_and_note_and_its_value_in_the_recipe(tmp_path: Path) -> None:
    cases = load(
        tmp_path, '  <v>: {each: {v: {zero: 0, top: 2^64-1}}, build: {}, patch: {n_kv: <v>}, note: "<v>", covers: ["<v>"]}\n'
    )
    top = cases["top"]
    assert (recipe(top)["patch"], top.note, top.covers) == ({"n_kv": "2^64-1"}, "top", ("top",))


def test_placeholders_stand_in_keys_within_texts_and_for_whole_mappings(tmp_path: Path) -> None:
    line = "  <t>-<n>: {each: {t: {a: {path: n_kv, v: {hex: ff}}}, n: [1]}, build: {patch: {<t.path>: <t.v>, x<n>: 2^<n>}}}\n"
    assert recipe(load(tmp_path, line)["a-1"])["patch"] == {"n_kv": {"hex": "ff"}, "x1": "2^1"}


def test_two_placeholders_give_every_pair(tmp_path: Path) -> None:
    cases = load(tmp_path, "  <a>-<b>: {each: {a: [x, y], b: [p, q]}, build: {magic: { hex: 47475546 }}, note: <a><b>}\n")
    assert {key: case.note for key, case in cases.items()} == {"x-p": "xp", "x-q": "xq", "y-p": "yp", "y-q": "yq"}


def test_exceptions_merge_expectations_add_labels_and_leave_members_out(tmp_path: Path) -> None:
    cases = load(
        tmp_path,
        "  n-<n>:\n"
        "    each: {n: {from: 0, to: 9}}\n"
        "    build: {}\n"
        "    covers: [A]\n"
        "    except:\n"
        "      - {n: [0, 2..4], expect: {llama.cpp: {load: crash}, spec: either}, covers: [B], note: here <n>}\n"
        "      - {n: 4, expect: {spec: {reject: other}}}\n"
        "      - {n: 7..9, omit: no such thing}\n",
    )
    assert list(cases) == [f"n-{n}" for n in range(7)]
    assert {key for key, case in cases.items() if case.expect["llama.cpp"]["load"] == (Expect("crash"),)} == {
        "n-0",
        "n-2",
        "n-3",
        "n-4",
    }
    assert cases["n-2"].expect["llama.cpp"]["header"] == (Expect("accept"),)
    assert cases["n-3"].expect["spec"]["load"] == (Expect("either"),)
    assert cases["n-4"].expect["spec"]["load"] == (Expect("reject", "other"),)
    assert (cases["n-1"].covers, cases["n-3"].covers, cases["n-3"].note) == (("A",), ("A", "B"), "here 3")


def test_members_stand_in_the_line_of_their_family(tmp_path: Path) -> None:
    cases = load(tmp_path, "  one: {build: {}}\n  n-<n>:\n    each: {n: [1, 2]}\n    build: {n_kv: <n>}\n")
    assert cases["n-1"].line == cases["n-2"].line == cases["one"].line + 1


FAMILY = "build: {n_kv: <n>}}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"n-<n>: {{each: {{n: {{from: 5, to: 4}}}}, {FAMILY}", ["5 to 4", "is no range"]),
        (f"n-<n>: {{each: {{n: {{from: 0, to: {MAX_MEMBERS}}}}}, {FAMILY}", ["is no range", str(MAX_MEMBERS)]),
        (f"n-<n>: {{each: {{n: {{from: 0}}}}, {FAMILY}", ["`from` and `to`"]),
        (f"n-<n>: {{each: {{n: []}}, {FAMILY}", ["a family of 0 members"]),
        (f"n-<n>: {{each: {{}}, {FAMILY}", ["a family of 0 members"]),
        (f"<m>-<n>: {{each: {{n: {{from: 1, to: 40}}, m: {{from: 1, to: 40}}}}, {FAMILY}", ["a family of 1600 members"]),
        (f"n-<n>: {{each: {{n: [1, 1]}}, {FAMILY}", ["a member comes twice"]),
        (f"n-<n>: {{each: {{n: [2^31]}}, {FAMILY}", ["`2^31` cannot be part of an id", "give it a name"]),
        (f"n: {{each: {{n: [1]}}, {FAMILY}", ["the key `n` lacks <n>"]),
        (f"<n><m>: {{each: {{n: [1, 11], m: [1, 11]}}, {FAMILY}", ["two members have the key `111`", "n 1, m 11; n 11, m 1"]),
        ("n-<n>: {each: {n: [1]}, build: {n_kv: <m>}}", ["<m> is not declared"]),
        ("n-<n>: {each: {n: [1]}, build: {n_kv: <n.part>}}", ["`n` has no part `part`"]),
        ("n-<n>: {each: {n: {a: [1]}}, build: {n_kv: 2^<n>}}", ["cannot be part of a text"]),
        ("n-<n>: {each: {N: [1]}, build: {}}", ["`N` cannot be a placeholder"]),
        (f"n-<n>: {{{FAMILY}", ["`each` is missing"]),
        (f"n: {{except: [], {FAMILY}", ["`each` is missing"]),
        (f"n-<n>: {{each: {{n: [1, 2]}}, except: [{{n: 3, omit: x}}], {FAMILY}", ["`3` is no member of <n>", "admissible: 1, 2"]),
        (f"n-<n>: {{each: {{n: [1, 2]}}, except: [{{n: 2..1, omit: x}}], {FAMILY}", ["`2..1` is no range of members"]),
        (f"n-<n>: {{each: {{n: [1, 2, 3]}}, except: [{{n: 1..2..3, omit: x}}], {FAMILY}", ["`1..2..3` is no range of members"]),
        (f"n-<n>: {{each: {{n: [1, 2]}}, except: [{{m: 1, omit: x}}], {FAMILY}", ["unknown key `m`"]),
        (f"n-<n>: {{each: {{n: [1, 2]}}, except: [{{n: 1}}], {FAMILY}", ["says something"]),
        (f"n-<n>: {{each: {{n: [1, 2]}}, except: [{{omit: x}}], {FAMILY}", ["is about members"]),
        ("n-<n>: {each: {n: [1, 2]}, build: {}}\n  n-2: {build: {}}", ["`n-2` is declared in line 5 too"]),
        ("n-<n>: {each: {n: {ok: 1, bad: x}}, build: {n_kv: <n>}}", ["cases.n-bad.n_kv", "`x` is no integer"]),
        ("n-<n>: {each: {n: [n_kv]}, build: {}, patch: {n_kv: 1, <n>: 2}}", ["`<n>` is no key once it is filled in", "another"]),
        ("n-<n>: {each: {n: {a: [n_kv]}}, build: {}, patch: {<n>: 2}}", ["`<n>` is no key once it is filled in", "text"]),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, line: str, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, f"  {line}\n")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "f.yaml:5" in str(caught.value) or "f.yaml:6" in str(caught.value)
