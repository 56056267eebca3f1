"""Facts about a table: its rows, columns and classes.

`datasets/facts.json` has the facts of the built-in datasets, one dataset per line, so that lists and plans need not
read any table. `docs/generate.py` computes the file from the tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from llpbench.core.tables import Table

BUILT_IN = Path(str(files("llpbench.datasets")))
"""folder of the built-in datasets"""
FACTS = BUILT_IN / "facts.json"


@dataclass(frozen=True)
class Facts:
    """Facts about a table."""

    rows: int
    numeric: tuple[str, ...]
    """names of the numeric features"""
    categorical: tuple[str, ...]
    """names of the categorical features"""
    classes: Mapping[str, int] = field(default_factory=dict)
    """number of rows of each class; empty if the labels of rows are unknown"""

    @classmethod
    def of(cls, table: Table) -> Facts:
        """Return the facts of a table."""
        classes: dict[str, int] = {}
        if table.labels is not None:
            counts = np.bincount(table.labels, minlength=len(table.classes)).tolist()
            classes = dict(sorted(zip(table.classes, counts, strict=True)))
        return cls(len(table), table.numeric_names, table.categorical_names, classes)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Facts:
        """Return the facts in a JSON object. Raises `KeyError`, `TypeError` or `ValueError` if it has another form."""
        numeric, categorical = (tuple(map(str, content[kind])) for kind in ("numeric", "categorical"))
        classes = {str(name): int(count) for name, count in dict(content["classes"]).items()}
        return cls(int(content["rows"]), numeric, categorical, classes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all features, the numeric ones first."""
        return (*self.numeric, *self.categorical)

    def json(self) -> str:
        """Return the facts as a JSON object on one line."""
        return json.dumps(asdict(self))

    def differences(self, other: Facts) -> str:
        """Return what differs in another table, such as `rows 9 instead of 10`; "" if the facts are equal."""
        pairs = ((item.name, getattr(other, item.name), getattr(self, item.name)) for item in fields(self))
        return ", ".join(
            f"{name} {shorten(str(now), 200)} instead of {shorten(str(declared), 200)}"
            for name, now, declared in pairs
            if now != declared
        )


@cache
def built_in_facts() -> Mapping[str, Facts]:
    """Return the facts of the built-in datasets, by name."""
    return {name: Facts.read(content) for name, content in json.loads(FACTS.read_text(encoding="utf-8")).items()}
