"""Inputs that once gave a wrong model without a word: now they are read right, refused, or named in a warning."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from districts import counted, people, silent, warned

from llpbench import LLPClassifier, choose
from llpbench.core.errors import DataError, LLPBenchError
from llpbench.data.bag_tables import near_names
from llpbench.data.reading_bags import _require_clear_order
from llpbench.owndata.columns import _number_range

Data = tuple[pd.DataFrame, "pd.Series[Any]", pd.DataFrame, Any]


@pytest.fixture
def data() -> Data:
    """Rows, their bags, counts by bag and the label of each row."""
    frame, bags, votes = people(400, 20)
    frame = frame.assign(town=frame["town"].astype(object).fillna("C"))
    return frame, pd.Series(bags, name="district"), counted(bags, votes).set_axis(["no", "yes"], axis="columns"), votes


def ridge(X: Any, bags: Any, **given: Any) -> LLPClassifier:  # noqa: N803
    return LLPClassifier("bag-mean-linear").fit(X, bags, **given)


def test_foreign_frames_match_columns_by_name(data: Data) -> None:
    frame, bags, counts, _ = data
    plain = ridge(frame, bags, counts=counts)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    model = ridge(table, pa.chunked_array([pa.array(bags)]), counts=counts)
    assert list(model.feature_names_in_) == [*frame.columns]
    reordered = table.select([*frame.columns[::-1]])
    assert np.allclose(model.predict_proba(reordered), plain.predict_proba(frame))


@pytest.mark.parametrize("argument", ["bags", "sample_weight", "by"])
def test_overlapping_reordered_indexes_are_refused(argument: str, data: Data) -> None:
    frame, bags, counts, _ = data
    shifted = pd.RangeIndex(5, 405)
    given: dict[str, Any] = {"bags": bags, "sample_weight": pd.Series(np.ones(400)), "by": pd.Series(["a", "b"] * 200)}
    column = given[argument].set_axis(shifted)
    model = ridge(frame, bags, counts=counts)
    call, given = (model.estimate, {}) if argument == "by" else (ridge, {"counts": counts})
    with pytest.raises(LLPBenchError, match=f"^{argument} and X have different indexes"):
        call(frame, **({"bags": bags} | given | {argument: column}))
    foreign = bags.set_axis([f"row {row}" for row in range(400)])
    assert np.array_equal(ridge(frame, foreign, counts=counts).predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize("argument", ["counts", "proportions", "sizes", "time"])
def test_arrays_for_ambiguously_ordered_bags_are_refused(argument: str, data: Data) -> None:
    frame, bags, counts, _ = data
    names = bags.rank(method="dense").astype(int).map("P{}".format)
    order = np.argsort(list(names.unique()))  # the rows are in the order of numbers
    assert (np.diff(order) < 0).any()
    by_name = counts.set_axis(sorted(names.unique(), key=lambda name: int(name[1:])))
    given: dict[str, Any] = {"counts": by_name}
    if argument == "proportions":
        given = {"proportions": (by_name["yes"] / by_name.sum(axis=1)).tolist()}
    elif argument == "counts":
        given = {"counts": by_name.to_numpy()}
    else:
        given[argument] = by_name.sum(axis=1).tolist()
    call: Any = partial(choose, progress=False) if argument == "time" else ridge
    with pytest.raises(LLPBenchError, match=rf"^{argument} without names .*'P1', 'P10', "):
        call(frame, names, **given)


@pytest.mark.parametrize(
    ("names", "appearing"),
    [
        (["Aby", "Bor", "Cit"], [1, 0, 2]),
        (["25.01.2024", "26.01.2024", "01.02.2024"], [1, 2, 0]),
        ([("S0", "P0"), ("S0", "P4"), ("S1", "P1")], [0, 2, 1]),
    ],
)
def test_bag_orders_are_ambiguous_unless_texts_appear_sorted(names: list[Any], appearing: list[int]) -> None:
    names.sort()
    with pytest.raises(LLPBenchError):
        _require_clear_order("counts", names, np.array(appearing))
    _require_clear_order("counts", names, np.array([0, 0, 1, 2, -1]))
    _require_clear_order("counts", [1, 2, 10], np.array(appearing))


@pytest.mark.parametrize("values", ["classes", "numbers"])
def test_label_among_features_is_warned_of(values: str, data: Data) -> None:
    frame, bags, counts, votes = data
    label = np.where(votes, "yes", "no") if values == "classes" else votes.astype(int)
    with warned("label", match="column 'vote'"):
        ridge(frame.assign(vote=label), bags, counts=counts)
    with silent("label"):
        answers = np.where(np.arange(400) % 3, "no", "yes")  # the names of classes, but other shares
        nearly = np.where((votes + (np.arange(400) % 9 == 0)) % 2, "high", "low")  # no names of classes
        ridge(frame.assign(coin=np.arange(400) % 2, answer=answers, nearly=nearly), bags, counts=counts)


@pytest.mark.parametrize(("errors", "gaps", "refused"), [(0.03, 0.0, 0.0), (0.0, 0.15, 0.0), (0.0, 0.0, 0.05)])
@pytest.mark.parametrize("names", [[0.0, 1.0], ["Nein", "Ja"]])
def test_label_with_errors_and_gaps_is_warned_of(
    errors: float, gaps: float, refused: float, names: list[Any], data: Data
) -> None:
    frame, bags, counts, votes = data
    rng = np.random.default_rng(0)
    answer = pd.Series(np.array(names)[np.where(rng.random(400) < errors, 1 - votes, votes)]).mask(
        rng.random(400) < gaps
    )
    answer = answer.mask(rng.random(400) < refused, 9.0 if names[0] == 0 else "refused")
    with warned("label", match=r"column 'vote' .*rows\)"):
        ridge(frame.assign(vote=answer), bags, counts=counts)
    with silent("label"):
        ridge(frame.assign(vote=rng.permutation(answer)), bags, counts=counts)


def test_shifted_numbers_of_bags_are_named(data: Data) -> None:
    frame, bags, counts, _ = data
    with pytest.raises(LLPBenchError, match=r"\(20\).*\(0\).*1 lower") as error:
        ridge(frame, bags.rank(method="dense").astype(int), counts=counts.reset_index(drop=True))
    assert "drop" not in str(error.value)


def test_classes_must_differ_by_more_than_capitals(data: Data) -> None:
    frame, bags, counts, _ = data
    long = counts.rename_axis("district").set_axis(["no", " NO"], axis="columns").stack()
    with pytest.raises(LLPBenchError, match="'no'"):
        ridge(frame, bags, counts=long)


@pytest.mark.parametrize("given", ["sampled", "as_shares"])
def test_weights_among_features_are_refused(given: str, data: Data) -> None:
    frame, bags, _, votes = data
    people = 1 + np.arange(400) % 7 + 20 * votes
    table = pd.crosstab(bags, votes, people, aggfunc="sum").fillna(0)
    with pytest.raises(LLPBenchError, match=f"'people'.*{given}"):
        ridge(frame.assign(people=people), bags, counts=table, **{given: True})


@pytest.mark.parametrize("given", [{}, {"sampled": True}, {"as_shares": True}])
def test_total_column_is_not_a_class(given: dict[str, Any], data: Data) -> None:
    frame, bags, counts, _ = data
    total = pd.DataFrame({"yes": counts["yes"], "tests": counts.sum(axis=1)})
    with pytest.raises(LLPBenchError, match=r"^class 'tests' is the number of rows of every bag"):
        ridge(frame, bags, counts=total, **given)
    with pytest.raises(LLPBenchError, match=r"^class 'tests' is the sum of the other classes"):
        ridge(
            frame.iloc[::2],
            bags.iloc[::2],
            counts=counts.assign(tests=counts.sum(axis=1)),
            **(given or {"sampled": True}),
        )
    equal = counts.assign(no=10, yes=10)
    assert (ridge(frame, bags, counts=equal, as_shares=True).bag_counts_ > 0).all()


@pytest.mark.parametrize("given", [{}, {"sampled": True}, {"as_shares": True}])
@pytest.mark.parametrize("classes", [["yes"], ["no", "yes"]])
def test_total_with_errors_is_not_a_class(classes: list[str], given: dict[str, Any], data: Data) -> None:
    frame, bags, counts, _ = data
    total = counts.sum(axis=1) + (np.arange(20) == 3)
    with pytest.raises(LLPBenchError, match=r"^class 'tests' .*nearly every bag"):
        ridge(frame, bags, counts=counts[classes].assign(tests=total), **given)
    large = counts[["no", "yes"]].assign(no=counts["no"] + 200, tests=total + 200 + np.arange(20) % 3 - 1)
    with pytest.raises(LLPBenchError, match=r"^class 'tests' is the sum"):
        ridge(frame, bags, counts=large, **given)


def test_probable_total_is_warned_of(data: Data) -> None:
    frame, bags, counts, _ = data
    registered = 20 * counts.sum(axis=1) + np.arange(20)
    for table in (
        pd.DataFrame({"votes_yes": 20 * counts["yes"], "registered": registered}),
        (20 * counts).assign(people=registered),
    ):
        with warned("total", match=f"class '{table.columns[-1]}'"):
            ridge(frame, bags, counts=table, sampled=True)
    with silent("total"):
        ridge(frame, bags, counts=20 * counts[["yes"]], sampled=True, sizes=registered)
        rare = pd.DataFrame({"none": 20 * counts.sum(axis=1), "some": counts["yes"], "other": 1})
        ridge(frame, bags, counts=rare, sampled=True)


def test_several_missing_codes_are_found() -> None:
    usual = np.random.default_rng(0).normal(50, 10, 820)
    for one, other in ((998.0, 999.0), (-666666666.0, -222222222.0), (-9999.0, 9999.0)):
        marks = [one] * 100 + [other] * 80
        values = np.concatenate([usual, marks])
        found = _number_range(values)
        assert found.far == 180
        assert (found.low, found.high) == (usual.min(), usual.max())
        assert np.isnan(found(values)[820:]).all()


def test_zeros_are_not_missing_codes() -> None:
    rng = np.random.default_rng(0)
    for amounts in (rng.uniform(1, 100, 600), rng.lognormal(3, 1.5, 600)):
        assert _number_range(np.concatenate([np.zeros(400), amounts])).far == 0


def test_groupings_with_different_totals_are_named(data: Data) -> None:
    frame, bags, counts, votes = data
    town = frame["town"].astype(str)
    by_town = pd.DataFrame({"no": (1 - votes), "yes": votes}).groupby(town.to_numpy()).sum()
    with silent("disagreeing groupings"):
        ridge(frame, [bags, town], counts=[counts, by_town])
    with warned("disagreeing groupings", match="'no' add up to"):
        ridge(frame, [bags, town], counts=[counts, by_town + np.outer(np.arange(len(by_town)) == 0, [5, -5])])
    moved = counts + np.outer((np.arange(20) == 0) * 1.0 - (np.arange(20) == 19), [5, -5])
    with warned("disagreeing groupings", match="in bag 'north' is"):
        region = np.where(bags < "d10", "north", "south")
        ridge(
            frame, [bags, region], counts=[counts, moved.groupby(np.where(moved.index < "d10", "north", "south")).sum()]
        )


def test_estimates_name_groups_whose_counts_are_known(data: Data) -> None:
    frame, bags, counts, votes = data
    town = frame["town"].astype(str)
    by_town = pd.DataFrame({"no": (1 - votes), "yes": votes}).groupby(town.to_numpy()).sum()
    model = LLPClassifier("bag-gp", params={"draws": 0}).fit(
        frame.drop(columns="town"), [bags, town], counts=[counts, by_town]
    )
    rows = frame.drop(columns="town")
    with warned("known groups", match=f"{len(by_town)} groups are bags of fit"):
        model.estimate(rows, bags, town)
    with silent("known groups"):
        model.estimate(rows, bags, bags.rename("group"))


def test_noise_above_bag_sizes_is_named(data: Data) -> None:
    frame, bags, counts, _ = data
    with warned("large noise", match="deviation of 500"):
        ridge(frame, bags, counts=counts, noise=500.0)
    with silent("large noise"):
        ridge(frame, bags, counts=counts, noise=2.0)


def test_cells_with_lists_are_refused(data: Data) -> None:
    frame, bags, counts, _ = data
    with pytest.raises(DataError, match="'embedding' is of type list"):
        ridge(frame.assign(embedding=[[0.1, 0.2], [0.3]] * (len(frame) // 2)), bags, counts=counts)


def test_bag_with_the_name_of_the_total_is_refused_in_estimates(data: Data) -> None:
    frame, bags, counts, _ = data
    bags = bags.replace("d03", "all")
    model = LLPClassifier("bag-gp", params={"draws": 0}).fit(frame, bags, counts=counts.rename({"d03": "all"}))
    with pytest.raises(LLPBenchError, match="'all'"):
        model.estimate(frame, bags, by="town")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("01", "1"),
        ("Mt Zion 3", "Mt. Zion 3"),
        ("Saint Louis", "St. Louis"),
        ("Zürich", "ZURICH"),
        (("7", "a"), (7, "A")),
        (pd.Timestamp("2024-01-31"), "2024-01-31"),
    ],
)
def test_near_names_are_found(name: Any, other: Any) -> None:
    assert near_names(["new", name], ["old", other]) == f"{name!r} is nearly {other!r}"


def test_different_names_are_not_near() -> None:
    assert near_names(["D1", "2016-11", "east"], ["D2", "2016-01", "west"]) == ""


@pytest.mark.parametrize(
    ("unit", "noise", "at_random"), [(5, "1.44", False), (10, "2.89", False), (3, "1.15", True), (5, "2", True)]
)
def test_rounded_counts_name_their_noise(unit: int, noise: str, at_random: bool, data: Data) -> None:
    frame, bags, counts, _ = data
    up = np.random.default_rng(0).random(counts.shape) if at_random else 0.5
    rounded = np.floor(counts / unit + up) * unit
    with pytest.raises(LLPBenchError, match=f"rounded to {unit}.*{noise}"):
        ridge(frame, bags, counts=rounded)
    assert ridge(frame, bags, counts=rounded, noise=float(noise)).bag_counts_.shape == counts.shape


def test_rest_of_the_rows_becomes_a_class(data: Data) -> None:
    frame, bags, counts, _ = data
    whole = ridge(frame, bags, counts=counts)
    for given in ({}, {"classes": ["yes"], "unmatched": "drop"}):
        table = counts[["yes"]] if not given else counts.rename(columns={"no": "other"})
        rest = ridge(frame, bags, counts=table, rest_as="no", **given)
        assert [*rest.classes_] == ["no", "yes"]
        assert np.array_equal(rest.bag_counts_, whole.bag_counts_)
    ranges = counts["yes"].astype(object).where(counts["yes"] > counts["yes"].min(), "1-9")
    for name, table in (("no", counts), (" ", counts[["yes"]]), ("no", counts["yes"].to_dict()), ("no", ranges)):
        with pytest.raises(LLPBenchError, match="rest_as"):
            ridge(frame, bags, counts=table, rest_as=name)
