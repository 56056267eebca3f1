"""Estimates of groups: bounds, sums, intervals, and refused inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import refusal
from districts import counted, people, reloaded, silent, warned
from scipy.special import expit

from llpbench import LLPBenchError, LLPClassifier, cross_table
from llpbench.core.bags import FloatArray
from llpbench.owndata.group_estimates import NUMBERS, Groups, _bounds, _Cells, _ClassCounts, _warn_of_wide
from llpbench.owndata.logit_draws import ProcessDraws

FAST = {"most_pairs": 0, "draws": 0}
FRAME, BAGS, VOTES = people(600, 20)
COUNTS = counted(BAGS, VOTES)
NAMED, ALL = pd.Series(BAGS, name="job"), np.where(BAGS == "d03", "all", BAGS)


def gp(frame: pd.DataFrame, bags: Any, counts: Any, **given: Any) -> LLPClassifier:
    return LLPClassifier("bag-gp", params=FAST).fit(frame, bags, counts=counts, **given)


def grouped(cells: dict[tuple[int, int], int]) -> _Cells:
    """Rows of (bag, group), so many of each."""
    keys = np.array([key for key, number in cells.items() for _ in range(number)])
    return _Cells(np.bincount(keys[:, 0]), keys[:, 1], int(keys[:, 1].max()) + 1, np.ones(len(keys)))


def test_duncan_davis_bounds_match_hand_computation() -> None:
    """Bag 0: 6 women and 4 men, 7 of class. Bag 1: 2 and 8, 1 of class. Bag 2: 3 and 2, unknown."""
    rows = grouped({(0, 0): 6, (0, 1): 4, (1, 0): 2, (1, 1): 8, (2, 0): 3, (2, 1): 2})
    least, most = _bounds(rows, _ClassCounts(np.array([7.0, 1.0, np.nan])))
    assert (least.tolist(), most.tolist()) == ([3, 1, 0, 0, 0, 0], [6, 4, 1, 1, 3, 2])
    for inexact in (_ClassCounts(np.array([7.0, 1.0, 2.0]), noise=2.0), _ClassCounts(np.ones(3), of_rows=False)):
        least, most = _bounds(rows, inexact)
        assert (least.tolist(), most.tolist()) == ([0] * 6, [6, 4, 2, 8, 3, 2])


def test_draws_include_fractional_and_noisy_counts() -> None:
    rng = np.random.default_rng(0)

    def drawn(*counts: float, **given: Any) -> FloatArray:
        known = _ClassCounts(np.array(counts), **given)
        return np.stack([known.drawn(np.array([10, 10]), np.full(2, 10.0), rng) for _ in range(2000)])

    exact, noisy, sampled = drawn(2.25, np.nan), drawn(5.0, 9.0, noise=2.0), drawn(5.0, 0.0, of_rows=False)
    assert set(exact[:, 0]) == {2.0, 3.0}
    assert exact[:, 0].mean() == pytest.approx(2.25, abs=0.05)
    assert np.isnan(exact[:, 1]).all()
    assert (noisy[:, 0].std(), noisy.max()) == (pytest.approx(2.0, abs=0.2), 10)
    assert sampled[:, 0].std() == pytest.approx(np.sqrt(2.5), abs=0.15)
    assert (sampled[:, 1] == 0).all()


@pytest.fixture(scope="module")
def fitted() -> LLPClassifier:
    return gp(FRAME, BAGS, COUNTS)


def test_groups_sum_to_bag_and_total(fitted: LLPClassifier) -> None:
    found = fitted.estimate(FRAME, BAGS, "job")
    assert list(found.columns) == ["bag", "job", "class", *NUMBERS]
    overall, inside = found[found["bag"] == "all"], found[found["bag"] != "all"]
    assert np.allclose(inside.groupby(["bag", "class"])["count"].sum().unstack(), COUNTS, atol=1e-6)
    by_group = inside.groupby(["job", "class"], dropna=False)["count"].sum()
    assert np.allclose(overall.set_index(["job", "class"])["count"].sort_index(), by_group.sort_index())
    assert overall.groupby("class")["rows"].sum().tolist() == [600, 600]
    expected = fitted.disaggregate(FRAME, BAGS)[FRAME["job"] == "x", 1].sum()
    assert overall[(overall["job"] == "x") & (overall["class"] == 1)]["count"].item() == pytest.approx(expected)


def test_intervals_contain_estimate_within_bounds(fitted: LLPClassifier) -> None:
    found = fitted.estimate(FRAME, BAGS, ["owns", "job"])
    for what in ("count", "share"):
        ends = found[[f"{what}_min", f"{what}_lower", what, f"{what}_upper", f"{what}_max"]].to_numpy()
        assert (np.diff(ends, axis=1) >= -1e-9).all()
    assert found["share_upper"].max() <= 1
    assert ((found["count_upper"] - found["count_lower"]) > 0).mean() > 0.5
    owners = fitted.estimate(FRAME, BAGS, "owns").groupby(["bag", "class"])
    opposite = (owners["count_lower"].first() + owners["count_upper"].last()).drop("all").unstack()
    assert np.allclose(opposite, COUNTS), "every draw of two groups has the count of their bag"


def test_pure_bag_is_certain_and_suppressed_has_no_bounds() -> None:
    frame, bags, votes = people(600, 20, classes=3)
    votes = np.where(bags == "d03", 1, np.where(bags == "d04", 0, votes))
    counts = counted(bags, votes).drop("d05").reindex(np.unique(bags))
    found = gp(frame, bags, counts).estimate(frame, bags, "owns")
    assert np.allclose(found.groupby(["bag", "owns"])["share"].sum(), 1)
    unknown = found[found["bag"] == "d05"]
    assert (unknown["count_min"].eq(0) & unknown["count_max"].eq(unknown["rows"])).all()
    assert (unknown["count_upper"] > unknown["count_lower"]).all()
    certain = found[found["bag"].isin(["d03", "d04"])]
    assert (certain["count_lower"] == certain["count_upper"]).all()
    assert (certain["share"] == (certain["class"] == np.where(certain["bag"] == "d03", 1, 0))).all()


@pytest.mark.parametrize("sampled", [False, True], ids=["all rows", "sampled rows"])
def test_estimates_repeat_with_seed_and_after_saving(sampled: bool, tmp_path: Path) -> None:
    model = gp(FRAME, BAGS, COUNTS * (3 if sampled else 1), sampled=sampled)
    found, again = (each.estimate(FRAME, BAGS, "job") for each in (model, reloaded(model, tmp_path)))
    pd.testing.assert_frame_equal(found, again, rtol=1e-6)
    assert (found["count_min"] == 0).all() == sampled, "rows that are a sample have no bounds"
    assert (found["count_max"] == found["rows"]).all() == sampled


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"bags": NAMED, "by": "job"}, "'job'"),
        ({"by": "land"}, "land"),
        ({"by": ["job", "job"]}, "once"),
        ({"by": ["a", "b"]}, "'a'"),
        ({"by": pd.concat([FRAME["job"], FRAME["job"]], axis=1)}, "once"),
        ({"by": pd.DataFrame({1: BAGS, "1": BAGS})}, "once"),
        ({"by": np.zeros(3)}, "600 rows, got 3"),
        ({"by": np.zeros((600, 2))}, "by must be"),
        ({"by": pd.Series(range(600), name="count")}, "count"),
        ({"by": pd.Series([["a"]] * 600)}, "'list'"),
        ({"by": "job", "among": [0]}, "two classes"),
        ({"by": "job", "among": [0, 2]}, "two classes"),
        ({"by": "job", "among": "yes"}, "two classes"),
    ],
)
def test_impossible_estimates_are_refused(given: dict[str, Any], told: str, fitted: LLPClassifier) -> None:
    with pytest.raises(LLPBenchError, match=told):
        fitted.estimate(**{"X": FRAME, "bags": BAGS} | given)


def test_models_that_cannot_estimate_are_refused() -> None:
    both = pd.DataFrame({"land": ALL, "zone": np.where(ALL == "all", "all", "east")})
    for method, bags, told in ("bag-mean-linear", BAGS, "bag-gp"), ("bag-gp", ALL, "'all'"), ("bag-gp", both, "'all'"):
        counts = pd.Series(VOTES).groupby([column.to_numpy() for _, column in pd.DataFrame(bags).items()]).sum()
        model = LLPClassifier(method).fit(FRAME, bags, counts=counts)
        with refusal(told):
            model.estimate(FRAME, bags, "job")


def test_groups_whose_counts_are_known_are_named() -> None:
    job = FRAME["job"].fillna("z")
    model = gp(FRAME, [BAGS, job], [COUNTS, counted(job, VOTES)])
    with warned("known groups", match="3 groups are bags of fit"):
        model.estimate(FRAME, BAGS, job)
    with silent("known groups"):
        model.estimate(FRAME, BAGS, pd.Series(BAGS, name="group"))


def test_intervals_cover_simulated_truth() -> None:
    """Districts with effects of their own; groups of known effects."""
    inside, widths = list[bool](), list[float]()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        district = np.repeat(np.arange(40), 30)
        old = rng.random(1200) < expit(rng.normal(0, 1, 40))[district]
        frame = pd.DataFrame({"old": old, "sex": rng.choice(["f", "m"], 1200)})
        logits = -0.5 + 1.2 * old + 0.6 * (frame["sex"] == "f") + rng.normal(0, 0.3, 40)[district]
        label = (rng.random(1200) < expit(logits)).astype(int)
        model = LLPClassifier("bag-gp", params=FAST, random_state=seed)
        found = model.fit(frame, district, counts=counted(district, label)).estimate(frame, district, ["old", "sex"])
        rows = frame.assign(bag=district, label=label)
        truth = pd.concat([rows.assign(bag="all"), rows]).groupby(["bag", "old", "sex"])["label"].sum()
        one = found[(found["class"] == 1) & (found["count_max"] > found["count_min"])]
        true = truth.reindex(pd.MultiIndex.from_frame(one[["bag", "old", "sex"]])).to_numpy()
        inside += ((one["count_lower"] <= true) & (true <= one["count_upper"])).tolist()
        wide = one["rows"] >= 10
        widths += ((one["share_upper"] - one["share_lower"]) / (one["share_max"] - one["share_min"]))[wide].tolist()
    assert np.mean(inside) > 0.92
    assert np.mean(widths) < 0.8


def test_uninformative_groups_are_warned_of() -> None:
    rng = np.random.default_rng(0)
    bags, sex = np.repeat(np.arange(8), 100), np.tile(["f", "m"], 400)
    model = gp(frame := pd.DataFrame({"age": rng.normal(size=800)}), bags, counted(bags, rng.integers(0, 2, 800)))
    with warned("uncertain groups", match="rare"):
        model.estimate(frame, bags, pd.Series(np.where(np.arange(800) % 100 == 0, "rare", sex), name="sex"))
    found = pd.DataFrame({"sex": ["f", "m", "rare", "sure"], "count_max": [80, 80, 80, 15]})
    with warned("uncertain groups", match=r"1 group \(rare\)"):
        _warn_of_wide(found.assign(rows=100, count_min=0, count_lower=0, count_upper=[60, 63, 65, 15]), ["sex"])


def test_groups_may_be_columns_or_labels() -> None:
    grouped = pd.DataFrame({"sex": ["f", "m", None, "f"], "age": [1, 2, 1, 1]})
    found = Groups.read(["sex", "age"], grouped)
    assert (len(found.labels), found.of_row[0]) == (3, found.of_row[3])
    assert Groups.read(("a", "b", "a", "b"), grouped).labels["group"].tolist() == ["a", "b"]
    assert Groups.read(pd.Series([3, 3, 1, 2], name="zone"), grouped).labels["zone"].tolist() == [1, 2, 3]
    ages = pd.Series(pd.Categorical(["old", "young", "old", "old"], ["young", "middle", "old"]), name="band")
    assert Groups.read(ages, grouped).labels["band"].tolist() == ["young", "old"]


@pytest.mark.parametrize("bags", [8, 500], ids="{} bags".format)
def test_draws_have_posterior_variance(bags: int) -> None:
    """With fewer bags than features, and with more: the closed form is that of the effects of features."""
    frame, district, votes = people(1500, bags)
    draws = ProcessDraws.of(gp(frame[["age", "owns"]], district, counted(district, votes))._model.predictor)
    assert draws is not None
    process, observed = draws.process, draws.process.observed[0]
    weights = draws._weights(0, 4000, np.random.default_rng(0))[1:]
    widths = [len(part) for part in process.coefficients[0]]
    design = np.random.default_rng(1).normal(size=(4, len(weights)))
    expected = observed.variance()(design * np.sqrt(np.repeat(observed.scales, widths)))
    assert (design @ weights).var(axis=1) == pytest.approx(expected, rel=0.15)


def test_estimates_of_one_category_are_those_of_its_table() -> None:
    rng = np.random.default_rng(0)
    zone = np.repeat(np.arange(30), 60)
    old = rng.random(1800) < expit(rng.normal(0, 1.2, 30))[zone]
    label = (rng.random(1800) < np.where(old, 0.7, 0.3)).astype(int)
    frame, counts = pd.DataFrame({"old": old.astype(str)}), counted(zone, label)
    table = cross_table(counted(zone, frame["old"]).to_numpy(), counts.to_numpy())
    found = LLPClassifier("bag-mean-linear").fit(frame, zone, counts=counts).estimate(frame, zone, "old")
    assert np.allclose(found["share"][:4], table.shares.to_numpy().ravel(), atol=1e-6)
    assert found["rows"].iloc[4:].sum() == 2 * 1800
    one = found[(found["bag"] != "all") & (found["class"] == 1)]
    assert np.allclose(one.groupby("bag")["count"].sum(), counts[1], atol=1e-3)
    true = counted([zone, frame["old"]], label)[1].reindex(pd.MultiIndex.from_frame(one[["bag", "old"]])).to_numpy()
    assert ((one["count_lower"] <= true) & (true <= one["count_upper"])).mean() > 0.93


def test_bags_of_hundreds_and_groups_that_are_half_of_every_bag_are_estimated() -> None:
    bag, row = np.repeat(np.arange(8), 100), np.arange(800) % 100
    for group in (row // 10 <= bag) * 1, np.where(row < 50, 0, np.where(row < 60 + 4 * bag, 1, 2)):
        frame, counts = pd.DataFrame({"group": group}), counted(bag, row % 7 < 2 + 3 * (group == 0))
        found = LLPClassifier("bag-mean-linear").fit(frame, bag, counts=counts).estimate(frame, bag, "group")
        assert found.query("bag == 'all' and `class`")["rows"].tolist() == np.bincount(group).tolist()


def test_curved_shares_are_warned_of_by_class() -> None:
    bag, (one, other) = np.repeat(np.arange(40), 300), np.random.default_rng(0).random((2, 12_000))
    frame = pd.DataFrame({"old": one < bag / 40})
    votes = np.where(other < np.where(frame["old"], 1 - bag / 40, bag / 40), "yes", "no")
    model = LLPClassifier("bag-mean-linear").fit(frame, bag, counts=counted(bag, votes))
    with warned("confounded precincts", match="^(?!.*(precinct|covariate)).*bags.*'no'"):
        model.estimate(frame, bag, "old")


@pytest.mark.parametrize("weight", [2.0, 1.1], ids=["whole", "rounded"])
def test_group_without_weight_is_left_out(weight: float) -> None:
    group = pd.Series(np.where(np.arange(600) < 3, "empty", np.where(FRAME["owns"], "owns", "rents")), name="group")
    weights = np.where(group == "empty", 0.0, weight)
    counts = pd.DataFrame({label: weights * (label == VOTES) for label in (0, 1)}).groupby(BAGS).sum()
    found = gp(FRAME, BAGS, counts, sample_weight=weights).estimate(FRAME, BAGS, group, sample_weight=weights)
    assert {*found["group"]} == {"owns", "rents"}
    assert found["count"][:4].sum() == pytest.approx(597 * weight)


@pytest.mark.parametrize("few", [True, False], ids=["table of categories", "draws"])
def test_estimates_of_fractional_weights_are_exact(few: bool) -> None:
    """Also in a bag of less than a person, and for groups that are a small part of a bag."""
    weights = np.where(BAGS == "d00", 0.013, np.where(FRAME["age"] > 60, 0.1, 2.03))
    group = pd.Series(np.where(FRAME["owns"], "a", "b") if few else FRAME["job"].fillna("z"), name="group")
    sums = pd.Series(weights).groupby([BAGS, VOTES]).sum().unstack(fill_value=0.0)
    model = gp(group.to_frame() if few else FRAME, BAGS, sums, sample_weight=weights)
    found = model.estimate(group.to_frame() if few else FRAME, BAGS, group, sample_weight=weights)
    cells = found[found["bag"] != "all"].pivot(index=["bag", "group"], columns="class")
    people = pd.Series(weights).groupby([BAGS, group.to_numpy()]).sum()
    counts, rows = sums.loc[cells.index.get_level_values(0)].to_numpy(), people.to_numpy()[:, None]
    assert np.allclose(cells["count"].groupby("bag").sum(), sums, rtol=1e-5)
    assert np.allclose(cells["rows"], rows)
    assert np.allclose(cells["count_max"], np.minimum(counts, rows))
    assert np.allclose(cells["count_min"], np.maximum(rows - counts[:, ::-1], 0.0))
    assert np.allclose(cells["count"], cells["share"] * cells["rows"])


@pytest.mark.parametrize("few", [True, False], ids=["table of categories", "draws"])
def test_shares_among_some_classes_cover_the_truth(few: bool) -> None:
    rng = np.random.default_rng(1)
    place, age = np.repeat(np.arange(30), 60), rng.normal(45, 15, 1800)
    woman, zone = rng.random(1800) < expit(rng.normal(0, 1, 30))[place], place.astype(str)
    chance = np.exp(np.column_stack([0.8 * woman + 0.03 * (age - 45), -0.5 * woman, np.zeros(1800)]))
    choice = (rng.random((1800, 1)) > (chance / chance.sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame({"woman": woman.astype(str)}).assign(**({} if few else {"age": age}))
    voted = np.array(["ann", "bob", "nobody"])[choice]
    model = gp(frame, zone, pd.crosstab(zone, voted))
    found = model.estimate(frame, zone, "woman", among=["ann", "bob"])
    assert set(found["class"]) == {"ann", "bob"}
    assert np.allclose(found.groupby(["bag", "woman"])["share"].sum(), 1.0)
    every = model.estimate(frame, zone, "woman")
    assert np.allclose(found["count"], every[every["class"] != "nobody"]["count"])
    rows = pd.DataFrame({"bag": zone, "woman": frame["woman"], "class": voted}).query("`class` != 'nobody'")
    true = pd.concat([rows.assign(bag="all"), rows]).groupby(["bag", "woman"])["class"].value_counts(normalize=True)
    true = true.reindex(pd.MultiIndex.from_frame(found[["bag", "woman", "class"]]), fill_value=0.0).to_numpy()
    assert found["share_min"].to_numpy() == pytest.approx(np.minimum(found["share_min"], true))
    assert found["share_max"].to_numpy() == pytest.approx(np.maximum(found["share_max"], true))
    assert ((found["share_lower"] <= true + 1e-9) & (true <= found["share_upper"] + 1e-9)).mean() > 0.93
