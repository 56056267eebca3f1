"""Statistics of comparisons: answers worked out by hand or published, paired or not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from math import isnan
from typing import Any

import numpy as np
import pytest
from factory import PROTOCOL, contents_of, fine_alone, runs
from pandas import DataFrame, read_csv
from scipy import stats

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report import statistics
from llpbench.report.comparing import compare


def noise(methods: int, *, datasets: int = 3) -> DataFrame:
    generator = np.random.default_rng(0)
    return DataFrame({f"m{i:02}": generator.normal(size=datasets) for i in range(methods)})


def intervals(blocks: DataFrame) -> list[tuple[int, int]]:
    low, high = statistics.rank_intervals(blocks)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def test_method_far_above_others_has_rank_one() -> None:
    found = intervals(noise(4, datasets=6) + np.array([0.0, 0.0, 100.0, 0.0]))
    assert found[2] == (1, 1)
    assert {low for low, _ in found[:2]} == {2}
    assert max(high for _, high in found) == 4
    assert intervals(noise(1)) == [(1, 1)]
    found = intervals(noise(5).assign(twin=noise(5)["m00"]))
    assert found[0] == found[-1], "identical methods have equal intervals"


@pytest.mark.parametrize(("level", "highest"), [(0.9, [2, 2, 3]), (0.8, [2, 2, 3]), (0.7, [1, 2, 3])])
def test_rank_intervals_match_hand_computation(
    level: float, highest: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a - b: 2, 4: mean 3, error 1, t = 3. a - c: 9, 11: t = 10. b - c: 7, 7: error 0. Of one degree of freedom t at
    # (1 - level) / 2 one-sided is 6.31 at level 0.9: only c differs significantly, from both; 3.08 at level 0.8, where
    # a and b still share both ranks; 1.96 at level 0.7 separates all
    monkeypatch.setattr(statistics, "CONFIDENCE", level)
    scores = DataFrame({"a": [10.0, 14.0], "b": [8.0, 10.0], "c": [1.0, 3.0]})
    assert [high for _, high in intervals(scores)] == highest
    assert intervals(scores)[-1] == (3, 3)


def test_differences_of_a_family_match_scipy_and_holm() -> None:
    family = {"a": [2.0, 1.4, 2.9], "b": [-1.0, 1.0, -1.0], "c": [-10.0, -10.1, -9.9], "two": [1.0, 2.0]}
    found = statistics.compared(family)
    single = {name: float(stats.ttest_1samp(family[name], 0).pvalue) for name in "abc"}
    assert [found[name].p for name in "abc"] == pytest.approx([2 * single["a"], single["b"], 3 * single["c"]])
    assert [found[name].is_significant for name in family] == [False, False, True, False]
    ends = stats.ttest_1samp(family["a"], 0).confidence_interval(0.95)
    assert (found["a"].points, found["a"].low, found["a"].high) == pytest.approx((2.1, *ends))
    assert (found["two"].points, found["two"].has_interval) == (1.5, False)


def test_equivalence_is_two_one_sided_tests() -> None:
    values = [0.4, 0.5, 0.7, 0.2, 0.6]
    found = statistics.compared({"a": values})["a"]
    sides = {"less": statistics.MARGIN, "greater": -statistics.MARGIN}
    one_sided = [stats.ttest_1samp(values, margin, alternative=side).pvalue for side, margin in sides.items()]
    assert found.p_similar == pytest.approx(max(one_sided))
    assert found.p_similar < 0.05 < statistics.compared({"a": [value + 1.5 for value in values]})["a"].p_similar


def test_differences_without_variance_are_exact() -> None:
    same, apart = (statistics.compared({"a": [gap] * 3})["a"] for gap in (0.0, 5.0))
    assert (same.is_significant, same.p_similar) == (False, 0)
    assert (apart.is_significant, apart.p_similar) == (True, 1)


def test_robustness_shares_ranks_and_weighs_datasets_equally() -> None:
    # a second task of y: ranks 2, none, 1
    stds = DataFrame({"x": [0.1, 0.2, 0.2], "y": [0.0, 0.5, 0.4], "y 256": [3.0, None, 1.0]}, index=["a", "b", "c"])
    expected = {"a": (1 + 1.5) / 2, "b": (2.5 + 3) / 2, "c": (2.5 + 1.5) / 2}
    assert statistics.robustness(stds, "xyy").to_dict() == expected


def test_robustness_matches_paper_exactly() -> None:
    paper = files("llpbench.report") / "paper"
    with (paper / "fine_grained.csv").open() as rows:
        scores = read_csv(rows)
    with (paper / "robustness.csv").open() as rows:
        published = read_csv(rows, index_col="method")["average_rank"]
    stds = scores.pivot(index="method", columns="dataset", values="std").drop(index="Supervised", columns="ML")
    assert list(stds.columns) == ["AD", "BA", "CA", "CR", "EL", "PA", "PB", "RO"]
    assert statistics.robustness(stds, [*stds.columns]).to_dict() == published.to_dict()


def test_interval_matches_hand_computation() -> None:
    # mean 2, std 1, t of 2 degrees of freedom 4.3027 (any table): 2 ± 4.3027 / sqrt(3)
    assert statistics.interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-4)
    assert statistics.interval([0.1] * 10) == (0.1, 0.1)
    for values in ([], [0.5], [0.5, 0.6]):
        assert all(map(isnan, statistics.interval(values))), "three values are needed"


MINE = runs("mine", 0.80, 0.82, 0.84)


def compared(*records: Record, names: Sequence[str] = ("dllp",)) -> list[str]:
    """Lines on what `mine` is compared with."""
    kept = fine_alone(records)
    yours = [run for run in kept if run["spec"]["method"] == "mine"]
    others = [run for run in kept if run not in yours]
    return [*compare(contents_of(*yours), contents_of(*others), rivals=names).differences]


def numbers(line: str) -> list[float]:
    """Difference and ends of its interval."""
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+", line)]


GAINS = {"a": 0.01, "b": 0.03, "c": 0.02, "d": 0.05}
SEEDS = [*MINE, *runs("dllp", 0.81, 0.82, 0.87, 0.1)]  # no run of mine has the last seed
SIZES = [*MINE, *runs("dllp", 0.81, 0.82, 0.87), *runs("mine", 0.7, 0.7, 0.7, bag_size=256)]
SIZES += runs("dllp", 0.71, 0.72, 0.76, bag_size=256)
DATASETS = runs("mine", 0.9, dataset="e")  # where the other has no run
for name, gain in GAINS.items():
    DATASETS += [*runs("dllp", 0.6, 0.7, dataset=name), *runs("mine", 0.6 + gain, 0.7 + gain, 0.1, dataset=name)]


@pytest.mark.parametrize(
    ("records", "gaps", "extent"),
    [
        (SEEDS, [-1.0, 0.0, -3.0], "3 seeds"),
        (SIZES, [-1.0, -1.0, -4.5], "3 seeds"),  # means over bag sizes
        (DATASETS, [1.0, 3.0, 2.0, 5.0], "4 datasets, 2 seeds, significantly better"),
    ],
    ids=["seeds", "bag sizes", "datasets"],
)
def test_differences_are_paired(records: list[Record], gaps: list[float], extent: str) -> None:
    (line,) = compared(*records)
    expected = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert numbers(line) == pytest.approx([sum(gaps) / len(gaps), *expected], abs=0.051)
    assert extent in line


def test_each_kind_of_bags_is_compared_and_named() -> None:
    random = [*runs("mine", 0.6, 0.62, 0.64, bagging="random"), *runs("dllp", 0.5, 0.52, 0.54, bagging="random")]
    lines = compared(*MINE, *runs("dllp", 0.81, 0.82, 0.87), *random)
    assert [line.partition(": ")[0] for line in lines] == ["Ordered bags", "Random bags"]
    assert [numbers(line)[0] for line in lines] == [-1.3, 10.0]


def test_significance_is_corrected_for_comparisons() -> None:
    others = [*runs("dllp", 0.78, 0.806, 0.811), *runs("bdc", 0.81, 0.81, 0.85), *runs("vat", 0.9, 0.921, 0.939)]
    verdicts = [line.rpartition("seeds, ")[2] for line in compared(*MINE, *others, names=["dllp", "bdc", "vat"])]
    assert verdicts[1:] == ["not significant", "significantly worse"]
    assert verdicts[0].startswith("not significant after correction for 3")


def test_two_seeds_have_no_interval() -> None:
    (line,) = compared(*MINE[:2], *runs("dllp", 0.81, 0.82))
    assert numbers(line) == [-0.5]


def test_rival_is_default_entry_of_same_protocol() -> None:
    short = {"protocol": {**PROTOCOL, "epochs": 5}}
    others: list[dict[str, Any]] = [{"encoder": "saint"}, {"params": {"hidden": 8}}, {"pretraining": "bag"}, short]
    worse = [run for facts in others for run in runs("dllp", 0.5, 0.5, 0.5, 0.5, **facts)]
    (line,) = compared(*MINE, *worse, *runs("dllp", 0.8, 0.8, 0.8))
    assert numbers(line)[0] == pytest.approx(2.0)
    (line,) = compared(*MINE, *runs("dllp", 0.5, **short))
    assert "Add it to --methods" in line
    assert numbers(compared(*MINE, *runs("gp", 0.8, encoder=None, protocol=None), names=["gp"])[0]) == [0.0]


def test_unknown_rival_is_refused() -> None:
    with pytest.raises(LLPBenchError, match=r"'dlp'.*Did you mean dllp\?"):
        compared(*MINE, *runs("dllp", 0.8), names=["dlp"])


def test_datasets_of_development_are_left_out() -> None:
    names = ["adult", "bank_marketing", *"abcd"]
    gaps = {name: 0.3 if name in ("adult", "bank_marketing") else 0.02 for name in names}
    mine = [run for name in names for run in runs("mine", 0.6, 0.6, dataset=name)]
    there = [run for name in names for run in runs("bag-gp-gbdt", *[0.6 - gaps[name]] * 2, dataset=name)]
    (line,) = compared(*mine, *there, names=["bag-gp-gbdt"])
    assert (numbers(line)[0], "4 datasets" in line, "2 datasets" in line) == (2.0, True, True)
    (line,) = compared(*mine[:2], *there[:2], names=["bag-gp-gbdt"])
    assert numbers(line)[0] == 30.0
    (line,) = compared(*mine[:4], *there[:4], names=["bag-gp-gbdt"])
    assert (numbers(line)[0], "significant" in line) == (30.0, False)
    alone = [
        run for name, value in (("mine", 0.6), ("bag-gp", 0.3)) for run in runs(name, *[value] * 3, dataset="adult")
    ]
    (line,) = compared(*alone, names=["bag-gp"])
    assert (numbers(line)[0], "significant" in line) == (30.0, False)


def test_tasks_without_a_common_seed_are_not_compared() -> None:
    small, large = (runs("mine", 0.6, 0.6, 0.6, bag_size=size) for size in (64, 256))
    there = [run for size in (64, 256) for run in runs("dllp", 0.3, 0.3, 0.3, bag_size=size)]
    (line,) = compared(*small[:2], *large[2:], *there)
    assert ("dllp" in line, "significant" in line) == (True, False)


@pytest.mark.parametrize(
    "facts", [{}, {"bagging": "column:by=day:split=bags", "bag_size": 0}, {"params": {"hidden": 8}}]
)
def test_advice_for_a_missing_run_runs_it(facts: dict[str, Any]) -> None:
    plain = {name: value for name, value in facts.items() if name != "params"}
    there = contents_of(*(run for name in ("dllp", "rot") for run in runs(name, 0.8, 0.8, 0.8, **plain)))
    mine = runs("mine", 0.7, 0.7, **facts)
    for run in mine:
        run["method"]["changed"] = facts.get("params", {})
    line = next(iter(compare(contents_of(*mine), there).ranks()))
    bags = str(facts.get("bagging", "ordered --bag-sizes 64"))
    setting = " --set mine.hidden=8" if "params" in facts else ""
    expected = f"--methods mine --datasets adult --baggings {bags} --encoders mlp --pretraining none --numbers z "
    assert f"llpbench run {expected}--epochs 300 --patience 20 --seeds 2-2{setting}" in line


def test_rank_names_tasks_that_few_methods_have_run() -> None:
    published = contents_of(*(run for name in ("dllp", "llp-vat", "rot") for run in runs(name, 0.8, 0.8)))
    mine = contents_of(*(run for size in (64, 256) for run in runs("mine", 0.7, 0.7, bag_size=size)))
    (line,) = compare(mine, published).ranks()
    assert "rank 4 of 4, mean AUC 70.00 over 1 of its 2 tasks" in line
