"""Splits, baggings and the text that names them: what every published number rests on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.decides import spread
from llpbench.core.bags import BaggedRows, Rows
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import BAGGINGS, register_bagging
from llpbench.core.tables import Table
from llpbench.data.baggings import column_keys, format_bagging, grouped, parse_bagging, standardised
from llpbench.data.frames import table_from_frame
from llpbench.data.loading import load_table
from llpbench.data.splits import PARTS, TableFacts, _limited, _split_bags, _split_rows, assign_bags, require_possible
from llpbench.data.tasks import Scaler, build_task
from llpbench.data.toy import toy_table

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
    facts = TableFacts("toy", rows, 2, (), is_labelled=True)

    def is_possible(size: int) -> bool:
        with contextlib.suppress(LLPBenchError):
            require_possible(facts, "random", size, None)
            return True
        return False

    split = _split_rows(np.arange(rows) % 2, 0, "toy") if rows else None
    sizes = [len(getattr(split, part)) for part in PARTS] if split else [0, 0, 0]
    fits = [size for size in range(1, rows + 1) if sizes[0] // size >= 2 and min(sizes[1:]) // size >= 1]
    largest = max(fits, default=0)
    assert [is_possible(size) for size in (largest, largest + 1)] == [largest > 0, False]


@pytest.mark.parametrize("size", [1, 1000])
def test_missing_labels_are_told_before_sizes(size: int) -> None:
    with pytest.raises(LLPBenchError, match=r"no labels of rows.*--baggings given"):
        require_possible(TableFacts("counts", 100, 2, (), is_labelled=False), "ordered", size, None)


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


def test_constant_column_becomes_exactly_0() -> None:
    numbers = np.full((3, 1), 0.1)
    assert numbers.sum() / 3 != 0.1, "the mean of equal numbers has a rounding error"
    nothing = np.zeros((3, 0), np.int64)
    assert (Scaler(numbers, nothing, ())(numbers, nothing).numeric == 0).all()
    assert np.isfinite(np.square(Scaler(numbers, nothing, ())(numbers + 1e30, nothing).numeric)).all()


def test_new_gaps_count_as_the_mean_unless_training_had_some() -> None:
    nothing = np.zeros((2, 0), np.int64)
    scaled = Scaler(np.array([[1.0, 5], [3, np.nan]]), nothing, ())(np.full((2, 2), np.nan), nothing)
    np.testing.assert_array_equal(scaled.missing, [[False, True]] * 2)
    np.testing.assert_array_equal(scaled.numeric, 0.0)


def test_normalisation_uses_rows_of_training_bags_only(table: Table) -> None:
    assignment = assign_bags(table, "random", 5, 0)
    outside = np.setdiff1d(np.arange(60), assignment.train)
    assert len(outside) == 60 - 45, "3 of 48 training rows are in no bag"
    numeric = table.numeric.copy()
    numeric[outside] = 1e6
    before, after = build_task(table, assignment), build_task(replace(table, numeric=numeric), assignment)
    assert all(map(np.array_equal, before.train.rows, after.train.rows))
    assert not np.array_equal(before.test.rows.numeric, after.test.rows.numeric)
    present = ~before.train.rows.missing
    mean = before.train.rows.numeric.sum(axis=0) / present.sum(axis=0)
    np.testing.assert_allclose(mean, 0, atol=1e-6)


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
    ("least", "most", "sizes"),
    [
        (1, 0, [3, 10, 1, 2, 6]),
        (3, 0, [3, 10, 6]),
        (1, 4, [3, 4, 1, 2, 4]),
        (3, 4, [3, 4, 4]),
        (4, 4, [4, 4]),
        (11, 0, []),
    ],
)
def test_limited_bags_respect_sizes(least: int, most: int, sizes: list[int]) -> None:
    limited = _limited(bags_of(3, 10, 1, 2, 6), RNG, least=least, most=most)
    assert sizes_of(limited) == sizes
    inside = limited[limited >= 0]
    assert len(np.unique(inside)) == len(inside)


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
    with pytest.raises(LLPBenchError, match="9 rows"):
        assign_bags(toy_table(rows=9), "column:by=d", None, seed=0)
    with pytest.raises(LLPBenchError, match=r"400 rows in the train part of 'toy'"):
        assign_bags(toy_table(), "column:by=d:least=400", None, seed=0)
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
    assert fewer.dropped == len(first.split.train) - int((fewer.train >= 0).sum()) > 0
    assert first.dropped is None


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


def test_missing_keys_are_one_key() -> None:
    nan = np.nan
    keys = np.array([[1, nan], [2, nan], [1, nan], [1, 0], [2, nan], [nan, 0], [1, 0], [nan, 0]])
    assert grouped(np.arange(8), keys).tolist() == [[3, 6], [0, 2], [1, 4], [5, 7]]
    assert grouped(np.arange(4), keys[:4, 1]).tolist() == [[3, -1, -1], [0, 1, 2]]


def test_max_bags_selects_nested_training_bags_only() -> None:
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


def bag(table: Table, name: str, *size: int, seed: int = 0, **options: Any) -> Any:
    return BAGGINGS.get(name)(table, np.arange(len(table)), *size, np.random.default_rng(seed), **options)


def test_ordered_sorts_raw_values_like_python(people: pd.DataFrame, table: Table) -> None:
    """Categorical columns first, then numeric ones, missing last: by Python's own sort of tuples."""
    found = bag(table, "ordered", 1)[:, 0]

    def key(row: int) -> list[tuple[bool, Any]]:
        values = people.loc[row, ["job", "town", "age", "wage"]]
        return [(bool(pd.isna(value)), "" if pd.isna(value) else value) for value in values]

    expected = sorted(range(len(people)), key=key)
    assert [key(row) for row in found] == [key(row) for row in expected]


