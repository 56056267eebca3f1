"""Weights of rows: the results of repeated rows, checked sums, and rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, silent, warned

from llpbench import choose
from llpbench.blocks import distinct
from llpbench.core.errors import LLPBenchError
from llpbench.data.reading_bags import read_bag_labels
from llpbench.owndata import weights as module
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.weights import Repeats

ROWS, BAGS = 200, 20
_RNG = np.random.default_rng(0)
CELLS = pd.DataFrame(
    {"age": _RNG.integers(0, 6, ROWS), "sex": _RNG.choice(["f", "m"], ROWS), "size": _RNG.normal(size=ROWS).round(1)}
)
BAG = np.arange(ROWS) % BAGS
PEOPLE = _RNG.integers(0, 6, ROWS)
OFTEN = np.repeat(np.arange(ROWS), PEOPLE)
VOTES = _RNG.random(len(OFTEN)) < 0.1 + 0.15 * CELLS["age"].to_numpy()[OFTEN]
TABLE = counted(BAG[OFTEN], np.array(["no", "yes"])[VOTES.astype(int)])
PARTS = np.round(PEOPLE * 1.37 + 0.2, 2)
SUMS = np.bincount(BAG, PARTS)
TABLE_OF_PARTS = TABLE.div(TABLE.sum(axis=1), axis=0).mul(SUMS, axis=0).round(2)


def classifier(method: str) -> LLPClassifier:
    return LLPClassifier(method, params={"draws": 0} if method == "bag-gp" else None)


def fitted(method: str = "bag-mean-linear", **given: Any) -> LLPClassifier:
    return classifier(method).fit(**{"X": CELLS, "bags": BAG, "counts": TABLE, "sample_weight": PEOPLE} | given)


def by_person(method: str = "bag-mean-linear") -> LLPClassifier:
    return classifier(method).fit(CELLS.iloc[OFTEN], BAG[OFTEN], counts=TABLE)


def demand_close(one: Any, other: Any) -> None:
    """Weights and repeated rows are added up in different ways, so that sums differ by rounding."""
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["bag-mean-linear", "bag-gp"])
def test_whole_weights_equal_repeated_rows(method: str) -> None:
    with silent("rounded weights"):
        weighted, plain = fitted(method), by_person(method)
    demand_close(weighted.predict_proba(CELLS), plain.predict_proba(CELLS))
    demand_close(weighted.predict_proba(CELLS, BAG), plain.predict_proba(CELLS, BAG))
    assert weighted.bag_sizes_.tolist() == plain.bag_sizes_.tolist() == np.bincount(BAG, PEOPLE).tolist()
    assert np.array_equal(weighted.bag_counts_, plain.bag_counts_)
    people = CELLS.iloc[OFTEN].reset_index(drop=True), BAG[OFTEN]
    found = weighted.disaggregate(CELLS, BAG, sample_weight=PEOPLE)
    demand_close(found[OFTEN], plain.disaggregate(*people))
    scores = weighted.score_bags(CELLS, BAG, sample_weight=PEOPLE)
    assert scores == pytest.approx(plain.score_bags(*people), abs=1e-6)
    if method == "bag-gp":
        groups = weighted.estimate(CELLS, BAG, "sex", sample_weight=PEOPLE)
        pd.testing.assert_frame_equal(groups, plain.estimate(*people, "sex"))


def test_weighted_choose_equals_repeated_rows() -> None:
    methods = ["bag-mean-linear", "bag-soft-label-linear"]
    given: dict[str, Any] = {"methods": methods, "folds": 2, "repeats": 1, "progress": False}
    weighted = choose(CELLS, BAG, counts=TABLE, sample_weight=PEOPLE, **given)
    plain = choose(CELLS.iloc[OFTEN], BAG[OFTEN], counts=TABLE, **given)
    pd.testing.assert_frame_equal(*(each.folds.drop(columns="seconds") for each in (weighted, plain)))


@pytest.mark.parametrize("digits", [1, 2])
def test_fractional_weights_match_printed_counts(digits: int) -> None:
    with warned("rounded weights"):
        model = fitted(counts=TABLE_OF_PARTS.round(digits), sample_weight=PARTS)
    assert np.allclose(model.bag_sizes_, SUMS)
    found = model.disaggregate(CELLS, BAG, sample_weight=PARTS)
    assert np.allclose(found.sum(axis=1), 1)
    totals = np.stack([np.bincount(BAG, PARTS * column) for column in found.T], axis=1)
    expected = TABLE_OF_PARTS.round(digits).to_numpy()
    assert np.allclose(totals, expected * (SUMS / expected.sum(axis=1))[:, None])
    with pytest.raises(LLPBenchError, match="total weight"):
        fitted(counts=TABLE_OF_PARTS + 2.0, sample_weight=PARTS)


def test_rounded_weights_keep_bag_sizes_and_shares() -> None:
    labels = read_bag_labels(BAG, CELLS, PARTS)
    found = Repeats.of(labels, lambda: CELLS)
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
    exact = fitted("bag-gp").estimate(CELLS, BAG, "sex", sample_weight=PEOPLE)
    monkeypatch.setattr(module, "MOST_REPEATED", len(OFTEN) // 2)
    with warned("rounded weights", match="more than"):
        model = fitted("bag-gp")
    assert model.bag_sizes_.sum() == len(OFTEN)
    assert model._known.sizes.sum() == pytest.approx(len(OFTEN) / 2, abs=BAGS)
    with warned("rounded weights"):
        found = model.estimate(CELLS, BAG, "sex", sample_weight=PEOPLE)
    assert np.allclose(found["rows"][:4], exact["rows"][:4], rtol=0.05)
    assert np.allclose(found["count"][:4], exact["count"][:4], rtol=0.2)
    disaggregated = model.disaggregate(CELLS, BAG, sample_weight=PEOPLE)
    assert np.allclose((disaggregated * PEOPLE[:, None]).sum(axis=0), TABLE.sum())


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        *(
            (pd.Series(PEOPLE, dtype=object).where(np.arange(ROWS) != 3, wrong), r"numbers from 0, got .* \(1 such row")
            for wrong in (-1.0, np.nan, np.inf, "many")
        ),
        ([1, 2, 3], "sample_weight must .* 200 rows, got 3"),
        (pd.Series(PEOPLE)[::-1], "different orders"),
        (np.where(BAG == 4, 0, PEOPLE), "must not all be 0, got bag 4 "),
        (PEOPLE + (BAG == 4), "total weight"),
    ],
)
def test_impossible_weights_are_refused(weight: Any, told: str) -> None:
    with pytest.raises(LLPBenchError, match=told):
        fitted(sample_weight=weight)


def test_weight_column_is_no_feature() -> None:
    rows = CELLS.assign(people=PEOPLE)
    model = fitted(X=rows, sample_weight=rows["people"])
    assert (model.key_features_, list(model.feature_names_in_)) == (["people"], [*CELLS])
    assert np.array_equal(model.predict_proba(rows), fitted().predict_proba(CELLS))
    with pytest.raises(LLPBenchError, match="sample_weight="):
        model.disaggregate(CELLS, BAG)


def test_dropped_bag_drops_its_weights() -> None:
    model = fitted(counts=TABLE.iloc[1:], unmatched="drop")
    plain = LLPClassifier("bag-mean-linear").fit(CELLS.iloc[OFTEN], BAG[OFTEN], counts=TABLE.iloc[1:], unmatched="drop")
    demand_close(model.predict_proba(CELLS), plain.predict_proba(CELLS))


def test_equal_rows_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    often, method = 12 * PEOPLE, "bag-gp"
    plain = fitted(method, counts=12 * TABLE, sample_weight=often)
    expected = plain.estimate(CELLS, BAG, "sex", sample_weight=often)
    assert plain.distinct_rows_ is None
    monkeypatch.setattr(distinct, "_FEWEST_ROWS", 1000)
    model = fitted(method, counts=12 * TABLE, sample_weight=often)
    assert model.distinct_rows_ == len(CELLS[PEOPLE > 0].drop_duplicates())
    assert np.allclose(model.predict_proba(CELLS, BAG), plain.predict_proba(CELLS, BAG), atol=2e-3)
    found = model.estimate(CELLS, BAG, "sex", sample_weight=often)
    numbers = ["count", "count_lower", "count_upper", "share"]
    assert np.allclose(found[numbers], expected[numbers], rtol=0.02, atol=2)
