"""Bags of their own sizes: rows that share a key."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from llpbench.core.bags import IntArray
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys, grouped, is_sized
from llpbench.data.splits import PARTS, assign_bags
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_table


def test_rows_with_equal_keys_share_a_bag_in_the_order_of_keys() -> None:
    rows = np.array([10, 11, 12, 13, 14])
    assert grouped(rows, np.array([2, 1, 2, 3, 2])).tolist() == [[11, -1, -1], [10, 12, 14], [13, -1, -1]]
    pairs = np.array([[1, 0], [0, 1], [1, 0], [0, 0], [0, 1]])
    assert grouped(rows, pairs).tolist() == [[13, -1], [11, 14], [10, 12]]
    assert grouped(rows, np.array([np.nan, 1.0, np.nan, 1.0, 0.0])).tolist() == [[14, -1], [11, 13], [10, 12]]


def test_natural_bags_hold_every_row_once_and_one_key_each() -> None:
    table = toy_table()
    assignment = assign_bags(table, "column:by=d+e", None, seed=0)
    keys = np.column_stack([column_keys(table, np.arange(len(table)), name) for name in ("d", "e")])
    for part in PARTS:
        bags, rows = getattr(assignment, part), getattr(assignment.split, part)
        assert sorted(bags[bags >= 0]) == sorted(rows)  # no remainder is left out
        for bag in bags:
            assert len(np.unique(keys[bag[bag >= 0]], axis=0)) == 1
        assert len(np.unique(keys[rows], axis=0)) == len(bags)
    task = build_task(table, assignment)
    assert task.train.sizes.min() < task.train.sizes.max()
    assert task.schema.rows_per_step == round(2 * task.train.sizes.mean())


def test_missing_values_are_a_key() -> None:
    table = toy_table(missing=0.3)
    assignment = assign_bags(table, "column:by=d", None, seed=0)
    missing = table.categorical[assignment.split.train, 0] < 0
    assert missing.any()
    assert any(set(bag[bag >= 0]) == set(assignment.split.train[missing]) for bag in assignment.train)


@pytest.mark.parametrize(
    ("bagging", "size", "said"),
    [
        ("column", None, "needs .*'by'"),
        ("column:by=f", None, r"has no column 'f'.*It has: d, e, a, b, c"),
        ("column:by=d", 16, "decides the sizes of its bags"),
        ("ordered", 0, "positive integer"),
    ],
)
def test_what_cannot_be_bagged_is_refused(bagging: str, size: int | None, said: str) -> None:
    with pytest.raises(LLPBenchError, match=said):
        assign_bags(toy_table(), bagging, size, seed=0)


def test_a_bagging_takes_a_size_if_it_has_the_parameter() -> None:
    @register_bagging("by-sign")
    def by_sign(table: Table, rows: IntArray, rng: Generator) -> IntArray:
        """Two bags."""
        return grouped(rows, rng.permutation(table.numeric[rows, 0] > 0))

    assert not is_sized("by-sign")
    assert not is_sized("column")
    assert is_sized("ordered")
    assert assign_bags(toy_table(missing=0.0), "by-sign", None, seed=0).train.shape[0] == 2