def test_categories_are_sorted_by_string_and_numbers_by_size() -> None:
    frame = pd.DataFrame({"c": ["10", "9", "100", "1"], "n": [10, 9, 100, 1], "y": [0, 1, 0, 1]})
    table = table_from_frame(frame, name="toy", target="y")
    assert bag(table, "ordered", 1, columns=("c",))[:, 0].tolist() == [3, 0, 2, 1]
    assert bag(table, "ordered", 1, columns=("n",))[:, 0].tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ordered", ("ordered", {})),
        (" random ", ("random", {})),
        ("ordered:columns=age+workclass", ("ordered", {"columns": ("age", "workclass")})),
        ("ordered: columns = education-num", ("ordered", {"columns": ("education-num",)})),
        ("column:by=a:least=1:split=rows", ("column", {"by": ("a",)})),
    ],
)
def test_parsed_bagging_omits_defaults_and_round_trips(text: str, expected: tuple[str, dict[str, Any]]) -> None:
    """Options at their defaults are left out."""
    assert parse_bagging(text) == expected
    assert parse_bagging(format_bagging(*expected)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("orderd", "unknown bagging 'orderd'. Did you mean ordered"),
        ("ordered:column=age", "'ordered' has no option 'column'.* It has: columns"),
        ("ordered:", "'ordered' has no option ''"),
        ("random:columns=age", "'random' has no option 'columns'.* It has none"),
        ("ordered:columns", "option 'columns' in 'ordered:columns' has no value"),
        ("ordered:columns=", "has no value"),
        ("ordered:columns=a:columns=b", "given twice"),
        ("kmeans:clusters=1", "'clusters' in 'kmeans:clusters=1' must be at least 2, got 1"),
        ("dirichlet:alpha=0", "'alpha' in 'dirichlet:alpha=0' must be at least 1e-12, got 0"),
        ("dirichlet:alpha=inf", "must be a finite number, got inf"),
        ("column:by=a:split=days", "'split'.*must be one of rows, bags, got days"),
        ("column:by=a:rest=pool", "no option 'rest'.* It has: by, least, most, split"),
        ("column:by=a:least=0", "'least'.*must be at least 1, got 0"),
        ("column:by=a:least=9:most=5", "most=5 is below least=9"),
        ("column:by=a:most=x", "whole number"),
        ("ordered:split=bags", "no option 'split'"),
    ],
)
def test_invalid_bagging_text_raises_one_line(text: str, message: str) -> None:
    with pytest.raises(LLPBenchError, match=message) as caught:
        parse_bagging(text)
    assert "\n" not in str(caught.value)


def test_options_take_the_type_of_their_default(table: Table) -> None:
    seen: dict[str, Any] = {}

    @register_bagging("optional")
    def optional(
        _table: Table,
        rows: Any,
        size: int,
        _rng: Any,
        *,
        k: int = 1,
        rate: float = 0.5,
        how: str = "a",
        fast: bool = False,
    ) -> Any:
        seen.update(k=k, rate=rate, how=how, fast=fast)
        return rows.reshape(-1, size)

    text = "optional:rate=2:k=3:how=b:fast=true"
    assign_bags(table, text, 2, 0)
    assert seen == {"k": 3, "rate": 2.0, "how": "b", "fast": True}
    name, options = parse_bagging(text)
    assert format_bagging(name, options) == "optional:fast=True:how=b:k=3:rate=2.0"
    assert parse_bagging(format_bagging(name, options)) == (name, options)
    for wrong, message in (
        ("k=x", "a whole number, got x"),
        ("rate=x", "must be a finite number"),
        ("fast=no", "true or false"),
        ("rate=nan", "must be a finite number, got nan"),
    ):
        with pytest.raises(LLPBenchError, match=message):
            parse_bagging(f"optional:{wrong}")


