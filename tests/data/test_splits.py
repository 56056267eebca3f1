"""Splits and bags: what every published number rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from llpbench.core.bags import Rows
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import register_bagging
from llpbench.core.tables import Table
from llpbench.data.frames import table_from_frame
from llpbench.data.loading import load_table
from llpbench.data.splits import PARTS, _split_rows, assign_bags, largest_bag_size
from llpbench.data.tasks import Scaler, build_task

pytestmark = pytest.mark.usefixtures("empty_cache")

CASES = [
    np.repeat([0, 1], [750, 250]),
    np.repeat([0, 1], [997, 10]),
    np.repeat([0, 1, 2, 3], [501, 302, 77, 1]),
    np.array([0, 1] * 5),
    np.arange(20),
]


@pytest.mark.parametrize("labels", CASES, ids=len)
def test_splits_are_disjoint_complete_stratified_and_of_same_sizes(labels: Any) -> None:
    sizes = set()
    for seed in (*range(10), 2**40):
        split = _split_rows(labels, seed, "toy")
        parts = (split.train, split.validation, split.test)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
        assert len(split.validation) == len(split.test) == len(labels) // 10
        counts = [np.bincount(labels[part], minlength=20) for part in parts]
        for part, count in zip(parts, counts, strict=True):
            exact = np.bincount(labels, minlength=20) / len(labels) * len(part)
            assert np.abs(count - exact).max() < 2  # a row or so from the exact share
        sizes.add(tuple(map(tuple, counts)))
    assert len(sizes) == 1


def test_split_repeats_and_differs_by_seed_and_name() -> None:
    labels = CASES[0]
    first = _split_rows(labels, 0, "toy").test
    np.testing.assert_array_equal(first, _split_rows(labels, 0, "toy").test)
    assert set(first) != set(_split_rows(labels, 1, "toy").test)
    assert set(first) != set(_split_rows(labels, 0, "other").test)


def test_manifest_depends_on_dataset_bagging_size_and_seed_alone(table: Table) -> None:
    same = assign_bags(table, "ordered", 5, 0).manifest
    assert assign_bags(table, " ordered ", np.int64(5), 0).manifest == same  # type: ignore[arg-type]
    others = [
        assign_bags(table, "ordered", 5, 1),
        assign_bags(table, "ordered", 6, 0),
        assign_bags(table, "random", 5, 0),
        assign_bags(table, "ordered:columns=age", 5, 0),
        assign_bags(replace(table, name="other"), "ordered", 5, 0),
    ]
    assert len({same, *(other.manifest for other in others)}) == 6


def test_manifest_of_adult_is_the_published_one() -> None:
    """Published results name this hash. A change here makes every one of them unrepeatable: fix the cause instead."""
    adult = load_table("adult", download=False)
    assert adult.fingerprint == "92bcdfd1c68d2fd10ca254c3e068a25023a135fc1f1f59600e506576f98a5ae5"
    for bagging, manifest in (
        ("ordered", "0ab0eacd6427e3d0dd0d5a275becd36cda14298a77dd77a017e0ef3f11439d9e"),
        ("random", "6be677e32f263a4407e693d0a135dea6c7983698b41bfd3f0bdac69a49491631"),
    ):
        assert assign_bags(adult, bagging, 256, 0).manifest == manifest


def test_remainder_is_dropped_at_random_before_sorting() -> None:
    """Were the remainder dropped after sorting, the largest values would always be lost."""
    table = table_from_frame(pd.DataFrame({"x": np.arange(1000), "y": np.arange(1000) % 2}), name="line", target="y")
    dropped = []
    for seed in range(20):
        assignment = assign_bags(table, "ordered", 90, seed)  # 800 = 8 x 90 + 80
        dropped.append(np.setdiff1d(assignment.split.train, assignment.train))
        assert len(dropped[-1]) == 80
    assert 450 < np.mean(dropped) < 550
    assert not np.isin(dropped[0], dropped[1]).all()


@pytest.mark.parametrize("rows", [*range(40), 101, 16_714])
def test_largest_bag_size_is_the_largest_that_works(rows: int) -> None:
    largest = largest_bag_size(rows)
    split = _split_rows(np.arange(rows) % 2, 0, "toy") if rows else None
    sizes = [len(getattr(split, part)) for part in PARTS] if split else [0, 0, 0]
    fits = [size for size in range(1, rows + 1) if sizes[0] // size >= 2 and min(sizes[1:]) // size >= 1]
    assert largest == max(fits, default=0)


@pytest.mark.parametrize(
    ("bagging", "message"),
    [
        (lambda rows, size: rows.reshape(-1, size).tolist(), r"must return integers \[bags, size\], got list"),
        (lambda rows, size: rows.astype(float).reshape(-1, size), "float64"),
        (lambda rows, _: rows, r"int64 \(48,\)"),
        (lambda rows, size: np.zeros_like(rows).reshape(-1, size) + rows[0], "rows into more than one bag"),
        (lambda rows, size: rows.reshape(-1, size) + 1000, "rows that were not passed to it"),
        (lambda rows, size: rows.reshape(-1, size)[:0], "an empty bag, or none"),
        (lambda rows, size: np.vstack([rows.reshape(-1, size), np.full(size, -1)]), "an empty bag, or none"),
        (lambda rows, _: rows[:16].reshape(-1, 4), "must make bags of 2 rows, got 4 to 4"),
    ],
)
def test_invalid_result_of_bagging_names_file(table: Table, bagging: Callable[[Any, int], Any], message: str) -> None:
    @register_bagging("faulty")
    def faulty(_table: Table, rows: Any, size: int, _rng: Any) -> Any:
        return bagging(rows, size)

    with pytest.raises(LLPBenchError, match=message) as caught:
        assign_bags(table, "faulty", 2, 0)
    assert "test_splits.py" in str(caught.value)


def same(one: Rows, other: Rows) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("bagging", ["ordered", "random"])
def test_labels_permuted_within_training_bags_do_not_change_task(table: Table, bagging: str) -> None:
    assignment = assign_bags(table, bagging, 6, 0)
    rng = np.random.default_rng(1)
    labels = table.row_labels.copy()
    for bag in assignment.train:
        labels[bag] = labels[rng.permutation(bag)]
    assert (labels != table.row_labels).any()
    before, after = build_task(table, assignment), build_task(replace(table, labels=labels), assignment)
    assert same(before.train.rows, after.train.rows)
    np.testing.assert_array_equal(before.train.index, after.train.index)
    counts = [np.bincount(table.row_labels[bag], minlength=2) for bag in assignment.train]
    for task in (before, after):
        np.testing.assert_array_equal(task.train.counts, counts)
    assert before.schema == after.schema


def test_constant_column_becomes_exactly_0() -> None:
    numbers = np.full((3, 1), 0.1)
    assert numbers.sum() / 3 != 0.1, "the mean of equal numbers has a rounding error"
    nothing = np.zeros((3, 0), np.int64)
    assert (Scaler(numbers, nothing, ())(numbers, nothing).numeric == 0).all()


def test_normalisation_uses_rows_of_training_bags_only(table: Table) -> None:
    assignment = assign_bags(table, "random", 5, 0)
    outside = np.setdiff1d(np.arange(60), assignment.train)
    assert len(outside) == 60 - 45, "3 of 48 training rows are in no bag"
    numeric = table.numeric.copy()
    numeric[outside] = 1e6
    before, after = build_task(table, assignment), build_task(replace(table, numeric=numeric), assignment)
    assert same(before.train.rows, after.train.rows)
    assert not same(before.test.rows, after.test.rows)
    present = ~before.train.rows.missing
    mean = before.train.rows.numeric.sum(axis=0) / present.sum(axis=0)
    np.testing.assert_allclose(mean, 0, atol=1e-6)
