"""What parsers make of the reports: of Markdown, XML and JSON."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

from conformance.report.paths import case_path


@dataclass
class Page:
    """What a Markdown parser makes of a report."""

    kinds: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def parse(path: Path) -> Page:
    page, last = Page(), ""
    # `html` on: what is not escaped would become an html token.
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(path.read_text()):
        page.kinds.add(token.type)
        if token.type == "fence":
            page.blocks.append(token.content)
        if token.type == "tr_open":
            page.rows.append([])
        if token.type == "inline":
            text = "".join(child.content for child in token.children)
            page.kinds |= {child.type for child in token.children}
            page.links += [str(child.attrs["href"]) for child in token.children if child.type == "link_open"]
            page.texts.append(text)
            if last in ("th_open", "td_open"):
                page.rows[-1].append(text)
            if last == "heading_open":
                page.headings.append(text)
        last = token.type
    return page


def tables(path: Path) -> list[list[list[str]]]:
    """Give the rows of each table; cmark pads or cuts rows to the heading, so cells are counted in the source."""
    found, rows = [], []
    for line in [*path.read_text().splitlines(), ""]:
        if line.startswith("| "):
            rows.append(re.split(r"(?<!\\)(?:\\\\)*\|", line))
        elif not line.startswith("|--") and rows:
            found.append(rows)
            rows = []
    return found


def junit(path: Path) -> ET.Element:
    return ET.parse(path).getroot()  # noqa: S314 - written by the test itself


def case_json(folder: Path, case: str) -> dict:
    return json.loads((folder / f"cases/{case_path(case)}.json").read_text())
