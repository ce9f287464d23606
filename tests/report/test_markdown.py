import re
from urllib.parse import unquote

import msgspec
import pytest

from conformance.judge.divergence import Divergence
from conformance.printable import one_line
from conformance.report.case_results import group
from conformance.report.events import Answered
from conformance.report.write import write_reports
from tests.report.pages import parse, tables
from tests.report.samples import BYTE, FAILED, FIELD, GREEN, HOSTILE, LIBRARY, ended, finished, result, started


def test_the_summary_has_totals_table_and_links_that_lead_somewhere(rich):
    page = parse(rich / "summary.md")
    assert page.headings[0] == "gguf-conformance: exit 1, not as expected: diverge, stale, authority-crash"
    assert ["container/alignment", "newreader", "3", "1", "-", "2", "-", "-", "-", "-", "-", "-"] in page.rows
    assert ["all", "newreader", "9", "1", "1", "4", "3", "1", "-", "4,106", "139,468", "128"] in page.rows
    assert ["newreader", "2", "its hello does not declare dot", "blocks/dot (2)"] in page.rows
    assert len(page.links) == 6
    assert all((rich / link).is_file() for link in page.links)
    assert any(LIBRARY in text for text in page.texts)
    assert any("stale: container/kv/* of newreader" in text for text in page.texts)
    assert "delete the entry with pattern 'container/kv/*'\nand signature 'header:-:value:kv'\n" in page.blocks


def test_a_case_report_says_all_that_locates_the_fault(rich):
    page = parse(rich / "cases/container/alignment/24.md")
    assert page.headings == [
        "container/alignment/24",
        "newreader diverges from llama.cpp",
        "Answers",
        "Input",
        "Repeat",
        "Versions",
    ]
    assert "where      kv[0].value, offset 55 (0x37)\n" in page.blocks[0]
    assert "expected   reject bad-alignment\nfound      ok\n" in page.blocks[0]
    assert "> 00000037  18 00 00 00              ....      kv[0].value\n" in page.blocks[1]
    assert [
        "llama.cpp",
        "header",
        "reject bad-alignment: 24 is no power of two, at kv[0].value, offset 55",
        "≠ newreader",
        "",
    ] in page.rows
    assert ["newreader", "header", "ok: version 3, 1 pair", "wrong", "4 ms"] in page.rows
    texts = "\n".join(page.texts)
    for said in (
        "The specification: general.alignment must be a multiple of 8",
        "Note: the written rule and the library differ here",
        "the case expects of spec: accept",
        "newreader answers as gguf-py does in 0 of 1 step",
        "Declared in alignment.yaml:12, covers B08.",
    ):
        assert said in texts
    assert "kv: [{key: general.alignment, u32: 24}]\n" in page.blocks
    assert page.blocks[-1] == FAILED[0].repeat + "\n"
    assert any(row[:3] == ["authority", "llama.cpp", "0.3.36"] for row in page.rows)


def test_a_case_report_shows_bits_and_amounts(rich):
    facts = parse(rich / "cases/blocks/dequantize/q8_0.md").blocks
    assert "expected   0x3f800000  0 01111111 00000000000000000000000  1\n" in facts[0]
    assert "differs    3 of 96 values; at most 7 ulps\n" in facts[0]
    assert "no distance: NaN\n" in facts[1]
    assert "differs    905 of 139,468 bytes: qs 873, scales 32\n" in parse(rich / "cases/blocks/quantize/q4_k.md").blocks[0]


def test_a_death_keeps_more_of_stderr_than_the_terminal(rich):
    page = parse(rich / "cases/container/alignment/zero.md")
    tail = page.blocks[1].splitlines()
    assert tail[0] == "(21 earlier lines left out)"
    assert len(tail) == 41
    assert tail[-1] == "attempt to divide by zero"


def test_all_participants_of_a_case_are_in_one_report(rich):
    page = parse(rich / "cases/blocks/dot/q4_0.md")
    assert ["newreader", "subject", "skip", "its hello does not declare dot"] in page.rows
    assert ["llama.cpp", "authority", "authority-crash", "crash SIGABRT instead of accept"] in page.rows


def test_a_known_case_says_why_it_is_known(rich):
    assert "Known: bug: rounds twice" in parse(rich / "cases/blocks/dequantize/q4_1.md").texts


def test_a_passing_case_is_short(rich):
    text = (rich / "cases/container/alignment/32.md").read_text()
    assert "- newreader: pass · 1 file compared\n" in text
    assert len(text.splitlines()) < 15


