"""Stale results: those made by other code than today's, according to the hashes and version in each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record, TuningRecord
from llpbench.core.source_hash import cell_sources

WhyStale = Callable[[Record], str]
"""returns why a record is stale, in one line; "" if it is current, or if its plugin is not loaded"""


def comparison() -> Callable[[Record | TuningRecord], str]:
    """Return a function that compares records with the loaded code. It reads each source once."""

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
    """Return why runs are stale, by run id, without current runs."""
    why = comparison()
    reasons = ((record["run"], why(record)) for record in records)
    return {run: reason for run, reason in reasons if reason}


def stale_searches(tunings: Iterable[TuningRecord]) -> dict[str, str]:
    """Return why searches are stale, by id, without current searches."""
    why = comparison()
    reasons = ((tuning["tuning"], why(tuning)) for tuning in tunings)
    return {tuning: reason for tuning, reason in reasons if reason}


def cell_spec(record: Record | TuningRecord) -> Mapping[str, Any]:
    """Return the specification of a run's cell, or of a search's initial cell."""
    spec: Mapping[str, Any] = record["spec"].get("cell", record["spec"])
    return spec


def changed_parts(record: Record | TuningRecord, sources: Mapping[str, str | None]) -> list[str]:
    """Return which of method, dataset, bagging and encoder have changed since the record was made."""
    return [part for part, source in sources.items() if record["sources"].get(part, "") != source]


def _difference(record: Record | TuningRecord, sources: Mapping[str, str | None]) -> str:
    if not record["sources"]:
        return "made before sources were recorded"
    changed = changed_parts(record, sources)
    parts = [f"source of {' and '.join(changed)} changed"] if changed else []
    if record["numerics"] != NUMERICS:
        parts.append(f"numerics {record['numerics']}, now {NUMERICS}")
    return "; ".join(parts)
