"""The paper's own numbers, as printed: reference data that ship with the package."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

KEYS = ("dataset", "mean", "std")
"""columns of a file that are no factor"""


@dataclass(frozen=True)
class Reference:
    """One table of the paper."""

    factors: tuple[str, ...]
    """headings of the columns that name a row"""
    values: dict[tuple[tuple[str, ...], str], tuple[float, float | None]]
    """mean and standard deviation (None where the paper prints none), by the labels of the row and the dataset's code
    ("" where there is none)"""

    @property
    def datasets(self) -> list[str]:
        """The codes of its datasets, in its order."""
        return list(dict.fromkeys(dataset for _, dataset in self.values))

    def find(self, labels: dict[str, str], dataset: str) -> tuple[float, float | None] | None:
        """The paper's number for a row, named by factor, and a dataset; None if there is none."""
        return self.values.get((tuple(labels[factor] for factor in self.factors), dataset))


@cache
def rows(name: str) -> list[dict[str, str]]:
    """A file of the paper's numbers, as it stands."""
    text = (resources.files("llpbench.report") / "paper" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def reference(name: str) -> Reference:
    """One table of the paper."""
    found = rows(name)
    measured = next(heading for heading in found[0] if heading in ("mean", "average_rank"))
    factors = tuple(heading for heading in found[0] if heading not in (*KEYS, measured))
    values = {
        (tuple(row[factor] for factor in factors), row.get("dataset", "")): (
            float(row[measured]),
            float(row["std"]) if row.get("std") else None,
        )
        for row in found
    }
    return Reference(factors, values)