def test_a_passing_case_of_a_truncated_run_says_it_too(tmp_path):
    write_reports(GREEN[:2], tmp_path)
    assert "TRUNCATED: 1 of 2 cases, the run did not finish" in parse(tmp_path / "cases/container/alignment/32.md").texts


def test_hostile_strings_are_no_markup(hostile):
    pages = list(hostile.rglob("*.md"))
    assert len(pages) == 6
    for path in pages:
        page = parse(path)
        assert page.kinds & {"html_block", "html_inline", "image", "em_open", "s_open", "code_block", "hr", "hardbreak"} == set()
        assert all(link.startswith("cases/") for link in page.links)
        assert all(len(row) == len(rows[0]) for rows in tables(path) for row in rows)
        assert any(one_line(HOSTILE) in text for text in page.texts)
        assert all(character.isprintable() or character == "\n" for character in path.read_text())


def test_hostile_ids_stay_in_the_folder(hostile):
    assert (hostile / "cases/b/%2E%2E/%2E%2E/%2E%2E/escape.md").is_file()
    assert [path.name for path in hostile.parent.iterdir()] == ["below"]
    links = parse(hostile / "summary.md").links
    assert len(links) == 2
    assert all((hostile / unquote(link)).is_file() for link in links)


@pytest.mark.parametrize(
    "text",
    [
        "# head",
        "- item",
        "+ item",
        "1. item",
        "12) item",
        "> quote",
        "---",
        "===",
        "    code",
        "<b>",
        "&lt;",
        "_a_",
        "~~s~~",
        "***",
        "[a]: b",
        "\\",
        "`",
    ],
)
def test_a_note_stays_the_text_it_is(tmp_path, text):
    one = result("a/b", "diverge", spec=text, note=text, divergences=(with_summary(text),))
    write_reports((started(1), one, ended([one])), tmp_path)
    page = parse(tmp_path / "cases/a/b.md")
    assert text.strip() in [shown.strip() for shown in page.texts]
    assert f"Note: {text}" in [re.sub(" +", " ", shown) for shown in page.texts] or text.startswith("    ")
    assert (
        page.kinds & {"html_inline", "html_block", "blockquote_open", "ordered_list_open", "bullet_list_open", "hr", "code_block"}
        == set()
    )
    assert len(page.headings) == 5


def test_fences_in_data_end_no_block(tmp_path):
    recipe = "a: 1\n```\n# no heading\n`````\n"
    stderr = "````\n<b>\n"
    answer = Answered("newreader", "header", "crash SIGABRT", stderr=stderr)
    write_reports((started(1), result("a/b", "diverge", recipe=recipe, answers=(answer,)), finished()), tmp_path)
    page = parse(tmp_path / "cases/a/b.md")
    assert page.headings == ["a/b", "newreader diverges from llama.cpp", "Answers", "Input", "Repeat", "Versions"]
    assert recipe in page.blocks
    assert stderr in page.blocks
    assert "html_block" not in page.kinds


def with_summary(text: str) -> Divergence:
    return msgspec.structs.replace(BYTE, summary=text)


def test_a_hexdump_stands_once_and_has_its_mark(tmp_path):
    bare = tuple(msgspec.structs.replace(line, mark=False) for line in FIELD.hexdump)
    events = (
        started(1),
        result("a/b", who="llama.cpp", role="authority", input_hexdump=bare),
        result("a/b", "diverge", divergences=(FIELD,), input_hexdump=FIELD.hexdump),
        result("a/b", "diverge", who="other", divergences=(FIELD,), input_hexdump=FIELD.hexdump),
        finished(),
    )
    write_reports(events, tmp_path)
    dumps = [block for block in parse(tmp_path / "cases/a/b.md").blocks if "kv[0].key.length" in block]
    assert len(dumps) == 1
    assert "> 00000037" in dumps[0]


def test_answers_that_several_results_carry_are_told_once():
    own = Answered("llama.cpp", "header", "ok", same=True, seconds=0.5)
    copy = Answered("llama.cpp", "header", "ok", same=False)
    case = group(
        (
            started(1),
            result("a/b", answers=(Answered("newreader", "header", "ok", same=False), copy)),
            result(
                "a/b", who="other", answers=(Answered("other", "header", "ok", same=True), msgspec.structs.replace(copy, same=True))
            ),
            result("a/b", who="llama.cpp", role="authority", answers=(own,)),
        )
    )[0]
    assert case.answers == [
        (case.results[0].answers[0], ["wrong"]),
        (own, ["≠ newreader", "= other", "as recorded"]),
        (case.results[1].answers[0], ["right"]),
    ]
