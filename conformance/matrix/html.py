"""The matrix as pages that need nothing else: ``index.html``, and one page for each finding in ``divergences/``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance.matrix.cell_view import finding_index, suite_views
from conformance.matrix.finding_view import FindingView
from conformance.matrix.findings import Finding, findings_of
from conformance.matrix.kinds import KINDS, MARKS, PLAIN
from conformance.matrix.matrix import Matrix, problems_of
from conformance.matrix.numbers import number_rows, percent
from conformance.matrix.plot import shares, small_plot, wide_plot
from conformance.matrix.summary import summary_rows
from conformance.printable import number, one_line, plural
from conformance.report.write import listed, writing

INDEX = "index.html"
FINDINGS = "divergences"
# Lists the pages that were written, so that the next call takes away its own old ones and nothing else.
_WRITTEN = ".written"
# Characters of one line of data; the case's own report has all of them.
_LIMIT = 2000


def write_html(matrix: Matrix, folder: Path) -> Path:
    """Write the pages into ``folder``; gives the path of the first. Raises ConfigurationError where they cannot be written."""
    findings = findings_of(matrix)
    with writing(folder):
        (folder / FINDINGS).mkdir(parents=True, exist_ok=True)
        _remove_old(folder / FINDINGS)
        (folder / FINDINGS / _WRITTEN).write_text("".join(f"{finding.slug}.html\n" for finding in findings), "utf-8")
        for finding in findings:
            _write(folder / FINDINGS / f"{finding.slug}.html", finding_html(matrix, finding))
        _write(folder / INDEX, index_html(matrix, findings))
    return folder / INDEX


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


def _remove_old(folder: Path) -> None:
    for name in listed(folder / _WRITTEN):
        if name.endswith(".html") and "/" not in name:
            (folder / name).unlink(missing_ok=True)


def index_html(matrix: Matrix, findings: Iterable[Finding]) -> str:
    """Give the page of the whole matrix, with links to the findings' pages."""
    found = list(findings)
    script = _source("page.js")
    numbers = number_rows(matrix)
    return _render(
        "index.html.j2",
        matrix=matrix,
        columns=matrix.columns,
        problems=problems_of(matrix),
        summary=summary_rows(matrix),
        suites=suite_views(matrix, finding_index(found)),
        findings=found,
        place={column.who: place for place, column in enumerate(matrix.columns)},
        numbers=[row for row in numbers if row.differs],
        same=[row for row in numbers if not row.differs],
        counted=[column for column in matrix.columns if any(column.who in row.by_who for row in numbers)],
        legend=(*MARKS, *PLAIN),
        script=Markup(script),  # noqa: S704 - a file of this package
        policy=_policy(script),
    )


def finding_html(matrix: Matrix, finding: Finding) -> str:
    """Give the page of one finding."""
    return _render("divergence.html.j2", matrix=matrix, finding=finding, view=FindingView(matrix, finding), policy=_policy(None))


def _policy(script: str | None) -> str:
    """Give the policy by which a browser loads nothing, and runs no script but this one, whatever else got into the page."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() if script else ""
    scripts = f"'sha256-{digest}'" if digest else "'none'"
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; base-uri 'none'; form-action 'none'"


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(style=Markup(_source("style.css")), **values)  # noqa: S704 - our own file


@cache
def _source(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text("utf-8")


def _shown(value: object) -> object:
    """Make data one printable line: what hides or reorders text shows as its escape. HTML is escaped after that."""
    return value if isinstance(value, Markup) else one_line(str(value), _LIMIT)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("conformance.matrix"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, plural=plural, small_plot=small_plot, wide_plot=wide_plot, shares=shares)
    environment.filters.update(percent=percent)
    environment.globals.update(kinds=KINDS, folder=FINDINGS, index=INDEX)
    return environment