@pytest.mark.parametrize(
    ("bagging", "size"), [("kmeans:clusters=10", None), ("principal-component", 16), ("dirichlet:alpha=2.0", 16)]
)
def test_made_bags_repeat_with_seed_and_have_larger_spread_than_random_bags(bagging: str, size: int | None) -> None:
    table = toy_table(rows=2000)
    first, again, other = (assign_bags(table, bagging, size, seed) for seed in (0, 0, 1))
    assert first.manifest == again.manifest != other.manifest
    assert spread(build_task(table, first).bags) > 3


def test_standardised_numbers_and_frequent_categories_have_mean_0_and_std_1() -> None:
    table = toy_table(missing=0.1)
    found = standardised(table, np.arange(len(table)))
    assert found.shape == (400, 3 + 3 + 3)  # of two classes: their categories are three
    assert np.abs(found.mean(axis=0)).max() < 1e-12
    np.testing.assert_allclose(found.std(axis=0), 1.0)


def test_rare_categories_and_constants_have_no_effect() -> None:
    table = toy_table(missing=0.0)
    table.categorical[:, 0] = 0
    table.categorical[:3, 0] = 1  # of 400
    table.numeric[:, 1] = 0.07  # no mean of equal numbers is exact
    found = standardised(table, np.arange(len(table)))
    assert found.shape == (400, 3 + 1 + 3)
    assert (found[:, 1] == 0).all()


def test_separated_kmeans_clusters_become_bags() -> None:
    table = toy_table(missing=0.0)
    table.numeric[:] = 100.0 * np.repeat(np.arange(4), 100)[:, None]
    table.categorical[:] = 0
    bags = bag(table, "kmeans", clusters=4)
    assert sorted([{*map(int, row[row >= 0] // 100)} for row in bags], key=min) == [{0}, {1}, {2}, {3}]
    with pytest.raises(LLPBenchError, match=r"more clusters than 'toy' has validation rows. Choose at most 40"):
        assign_bags(table, "kmeans:clusters=41", None, 0)


def test_bags_are_slices_along_first_component() -> None:
    table, rng = toy_table(missing=0.0), np.random.default_rng(0)
    hidden = rng.normal(size=len(table))
    table.numeric[:] = hidden[:, None] + 0.01 * rng.normal(size=(len(table), 3))
    means = hidden[bag(table, "principal-component", 20)].mean(axis=1)
    assert (np.diff(means) > 0).all(), "in the order in which features grow"


@pytest.mark.parametrize(("classes", "alpha"), [(2, 1e-9), (5, 1e-9), (5, 0.05), (2, 1.0), (5, 20.0)])
def test_every_row_is_in_exactly_one_full_dirichlet_bag(classes: int, alpha: float) -> None:
    table = toy_table(rows=1200, classes=classes)
    bags = bag(table, "dirichlet", 16, alpha=alpha)
    assert bags.shape == (75, 16)
    assert np.sort(bags.ravel()).tolist() == list(range(1200))


def test_proportions_have_variance_of_dirichlet() -> None:
    table = toy_table(rows=40_000)
    for alpha in (1.0, 10.0):
        proportions = table.row_labels[bag(table, "dirichlet", 100, alpha=alpha)].mean(axis=1)
        assert proportions.std() == pytest.approx(np.sqrt(0.25 / (alpha + 1)), rel=0.1)
        assert proportions.mean() == pytest.approx(0.5)


def test_features_do_not_affect_dirichlet_bags() -> None:
    table = toy_table(rows=4000)
    bags, again = bag(table, "dirichlet", 20, alpha=0.5), toy_table(rows=4000)
    again.numeric[:], again.categorical[:] = 0.0, 0
    np.testing.assert_array_equal(bag(again, "dirichlet", 20, alpha=0.5), bags)


def test_random_bags_have_spread_near_1() -> None:
    table = toy_table(rows=4000)
    bags = [build_task(table, assign_bags(table, "random", 20, seed)).bags for seed in range(10)]
    assert np.mean([*map(spread, bags)]) == pytest.approx(1.0, abs=0.1)
    found = []
    for seed in range(20):
        table.numeric[:, 0] = 4000 ** np.random.default_rng(99 + seed).random(4000) // 40  # of any sizes
        found.append(spread(build_task(table, assign_bags(table, "column:by=a", None, seed)).bags))
    assert np.mean(found) == pytest.approx(1.0, abs=0.1)


def test_spread_matches_hand_computation() -> None:
    """0 and 2 of 2 and 4 rows, of a third: 2 (2/9) + 4 (1/18) over (4/9) 6/5."""
    rows = Rows(np.zeros((6, 0), np.float32), np.zeros((6, 0), np.int64), np.zeros((6, 0), bool))
    bags = BaggedRows(rows, np.array([[0, 1, -1, -1], [2, 3, 4, 5]]), np.array([[2.0, 0.0], [2.0, 2.0]]))
    assert spread(bags) == pytest.approx((2 * 2 / 9 + 4 * 2 / 36) / (4 / 9 * 6 / 5))
