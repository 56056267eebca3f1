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
    code: Mapping[str, tuple[str, ...]]
    """commits by version of llpbench"""
    libraries: tuple[str, ...]
    hardware: tuple[str, ...]

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

    def __str__(self) -> str:
        return " ".join(self.lines())


def origin_of(runs: Sequence[Record]) -> Origin:
    """Return the origin of runs. Equal versions, libraries and devices are listed once."""
    libraries: dict[str, set[str]] = defaultdict(set)
    code: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for library, version in run["libraries"].items():
            libraries[library].add(version)
        code[str(run["code"]["version"])] |= _commit(run["code"])
    return Origin(
        runs=len(runs),
        failed=sum(run["status"] != "ok" for run in runs),
        code={version: tuple(sorted(code[version])) for version in sorted(code)},
        libraries=tuple(f"{name} {' and '.join(sorted(libraries[name]))}" for name in sorted(libraries)),
        hardware=tuple(sorted({_hardware(run["hardware"]) for run in runs})),
    )


def device(hardware: Mapping[str, Any]) -> str:
    """Return the name of a device, such as `AMD EPYC (cpu)`. Runs that failed early have no hardware."""
    return f"{hardware['name']} ({hardware['device']})" if hardware else "none (failed before)"


def device_text(machine: str) -> str:
    """Return the name of a device in the column `machine` of the tidy table."""
    hardware = dict(zip(MACHINE, json.loads(machine), strict=True))
    return device(hardware if hardware["device"] else {})


def _commit(code: Mapping[str, Any]) -> set[str]:
    commit = (code["commit"] or "")[:10]  # None if llpbench was not run from a checkout
    details = [part for part in (commit, "with uncommitted changes" if code["dirty"] else "") if part]
    return {", ".join(details)} if details else set()


def _hardware(hardware: Mapping[str, Any]) -> str:
    if not hardware:
        return device(hardware)
    parts = [device(hardware), f"{plural(hardware['threads'], 'thread')} a run", hardware["precision"]]
    return ", ".join([*parts, "compiled"] if hardware["compiled"] else parts)
