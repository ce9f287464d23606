"""The summary's columns: what the terminal and Markdown show of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from conformance.matrix.summary import SummaryRow
from conformance.printable import number, one_line


class SummaryColumn(NamedTuple):
    """A column: its title, its text, and whether that is a number; ``failing`` where anything in it fails a run."""

    title: str
    text: Callable[[SummaryRow], str]
    numeric: bool = True
    failing: bool = False


def _count(value: int | None) -> str:
    return number(value) if value else "-"


def _judge(row: SummaryRow) -> str:
    return one_line(row.judged_by) or {"authority": "authority", "golden": "authority, recorded"}.get(row.role, "-")


COLUMNS = (
    SummaryColumn("subject", lambda row: one_line(row.name), numeric=False),
    SummaryColumn("version", lambda row: one_line(row.version), numeric=False),
    SummaryColumn("language", lambda row: one_line(row.language), numeric=False),
    SummaryColumn("judged by", _judge, numeric=False),
    SummaryColumn("cases", lambda row: _count(row.cases)),
    SummaryColumn("pass", lambda row: _count(row.passed)),
    SummaryColumn("diverge", lambda row: _count(row.diverging + row.broken), failing=True),
    SummaryColumn("known", lambda row: _count(row.known)),
    SummaryColumn("skip", lambda row: _count(row.skipped)),
    SummaryColumn("crashes", lambda row: _count(row.crashes)),
    SummaryColumn("hangs", lambda row: _count(row.hangs)),
    SummaryColumn("memory", lambda row: _count(row.memory)),
    SummaryColumn("errors", lambda row: _count(row.errors)),
    SummaryColumn("blocks", lambda row: _count(row.blocks)),
)
