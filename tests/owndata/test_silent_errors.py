"""Inputs that once gave a wrong model without a word: now they are read right, refused, or named in a warning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bench import refusal
from districts import counted, people, silent, warned

from llpbench import LLPClassifier, choose
from llpbench.data.bag_tables import near_names
from llpbench.data.reading_bags import _require_clear_order

FRAME, _BAGS, VOTES = people(400, 20)
FRAME["town"] = FRAME["town"].astype(object).fillna("C")
BAGS = pd.Series(_BAGS, name="district")
NAMES = np.array(["no", "yes"])[VOTES]
COUNTS, BY_TOWN = counted(BAGS, NAMES), counted(FRAME["town"], NAMES)
SUMS = COUNTS.sum(axis=1)


def ridge(**given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(**{"X": FRAME, "bags": BAGS, "counts": COUNTS} | given)


def test_foreign_frames_match_columns_by_name() -> None:
    plain, table = ridge(), pa.Table.from_pandas(FRAME, preserve_index=False)
    model = ridge(X=table, bags=pa.chunked_array([pa.array(BAGS)]))
    assert list(model.feature_names_in_) == [*FRAME.columns]
    assert np.allclose(model.predict_proba(table.select([*FRAME.columns[::-1]])), plain.predict_proba(FRAME))


@pytest.mark.parametrize("argument", ["bags", "sample_weight", "by"])
def test_overlapping_reordered_indexes_are_refused(argument: str) -> None:
    column = (pd.Series(np.ones(400)) if argument == "sample_weight" else BAGS).set_axis(pd.RangeIndex(5, 405))
    model = ridge(bags=BAGS.set_axis([f"row {row}" for row in range(400)]))  # of another kind: in the order of rows
    assert np.array_equal(model.predict_proba(FRAME), ridge().predict_proba(FRAME))
    call: Any = model.estimate if argument == "by" else ridge
    with refusal(f"^{argument} and X have different indexes: entry 0 is 5 in {argument} and 0 in X"):
        call(**{"X": FRAME, "bags": BAGS} | {argument: column})


@pytest.mark.parametrize("argument", ["counts", "proportions", "sizes", "time"])
def test_arrays_for_ambiguously_ordered_bags_are_refused(argument: str) -> None:
    numbers = BAGS.rank(method="dense").astype(int)  # the rows are in their order
    by_name = COUNTS.set_axis([f"P{number}" for number in range(1, 21)])
    given: dict[str, Any] = {"X": FRAME, "bags": numbers.map("P{}".format), "counts": by_name}
    given[argument] = by_name.to_numpy() if argument == "counts" else (by_name["yes"] / by_name.sum(axis=1)).tolist()
    if argument == "proportions":
        del given["counts"]
    call: Any = choose if argument == "time" else LLPClassifier("bag-mean-linear").fit
    with refusal(rf"^{argument} without names .*'P1', 'P10', "):
        call(**given)
    with refusal(r"\(20\).*\(0\).*1 lower") as error:
        ridge(bags=numbers, counts=COUNTS.reset_index(drop=True))
    assert "drop" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "appearing"),
    [
        (["Aby", "Bor", "Cit"], [1, 0, 2]),
        (["01.02.2024", "25.01.2024", "26.01.2024"], [1, 2, 0]),
        ([("S0", "P0"), ("S0", "P4"), ("S1", "P1")], [0, 2, 1]),
    ],
)
def test_bag_orders_are_ambiguous_unless_texts_appear_sorted(names: list[Any], appearing: list[int]) -> None:
    with refusal("counts"):
        _require_clear_order("counts", names, np.array(appearing))
    _require_clear_order("counts", names, np.array([0, 0, 1, 2, -1]))
    _require_clear_order("counts", [1, 2, 10], np.array(appearing))


@pytest.mark.parametrize("names", [[0.0, 1.0], ["no", "yes"], ["Nein", "Ja"]], ids=["numbers", "classes", "texts"])
@pytest.mark.parametrize(("errors", "gaps", "refused"), [(0.0, 0.0, 0.0), (0.03, 0, 0), (0, 0.15, 0), (0, 0, 0.05)])
def test_label_among_features_is_warned_of(names: list[Any], errors: float, gaps: float, refused: float) -> None:
    rng, row = np.random.default_rng(0), np.arange(400)
    answer = pd.Series(np.array(names)[np.where(rng.random(400) < errors, 1 - VOTES, VOTES)])
    answer = answer.mask(rng.random(400) < gaps)
    answer = answer.mask(rng.random(400) < refused, 9.0 if names[0] == 0 else "refused")
    with warned("label", match="column 'vote'"):
        ridge(X=FRAME.assign(vote=answer))
    other_shares = np.where(row % 3, "no", "yes")
    no_classes = np.where((VOTES + (row % 9 == 0)) % 2, "high", "low")
    with silent("label"):
        ridge(X=FRAME.assign(vote=rng.permutation(answer), coin=row % 2, answer=other_shares, nearly=no_classes))


PEOPLE = 1 + np.arange(400) % 7 + 20 * VOTES
VOTERS = {"X": FRAME.assign(people=PEOPLE), "counts": counted(BAGS.repeat(PEOPLE), NAMES.repeat(PEOPLE))}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"counts": COUNTS.rename_axis("d").set_axis(["no", " NO"], axis="columns").stack()}, "'no'"),
        ({"X": FRAME.assign(embedding=[[0.1, 0.2], [0.3]] * 200)}, "'embedding' is of type list"),
        *((VOTERS | {how: True}, f"'people'.*{how}") for how in ("sampled", "as_shares")),
        ({"rest_as": "no"}, "rest_as"),
        ({"rest_as": " ", "counts": COUNTS[["yes"]]}, "rest_as"),
        ({"rest_as": "no", "counts": COUNTS["yes"].to_dict()}, "rest_as"),
        ({"rest_as": "no", "counts": COUNTS["yes"].astype(object).where(COUNTS["yes"] > 5, "1-9")}, "rest_as"),
    ],
)
def test_columns_and_classes_with_another_meaning_are_refused(given: dict[str, Any], told: str) -> None:
    with refusal(told):
        ridge(**given)


@pytest.mark.parametrize("given", [{}, {"sampled": True}, {"as_shares": True}])
def test_total_column_is_not_a_class(given: dict[str, Any]) -> None:
    nearly = SUMS + (np.arange(20) == 3)
    large = COUNTS.assign(no=COUNTS["no"] + 200, tests=nearly + 200 + np.arange(20) % 3 - 1)
    half, total = {"X": FRAME[::2], "bags": BAGS[::2], "sampled": not given}, COUNTS.assign(tests=SUMS)
    for more, told in (
        ({"counts": COUNTS[["yes"]].assign(tests=SUMS)}, "number of rows of every bag"),
        ({"counts": COUNTS[["yes"]].assign(tests=nearly)}, ".*nearly every bag"),
        ({"counts": COUNTS.assign(tests=nearly)}, ".*nearly every bag"),
        ({"counts": large}, "sum"),
        ({**half, "counts": total}, "sum of the other classes"),
    ):
        with refusal(f"^class 'tests' is the {told}"):
            ridge(**more | given)
    assert (ridge(counts=COUNTS.assign(no=10, yes=10), as_shares=True).bag_counts_ > 0).all()


def test_probable_total_is_warned_of() -> None:
    registered = 20 * SUMS + np.arange(20)
    votes = pd.DataFrame({"votes_yes": 20 * COUNTS["yes"], "registered": registered})
    for table in (votes, (20 * COUNTS).assign(people=registered)):
        with warned("total", match=f"class '{table.columns[-1]}'"):
            ridge(counts=table, sampled=True)
    with silent("total"):
        ridge(counts=20 * COUNTS[["yes"]], sampled=True, sizes=registered)
        ridge(counts=pd.DataFrame({"none": 20 * SUMS, "some": COUNTS["yes"], "other": 1}), sampled=True)


def test_groupings_with_different_totals_are_named() -> None:
    with silent("disagreeing groupings"):
        ridge(bags=[BAGS, FRAME["town"]], counts=[COUNTS, BY_TOWN])
    with warned("disagreeing groupings", match="'no' add up to"):
        ridge(bags=[BAGS, FRAME["town"]], counts=[COUNTS, BY_TOWN + np.outer([1, 0, 0], [5, -5])])
    moved = COUNTS + np.outer((np.arange(20) == 0) * 1.0 - (np.arange(20) == 19), [5, -5])
    north, is_north = np.where(BAGS < "d10", "north", "south"), np.where(moved.index < "d10", "north", "south")
    with warned("disagreeing groupings", match="in bag 'north' is"):
        ridge(bags=[BAGS, north], counts=[COUNTS, moved.groupby(is_north).sum()])


def test_estimates_name_groups_whose_counts_are_known() -> None:
    rows, town = FRAME.drop(columns="town"), FRAME["town"]
    model = LLPClassifier("bag-gp", params={"draws": 0}).fit(rows, [BAGS, town], counts=[COUNTS, BY_TOWN])
    with warned("known groups", match="3 groups are bags of fit"):
        model.estimate(rows, BAGS, town)
    with silent("known groups"):
        model.estimate(rows, BAGS, BAGS.rename("group"))
    bags = BAGS.replace("d03", "all")
    with refusal("'all'"):
        model.fit(FRAME, bags, counts=COUNTS.rename({"d03": "all"})).estimate(FRAME, bags, by="town")


@pytest.mark.parametrize(
    ("name", "other", "near"),
    [
        ("01", "1", True),
        ("Mt Zion 3", "Mt. Zion 3", True),
        ("Saint Louis", "St. Louis", True),
        ("Zürich", "ZURICH", True),
        (("7", "a"), (7, "A"), True),
        (pd.Timestamp("2024-01-31"), "2024-01-31", True),
        ("D1", "D2", False),
        ("2016-11", "2016-01", False),
    ],
)
def test_near_names_are_found(name: Any, other: Any, near: bool) -> None:
    assert near_names(["new", name], ["old", other]) == (f"{name!r} is nearly {other!r}" if near else "")


@pytest.mark.parametrize(
    ("unit", "noise", "at_random"), [(5, "1.44", False), (10, "2.89", False), (3, "1.15", True), (5, "2", True)]
)
def test_rounded_counts_name_their_noise(unit: int, noise: str, at_random: bool) -> None:
    up = np.random.default_rng(0).random(COUNTS.shape) if at_random else 0.5
    rounded = np.floor(COUNTS / unit + up) * unit
    with refusal(f"rounded to {unit}.*{noise}"):
        ridge(counts=rounded)
    with silent("large noise"):
        assert ridge(counts=rounded, noise=float(noise)).bag_counts_.shape == COUNTS.shape
    with warned("large noise", match="deviation of 500"):
        ridge(noise=500.0)


def test_rest_of_the_rows_becomes_a_class() -> None:
    dropped = {"counts": COUNTS.rename(columns={"no": "other"}), "classes": ["yes"], "unmatched": "drop"}
    for given in ({"counts": COUNTS[["yes"]]}, dropped):
        rest = ridge(**given, rest_as="no")
        assert [*rest.classes_] == ["no", "yes"]
        assert np.array_equal(rest.bag_counts_, COUNTS)
