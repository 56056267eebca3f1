"""Origin of a journal's numbers: code, libraries and hardware, each in one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.report.boards import Origin, device


def origin_of(runs: Sequence[Record]) -> Origin:
    """Origins of all runs, each distinct one once."""
    versions: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for library, version in run["libraries"].items():
            versions[library].add(version)
    return Origin(
        runs=len(runs),
        failed=sum(run["status"] != "ok" for run in runs),
        code=tuple(sorted({_code(run["code"]) for run in runs})),
        libraries=tuple(f"{library} {' and '.join(sorted(found))}" for library, found in sorted(versions.items())),
        hardware=tuple(sorted({_hardware(run["hardware"]) for run in runs})),
    )


def _code(code: Mapping[str, Any]) -> str:
    commit = (code["commit"] or "")[:10]  # null where it is not run from a checkout
    details = ", ".join(filter(None, [commit, "with uncommitted changes" if code["dirty"] else ""]))
    return f"{code['version']} ({details})" if details else str(code["version"])


def _hardware(hardware: Mapping[str, Any]) -> str:
    if not hardware:
        return device(hardware)
    parts = [device(hardware), f"{plural(hardware['threads'], 'thread')} a run", hardware["precision"]]
    return ", ".join([*parts, "compiled"] if hardware["compiled"] else parts)
