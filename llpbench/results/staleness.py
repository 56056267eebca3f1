"""Stale results: those made by other code than today's, or from other data than newer results, as records say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import itemgetter
from typing import Any

from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS, cell_versions
from llpbench.core.record import Record, TuningRecord

WhyStale = Callable[[Any], str]
"""returns why a record is stale, in one line; "" if it is current, or if its plugin is not loaded"""


def comparison(records: Iterable[Any]) -> WhyStale:
    """Return a function that compares records with the loaded code, and their data with the newest of `records`."""
    has_table = (record for record in records if record.get("data", {}).get("fingerprint"))
    by_time = sorted(has_table, key=itemgetter("finished"))
    tables = {run["spec"].get("cell", run["spec"])["dataset"]: run["data"]["fingerprint"] for run in by_time}

    @cache
    def today(method: str, dataset: str, bagging: str, encoder: str | None) -> Mapping[str, str | None] | None:
        try:
            return cell_versions(method, dataset, bagging, encoder)
        except LLPBenchError:
            return None

    def why(record: Any) -> str:
        spec: Mapping[str, Any] = record["spec"].get("cell", record["spec"])
        versions = today(spec["method"], spec["dataset"], spec["bagging"], spec["encoder"])
        if versions is None:
            return ""
        reasons, newest = [_difference(record, versions)], tables.get(spec["dataset"])
        is_hash_of_table = ":" not in (versions["dataset"] or ":")  # else that of a file, or unknown
        if not is_hash_of_table and record.get("data", {}).get("fingerprint", newest) != newest:
            reasons.append("newer runs have other data")
        return "; ".join(filter(None, reasons))

    return why


def stale_reasons(records: Iterable[Record | TuningRecord]) -> dict[str, str]:
    """Return why runs and searches are stale, by id, without current ones."""
    why = comparison(records := [*records])
    reasons = ((str(record.get("run") or record.get("tuning")), why(record)) for record in records)
    return {name: reason for name, reason in reasons if reason}


def _difference(record: Record | TuningRecord, today: Mapping[str, str | None]) -> str:
    """Return which versions differ; "" if none do."""
    before = record["versions"]
    reasons = [_change(part, before.get(part, "unknown"), now) for part, now in today.items()]
    if record["numerics"] != NUMERICS:
        reasons.append(f"version of engine {record['numerics']}, now {NUMERICS}")
    return "; ".join(filter(None, reasons))


def _change(part: str, old: str | None, now: str | None) -> str:
    """Return how the version of a part has changed; "" if it has not. None is an unknown version, not compared."""
    if old == now or old is None or now is None:
        return ""
    kind, _, hashed = now.partition(":")
    return f"{kind} of {part} changed" if hashed and ":" in old else f"version of {part} {old}, now {now}"
