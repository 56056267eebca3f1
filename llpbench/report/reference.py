"""Numbers that the paper prints (`paper/*.csv`)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

_VALUES = ("dataset", "mean", "std", "average_rank")
"""Columns of a file that are not factors."""


class Printed(NamedTuple):
    """A number of the paper."""

    mean: float
    std: float | None
    """None if the paper prints none"""


@dataclass(frozen=True)
class Reference:
    """A table of the paper."""

    factors: tuple[str, ...]
    """headings of the columns that name a row"""
    values: dict[tuple[tuple[str, ...], str], Printed]
    """by the labels of a row and the code of a dataset ("" if the table has none)"""

    @property
    def datasets(self) -> list[str]:
        """Codes of its datasets, in its order."""
        return list(dict.fromkeys(dataset for _, dataset in self.values))

    def find(self, labels: dict[str, str], dataset: str) -> Printed | None:
        """Return the number of a row, whose labels are given by factor; None if there is none."""
        return self.values.get((tuple(labels[factor] for factor in self.factors), dataset))


@cache
def reference(name: str) -> Reference:
    """Return a table of the paper."""
    text = (resources.files("llpbench.report") / "paper" / f"{name}.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    factors = tuple(heading for heading in rows[0] if heading not in _VALUES)
    values = {
        (tuple(row[factor] for factor in factors), row.get("dataset", "")): Printed(
            float(row.get("mean") or row["average_rank"]), float(row["std"]) if row.get("std") else None
        )
        for row in rows
    }
    return Reference(factors, values)
