"""What earlier searches found, kept in a database of hypothesis and tried first the next time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from conformance.cases.build import build
from conformance.cases.model import BlocksInput, Case, DotInput, FileInput, RowsInput
from conformance.cases.rows import block_rows, float_rows
from conformance.errors import ConfigurationError
from conformance.search.declared import load_one
from conformance.search.hit import Probe
from conformance.search.plan import Finding
from conformance.search.probe import FileProbe, NumberProbe

_LABEL = "kept"


class Kept:
    """The finds of one pair of subjects, in ``folder``; None keeps nothing."""

    def __init__(self, folder: Path | None, pair: str) -> None:
        self._key = hashlib.sha256(pair.encode()).digest()
        self._database: Any = None
        if folder is not None:
            from hypothesis.database import DirectoryBasedExampleDatabase  # noqa: PLC0415 - an extra

            self._database = DirectoryBasedExampleDatabase(folder)

    def keep(self, finding: Finding) -> None:
        """Keep the case of a finding."""
        if self._database is not None:
            self._database.save(self._key, msgspec.json.encode(finding.case))

    def probes(self) -> Iterator[Probe]:
        """Give what is kept, the shortest first, each with what is put before it; what can no longer be read is forgotten."""
        if self._database is None:
            return
        for value in sorted(self._database.fetch(self._key), key=lambda kept: (len(kept), kept)):
            try:
                probes = _probes_of(load_one(msgspec.json.decode(value, type=dict[str, Any])))
            except (ConfigurationError, msgspec.DecodeError):
                self._database.delete(self._key, value)
                continue
            yield from probes


def _probes_of(case: Case) -> list[Probe]:
    before = [msgspec.structs.replace(case, input=one.input, ask=one.ask, before=()) for one in case.before]
    return [probe_of(one) for one in (*before, case)]


def probe_of(case: Case) -> Probe:
    """Give what a case puts to a subject by its first op. Raises ConfigurationError for a recipe that cannot be made."""
    op, _, variant = case.ask[0].partition(":")
    asked: Any = op
    match case.input:
        case FileInput(recipe=recipe):
            return FileProbe(asked, build(recipe).data, recipe, _LABEL)
        case RowsInput(type=kind, recipe=recipe, imatrix=weights):
            rows = float_rows(recipe, kind)
            imatrix = None if weights is None else float_rows(weights, kind)[0]
            return NumberProbe(asked, kind, rows.shape[1], rows=rows, imatrix=imatrix, variant=variant, label=_LABEL)
        case BlocksInput(type=kind, recipe=recipe):
            blocks, cols = block_rows(recipe, kind)
            return NumberProbe(asked, kind, cols, blocks=blocks, variant=variant, label=_LABEL)
        case DotInput(type=kind, weights=weights, x=x_recipe):
            blocks, cols = block_rows(weights, kind)
            x = float_rows(x_recipe, kind)
            shaped = x if asked == "matvec" else np.ascontiguousarray(np.broadcast_to(x, (len(blocks), cols)))
            return NumberProbe(asked, kind, cols, blocks=blocks, x=shaped, variant=variant, label=_LABEL)
    raise ConfigurationError(f"{case.id} is no case that a search could have found")
