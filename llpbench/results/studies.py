"""The studies: tables and figures of the paper, and one of our own. `studies.toml` declares them.

A study determines both the cells that it runs and the table that a report makes of a journal. Studies that have cells
in common share their runs. Reports use this module, so it imports no torch or pandas.
"""

from __future__ import annotations

import fnmatch
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import hint

_Level = Mapping[str, Any]
"""What a level fixes. `studies.toml` explains the keys."""

OPEN = ("bagging", "bag_size", "encoder")
"""Parts of a cell that a study may leave open."""

_DEFAULTS: _Level = {"pretraining": "none", "criterion": "auc", "measure": "auc"}


@dataclass(frozen=True)
class StudyRow:
    """One row of a study: a level of each factor."""

    labels: tuple[str, ...]
    """one label per factor"""
    fixed: _Level

    @property
    def pretrainings(self) -> tuple[str, ...]:
        """Pretrainings among which validation chooses; usually one."""
        chosen = self.fixed["pretraining"]
        return (chosen,) if isinstance(chosen, str) else tuple(chosen)


@dataclass(frozen=True, kw_only=True)
class Study:
    """One table or figure of the paper, or our own study. The keys of `studies.toml` explain the fields."""

    name: str
    title: str
    question: str
    factors: Mapping[str, Mapping[str, _Level]]
    fixed: _Level = field(default_factory=dict)
    reference: str = ""
    own: bool = False
    layout: Literal["scores", "robustness"] = "scores"

    @property
    def rows(self) -> tuple[StudyRow, ...]:
        """Rows of the study."""
        combined = itertools.product(*(factor.items() for factor in self.factors.values()))
        return tuple(
            StudyRow(tuple(label for label, _ in levels), _merged([self.fixed, *(level for _, level in levels)]))
            for levels in combined
        )

    @staticmethod
    def select(pattern: str) -> list[Study]:
        """Return studies selected by `paper`, `all`, comma-separated lists and globs.

        Raises `LLPBenchError` with the nearest names.
        """
        unions = {"paper": [name for name, study in STUDIES.items() if not study.own], "all": list(STUDIES)}
        chosen: dict[str, Study] = {}
        for part in filter(None, (part.strip() for part in pattern.split(","))):
            names = unions[part] if part in unions else fnmatch.filter(STUDIES, part)
            if not names:
                near = hint(part, [*STUDIES, *unions])
                raise LLPBenchError(f"unknown study {part!r}. {near}llpbench list studies prints all.")
            chosen.update({name: STUDIES[name] for name in names})
        if not chosen:
            raise LLPBenchError("--study must name a study. llpbench list studies prints all.")
        return list(chosen.values())


def _merged(levels: Sequence[_Level]) -> _Level:
    """Return what levels fix together. Hyperparameters of several levels are joined."""
    fixed = dict(_DEFAULTS)
    for key, value in (item for level in levels for item in level.items()):
        fixed[key] = {**fixed.get(key, {}), **value} if isinstance(value, dict) else value
    return fixed


def _load() -> dict[str, Study]:
    content = tomllib.loads((resources.files("llpbench.results") / "studies.toml").read_text(encoding="utf-8"))
    shared = content["levels"]

    def levels(factor: _Level | list[str | _Level]) -> dict[str, _Level]:
        parts = factor if isinstance(factor, list) else [factor]
        tables = (shared[part] if isinstance(part, str) else part for part in parts)
        return {label: level for table in tables for label, level in table.items()}

    return {
        name: Study(name=name, **{**study, "factors": {title: levels(of) for title, of in study["factors"].items()}})
        for name, study in content["studies"].items()
    }


STUDIES: dict[str, Study] = _load()
