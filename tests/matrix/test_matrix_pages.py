"""The pages as they are written: whole, self-contained, with everything from a stream escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from conformance.errors import ConfigurationError
from conformance.matrix.cell import Cell, Who
from conformance.matrix.findings import findings_of
from conformance.matrix.html import finding_html, index_html, write_html
from conformance.matrix.load import load_matrix
from conformance.matrix.matrix import Column, Matrix, Row
from conformance.matrix.repeat import narrowed
from conformance.report.events import EventLog
from tests.matrix.streams import (
    CASES,
    DEATH,
    LLAMA,
    REPEAT,
    answer,
    authority_results,
    lax_results,
    mortal_results,
    stream,
    subject,
)
from tests.report.samples import hostile_stream

_VOID = {"meta", "link", "br", "input"}
ATTACK = "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)>"


class _Page(HTMLParser):
    """Checks that elements are closed in order; gathers elements, and the text in them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def _index(matrix: Matrix) -> _Page:
    return _Page(index_html(matrix, findings_of(matrix)))


def test_the_page_holds_every_case_and_a_cell_for_everybody(matrix: Matrix) -> None:
    page = _index(matrix)
    for case in CASES:
        assert case in page.words
    rows = [tag for tag in page.all("tr") if "data-cases" in tag]
    assert sum(int(row["data-cases"] or 0) for row in rows) == len(CASES)
    cells = [cell for cell in page.all("td") if cell.get("title")]
    assert len(cells) == (len(rows) + 3) * 3
    assert all(cell["class"] for cell in cells)


def test_a_cell_that_departs_leads_to_a_page_that_is_written(matrix: Matrix, tmp_path: Path) -> None:
    index = write_html(matrix, tmp_path / "out")
    links = {link["href"] or "" for link in _Page(index.read_text("utf-8")).all("a")}
    pages = {link for link in links if not link.startswith("#")}
    assert len(pages) == 3
    assert {path.relative_to(index.parent).as_posix() for path in index.parent.rglob("*.html")} == {"index.html", *pages}
    for name in pages:
        back = [link["href"] for link in _Page((index.parent / name).read_text("utf-8")).all("a")]
        assert back == ["../index.html"]


def test_nothing_is_loaded_from_anywhere(matrix: Matrix, tmp_path: Path) -> None:
    for path in write_html(matrix, tmp_path / "out").parent.rglob("*.html"):
        text = path.read_text("utf-8")
        page = _Page(text)
        assert not [tag for tag, given in page.elements if tag in {"link", "img", "iframe", "object", "base"} or "src" in given]
        assert not re.search(r"https?:|url\(|@import", text)
        (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
        assert (policy or "").startswith("default-src 'none'")


def test_what_a_stream_says_is_text_and_no_markup(tmp_path: Path) -> None:
    results = [
        *lax_results(ATTACK),
        answer(
            f"files/{ATTACK}",
            ATTACK,
            f"crash {ATTACK}",
            "known",
            divergences=(msgspec.structs.replace(DEATH, signature=f"header:-:crash-{ATTACK}:-", summary=ATTACK, found=ATTACK),),
            known=(ATTACK,),
            reason=ATTACK,
            recipe=ATTACK,
            note=ATTACK,
            spec=ATTACK,
            repeat=ATTACK,
            expected={ATTACK: ATTACK},
        ),
    ]
    matrix = load_matrix([stream(tmp_path / "s", results, subject(ATTACK, ATTACK, ATTACK), command=ATTACK)])
    for path in write_html(matrix, tmp_path / "out").parent.rglob("*.html"):
        page = _Page(path.read_text("utf-8"))
        assert len(page.all("script")) == (path.name == "index.html")
        assert not page.all("img")
        assert not [name for _, given in page.elements for name in given if name.startswith("on")]
        assert ATTACK in page.words


def test_a_stream_of_hostile_texts_gives_sound_pages(tmp_path: Path) -> None:
    with (tmp_path / "events.ndjson").open("wb") as sink:
        log = EventLog(sink)
        for event in hostile_stream():
            log.write(event)
    index = write_html(load_matrix([tmp_path / "events.ndjson"]), tmp_path / "out")
    for path in index.parent.rglob("*.html"):
        page = _Page(path.read_text("utf-8"))
        assert not page.all("img")
        assert not {"\x1b", "\u202e", "\x00", "\x07"} & set(path.read_text("utf-8"))
    assert {path.parent for path in tmp_path.rglob("*.html")} == {index.parent, index.parent / "divergences"}


def test_a_findings_page_says_what_everybody_answered_and_the_bits(matrix: Matrix) -> None:
    dead, numbers, lax = (_Page(finding_html(matrix, finding)).words for finding in findings_of(matrix))
    assert "mortal 1.0 (go)" in dead
    assert "† crash SIGSEGV: boom" in dead
    assert "† crash SIGABRT" in dead
    assert "thread main panicked" in dead
    assert "0 01111111 00000000000000000000010 1.0000002" in numbers
    assert "3 of 1 ulp, 5 of 2 to 3 ulps, 1 of 8 to 15 ulps" in numbers
    assert "numbers/q4_k/few" in numbers
    assert "policy: reads on (lax)" in lax
    assert "○ reject bad-alignment" in lax
    assert "files/a/one" in lax


def test_a_findings_page_repeats_it_for_those_that_show_it(matrix: Matrix) -> None:
    _, _, lax = (finding_html(matrix, finding) for finding in findings_of(matrix))
    assert "<pre>gguf-conformance run --subject adapters/lax --oracle live --select files/a/two</pre>" in lax


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["lax"], "--subject adapters/lax"),
        (["mortal"], "--subject adapters/mortal"),
        (["lax", "mortal"], "--subject adapters/lax --subject adapters/mortal"),
        (["other"], "--subject adapters/lax --subject adapters/mortal"),
        (["lax", "other"], "--subject adapters/lax --subject adapters/mortal"),
    ],
)
def test_a_command_is_narrowed_to_names_that_it_tells_apart(names: list[str], kept: str) -> None:
    assert narrowed(f"{REPEAT} files/a/one", names) == f"gguf-conformance run {kept} --oracle live --select files/a/one"


