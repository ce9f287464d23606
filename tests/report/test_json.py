import json

import msgspec

from conformance.judge.divergence import Divergence
from conformance.report.events import Answered, CaseResult
from conformance.report.paths import case_path
from conformance.report.write import write_reports
from tests.report.pages import case_json, parse
from tests.report.samples import BYTE, FAILED, FLOAT, HOSTILE, LIBRARY, finished, result, started


def test_the_json_has_every_key_also_where_nothing_is_known(tmp_path):
    write_reports(
        (started(1), CaseResult(case="a/b", who="x", role="subject", verdict="pass", profile="spec"), finished(0)), tmp_path
    )
    report = case_json(tmp_path, "a/b")
    assert list(report) == [
        "format",
        "case",
        "suite",
        "warning",
        "run",
        "source",
        "recipe",
        "spec",
        "note",
        "covers",
        "expected",
        "input_hexdump",
        "results",
    ]
    assert report["results"] == [
        {
            "who": "x",
            "role": "subject",
            "verdict": "pass",
            "profile": "spec",
            "reason": "",
            "known": [],
            "counts": dict.fromkeys(("requests", "files", "tensors", "blocks", "bytes", "values"), 0),
            "seconds": 0.0,
            "repeat": "",
            "agreement": {},
            "divergences": [],
            "answers": [],
        }
    ]


def test_the_json_holds_the_events_exactly(rich):
    report = case_json(rich, "blocks/dequantize/q8_0")
    divergences = report["results"][0]["divergences"]
    assert msgspec.convert(divergences[0], Divergence) == FLOAT
    assert set(divergences[0]) == set(Divergence.__struct_fields__)
    answers = case_json(rich, "container/alignment/24")["results"][0]["answers"]
    assert tuple(msgspec.convert(answers, list[Answered])) == FAILED[0].answers
    assert case_json(rich, "container/alignment/24")["run"]["participants"][1]["details"]["library"] == LIBRARY


def test_the_json_is_ascii_and_keeps_hostile_strings_and_big_numbers(hostile, tmp_path):
    path = hostile / f"cases/{case_path(f'a/{HOSTILE}')}.json"
    assert path.read_bytes().isascii()
    assert b"\x1b" not in path.read_bytes()
    assert json.loads(path.read_text())["note"] == HOSTILE
    big = msgspec.structs.replace(BYTE, at=2**64 - 1, compared=2**63)
    write_reports((started(1), result("a/b", "diverge", divergences=(big,)), finished()), tmp_path)
    assert case_json(tmp_path, "a/b")["results"][0]["divergences"][0]["at"] == 2**64 - 1
    facts = " ".join(parse(tmp_path / "cases/a/b.md").blocks[0].split())
    assert "output byte 18,446,744,073,709,551,615 (0xffffffffffffffff)" in facts
    assert "905 of 9,223,372,036,854,775,808 bytes" in facts
