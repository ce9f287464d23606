"""The page as a reader meets it, in a real browser: filters, keyboard, narrow and wide, light and dark.

The browser is started once, and once for the dark; each test reads what one script saw.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.matrix.html import write_html
from conformance.matrix.load import load_matrix
from tests.matrix.browser import Look, look_at
from tests.matrix.streams import (
    GGUF_PY,
    LLAMA,
    answer,
    authority_results,
    both,
    lax_results,
    mortal_results,
    renamed,
    stream,
    subject,
)

ATTACK = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
# Gives the ids of the cases whose rows are shown, as one text.
SHOWN = """
const shown = () => {
  const rows = [...page.querySelectorAll("#grid tr[data-cases]")].filter((row) => row.getClientRects().length);
  return rows.flatMap((row) => [...row.querySelectorAll("code")].map((one) => one.textContent)).sort().join(" ");
};
"""
NAMED = """
const heads = [...page.querySelectorAll("#grid thead th")].slice(1).filter((head) => head.getClientRects().length);
return heads.map((head) => head.innerText.trim().split("\\n")[0]).join(" ");
"""
FILTERS = {
    "verdict=dies": "files/b/dead",
    "verdict=known": "files/a/one files/a/two",
    "verdict=numbers": "numbers/q4_k/few numbers/q4_k/many",
    "verdict=new": "files/b/dead numbers/q4_k/few numbers/q4_k/many",
    "verdict=differ": "files/a/one files/a/two files/b/dead numbers/q4_k/few numbers/q4_k/many",
    "verdict=skip": "numbers/q4_k/few numbers/q4_k/many",
    "verdict=differ&subject=mortal": "files/b/dead",
    "verdict=dies&subject=lax": "",
    "text=THREE": "files/a/three",
    "text=numbers%2F": "numbers/q4_k/few numbers/q4_k/many",
    "text=reads+on": "files/a/one files/a/two",
    "text=ok-for-reject-bad-alignment": "files/a/one files/a/two",
    "text=no+such+thing": "",
    "verdict=all": "",
}
BY_ADDRESS = f"""
{SHOWN}
const found = {{}};
for (const state of {json.dumps(list(FILTERS))}) {{
  const turned = new Promise((done) => view.addEventListener("hashchange", done, {{once: true}}));
  view.location.hash = state;
  await turned;
  found[state] = shown();
}}
return found;
"""
BY_FORM = """
const form = page.getElementById("filter");
const change = (verdict, subject, text) => {
  form.elements.verdict.value = verdict; form.elements.subject.value = subject; form.elements.text.value = text;
  form.dispatchEvent(new view.Event("input", {bubbles: true}));
  return [view.location.hash, page.getElementById("shown").textContent];
};
return [change("dies", "2", " Dead "), change("all", "", "")];
"""
SUITES = f"""
{SHOWN}
const count = () => shown().split(" ").filter(Boolean).length;
const first = page.querySelector(".suite button");
const counts = [count(), first.getAttribute("aria-expanded")];
first.click();
counts.push(count(), first.getAttribute("aria-expanded"));
page.getElementById("open").click(); counts.push(count());
page.getElementById("close").click(); counts.push(count());
return counts;
"""
KEYBOARD = """
page.getElementById("open").click();
const acting = [...page.querySelectorAll("a, button, summary, select, input")];
const lost = acting.filter((one) => { one.focus(); return page.activeElement !== one; }).map((one) => one.outerHTML);
const regions = [...page.querySelectorAll(".scroll")];
const unnamed = regions.filter((one) => one.tabIndex !== 0 || !one.getAttribute("aria-label")).length;
const heads = [...page.querySelectorAll("th")].filter((one) => !one.getAttribute("scope")).length;
return [acting.length > 10, lost, unnamed, heads];
"""
TITLE = """
const cell = page.querySelector("#grid td.lax a").parentElement;
cell.dispatchEvent(new view.Event("pointerover", {bubbles: true}));
cell.dispatchEvent(new view.Event("pointerover", {bubbles: true}));
return [cell.title, cell.innerText];
"""
# Whether the page is wider than its window, and what outside of the scrolling regions is.
OVERFLOW = """
const over = () => [...page.querySelectorAll("body *")].filter((one) => !one.closest(".scroll, .plotted, pre")
  && one.getBoundingClientRect().right > view.innerWidth + 1).map((one) => one.outerHTML.slice(0, 80));
