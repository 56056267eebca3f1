"""Stale results: those of other code than today's, by the hashes and the version that each record holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record, TuningRecord
from llpbench.core.source_hash import cell_sources

WhyStale = Callable[[Record], str]
"""Why a record is stale, in one line; "" if it is not, and if nobody can tell because its plugin is not loaded"""


def comparison() -> Callable[[Record | TuningRecord], str]:
    """What compares records with the code that is loaded now; it looks at each source once."""

    @cache
    def today(method: str, dataset: str, bagging: str, encoder: str | None) -> Mapping[str, str | None] | None:
        try:
            return cell_sources(method, dataset, bagging, encoder)
        except LLPBenchError:
            return None

    def why(record: Record | TuningRecord) -> str:
        spec = cell_spec(record)
        sources = today(spec["method"], spec["dataset"], spec["bagging"], spec["encoder"])
        return "" if sources is None else _difference(record, sources)

    return why


def stale_runs(records: Iterable[Record]) -> dict[str, str]:
    """Why runs are stale, by run id; only those that are."""
    why = comparison()
    reasons = ((record["run"], why(record)) for record in records)
    return {run: reason for run, reason in reasons if reason}


def stale_searches(tunings: Iterable[TuningRecord]) -> dict[str, str]:
    """The same of searches, by id."""
    why = comparison()
    reasons = ((tuning["tuning"], why(tuning)) for tuning in tunings)
    return {tuning: reason for tuning, reason in reasons if reason}


def cell_spec(record: Record | TuningRecord) -> Mapping[str, Any]:
    """The specification of the cell that a run is of, or that a search starts from."""
    spec: Mapping[str, Any] = record["spec"].get("cell", record["spec"])
    return spec


def changed_parts(record: Record | TuningRecord, sources: Mapping[str, str | None]) -> list[str]:
    """Which of method, dataset, bagging and encoder have another source than when the record was made."""
    return [part for part, source in sources.items() if record["sources"].get(part, "") != source]


def _difference(record: Record | TuningRecord, sources: Mapping[str, str | None]) -> str:
    if not record["sources"]:
        return "made before sources were recorded"
    changed = changed_parts(record, sources)
    parts = [f"source of {' and '.join(changed)} changed"] if changed else []
    if record["numerics"] != NUMERICS:
        parts.append(f"numerics {record['numerics']}, now {NUMERICS}")
    return "; ".join(parts)