def test_manifests_are_told_by_their_folder_or_file() -> None:
    command = "gguf-conformance run --subject x/one/adapter.yaml --subject fakes/two.yaml --subject three"
    assert narrowed(command, ["one"]) == "gguf-conformance run --subject x/one/adapter.yaml"
    assert narrowed(command, ["two"]) == "gguf-conformance run --subject fakes/two.yaml"
    assert narrowed(command, ["three"]) == "gguf-conformance run --subject three"
    assert narrowed("a 'quote", ["one"]) == "a 'quote"


def test_pages_of_an_earlier_call_go_and_other_files_stay(matrix: Matrix, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_html(matrix, out)
    (out / "divergences" / "mine.html").write_text("mine")
    clean = [*authority_results(), *(answer(one.case, "mortal", "reject bad-magic") for one in mortal_results())]
    write_html(load_matrix([stream(tmp_path / "s", clean, LLAMA, subject("mortal"))]), out)
    assert [path.name for path in (out / "divergences").glob("*.html")] == ["mine.html"]


def test_a_folder_that_cannot_be_written_is_told(matrix: Matrix, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write"):
        write_html(matrix, tmp_path / "file" / "out")


def test_a_run_that_is_not_whole_says_so_at_the_top(tmp_path: Path) -> None:
    matrix = load_matrix([stream(tmp_path / "cut", lax_results(), subject("lax"), whole=False)])
    words = _index(matrix).words
    assert words.index("Not a whole run.") < words.index("who version")


def test_two_thousand_cases_of_fifteen_subjects_stay_small() -> None:
    names = [f"subject-{number}" for number in range(15)]
    departing = {"divergences": (DEATH,), "known": ("bug: dies where it should refuse",), "reason": DEATH.summary}
    rows = []
    for number in range(2300):
        case, suite = f"files/suite-{number % 70}/case-with-a-name-{number}", number % 70
        # In a third of the suites a subject dies in half of the cases, which half depends on it.
        dies = [(suite + place) % 3 == 0 and number // 70 % 2 == place % 2 for place in range(15)]
        results = [
            answer(case, name, "crash SIGSEGV", "known", **departing) if dead else answer(case, name, "reject bad-count")
            for name, dead in zip(names, dies, strict=True)
        ]
        rows.append(Row(case, results[0], {Who(one.who, is_authority=False): Cell(one) for one in results}))
    matrix = Matrix(tuple(Column(Who(name, is_authority=False), subject(name), "live") for name in names), tuple(rows))
    assert len(index_html(matrix, findings_of(matrix)).encode()) < 2_000_000
