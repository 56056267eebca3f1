"""Statistics of comparisons: answers worked out by hand or published, and what must never change an answer."""

from __future__ import annotations

from importlib.resources import files
from math import isnan, sqrt

import numpy as np
import pytest
from pandas import DataFrame, Series, read_csv

from llpbench.report import statistics


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


# --- standings


def test_a_method_far_above_has_rank_one_for_sure_and_a_letter_of_its_own() -> None:
    blocks = noise(4, datasets=6) + np.array([0.0, 0.0, 100.0, 0.0])
    found = intervals(blocks)
    assert found[2] == (1, 1)
    assert {low for low, _ in found[:2]} == {2}
    assert max(high for _, high in found) == 4
    assert letters(blocks) == {"m02": "A", "m00": "B", "m01": "B", "m03": "B"}
    assert (intervals(noise(1)), letters(noise(1))) == ([(1, 1)], {"m00": "A"})


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
    scores = DataFrame({"a": [10.0, 14.0], "b": [8.0, 10.0], "c": [1.0, 3.0]})
    assert [high for _, high in intervals(scores)] == highest
    assert intervals(scores)[-1] == (3, 3)


def test_letters_are_those_of_all_leaders_that_a_method_does_not_differ_from() -> None:
    # a is far above d alone; b is above d, too, but by little on one dataset; c varies a lot and differs from none
    scores = DataFrame(
        {
            "a": [9.0, 9.1, 9.0, 9.1, 9.0],
            "b": [3.0, 14.0, 8.0, 9.0, 6.0],
            "c": [20.0, -9.0, 15.0, 1.0, 6.0],
            "d": [2.0, 2.1, 2.0, 2.1, 2.0],
            "e": [0.0, 0.1, 0.0, 0.1, 0.1],
        }
    )
    p = DataFrame(statistics.paired_p(scores), scores.columns, scores.columns)
    assert letters(scores) == {"a": "A", "b": "ABC", "c": "ABC", "d": "B", "e": "C"}
    apart = {(one, other) for one in p for other in p if p.loc[one, other] < 0.05}
    assert apart == {(x, y) for x in "ade" for y in "ade" if x != y}


def test_letters_go_on_after_z() -> None:
    found = statistics.letters(np.eye(54))
    assert found[:2] == ["A", "B"]
    assert found[25:28] == ["Z", "a", "b"]
    assert found[51:] == ["z", "(53)", "(54)"]


# --- tests


def test_p_values_by_hand() -> None:
    # a - b: 1, 2, 3: t = 2 / (1 / sqrt 3) = 3.464, of 2 degrees of freedom p = 0.0742. a - c: 10, 10, 13: t = 11, p =
    # 0.0082. b - c: 9, 8, 10: t = 15.588, p = 0.0041. For 2 degrees of freedom p = 1 - t / sqrt(2 + t^2)
    scores = DataFrame({"a": [10.0, 10.0, 13.0], "b": [9.0, 8.0, 10.0], "c": [0.0, 0.0, 0.0]})
    found = statistics.paired_p(scores)
    p = [1 - t / sqrt(2 + t * t) for t in (2 * sqrt(3), 11.0, 9 * sqrt(3))]
    assert found == pytest.approx(np.array([[1, p[0], 2 * p[1]], [p[0], 1, 3 * p[2]], [2 * p[1], 3 * p[2], 1]]))


# --- robustness, trade-offs, intervals


def test_robustness_shares_ranks_and_weighs_datasets_equally() -> None:
    stds = DataFrame({"x": [0.1, 0.2, 0.2], "y": [0.0, 0.5, 0.4]}, index=["a", "b", "c"])
    assert statistics.robustness(stds, "xy").to_dict() == {"a": 1.0, "b": (2.5 + 3) / 2, "c": (2.5 + 2) / 2}
    stds["y 256"] = [3.0, None, 1.0]  # a second task of y: ranks 2, none, 1
    expected = {"a": (1 + 1.5) / 2, "b": (2.5 + 3) / 2, "c": (2.5 + 1.5) / 2}
    assert statistics.robustness(stds, "xyy").to_dict() == expected


def test_robustness_of_the_paper_to_the_digit() -> None:
    paper = files("llpbench.report") / "paper"
    with (paper / "fine_grained.csv").open() as rows:
        scores = read_csv(rows)
    with (paper / "robustness.csv").open() as rows:
        published = read_csv(rows, index_col="method")["average_rank"]
    stds = scores.pivot(index="method", columns="dataset", values="std").drop(index="Supervised", columns="ML")
    assert list(stds.columns) == ["AD", "BA", "CA", "CR", "EL", "PA", "PB", "RO"]
    assert statistics.robustness(stds, [*stds.columns]).to_dict() == published.to_dict()


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
    assert statistics.interval([0.1] * 10) == (0.1, 0.1)
    for values in ([], [0.5], [0.5, 0.6]):
        assert all(map(isnan, statistics.interval(values))), "three values are needed"


def test_ratio_interval_is_none_where_it_cannot_be() -> None:
    assert all(map(isnan, statistics.ratio_interval([(1.0, 2.0), (2.0, 3.0)])))
    assert all(map(isnan, statistics.ratio_interval([(1.0, -2.0), (2.0, 3.0), (2.0, 1.0), (1.0, -1.0)])))
    assert statistics.ratio_interval([(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]) == pytest.approx((0.5, 0.5))
