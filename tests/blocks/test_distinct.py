"""Distinct rows: found where they are few, and equal to all others in every column."""

from __future__ import annotations

import numpy as np
import pytest

from llpbench.blocks import distinct as module
from llpbench.blocks.distinct import Distinct
from llpbench.core.bags import Rows


def rows(number: int, values: int) -> Rows:
    rng = np.random.default_rng(0)
    missing = rng.random((number, 1)) < 0.2
    numeric = np.where(missing, 0, rng.integers(0, values, (number, 1))).astype(np.float32)
    return Rows(numeric, rng.integers(0, 3, (number, 2)), missing)


def test_distinct_rows_represent_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEWEST_ROWS", 1000)
    table = rows(2000, 4)
    found = Distinct.of_rows(table)
    assert found is not None
    assert len(found.first) == (4 + 1) * 9
    for part in table:
        assert np.array_equal(part[found.first][found.place], part)
    assert found.counts.sum() == 2000
    sums = found.sums(table.numeric.astype(float))
    assert np.allclose(sums[:, 0], found.counts * table.numeric[found.first, 0])


def test_few_or_mostly_distinct_rows_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Distinct.of_rows(rows(2000, 4)) is None
    monkeypatch.setattr(module, "_FEWEST_ROWS", 1000)
    assert Distinct.of_rows(rows(2000, 30)) is None
    assert Distinct.of_rows(Rows(np.zeros((2000, 0)), np.zeros((2000, 0), int), np.zeros((2000, 0), bool))) is None