const before = over();
if (page.getElementById("open")) page.getElementById("open").click();
page.querySelectorAll("details").forEach((one) => { one.open = true; });
return [view.innerWidth, page.documentElement.scrollWidth <= view.innerWidth, [...before, ...over()]];
"""
STICKY = """
const region = page.querySelector("#grid").parentElement;
region.style.maxHeight = "300px";
region.scrollTo(400, 150);
const at = region.getBoundingClientRect();
const row = page.querySelector("#grid tr[data-cases] th").getBoundingClientRect();
const head = page.querySelector("#grid thead th:last-child").getBoundingClientRect();
return [region.scrollLeft > 100, region.scrollTop > 50, Math.abs(row.left - at.left) < 3, Math.abs(head.top - at.top) < 3];
"""
# Texts whose colour has less than the contrast that WCAG 2 asks for (AA: 4.5 to 1).
CONTRAST = """
const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
const light = (parts) => { const [r, g, b] = parts.map((part) => { const c = part / 255;
  return c <= 0.03928 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4); }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (one) => { for (let at = one; at; at = at.parentElement) {
  const colour = rgb(view.getComputedStyle(at).backgroundColor); if (colour.length === 3 || colour[3] > 0) return colour; }
  return [255, 255, 255]; };
const texts = [...page.querySelectorAll("td, th, .key, p, h1, h2, a, label, code, dt, dd")];
const poor = texts.filter((one) => {
  const front = light(rgb(view.getComputedStyle(one).color).slice(0, 3)), back = light(behind(one).slice(0, 3));
  return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05) < 4.5; });
return [view.matchMedia("(prefers-color-scheme: dark)").matches, texts.length > 50, poor.map((one) => one.outerHTML.slice(0, 90))];
"""
SOUND = """
await new Promise((done) => setTimeout(done, 50));
return [page.title.includes("owned"), page.images.length, view.performance.getEntriesByType("resource").length];
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def index(folder: Path) -> Path:
    return write_html(load_matrix([both(folder)]), folder / "out")


@pytest.fixture(scope="module")
def seen(folder: Path, index: Path) -> dict[str, Any]:
    wide, hostile = _wide(folder), _hostile(folder)
    looks = {
        "names": Look(index, NAMED),
        "names of one": Look(index, NAMED, "subject=mortal"),
        "at first": Look(index, f"{SHOWN} return shown();", "verdict=dies"),
        "by address": Look(index, BY_ADDRESS),
        "by form": Look(index, BY_FORM),
        "suites": Look(index, SUITES),
        "keyboard": Look(index, KEYBOARD),
        "title": Look(index, TITLE, "verdict=known"),
        "sticky": Look(wide, STICKY, "verdict=differ", 400, 800),
        "contrast": Look(index, CONTRAST, "verdict=differ"),
        "broken": Look(_broken(index), 'return [page.title, page.getElementById("shown").textContent];'),
        "plain": Look(_plain(index), f'{SHOWN} return [shown(), page.getElementById("filter").getClientRects().length];'),
    }
    for width in (400, 1400):
        pages = [wide, *(wide.parent / "divergences").glob("*.html")]
        looks |= {f"overflow {width} {page.name}": Look(page, OVERFLOW, width=width) for page in pages}
    looks |= {f"hostile {page.name}": Look(page, SOUND) for page in hostile.parent.rglob("*.html")}
    return look_at(looks, folder)


def _wide(folder: Path) -> Path:
    """Fifteen subjects with long names."""
    names = [f"an-implementation-with-a-long-name-{number}" for number in range(15)]
    results = [*authority_results(), *renamed(authority_results(), who="gguf-py")]
    for number, name in enumerate(names):
        results += lax_results(name) if number % 2 else mortal_results(name)
    people = [subject(name, "0.1.2+a-long-build") for name in names]
    return write_html(load_matrix([stream(folder / "wide", results, LLAMA, GGUF_PY, *people)]), folder / "wide-pages")


