"""Bags of their own sizes: rows that share a key, limits of sizes, and splits by whole bags."""

from __future__ import annotations

import numpy as np
import pytest

from llpbench.core.bags import Rest
from llpbench.core.errors import LLPBenchError
from llpbench.data.baggings import column_keys
from llpbench.data.splits import PARTS, _limited, _split_bags, _split_rows, assign_bags
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_table

RNG = np.random.default_rng(0)


def bags_of(*sizes: int) -> np.ndarray:
    """Bags of consecutive rows."""
    found = np.full((len(sizes), max(sizes)), -1, dtype=np.int64)
    for number, size in enumerate(sizes):
        found[number, :size] = np.arange(size) + sum(sizes[:number])
    return found


def sizes_of(bags: np.ndarray) -> list[int]:
    return [int(size) for size in (bags >= 0).sum(axis=1)]


@pytest.mark.parametrize(
    ("least", "most", "rest", "sizes", "counted"),
    [
        (1, 0, "drop", [3, 10, 1, 2, 6], (0, 0)),
        (3, 0, "drop", [3, 10, 6], (3, 0)),
        (3, 0, "pool", [3, 10, 6, 3], (0, 3)),
        (4, 0, "pool", [10, 6, 6], (0, 6)),  # 3 + 1 + 2 rows
        (1, 4, "drop", [3, 4, 1, 2, 4], (8, 0)),
        (1, 5, "pool", [3, 5, 1, 2, 5, 5, 1], (0, 6)),
        (3, 4, "pool", [3, 4, 4, 4, 4, 3], (0, 11)),
        (4, 4, "pool", [4, 4, 4, 4, 4, 4][:5], (2, 12)),  # of 14 rows the last 2 are too few
    ],
)
def test_limited_bags_respect_sizes_and_count_dropped_and_pooled_rows(
    least: int, most: int, rest: str, sizes: list[int], counted: tuple[int, int]
) -> None:
    bags = bags_of(3, 10, 1, 2, 6)
    found = _limited(bags, RNG, least=least, most=most, rest=rest)
    assert found.rest == Rest(*counted)
    assert sizes_of(found.bags) == sizes
    inside = found.bags[found.bags >= 0]
    assert len(np.unique(inside)) == len(inside) == 22 - found.rest.dropped


@pytest.mark.parametrize("seed", range(5))
def test_split_by_bags_keeps_bags_whole_and_parts_near_a_tenth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bags = bags_of(*rng.integers(1, 60, size=80).tolist(), 900)
    split, parts = _split_bags(bags, rng, "it")
    total = (bags >= 0).sum()
    together = np.sort(np.concatenate([split.train, split.validation, split.test]))
    assert together.tolist() == list(range(total))
    for part in PARTS:
        own = parts[part][parts[part] >= 0]
        assert sorted(own) == sorted(getattr(split, part))
    whole = {tuple(bag[bag >= 0]) for bag in bags}
    assert {tuple(bag[bag >= 0]) for part in PARTS for bag in parts[part]} == whole
    for rows in (split.validation, split.test):
        assert 0.05 < len(rows) / total <= 0.15
    assert np.isin(bags[-1], split.train).all(), "a bag of more than a tenth of all rows trains"


@pytest.mark.parametrize(
    ("sizes", "numbers"),
    [([2] * 25, (19, 3, 3)), ([5] * 20, (16, 2, 2)), ([10] * 10, (8, 1, 1)), ([4] * 10 + [30, 30], (6, 3, 3))],
)  # 4 and 6 rows are as near to a tenth: the larger number is taken
def test_parts_end_next_to_a_tenth(sizes: list[int], numbers: tuple[int, ...]) -> None:
    _, parts = _split_bags(bags_of(*sizes), np.random.default_rng(0), "it")
    assert tuple(len(parts[part]) for part in PARTS) == numbers


def test_too_few_bags_are_refused() -> None:
    with pytest.raises(LLPBenchError, match=r"it makes too few bags.*4 bags, 0 of them"):
        _split_bags(bags_of(5, 5, 5, 5), RNG, "it")
    with pytest.raises(LLPBenchError, match="too few bags"):
        _split_bags(bags_of(5, 95), RNG, "it")  # half a tenth is too little
    with pytest.raises(LLPBenchError, match=r"4000 rows in the train part of 'toy'"):
        assign_bags(toy_table(), "column:by=d:least=4000", None, seed=0)
    with pytest.raises(LLPBenchError, match=r"'toy' .*20 training bags, fewer than --max-bags 21"):
        assign_bags(toy_table(), "ordered", 16, 0, 21)


def test_split_by_bags_depends_on_seed_not_on_limits() -> None:
    table = toy_table(missing=0.0)
    table.numeric[:, 0] = np.random.default_rng(1).integers(0, 40, len(table))
    first = assign_bags(table, "column:by=a:split=bags", None, seed=0)
    train, validation, test = ({*table.numeric[getattr(first.split, part), 0]} for part in PARTS)
    assert not test & (train | validation)
    assert not validation & train
    by_rows = assign_bags(table, "column:by=a", None, seed=0).split
    assert {*table.numeric[by_rows.test, 0]} & {*table.numeric[by_rows.train, 0]}
    assert first.manifest == assign_bags(table, "column:split=bags:by=a", None, seed=0).manifest
    assert first.manifest != assign_bags(table, "column:by=a:split=bags", None, seed=1).manifest
    fewer = assign_bags(table, "column:by=a:split=bags:least=9", None, seed=0)
    assert fewer.split.test.tolist() == first.split.test.tolist()
    assert 0 < len(fewer.train) < len(first.train)
    assert fewer.rest == Rest(dropped=len(first.split.train) - int((fewer.train >= 0).sum()), pooled=0)
    assert first.rest is None


def test_split_by_rows_applies_limits_to_training_bags_only() -> None:
    table = toy_table(rows=2000, missing=0.0)
    table.numeric[:, 0] = np.repeat([0, 1, 2, 3], [1000, 500, 400, 100])
    assignment = assign_bags(table, "column:by=a:least=160:most=480", None, seed=0)
    assert sorted(sizes_of(assignment.train)) == [pytest.approx(320, abs=30), pytest.approx(400, abs=30), 480]
    assert sorted(sizes_of(assignment.test))[-1] == 60
    assert len(assignment.test) == 3
    assert assignment.split.test.tolist() == _split_rows(table.row_labels, 0, "toy").test.tolist()


def test_natural_bags_have_every_row_once_and_one_key_each() -> None:
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


class TestMaxBags:
    def test_max_bags_selects_nested_training_bags_only(self) -> None:
        table = toy_table()
        every, some, fewer = (assign_bags(table, "ordered", 8, 0, number) for number in (None, 20, 5))
        assert len(every.train) > 20
        assert {*map(tuple, fewer.train)} < {*map(tuple, some.train)} < {*map(tuple, every.train)}
        assert (len(some.train), len(fewer.train)) == (20, 5)
        for part in ("validation", "test"):
            assert (getattr(some, part) == getattr(every, part)).all()
        assert some.manifest != every.manifest
        assert assign_bags(table, "ordered", 8, 0, len(every.train)).manifest == every.manifest
        other = assign_bags(table, "ordered", 8, 1, 5)
        assert {*map(tuple, other.train)} != {*map(tuple, fewer.train)}
