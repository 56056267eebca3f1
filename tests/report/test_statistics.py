"""Statistics of comparisons: answers worked out by hand or published, and what must never change an answer."""

from __future__ import annotations

from importlib.resources import files
from math import exp, isnan, sqrt

import numpy as np
import pytest
from pandas import DataFrame, Series, read_csv

from llpbench.report import statistics

Values = dict[str, dict[tuple[str, int], list[float]]]

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
    """Runs (dataset and bag size, seed) by methods: one value a seed, from 0."""
    return DataFrame(
        {
            method: {(block, seed): value for block, found in blocks.items() for seed, value in enumerate(found)}
            for method, blocks in values.items()
        }
    )


def over_datasets(values: dict[str, list[float]]) -> DataFrame:
    """Dataset means by method."""
    return DataFrame(values)


def noise(methods: int, *, datasets: int = 3) -> DataFrame:
    generator = np.random.default_rng(0)
    return DataFrame({f"m{i:02}": generator.normal(size=datasets) for i in range(methods)})


def intervals(blocks: DataFrame) -> list[tuple[int, int]]:
    low, high = statistics.rank_intervals(blocks)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def letters(blocks: DataFrame) -> dict[str, str]:
    """Of methods in the order of their means."""
    ordered = blocks[blocks.mean().sort_values(ascending=False).index]
    return dict(zip(ordered, statistics.letters(statistics.paired_p(ordered)), strict=True))


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


# --- standings


def test_a_method_far_above_has_rank_one_for_sure_and_a_letter_of_its_own() -> None:
    blocks = noise(4, datasets=6) + np.array([0.0, 0.0, 100.0, 0.0])
    found = intervals(blocks)
    assert found[2] == (1, 1)
    assert {low for low, _ in found[:2]} == {2}
    assert max(high for _, high in found) == 4
    assert letters(blocks) == {"m02": "A", "m00": "B", "m01": "B", "m03": "B"}


@pytest.mark.parametrize("others", [1, 2, 5, 20])
def test_identical_methods_have_equal_ranks_beside_any_others(others: int) -> None:
    blocks = noise(others)
    both = blocks.assign(z=blocks["m00"])
    found = intervals(both)
    assert found[0] == found[-1]
    assert letters(both)["m00"] == letters(both)["z"]
    if others == 1:
        assert (found, letters(both)) == ([(1, 2), (1, 2)], {"m00": "A", "z": "A"})


@pytest.mark.parametrize(("level", "highest"), [(0.9, [2, 2, 3]), (0.8, [2, 2, 3]), (0.7, [1, 2, 3])])
def test_rank_intervals_by_hand(level: float, highest: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    # a - b: 2, 4: mean 3, error 1, t = 3. a - c: 9, 11: t = 10. b - c: 7, 7: error 0. Of one degree of freedom t at
    # (1 - level) / 2 one-sided is 6.31 at level 0.9: only c differs significantly, from both; 3.08 at level 0.8, where
    # a and b still share both ranks; 1.96 at level 0.7 separates all
    monkeypatch.setattr(statistics, "CONFIDENCE", level)
    scores = over_datasets({"a": [10.0, 14.0], "b": [8.0, 10.0], "c": [1.0, 3.0]})
    assert [high for _, high in intervals(scores)] == highest
    assert intervals(scores)[-1] == (3, 3)


def test_letters_are_those_of_all_leaders_that_a_method_does_not_differ_from() -> None:
    # a is far above d alone; b is above d, too, but by little on one dataset; c varies a lot and differs from none
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
    assert letters(scores) == {"a": "A", "b": "ABC", "c": "ABC", "d": "B", "e": "C"}
    apart = {(one, other) for one in p for other in p if p.loc[one, other] < 0.05}
    assert apart == {(x, y) for x in "ade" for y in "ade" if x != y}


def test_letters_go_on_after_z() -> None:
    found = statistics.letters(np.eye(54))
    assert found[:2] == ["A", "B"]
    assert found[25:28] == ["Z", "a", "b"]
    assert found[51:] == ["z", "(53)", "(54)"]


def test_methods_that_never_differ_are_all_first() -> None:
    never = over_datasets({"b": [0.5, 0.5], "a": [0.5, 0.5]})
    assert (intervals(never), letters(never)) == ([(1, 2), (1, 2)], {"b": "A", "a": "A"})


def test_one_method_is_first() -> None:
    assert (intervals(noise(1)), letters(noise(1))) == ([(1, 1)], {"m00": "A"})


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


@pytest.mark.parametrize("blocks", [6, 13, 14, 20, 60])
def test_methods_that_never_differ_have_p_one_and_spoil_no_other(blocks: int) -> None:
    values = [float(i) for i in range(blocks)]
    scores = over_datasets({"a": values, "twin": values, "c": [-100.0 - i * i for i in range(blocks)]})
    wilcoxon = statistics.wilcoxon_holm(scores)
    assert wilcoxon is not None
    assert wilcoxon.loc["a", "twin"] == 1.0
    # c is always the worst: 2 / 2^n, times the 3 pairs
    expected = min(1.0, 3 * 2 / 2**blocks)
    assert wilcoxon.loc[["a", "twin"], "c"].to_list() == pytest.approx([expected, expected], abs=1e-15)
    assert_matrix_of_p_values(wilcoxon)


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
    two_methods, one = over_datasets({"a": [1.0, 2.0], "b": [2.0, 4.0]}), over_datasets({m: [1.0] for m in "abc"})
    assert statistics.friedman(two_methods) is None
    assert statistics.comparisons(two_methods) is not None
    assert statistics.comparisons(two_methods[["a"]]) is None
    for test in (statistics.friedman, statistics.wilcoxon_holm):
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
    runs = noise(4, datasets=24).round().set_index([[n // 4 for n in range(24)], [n % 4 for n in range(24)]])
    found = statistics.win_rates(runs)  # with ties
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


def test_pareto_front_by_hand() -> None:
    cost = Series({"dear": 9.0, "cheap": 1.0, "middle": 3.0, "beaten": 4.0, "as good": 5.0, "as cheap": 1.0})
    value = Series({"cheap": 0.5, "dear": 0.9, "middle": 0.7, "beaten": 0.6, "as good": 0.7, "as cheap": 0.4})
    # middle beats beaten in both, "as good" in cost; cheap beats "as cheap" in value
    assert statistics.pareto_front(cost, value) == ["cheap", "middle", "dear"]
    alike = Series({"b": 1.0, "a": 1.0, "c": 0.5})
    assert statistics.pareto_front(alike, alike) == ["c", "b", "a"], "equal ones are both ahead"


def test_interval_by_hand() -> None:
    # mean 2, std 1, t of 2 degrees of freedom 4.3027 (any table): 2 ± 4.3027 / sqrt(3)
    assert statistics.interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-4)


def test_interval_of_equal_values_has_no_width() -> None:
    assert statistics.interval([0.1] * 10) == (0.1, 0.1)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_interval_of_fewer_than_two_values_is_unknown(values: list[float]) -> None:
    assert all(map(isnan, statistics.interval(values)))


def test_ratio_interval_is_none_where_it_cannot_be() -> None:
    assert all(map(isnan, statistics.ratio_interval([(1.0, 2.0), (2.0, 3.0)])))
    assert all(map(isnan, statistics.ratio_interval([(1.0, -2.0), (2.0, 3.0), (2.0, 1.0), (1.0, -1.0)])))
    assert statistics.ratio_interval([(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) == pytest.approx((0.5, 0.5))
