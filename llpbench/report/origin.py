"""Code, libraries and hardware that produced the runs of a journal."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.results.frame import MACHINE

_MOST_COMMITS = 3
"""Largest number of commits of a version that `Origin.lines` lists."""


@dataclass(frozen=True)
class Origin:
    """Number of runs, and what produced them."""

    runs: int
    failed: int
    code: Mapping[str, Sequence[str]]
    """commits by version of llpbench"""
    libraries: Sequence[str]
    hardware: Sequence[str]

    def code_text(self, most: int | None = None) -> str:
        """Return versions with their commits. More than `most` commits are counted instead of listed."""
        texts = []
        for version, commits in self.code.items():
            listed = most is None or len(commits) <= most
            details = ", ".join(commits) if listed else f"{len(commits)} commits"
            texts.append(f"{version} ({details})" if details else version)
        return ", ".join(texts)

    def lines(self) -> list[str]:
        """Return the number of runs with their code, the libraries and the hardware, each as a sentence."""
        runs = plural(self.runs, "run") + (f" ({self.failed:,} failed)" if self.failed else "")
        return [
            f"{runs} by llpbench {self.code_text(_MOST_COMMITS)}.",
            f"Libraries: {', '.join(self.libraries)}.",
            f"Hardware: {'; '.join(self.hardware)}.",
        ]


def origin_of(runs: Sequence[Record]) -> Origin:
    """Return the origin of runs. Equal versions, libraries and devices are listed once."""
    libraries: dict[str, set[str]] = defaultdict(set)
    code: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for library, version in run["libraries"].items():
            libraries[library].add(version)
        commit, dirty = run["code"]["commit"], run["code"]["dirty"]  # no commit if llpbench was not in a checkout
        details = [(commit or "")[:10], "with uncommitted changes" if dirty else ""]
        code[str(run["code"]["version"])] |= {", ".join(filter(None, details))} - {""}
    return Origin(
        runs=len(runs),
        failed=sum(run["status"] != "ok" for run in runs),
        code={version: sorted(commits) for version, commits in sorted(code.items())},
        libraries=[f"{name} {' and '.join(sorted(versions))}" for name, versions in sorted(libraries.items())],
        hardware=sorted({_hardware(run["hardware"]) for run in runs}),
    )


def device_text(machine: str) -> str:
    """Return the name of a device in the column `machine` of the tidy table: `AMD EPYC (cpu)`."""
    return _device(dict(zip(MACHINE, json.loads(machine), strict=True)))


def _device(hardware: Mapping[str, Any]) -> str:
    """Return the name of a device. Runs that failed early have none."""
    return f"{hardware['name']} ({hardware['device']})" if hardware.get("device") else "none (failed before)"


def _hardware(hardware: Mapping[str, Any]) -> str:
    if not hardware:
        return _device(hardware)
    parts = [_device(hardware), f"{plural(hardware['threads'], 'thread')} a run", hardware["precision"]]
    return ", ".join([*parts, "compiled"] if hardware["compiled"] else parts)
