"""Where a journal's numbers come from: code, libraries and hardware, each in one line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from llpbench.core.record import Record
from llpbench.report.boards import Provenance, device


def provenance(runs: Sequence[Record]) -> Provenance:
    """What all runs say of their origin, each distinct statement once."""
    versions: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for library, version in run["libraries"].items():
            versions[library].add(version)
    return Provenance(
        runs=len(runs),
        failed=sum(run["status"] != "ok" for run in runs),
        code=tuple(sorted({_code(run["code"]) for run in runs})),
        libraries=tuple(f"{library} {' and '.join(sorted(found))}" for library, found in sorted(versions.items())),
        hardware=tuple(sorted({_hardware(run["hardware"]) for run in runs})),
    )


def _code(code: Mapping[str, Any]) -> str:
    commit = str(code.get("commit") or "")[:10]
    details = ", ".join(filter(None, [commit, "with uncommitted changes" if code.get("dirty") else ""]))
    version = str(code.get("version") or "unknown")
    return f"{version} ({details})" if details else version


def _hardware(hardware: Mapping[str, Any]) -> str:
    threads = hardware.get("threads")
    parts = [
        device(hardware),
        f"{threads} thread{'' if threads == 1 else 's'} a run" if threads else "",
        str(hardware.get("precision") or ""),
        "compiled" if hardware.get("compiled") else "",
    ]
    return ", ".join(filter(None, parts))