def _hostile(folder: Path) -> Path:
    results = [answer("files/a/one", ATTACK, ATTACK, reason=ATTACK), *lax_results(f"lax{ATTACK}")]
    path = stream(folder / "hostile", results, subject(ATTACK, ATTACK, ATTACK), subject(f"lax{ATTACK}"), command=ATTACK)
    return write_html(load_matrix([path]), folder / "hostile-pages")


def _broken(index: Path) -> Path:
    """The page as it would be if a script had come through."""
    path = index.with_name("broken.html")
    path.write_text(index.read_text("utf-8").replace("<h2 id", "<script>document.title='owned'</script><h2 id", 1), "utf-8")
    return path


def _plain(index: Path) -> Path:
    """The page as it is where no script runs."""
    path, text = index.with_name("plain.html"), index.read_text("utf-8")
    path.write_text(text[: text.rindex("<script>")] + text[text.rindex("</script>") + 9 :], "utf-8")
    return path


@pytest.mark.parametrize("state", FILTERS)
def test_the_address_filters_rows(seen: dict[str, Any], state: str) -> None:
    assert seen["by address"][state] == FILTERS[state]


def test_a_link_with_a_filter_shows_it_at_once(seen: dict[str, Any]) -> None:
    assert seen["at first"] == "files/b/dead"


def test_a_subject_alone_stands_beside_the_authorities(seen: dict[str, Any]) -> None:
    assert (seen["names"], seen["names of one"]) == ("llama.cpp lax mortal", "llama.cpp mortal")


def test_the_filter_goes_with_the_address_and_counts_what_is_left(seen: dict[str, Any]) -> None:
    assert seen["by form"] == [
        ["#text=dead&subject=mortal&verdict=dies", "1 of 6 cases, 1 of 3 divergences"],
        ["", "6 of 6 cases, 3 of 3 divergences"],
    ]


def test_suites_open_one_by_one_or_all_together(seen: dict[str, Any]) -> None:
    assert seen["suites"] == [0, "false", 3, "true", 6, 0]


def test_everything_that_acts_is_reached_by_the_keyboard(seen: dict[str, Any]) -> None:
    assert seen["keyboard"] == [True, [], 0, 0]


def test_a_cell_tells_its_subject_to_who_looks_at_it(seen: dict[str, Any]) -> None:
    assert seen["title"] == ["lax: accepts what is to be refused (known)", "+*"]


@pytest.mark.parametrize("width", [400, 1400])
def test_tables_scroll_and_the_page_does_not(seen: dict[str, Any], width: int) -> None:
    found = {name: value for name, value in seen.items() if name.startswith(f"overflow {width} ")}
    assert len(found) == 4
    assert found == {name: [width, True, []] for name in found}


def test_headings_and_first_column_stay_in_sight(seen: dict[str, Any]) -> None:
    assert seen["sticky"] == [True, True, True, True]


def test_signs_are_legible_in_the_light(seen: dict[str, Any]) -> None:
    assert seen["contrast"] == [False, True, []]


def test_signs_are_legible_in_the_dark(index: Path, folder: Path) -> None:
    pages = [index, *(index.parent / "divergences").glob("*.html")]
    found = look_at({page.name: Look(page, CONTRAST, "verdict=differ") for page in pages}, folder, dark=True)
    assert [(one[0], one[2]) for one in found.values()] == [(True, [])] * 4


def test_nothing_of_a_stream_runs_and_nothing_is_fetched(seen: dict[str, Any]) -> None:
    found = {name: value for name, value in seen.items() if name.startswith("hostile ")}
    assert len(found) == 3
    assert found == {name: [False, 0, 0] for name in found}


def test_a_script_that_slipped_into_the_page_would_not_run(seen: dict[str, Any]) -> None:
    title, shown = seen["broken"]
    assert title.startswith("Matrix")
    assert shown.startswith("6 of 6")


def test_without_a_script_all_rows_are_open_and_no_filter_pretends(seen: dict[str, Any]) -> None:
    cases, filters = seen["plain"]
    assert len(cases.split()) == 6
    assert filters == 0
