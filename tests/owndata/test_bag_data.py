"""Data of bags: read once and used by all methods, several groupings of the same rows, and weights of rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import refusal
from districts import counted, people, silent, warned

from llpbench import BagData, LLPClassifier, choose
from llpbench.blocks import distinct
from llpbench.data.reading_bags import read_bag_labels
from llpbench.owndata import weights as module
from llpbench.owndata.weights import Repeats

FRAME, BAGS, VOTES = people(600, 20)
DISTRICT = pd.Series(BAGS, name="district")
GROUP = pd.Series(np.where(FRAME["owns"], "owner", "tenant"), name="group") + (np.arange(600) % 3).astype(str)
COUNTS = counted(BAGS, np.array(["no", "yes"])[VOTES])
RANGES = COUNTS.astype(object).assign(yes=["<9", *COUNTS["yes"][1:]])
BOTH, TABLES = [DISTRICT, GROUP], [counted(DISTRICT, VOTES), counted(GROUP, VOTES)]
MIXED = [DISTRICT, GROUP.replace("owner0", "d03")]
COMPARED: dict[str, Any] = {"methods": ["bag-mean-linear", "bag-soft-label-linear"], "folds": 2, "repeats": 1}


def fit(bags: Any, method: str = "bag-mean-linear", frame: Any = FRAME, **given: Any) -> LLPClassifier:
    return LLPClassifier(method, params={"draws": 0} if method == "bag-gp" else None).fit(frame, bags, **given)


@pytest.mark.parametrize("form", [lambda table: table[[1, 0]], lambda table: table[1].to_dict()], ids=["frame", "dict"])
def test_several_groupings_equal_copies_of_rows_without_their_columns(form: Any) -> None:
    twice = pd.concat([FRAME, FRAME], ignore_index=True)
    plain = fit(np.concatenate([DISTRICT, GROUP]), frame=twice, counts=pd.concat(TABLES))
    frame, counts = FRAME.assign(district=DISTRICT, group=GROUP), [form(table) for table in TABLES]
    found = fit([DISTRICT, GROUP], frame=frame, counts=counts)
    assert np.allclose(found.predict_proba(frame), plain.predict_proba(FRAME))
    assert (found.groupings_, found.key_features_) == (2, ["district", "group"])
    assert {*found.bags_} == {*DISTRICT, *GROUP}
    kept = fit([DISTRICT, GROUP], frame=frame, counts=counts, keep_key=True)
    assert (kept.n_features_in_, kept.key_features_) == (FRAME.shape[1] + 2, [])


def test_weights_apply_to_each_grouping() -> None:
    weights = pd.Series(np.arange(600) % 2 + 1, name="people")
    tables = [counted(each.repeat(weights), np.repeat(VOTES, weights)) for each in (DISTRICT, GROUP)]
    found = fit([DISTRICT, GROUP], frame=FRAME.assign(people=weights), counts=tables, sample_weight=weights)
    assert (found.bag_sizes_.sum(), found.key_features_, found.n_features_in_) == (2 * weights.sum(), ["people"], 4)


def test_groupings_with_different_totals_are_named() -> None:
    by_group = counted(GROUP, np.array(["no", "yes"])[VOTES])
    with silent("disagreeing groupings"):
        fit([DISTRICT, GROUP], counts=[COUNTS, by_group])
    with warned("disagreeing groupings", match="'no' add up to"):
        fit([DISTRICT, GROUP], counts=[COUNTS, by_group + np.outer(np.arange(6) == 0, [5, -5])])
    moved = COUNTS + np.outer((np.arange(20) == 0) * 1.0 - (np.arange(20) == 19), [5, -5])
    north, is_north = (np.where(each < "d10", "north", "south") for each in (BAGS, moved.index))
    with warned("disagreeing groupings", match="in bag 'north' is"):
        fit([DISTRICT, north], counts=[COUNTS, moved.groupby(is_north).sum()])


def test_all_methods_take_bag_data() -> None:
    frame, given = FRAME.assign(district=BAGS), dict[str, Any](counts=COUNTS)
    data = BagData.read(frame, DISTRICT, **given)
    model, same, process = fit(data, frame=frame), fit(DISTRICT, frame=frame, **given), fit(data, "bag-gp", frame)
    assert model.key_features_ == same.key_features_ == ["district"]
    assert np.array_equal(model.predict_proba(frame), same.predict_proba(frame))
    assert np.array_equal(model.disaggregate(FRAME, data), same.disaggregate(FRAME, BAGS, **given))
    assert np.array_equal(model.assign(FRAME, data), same.assign(FRAME, BAGS, **given))
    assert model.score_bags(FRAME, data) == same.score_bags(FRAME, BAGS, **given)
    assert process.estimate(FRAME, data, "owns").equals(process.estimate(FRAME, BAGS, "owns", **given))
    one, other = (choose(frame, bags, **more, **COMPARED) for bags, more in ((data, {}), (DISTRICT, given)))
    assert one.board.drop(columns="seconds").equals(other.board.drop(columns="seconds"))


ROWS = 200
_RNG = np.random.default_rng(0)
CELLS = pd.DataFrame({"age": _RNG.integers(0, 6, ROWS), "sex": _RNG.choice(["f", "m"], ROWS)})
CELLS["size"] = _RNG.normal(size=ROWS).round(1)
BAG, PEOPLE = np.arange(ROWS) % 20, _RNG.integers(0, 6, ROWS)
OFTEN = np.repeat(np.arange(ROWS), PEOPLE)
_YES = _RNG.random(len(OFTEN)) < 0.1 + 0.15 * CELLS["age"].to_numpy()[OFTEN]
TABLE = counted(BAG[OFTEN], np.where(_YES, "yes", "no"))
PARTS = np.round(PEOPLE * 1.37 + 0.2, 2)
SUMS = np.bincount(BAG, PARTS)
OF_ROW = pd.Series(PEOPLE, dtype=object)
TABLE_OF_PARTS = TABLE.div(TABLE.sum(axis=1), axis=0).mul(SUMS, axis=0).round(2)


def weighted(method: str = "bag-mean-linear", **given: Any) -> LLPClassifier:
    return fit(BAG, method, **{"frame": CELLS, "counts": TABLE, "sample_weight": PEOPLE} | given)


@pytest.mark.parametrize("method", ["bag-mean-linear", "bag-gp"])
def test_whole_weights_equal_repeated_rows(method: str) -> None:
    """But for rounding: they are added up in different ways."""
    people, weights = (CELLS.iloc[OFTEN].reset_index(drop=True), BAG[OFTEN]), dict[str, Any](sample_weight=PEOPLE)
    with silent("rounded weights"):
        model, plain = weighted(method), fit(people[1], method, people[0], counts=TABLE)
    for bags in (None, BAG):
        assert np.allclose(model.predict_proba(CELLS, bags), plain.predict_proba(CELLS, bags), atol=1e-6)
    assert model.bag_sizes_.tolist() == plain.bag_sizes_.tolist() == np.bincount(BAG, PEOPLE).tolist()
    assert np.array_equal(model.bag_counts_, plain.bag_counts_)
    assert np.allclose(model.disaggregate(CELLS, BAG, **weights)[OFTEN], plain.disaggregate(*people), atol=1e-6)
    assert model.score_bags(CELLS, BAG, **weights) == pytest.approx(plain.score_bags(*people), abs=1e-6)
    if method == "bag-gp":
        groups = model.estimate(CELLS, BAG, "sex", **weights)
        pd.testing.assert_frame_equal(groups, plain.estimate(*people, "sex"))
    else:
        one, other = choose(CELLS, BAG, counts=TABLE, **weights, **COMPARED), choose(*people, counts=TABLE, **COMPARED)
        pd.testing.assert_frame_equal(*(each.folds.drop(columns="seconds") for each in (one, other)))


@pytest.mark.parametrize("digits", [1, 2], ids="{} digits".format)
def test_fractional_weights_match_printed_counts(digits: int) -> None:
    table = TABLE_OF_PARTS.round(digits)
    with warned("rounded weights"):
        model = weighted(counts=table, sample_weight=PARTS)
    assert np.allclose(model.bag_sizes_, SUMS)
    found = model.disaggregate(CELLS, BAG, sample_weight=PARTS)
    assert np.allclose(found.sum(axis=1), 1)
    totals = np.stack([np.bincount(BAG, PARTS * column) for column in found.T], axis=1)
    assert np.allclose(totals, table.mul(SUMS / table.sum(axis=1), axis=0))


def test_rounded_weights_keep_bag_sizes_and_shares() -> None:
    found = Repeats.of(read_bag_labels(BAG, CELLS, PARTS), lambda: CELLS)
    assert (found.exact, found.sizes.tolist()) == (False, np.rint(SUMS).astype(int).tolist())
    times = np.bincount(np.arange(ROWS)[found.places], minlength=ROWS)
    assert np.abs(times - PARTS * (found.sizes / SUMS)[BAG]).max() < 1 + 1e-6
    older = CELLS["age"].to_numpy() >= 3  # rows are ordered by age, so that its shares are kept
    shares = np.bincount(BAG, PARTS * older) / SUMS - np.bincount(BAG, times * older) / found.sizes
    assert np.abs(shares * found.sizes).max() < 0.5 + 1e-6
    shuffled = np.random.default_rng(1).permutation(ROWS)
    other = Repeats.of(read_bag_labels(BAG[shuffled], CELLS, PARTS[shuffled]), lambda: CELLS.iloc[shuffled])
    assert sorted(CELLS["age"].iloc[found.places]) == sorted(CELLS["age"].iloc[shuffled].iloc[other.places])


def test_large_weights_are_scaled_and_estimates_rescaled(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = weighted("bag-gp").estimate(CELLS, BAG, "sex", sample_weight=PEOPLE)
    monkeypatch.setattr(module, "MOST_REPEATED", len(OFTEN) // 2)
    with warned("rounded weights", match="more than"):
        model = weighted("bag-gp")
    assert model.bag_sizes_.sum() == len(OFTEN)
    assert model._known.sizes.sum() == pytest.approx(len(OFTEN) / 2, abs=20)
    with warned("rounded weights"):
        found = model.estimate(CELLS, BAG, "sex", sample_weight=PEOPLE)
    assert np.allclose(found["rows"][:4], exact["rows"][:4], rtol=0.05)
    assert np.allclose(found["count"][:4], exact["count"][:4], rtol=0.2)
    disaggregated = model.disaggregate(CELLS, BAG, sample_weight=PEOPLE)
    assert np.allclose((disaggregated * PEOPLE[:, None]).sum(axis=0), TABLE.sum())


def test_weights_that_add_up_to_1_are_scaled_up() -> None:
    shares = {"counts": TABLE_OF_PARTS / SUMS.sum(), "sample_weight": PARTS / SUMS.sum()}
    assert np.allclose(weighted(**shares)._known.sizes, ROWS * SUMS / SUMS.sum(), atol=1)
    assert (choose(CELLS, BAG, **shares, **COMPARED).board["failure"] == "").all()


def test_rest_of_proportions_may_be_of_sampled_rows() -> None:
    shares = COUNTS[["no"]].div(COUNTS.sum(axis=1), axis=0).assign(other=0.0)
    found = fit(BAGS, proportions=shares, classes=np.array([*shares]), rest_as="yes", sampled=True)
    assert np.allclose(found.bag_counts_[:, [0, 2]], fit(BAGS, counts=COUNTS).bag_counts_)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (partial(fit, BagData.read(FRAME, BAGS, counts=COUNTS), noise=7), "noise="),
        (partial(fit, BagData.read(FRAME, BAGS, counts=COUNTS), frame=FRAME[:550]), "600.* 550"),
        (partial(fit, BagData.read(FRAME, BAGS, counts=COUNTS), frame=FRAME.iloc[[*range(600), 0]]), "600.* 601"),
        *(
            (lambda call=call: call(fit(BOTH, counts=TABLES), FRAME, BagData.read(FRAME, BOTH, counts=TABLES)), "got 2")
            for call in (LLPClassifier.score_bags, LLPClassifier.disaggregate, LLPClassifier.predict_proba)
        ),
        (partial(fit, MIXED, counts=[table[1] for table in TABLES], unmatched="drop"), "'d03'"),
        (partial(fit, [[bag, 0] for bag in BAGS], counts=COUNTS), "lists"),
        (partial(fit, BOTH, "dllp", counts=TABLES), "direct method"),
        (partial(fit, BOTH, counts=TABLES[0]), "list"),
        (partial(fit, [DISTRICT], counts=TABLES[:1]), "at least 2"),
        (partial(fit, [DISTRICT] * 2, counts=[TABLES[0]] * 2), "same name"),
        (partial(fit, BOTH, counts=[TABLES[0], TABLES[1].set_axis(["a", "b"], axis=1)]), "same classes"),
        (partial(fit, BOTH, counts=[TABLES[0], TABLES[1][1]]), "same classes"),
        (partial(fit, BOTH, counts=TABLES, noise=1.0), "noise="),
        (partial(fit, [DISTRICT, GROUP[:500]], counts=TABLES), "500"),
        (partial(choose, FRAME, BOTH, counts=TABLES), "grouping"),
        (lambda: fit(BAGS, counts=COUNTS).score_bags(FRAME, BAGS, counts=RANGES), "ranges"),
        *(
            (partial(weighted, sample_weight=OF_ROW.mask(OF_ROW.index == 3, wrong)), r"from 0, got .* \(1 such row")
            for wrong in (-1.0, np.nan, np.inf, "many")
        ),
        (partial(weighted, sample_weight=[1, 2, 3]), "sample_weight must .* 200 rows, got 3"),
        (partial(weighted, sample_weight=OF_ROW[::-1]), "different orders"),
        (partial(weighted, sample_weight=np.where(BAG == 4, 0, PEOPLE)), "must not all be 0, got bag 4 "),
        (partial(weighted, sample_weight=PEOPLE + (BAG == 4)), "total weight"),
        (partial(weighted, counts=TABLE_OF_PARTS + 2.0, sample_weight=PARTS), "total weight"),
        (lambda: weighted().disaggregate(CELLS, BAG), "sample_weight="),
    ],
)
def test_impossible_groupings_and_weights_are_refused(call: Any, told: str) -> None:
    with refusal(told):
        call()


def test_dropped_bag_drops_its_weights() -> None:
    facts: dict[str, Any] = {"counts": TABLE.iloc[1:], "unmatched": "drop"}
    plain = fit(BAG[OFTEN], frame=CELLS.iloc[OFTEN], **facts)
    assert np.allclose(weighted(**facts).predict_proba(CELLS), plain.predict_proba(CELLS), atol=1e-6)


def test_equal_rows_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    facts: dict[str, Any] = {"counts": 12 * TABLE, "sample_weight": 12 * PEOPLE}
    plain = weighted("bag-gp", **facts)
    expected = plain.estimate(CELLS, BAG, "sex", sample_weight=12 * PEOPLE)
    assert plain.distinct_rows_ is None
    monkeypatch.setattr(distinct, "_FEWEST_ROWS", 1000)
    model = weighted("bag-gp", **facts)
    assert model.distinct_rows_ == len(CELLS[PEOPLE > 0].drop_duplicates())
    assert np.allclose(model.predict_proba(CELLS, BAG), plain.predict_proba(CELLS, BAG), atol=2e-3)
    found = model.estimate(CELLS, BAG, "sex", sample_weight=12 * PEOPLE)
    numbers = ["count", "count_lower", "count_upper", "share"]
    assert np.allclose(found[numbers], expected[numbers], rtol=0.02, atol=2)
