"""Statistics of comparisons: answers worked out by hand or published, and what must never change an answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from itertools import product
from math import exp, inf, isnan, nan, sqrt
from typing import Any

import numpy as np
import pytest
from pandas import DataFrame, Index, Series, read_csv
from pandas.testing import assert_frame_equal, assert_series_equal

from llpbench.report import statistics

Values = dict[str, dict[tuple[str, int], list[float]]]
Function = Callable[[DataFrame], Any]

# AUC of C4.5 with m (minimal examples in a leaf) and cf (confidence level) by default or tuned, on 14 datasets: Demšar,
# 2006, table 6. In thousandths, so that equal differences are equal. He prints 975 twice for one dataset and ranks the
# unrounded numbers; 975.1 stands for the higher one.
DEMSAR: dict[str, list[float]] = {
    "C4.5": [763, 599, 954, 628, 882, 936, 661, 583, 775, 1000, 940, 619, 972, 957],
    "C4.5+m": [768, 591, 971, 661, 888, 931, 668, 583, 838, 1000, 962, 666, 981, 978],
    "C4.5+cf": [771, 590, 968, 654, 886, 916, 609, 563, 866, 1000, 965, 614, 975.1, 946],
    "C4.5+m+cf": [798, 569, 967, 657, 898, 931, 685, 625, 875, 1000, 962, 669, 975, 970],
}


def frame(values: Values) -> DataFrame:
    """Scores of methods, by method and (dataset, bag size): one value a seed, from 0."""
    return DataFrame(
        [
            (method, dataset, bag_size, seed, value)
            for method, blocks in values.items()
            for (dataset, bag_size), found in blocks.items()
            for seed, value in enumerate(found)
        ],
        columns=["method", "dataset", "bag_size", "seed", "value"],
    )


def over_datasets(values: dict[str, list[float]]) -> DataFrame:
    """Scores with one bag size and one seed: by method, one value a dataset."""
    return frame({m: {(f"d{i:02}", 64): [v] for i, v in enumerate(found)} for m, found in values.items()})


def one_block(values: dict[str, list[float]]) -> DataFrame:
    """Scores with one dataset and one bag size: by method, one value a seed."""
    return frame({method: {("d", 64): found} for method, found in values.items()})


def noise(methods: int, *, datasets: int = 3, bag_sizes: int = 2, seeds: int = 4) -> DataFrame:
    generator = np.random.default_rng(0)
    blocks = list(product([f"d{i}" for i in range(datasets)], [2**i for i in range(bag_sizes)]))
    return frame({f"m{i:02}": {block: list(generator.normal(size=seeds)) for block in blocks} for i in range(methods)})


# --- frames


def test_dataset_means_weigh_bag_sizes_equally_and_seeds_may_differ_between_them() -> None:
    scores = frame(
        {
            "b": {("y", 64): [7.0], ("x", 128): [3.0], ("x", 64): [1.0, 2.0]},
            "a": {("y", 64): [0.0], ("x", 128): [1.0], ("x", 64): [4.0, 8.0]},
        }
    )
    found = statistics.dataset_means(scores)
    index = Index(["x", "y"], name="dataset")
    assert_frame_equal(found, DataFrame({"a": [3.5, 0.0], "b": [2.25, 7.0]}, index=index), check_names=False)
    assert_frame_equal(statistics.blocks(scores), found)


def test_the_blocks_of_one_dataset_are_the_seeds_that_all_of_its_bag_sizes_have() -> None:
    scores = frame({"a": {("x", 64): [1.0, 2.0, 9.0], ("x", 128): [3.0, 6.0]}})
    found = statistics.blocks(scores)
    assert_frame_equal(found, DataFrame({"a": [2.0, 4.0]}, index=Index([0, 1], name="seed")), check_names=False)


COMPARISONS = [
    statistics.dataset_means,
    statistics.blocks,
    statistics.mean_ranks,
    statistics.standings,
    statistics.comparisons,
    statistics.friedman,
    statistics.nemenyi,
    statistics.wilcoxon_holm,
    statistics.win_rates,
]


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("value", [nan, inf, -inf, None])
def test_an_incomplete_frame_is_refused_and_names_what_is_lacking(compare: Function, value: float | None) -> None:
    scores = noise(3)
    lacking = (scores["method"] == "m01") & (scores["dataset"] == "d1") & (scores["bag_size"] == 2)
    lacking &= scores["seed"] == 3
    assert lacking.sum() == 1
    bad = scores[~lacking] if value is None else scores.assign(value=scores["value"].mask(lacking, value))
    with pytest.raises(ValueError, match="method 'm01' has no finite value for dataset 'd1', bag size 2, seed 3"):
        compare(bad)


def test_of_several_that_are_lacking_the_first_is_named() -> None:
    scores = noise(3)
    with pytest.raises(ValueError, match="method 'm02' has no finite value for dataset 'd0', bag size 1, seed 1"):
        statistics.dataset_means(scores.drop(index=scores.index[(scores["method"] == "m02") & (scores["seed"] > 0)]))


@pytest.mark.parametrize("function", COMPARISONS)
def test_two_values_of_one_run_are_refused(function: Function) -> None:
    scores = noise(3)
    twice = scores.iloc[[*range(len(scores)), 5]]
    with pytest.raises(ValueError, match="there are two: method=m00, dataset=d0, bag_size=2, seed=1"):
        function(twice)


def test_a_frame_lacking_a_column_or_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no column 'bag_size'"):
        statistics.mean_ranks(noise(3).drop(columns="bag_size"))
    scores = noise(3)
    with pytest.raises(ValueError, match=r"every score needs .* however: method=m00, dataset=d0, bag_size=1, seed=nan"):
        statistics.mean_ranks(scores.assign(seed=scores["seed"].where(scores["seed"] != 2)))


@pytest.mark.parametrize("function", [f for f in COMPARISONS if f is not statistics.friedman])
def test_the_order_of_rows_changes_nothing(function: Function) -> None:
    scores = noise(4, datasets=6)
    assert_frame_or_series_equal(function(scores.sample(frac=1, random_state=1)), function(scores))


def test_the_order_of_rows_does_not_change_friedman() -> None:
    scores = noise(4, datasets=6)
    ours, other = statistics.friedman(scores), statistics.friedman(scores.sample(frac=1, random_state=1))
    assert ours is not None
    assert other is not None
    assert (ours.statistic, ours.p) == (other.statistic, other.p)
    assert_series_equal(ours.mean_ranks, other.mean_ranks)


def assert_frame_or_series_equal(one: DataFrame | Series, other: DataFrame | Series) -> None:
    (assert_series_equal if isinstance(one, Series) else assert_frame_equal)(one, other)


# --- ranks


def test_mean_ranks_by_hand_with_ties() -> None:
    # ranks in the columns:                    1    2      3
    scores = over_datasets(
        {
            "a": [0.9, 0.5, 0.7],  # 1    2.5    2
            "b": [0.8, 0.5, 0.7],  # 2    2.5    2
            "c": [0.7, 0.6, 0.7],
        }
    )  # 3    1      2     fmt: skip
    assert dict(statistics.mean_ranks(scores)) == pytest.approx({"a": 5.5 / 3, "b": 6.5 / 3, "c": 2.0})


def test_mean_ranks_of_a_published_comparison() -> None:
    found = statistics.mean_ranks(over_datasets(DEMSAR))
    assert found.round(3).to_dict() == {"C4.5": 3.143, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}


def test_rounding_does_not_break_ties() -> None:
    # 0.1 + 0.2 + 0.3 > 0.3 + 0.2 + 0.1 in floats
    scores = over_datasets({"a": [0.3, 0.2, 0.1], "b": [0.1, 0.2, 0.3]})
    assert sum([0.1, 0.2, 0.3]) > sum([0.3, 0.2, 0.1])
    assert list(statistics.standings(scores)["rank"]) == [1, 1]
    alone = one_block({"a": [0.3, 0.2, 0.1], "b": [0.1, 0.2, 0.3]})
    assert dict(statistics.mean_ranks(alone)) == {"a": 1.5, "b": 1.5}


# --- standings


def test_means_weigh_datasets_equally_however_many_seeds_and_bag_sizes_they_have() -> None:
    # a: (1 + (3 + 5) / 2) / 2 = 2.5; over runs it would be 11/5. b: (2 + 2) / 2
    scores = frame(
        {
            "a": {("x", 64): [1.0, 1.0, 1.0], ("y", 64): [3.0], ("y", 128): [5.0]},
            "b": {("x", 64): [2.0, 2.0, 2.0], ("y", 64): [1.0], ("y", 128): [3.0]},
        }
    )
    found = statistics.standings(scores)
    assert found["mean"].to_dict() == {"a": 2.5, "b": 2.0}
    assert found["rank"].to_dict() == {"a": 1, "b": 2}
    assert found["mean_rank"].to_dict() == {"a": 1.5, "b": 1.5}


def test_standings_are_sorted_by_mean_then_name_and_equal_means_share_a_rank() -> None:
    found = statistics.standings(one_block({"d": [2.0, 4.0], "c": [1.0, 1.0], "b": [4.0, 2.0], "a": [0.0, 0.0]}))
    assert list(found.index) == ["b", "d", "c", "a"]
    assert list(found["rank"]) == [1, 1, 3, 4]
    assert found.index.name == "method"
    assert list(found.columns) == ["mean", "rank", "mean_rank", "low", "high", "letters"]


def test_a_method_far_above_has_rank_one_for_sure_and_a_letter_of_its_own() -> None:
    scores = noise(4, datasets=6)
    best = scores["method"] == "m02"
    found = statistics.standings(scores.assign(value=scores["value"] + 100.0 * best))
    assert tuple(found.loc["m02", ["rank", "low", "high", "letters"]]) == (1, 1, 1, "A")
    assert list(found["letters"])[1:] == ["B", "B", "B"]
    assert found["low"].iloc[1] == 2
    assert found["high"].max() == 4


@pytest.mark.parametrize("others", [1, 2, 5, 20])
def test_identical_methods_stand_alike_whoever_else_is_there(others: int) -> None:
    scores = noise(others)
    twin = scores[scores["method"] == "m00"].assign(method="z")
    both = DataFrame([*scores.itertuples(index=False), *twin.itertuples(index=False)], columns=scores.columns)
    found = statistics.standings(both)
    assert tuple(found.loc["m00"]) == tuple(found.loc["z"])
    if others == 1:
        assert tuple(found.loc["z"])[1:] == (1, 1.5, 1, 2, "A")


def test_rank_intervals_by_hand() -> None:
    # a - b: 2, 4: mean 3, error 1, t = 3. a - c: 9, 11: t = 10. b - c: 7, 7: error 0. Of one degree of freedom t at
    # (1 - level) / 2 one-sided is 6.31 at level 0.9: c alone is told apart, from both
    scores = over_datasets({"a": [10.0, 14.0], "b": [8.0, 10.0], "c": [1.0, 3.0]})
    found = statistics.standings(scores, level=0.9)
    assert [tuple(row) for row in found[["low", "high"]].itertuples(index=False)] == [(1, 2), (1, 2), (3, 3)]
    # 3.08 at level 0.8, where a and b still share both ranks; 1.96 at level 0.7 tells all apart
    assert found["low"].to_list() == statistics.standings(scores, level=0.8)["low"].to_list()
    assert statistics.standings(scores, level=0.7)["high"].to_list() == [1, 2, 3]


def test_letters_are_those_of_all_leaders_that_a_method_cannot_be_told_apart_from() -> None:
    # a is far above d alone; b is above d, too, but by little on one dataset; c swings and is told apart from nobody
    scores = over_datasets(
        {
            "a": [9.0, 9.1, 9.0, 9.1, 9.0],
            "b": [3.0, 14.0, 8.0, 9.0, 6.0],
            "c": [20.0, -9.0, 15.0, 1.0, 6.0],
            "d": [2.0, 2.1, 2.0, 2.1, 2.0],
            "e": [0.0, 0.1, 0.0, 0.1, 0.1],
        }
    )
    p = statistics.comparisons(scores)
    assert p is not None
    assert statistics.standings(scores)["letters"].to_dict() == {"a": "A", "b": "ABC", "c": "ABC", "d": "B", "e": "C"}
    apart = {(one, other) for one in p for other in p if p.loc[one, other] < 0.05}
    assert apart == {(x, y) for x in "ade" for y in "ade" if x != y}


def test_letters_go_on_after_z() -> None:
    scores = one_block({f"m{i:02}": [-i, -i - 0.001 * (i % 2)] for i in range(54)})
    letters = list(statistics.standings(scores.assign(value=scores["value"].round()))["letters"])
    assert letters[:2] == ["A", "B"]
    assert letters[25:28] == ["Z", "a", "b"]
    assert letters[51:] == ["z", "(53)", "(54)"]


def test_methods_that_never_differ_are_all_first() -> None:
    found = statistics.standings(over_datasets({"b": [0.5, 0.5], "a": [0.5, 0.5]}))
    assert [tuple(row) for row in found.itertuples()] == [("a", 0.5, 1, 1.5, 1, 2, "A"), ("b", 0.5, 1, 1.5, 1, 2, "A")]


@pytest.mark.parametrize("bag_sizes", [1, 3])
def test_one_dataset_with_one_seed_has_no_intervals(bag_sizes: int) -> None:
    found = statistics.standings(noise(3, datasets=1, bag_sizes=bag_sizes, seeds=1))
    assert found["low"].isna().all()
    assert found["high"].isna().all()
    assert list(found["letters"]) == ["", "", ""]
    assert list(found["rank"]) == [1, 2, 3]


def test_too_many_methods_have_no_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MOST_METHODS", 2)
    found = statistics.standings(noise(3))
    assert found["low"].isna().all()
    assert list(found["rank"]) == [1, 2, 3]


@pytest.mark.parametrize("shape", [{"datasets": 1}, {"seeds": 1}])
def test_one_dataset_or_one_seed_still_gives_intervals(shape: dict[str, int]) -> None:
    found = statistics.standings(noise(3, **shape))
    assert found["low"].dtype == found["high"].dtype == "Int64"
    assert (found["low"] <= found["rank"]).all()
    assert (found["rank"] <= found["high"]).all()
    assert (found["low"] < found["high"]).any()  # it is noise


def test_one_method_is_first() -> None:
    found = statistics.standings(noise(1))
    assert tuple(found.loc["m00"])[1:] == (1, 1.0, 1, 1, "A")


def test_standings_refuse_bad_settings() -> None:
    with pytest.raises(ValueError, match="level=95"):
        statistics.standings(noise(2), level=95)


# --- tests


def test_friedman_by_hand() -> None:
    # ranks in the columns:                          1  2  3  4   sum
    scores = over_datasets(
        {
            "a": [0.9, 0.9, 0.9, 0.8],  # 1  1  1  2     5
            "b": [0.8, 0.8, 0.7, 0.9],  # 2  2  3  1     8
            "c": [0.7, 0.7, 0.8, 0.7],
        }
    )  # 3  3  2  3    11     fmt: skip
    # 12 / (N k (k + 1)) * sum of squares - 3 N (k + 1) = 12 / (4 * 3 * 4) * (25 + 64 + 121) - 3 * 4 * 4 = 4.5;
    # with 2 degrees of freedom p = exp(-4.5 / 2). q_0.05 of 3 methods is 2.343 (Demšar, table 5)
    found = statistics.friedman(scores)
    assert found is not None
    assert found.statistic == pytest.approx(4.5)
    assert found.p == pytest.approx(exp(-2.25))
    assert (found.datasets, found.methods) == (4, 3)
    assert found.critical_difference == pytest.approx(2.343 * sqrt(3 * 4 / (6 * 4)), abs=5e-4)
    assert found.mean_ranks.to_dict() == {"a": 1.25, "b": 2.0, "c": 2.75}


def test_friedman_of_a_published_comparison() -> None:
    # Demšar, section 3.2: 9.28, without the correction for ties. Those are three of two methods and one of four:
    # 1 - (3 * (2^3 - 2) + (4^3 - 4)) / (14 * (4^3 - 4)) = 1 - 78 / 840
    found = statistics.friedman(over_datasets(DEMSAR))
    assert found is not None
    assert found.statistic * (1 - 78 / 840) == pytest.approx(9.28, abs=0.005)
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)


def test_friedman_uses_means_of_datasets() -> None:
    blocks = [("x", 64), ("x", 128), ("y", 64)]
    by_seeds = frame({m: {block: [v - 5, v + 5] for block in blocks} for m, v in (("a", 1.0), ("b", 2.0), ("c", 3.0))})
    found = statistics.friedman(by_seeds)
    assert found is not None
    assert found.datasets == 2
    assert found.statistic == pytest.approx(4.0)  # 12 / (2 * 3 * 4) * (4 + 16 + 36) - 3 * 2 * 4


def test_friedman_of_methods_that_never_differ_finds_nothing() -> None:
    found = statistics.friedman(over_datasets({m: [0.5, 0.6, 0.7] for m in "abc"}))
    assert found is not None
    assert (found.statistic, found.p) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("methods", "alpha", "q"),
    [(2, 0.05, 1.960), (5, 0.05, 2.728), (10, 0.05, 3.164), (2, 0.10, 1.645), (4, 0.10, 2.291)],
)
def test_critical_differences_of_the_published_table(methods: int, alpha: float, q: float) -> None:
    # Demšar, table 5
    found = statistics.critical_difference(methods, 7, alpha=alpha)
    assert found / sqrt(methods * (methods + 1) / (6 * 7)) == pytest.approx(q, abs=1e-3)


def test_nemenyi_of_a_published_comparison() -> None:
    # Demšar, section 3.2: at 0.05 (1.25) no two differ; at 0.10 (1.12) C4.5 differs from +m (3.143 - 2.000) and from
    # +m+cf (3.143 - 1.964)
    found = statistics.nemenyi(over_datasets(DEMSAR))
    assert found is not None
    assert 0.05 < found.loc["C4.5", "C4.5+m+cf"] < found.loc["C4.5", "C4.5+m"] < 0.10
    assert found.loc["C4.5+cf", "C4.5+m+cf"] > 0.10
    assert_matrix_of_p_values(found)


def test_nemenyi_agrees_with_the_critical_difference() -> None:
    scores = noise(5, datasets=8)
    scores["value"] += scores["method"].map({"m00": 2.0, "m01": 1.0}).fillna(0.0)
    p, test = statistics.nemenyi(scores), statistics.friedman(scores)
    assert p is not None
    assert test is not None
    ranks = test.mean_ranks.to_numpy()
    apart = np.abs(ranks[:, None] - ranks[None, :]) > test.critical_difference
    assert ((p.to_numpy() < 0.05) == apart).all()
    assert 0 < apart.sum() < apart.size - 5


@pytest.mark.parametrize("blocks", [6, 13, 14, 20, 60])
def test_methods_that_never_differ_have_p_one_and_spoil_no_other(blocks: int) -> None:
    values = [float(i) for i in range(blocks)]
    scores = over_datasets({"a": values, "twin": values, "c": [-100.0 - i * i for i in range(blocks)]})
    wilcoxon, nemenyi = statistics.wilcoxon_holm(scores), statistics.nemenyi(scores)
    assert wilcoxon is not None
    assert nemenyi is not None
    assert wilcoxon.loc["a", "twin"] == nemenyi.loc["a", "twin"] == 1.0
    # c is always the worst: 2 / 2^n, times the 3 pairs
    expected = min(1.0, 3 * 2 / 2**blocks)
    assert wilcoxon.loc[["a", "twin"], "c"].to_list() == pytest.approx([expected, expected], abs=1e-15)
    assert_matrix_of_p_values(wilcoxon)
    assert_matrix_of_p_values(nemenyi)


def test_wilcoxon_holm_by_hand() -> None:
    # a - b: 10, 20, ... 60: one of 2^6 signs is as extreme, p = 2/64. a - c: 11, 18, 33, 36, 55, 54: the same.
    # b - c: 1, -2, 3, -4, 5, -6: the positive ranks sum to 9, as 27 of 64 subsets of 1..6 do or to less: p = 54/64.
    # Holm: 3 * 2/64; then 2 * 2/64, but not less than the one before; then 1 * 54/64
    b = [5.0, -3.0, 8.0, 0.0, 2.0, 1.0]
    ahead, behind = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0], [1.0, -2.0, 3.0, -4.0, 5.0, -6.0]
    scores = over_datasets(
        {
            "a": [x + y for x, y in zip(b, ahead, strict=True)],
            "b": b,
            "c": [x - y for x, y in zip(b, behind, strict=True)],
        }
    )
    found = statistics.wilcoxon_holm(scores)
    assert found is not None
    assert found.loc["a", "b"] == found.loc["a", "c"] == pytest.approx(6 / 64)
    assert found.loc["b", "c"] == pytest.approx(54 / 64)
    assert_matrix_of_p_values(found)


def test_wilcoxon_of_a_published_comparison() -> None:
    # Demšar, section 3.1.3: the ranks against C4.5+m sum to 12, those of the two zero differences being split. p by
    # counting the subsets of 1..14 that sum to 12 or less
    found = statistics.wilcoxon_holm(over_datasets({method: DEMSAR[method] for method in ("C4.5", "C4.5+m")}))
    ways = [1]
    for rank in range(1, 15):
        longer = [0] * rank + ways
        ways = [n + (ways[total] if total < len(ways) else 0) for total, n in enumerate(longer)]
    assert sum(ways) == 2**14
    assert found is not None
    assert found.loc["C4.5", "C4.5+m"] == pytest.approx(2 * sum(ways[:13]) / 2**14)


def test_comparisons_by_hand() -> None:
    # a - b: 1, 2, 3: t = 2 / (1 / sqrt 3) = 3.464, of 2 degrees of freedom p = 0.0742. a - c: 10, 10, 13: t = 11, p =
    # 0.0082. b - c: 9, 8, 10: t = 15.588, p = 0.0041. For 2 degrees of freedom p = 1 - t / sqrt(2 + t^2)
    scores = over_datasets({"a": [10.0, 10.0, 13.0], "b": [9.0, 8.0, 10.0], "c": [0.0, 0.0, 0.0]})
    found = statistics.comparisons(scores)
    assert found is not None
    p = [1 - t / sqrt(2 + t * t) for t in (2 * sqrt(3), 11.0, 9 * sqrt(3))]
    assert found.loc["b", "c"] == pytest.approx(3 * p[2])
    assert found.loc["a", "c"] == pytest.approx(2 * p[1])
    assert found.loc["a", "b"] == pytest.approx(p[0])
    assert_matrix_of_p_values(found)


def test_too_little_for_a_test_is_none() -> None:
    two_methods, one = over_datasets({"a": [1.0, 2.0], "b": [2.0, 4.0]}), one_block({m: [1.0, 2.0] for m in "abc"})
    assert statistics.friedman(two_methods) is None
    assert statistics.nemenyi(two_methods) is None
    assert statistics.comparisons(two_methods) is not None
    assert statistics.comparisons(two_methods[two_methods["method"] == "a"]) is None
    for test in (statistics.friedman, statistics.nemenyi, statistics.wilcoxon_holm):
        assert test(one) is None
    for number in (5, 6):  # of five datasets no p can be below 0.05
        found = statistics.wilcoxon_holm(noise(3, datasets=number))
        assert (found is None) == (number == 5)


def assert_matrix_of_p_values(found: DataFrame) -> None:
    assert list(found.index) == list(found.columns)
    assert (found.to_numpy() == found.to_numpy().T).all()
    assert (np.diag(found) == 1.0).all()
    assert ((found >= 0.0) & (found <= 1.0)).all(axis=None)


# --- win rates, robustness, trade-offs


def test_win_rates_by_hand() -> None:
    scores = frame(
        {
            "a": {("x", 64): [3.0, 1.0], ("y", 64): [5.0]},
            "b": {("x", 64): [2.0, 2.0], ("y", 64): [4.0]},
            "c": {("x", 64): [2.0, 0.0], ("y", 64): [6.0]},
        }
    )
    found = statistics.win_rates(scores)
    # blocks x (two runs) and y (one) weigh alike
    assert found.loc["a", "b"] == (1 / 2 + 1) / 2
    assert found.loc["b", "a"] == (1 / 2 + 0) / 2
    assert found.loc["a", "c"] == (2 / 2 + 0) / 2
    assert found.loc["b", "c"] == ((0.5 + 1) / 2 + 0) / 2  # a tie
    assert found.loc["c", "b"] == ((0.5 + 0) / 2 + 1) / 2
    assert np.isnan(np.diag(found)).all()


def test_win_rates_of_two_methods_sum_to_one() -> None:
    scores = noise(4)
    found = statistics.win_rates(scores.assign(value=scores["value"].round()))  # with ties
    assert np.nan_to_num(found + found.T, nan=1.0) == pytest.approx(np.ones((4, 4)))
    assert found.min(axis=None) < 0.5 < found.max(axis=None)


def test_robustness_by_hand_with_ties() -> None:
    stds = DataFrame({"x": [0.1, 0.2, 0.2], "y": [0.0, 0.5, 0.4]}, index=["a", "b", "c"])
    assert statistics.robustness(stds).to_dict() == {"a": 1.0, "b": (2.5 + 3) / 2, "c": (2.5 + 2) / 2}


def test_robustness_of_the_paper_to_the_digit() -> None:
    paper = files("llpbench.report") / "paper"
    with (paper / "fine_grained.csv").open() as rows:
        scores = read_csv(rows)
    with (paper / "robustness.csv").open() as rows:
        published = read_csv(rows, index_col="method")["average_rank"]
    stds = scores.pivot(index="method", columns="dataset", values="std").drop(index="Supervised", columns="ML")
    assert list(stds.columns) == ["AD", "BA", "CA", "CR", "EL", "PA", "PB", "RO"]
    assert statistics.robustness(stds).to_dict() == published.to_dict()


@pytest.mark.parametrize("value", [nan, inf])
def test_robustness_refuses_what_has_no_spread(value: float) -> None:
    stds = DataFrame({"x": [0.1, 0.2], "y": [0.0, value]}, index=["a", "b"])
    with pytest.raises(ValueError, match="method 'b' has no finite standard deviation for 'y'"):
        statistics.robustness(stds)
    with pytest.raises(ValueError, match="no standard deviations"):
        statistics.robustness(stds[[]])


def test_pareto_front_by_hand() -> None:
    cost = Series({"dear": 9.0, "cheap": 1.0, "middle": 3.0, "beaten": 4.0, "as good": 5.0, "as cheap": 1.0})
    value = Series({"cheap": 0.5, "dear": 0.9, "middle": 0.7, "beaten": 0.6, "as good": 0.7, "as cheap": 0.4})
    # middle beats beaten in both, "as good" in cost; cheap beats "as cheap" in value
    assert statistics.pareto_front(cost, value) == ["cheap", "middle", "dear"]


def test_equal_methods_are_both_on_the_front_by_name() -> None:
    cost, value = Series({"b": 1.0, "a": 1.0, "c": 0.5}), Series({"b": 1.0, "a": 1.0, "c": 0.5})
    assert statistics.pareto_front(cost, value) == ["c", "a", "b"]
    assert statistics.pareto_front(cost[::-1], value) == ["c", "a", "b"]


def test_pareto_front_refuses_what_it_cannot_place() -> None:
    with pytest.raises(ValueError, match="the same methods"):
        statistics.pareto_front(Series({"a": 1.0}), Series({"b": 1.0}))
    with pytest.raises(ValueError, match="the same methods, each once"):
        statistics.pareto_front(Series([1.0, 2.0], index=["a", "a"]), Series({"a": 1.0}))
    for bad in (nan, inf):
        with pytest.raises(ValueError, match="method 'b' needs a finite cost and value"):
            statistics.pareto_front(Series({"a": 1.0, "b": bad}), Series({"a": 1.0, "b": 1.0}))


def test_interval_by_hand() -> None:
    # mean 2, std 1, t of 2 degrees of freedom 4.3027 (any table): 2 ± 4.3027 / sqrt(3)
    assert statistics.interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-4)
    # of one degree of freedom at 0.5 it is 1; std sqrt(2): 1 ± 1 * sqrt(2) / sqrt(2)
    assert statistics.interval([0.0, 2.0], level=0.5) == pytest.approx((0.0, 2.0))


def test_interval_of_equal_values_has_no_width() -> None:
    assert statistics.interval([0.1] * 10) == (0.1, 0.1)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_interval_of_fewer_than_two_values_is_unknown(values: list[float]) -> None:
    assert all(map(isnan, statistics.interval(values)))


def test_interval_refuses_bad_input() -> None:
    for bad in (nan, inf):
        with pytest.raises(ValueError, match="finite values"):
            statistics.interval([1.0, bad])
    with pytest.raises(ValueError, match="level=1"):
        statistics.interval([1.0, 2.0], level=1)


def test_ratio_interval_is_none_where_it_cannot_be() -> None:
    assert all(map(isnan, statistics.ratio_interval([(1.0, 2.0), (2.0, 3.0)])))
    assert all(map(isnan, statistics.ratio_interval([(1.0, -2.0), (2.0, 3.0), (2.0, 1.0), (1.0, -1.0)])))
    assert statistics.ratio_interval([(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) == pytest.approx((0.5, 0.5))


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'ray', 'scikit_posthocs', 'statsmodels', 'matplotlib'}"
    code = f"import sys, llpbench.report.statistics; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
