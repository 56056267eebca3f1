"""Bags of their own sizes: their limits, what is left over, and splits by whole bags."""

from __future__ import annotations

import numpy as np
import pytest

from llpbench.core.bags import Rest
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Assignment, Table
from llpbench.data.baggings import column_keys, format_bagging, parse_bagging
from llpbench.data.own_sizes import limited, split_bags
from llpbench.data.splits import PARTS, assign_bags, split_rows
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
def test_limits_hold_and_rows_left_over_are_counted(
    least: int, most: int, rest: str, sizes: list[int], counted: tuple[int, int]
) -> None:
    bags = bags_of(3, 10, 1, 2, 6)
    found = limited(bags, RNG, least=least, most=most, rest=rest)
    assert found.rest == Rest(*counted)
    assert sizes_of(found.bags) == sizes
    inside = found.bags[found.bags >= 0]
    assert len(np.unique(inside)) == len(inside) == 22 - found.rest.dropped


def test_what_remains_of_a_bag_that_is_too_large_is_a_random_part() -> None:
    parts = {tuple(limited(bags_of(50), RNG, least=1, most=5, rest="drop").bags[0]) for _ in range(5)}
    assert len(parts) == 5


@pytest.mark.parametrize("seed", range(20))
def test_whole_bags_are_split_and_parts_are_about_a_tenth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bags = bags_of(*rng.integers(1, 60, size=80).tolist(), 900)
    split, parts = split_bags(bags, rng, "it")
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


def test_too_few_bags_for_a_split_by_bags_are_said() -> None:
    with pytest.raises(LLPBenchError, match=r"it makes too few bags.*4 bags, 0 of them"):
        split_bags(bags_of(5, 5, 5, 5), RNG, "it")


def keys_by_part(table: Table, assignment: Assignment) -> dict[str, set[float]]:
    keys = column_keys(table, np.arange(len(table)), "a")
    return {part: set(keys[getattr(assignment.split, part)].tolist()) for part in PARTS}


def test_test_rows_are_of_bags_that_training_has_not_seen() -> None:
    table = toy_table(missing=0.0)
    table.numeric[:, 0] = np.random.default_rng(1).integers(0, 40, len(table))
    keys = keys_by_part(table, assign_bags(table, "column:by=a:split=bags", None, seed=0))
    assert not keys["test"] & (keys["train"] | keys["validation"])
    assert not keys["validation"] & keys["train"]
    seen = keys_by_part(table, assign_bags(table, "column:by=a", None, seed=0))
    assert seen["test"] & seen["train"]


def test_a_split_by_bags_follows_the_seed_and_not_the_limits() -> None:
    table = toy_table(missing=0.0)
    table.numeric[:, 0] = np.random.default_rng(1).integers(0, 40, len(table))
    first = assign_bags(table, "column:by=a:split=bags", None, seed=0)
    assert first.manifest == assign_bags(table, "column:split=bags:by=a", None, seed=0).manifest
    assert first.manifest != assign_bags(table, "column:by=a:split=bags", None, seed=1).manifest
    fewer = assign_bags(table, "column:by=a:split=bags:least=9", None, seed=0)
    assert fewer.split.test.tolist() == first.split.test.tolist()
    assert 0 < len(fewer.train) < len(first.train)
    assert fewer.rest == Rest(dropped=len(first.split.train) - int((fewer.train >= 0).sum()), pooled=0)
    assert first.rest is None


def test_where_rows_are_split_limits_are_those_of_training_bags() -> None:
    table = toy_table(rows=2000, missing=0.0)
    table.numeric[:, 0] = np.repeat([0, 1, 2, 3], [1000, 500, 400, 100])
    assignment = assign_bags(table, "column:by=a:least=160:most=480", None, seed=0)
    assert sorted(sizes_of(assignment.train)) == [pytest.approx(320, abs=30), pytest.approx(400, abs=30), 480]
    assert sorted(sizes_of(assignment.test))[-1] == 60
    assert len(assignment.test) == 3
    assert assignment.split.test.tolist() == split_rows(table.row_labels, 0, "toy").test.tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("column:by=a:split=days", "'split'.*must be rows or bags, got 'days'"),
        ("column:by=a:rest=keep", "'rest'.*must be drop or pool"),
        ("column:by=a:least=0", "least=0 and most=any number"),
        ("column:by=a:least=9:most=5", "least=9 and most=5"),
        ("column:by=a:most=x", "of type int"),
        ("ordered:split=bags", "no option 'split'"),
    ],
)
def test_what_says_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(LLPBenchError, match=said):
        parse_bagging(text)


def test_limits_that_leave_no_bag_are_said() -> None:
    with pytest.raises(LLPBenchError, match=r"4000 rows in the train part of 'toy'"):
        assign_bags(toy_table(), "column:by=d:least=4000", None, seed=0)


def test_defaults_are_left_out_of_the_text() -> None:
    assert format_bagging(*parse_bagging("column:rest=drop:by=a:least=1:split=rows")) == "column:by=a"


def test_a_bagging_must_not_take_an_option_of_the_engine() -> None:
    @register_bagging("greedy")
    def greedy(table: Table, rows: np.ndarray, rng: np.random.Generator, *, least: int = 3) -> np.ndarray:
        """Has what all have."""
        del table, rng, least
        return rows[:, None]

    with pytest.raises(LLPBenchError, match="has an option 'least', which every bagging"):
        parse_bagging("greedy")


class TestMaxBags:
    def test_fewer_bags_are_among_the_more_and_only_training_changes(self) -> None:
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

    def test_bags_of_their_own_sizes_lose_the_padding_that_none_needs(self) -> None:
        table = toy_table()
        for seed in range(5):
            found = assign_bags(table, "column:by=d+e", None, seed, 2).train
            assert found.shape == (2, max(sizes_of(found)))

    def test_more_than_there_are_is_refused(self) -> None:
        with pytest.raises(LLPBenchError, match=r"'toy' .*20 training bags, fewer than --max-bags 21"):
            assign_bags(toy_table(), "ordered", 16, 0, 21)
