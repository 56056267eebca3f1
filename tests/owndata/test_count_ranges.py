"""Counts known as ranges: the meaning of texts, possible counts, and models fitted to ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people
from scipy.stats import betabinom

from llpbench.core.errors import LLPBenchError
from llpbench.owndata.choosing import choose
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.count_ranges import MOST, CountRanges, Range


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1-9", 1, 9),
        (" 1 to 9 ", 1, 9),
        ("1\u20139", 1, 9),
        ("1,000-1,999", 1000, 1999),
        ("<10", 0, 9),
        ("fewer than 10", 0, 9),
        ("\u22649", 0, 9),
        ("<= 9", 0, 9),
        ("5+", 5, MOST),
        (">=5", 5, MOST),
        (">4", 5, MOST),
        ("5 or more", 5, MOST),
    ],
)
def test_range_text_is_parsed(text: str, low: float, high: float) -> None:
    assert Range.read(text) == (low, high)


@pytest.mark.parametrize("value", ["9-1", "<0", "12", "*", "", "-5", "2024-01-31", None, 5, np.nan, "a-b"])
def test_invalid_range_text_is_refused(value: Any) -> None:
    assert Range.read(value) is None


FRAME, BAGS, VOTES = people(600, 40)
TABLE = counted(BAGS, VOTES)
YES = TABLE[1]
SMALL = YES < 8
TEXTS = YES.astype(object).mask(SMALL, "<8")


def fit(counts: Any, **given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(FRAME, BAGS, counts=counts, **given)


@pytest.mark.parametrize(
    "counts", [TEXTS, TEXTS.to_dict(), TEXTS.to_frame("yes"), {bag: {0: "0+", 1: TEXTS[bag]} for bag in TEXTS.index}]
)
def test_ranges_train_in_every_form_of_counts(counts: Any) -> None:
    model = fit(counts)
    assert model.left_out_["suppressed"] == 0
    found = pd.Series(model.bag_counts_[:, 1], index=model.bags_)
    assert (found[~SMALL.to_numpy()] == YES[~SMALL]).all()
    small = found[SMALL.to_numpy()]
    assert ((small > 0) & (small < 7)).all()
    assert np.corrcoef(small, YES[SMALL])[0, 1] > 0.5  # features tell where in its range a count is
    assert np.allclose(model.bag_counts_.sum(axis=1), model.bag_sizes_)


def test_exact_and_impossible_ranges_are_handled() -> None:
    by_counts_of_no = pd.concat([TABLE[0], TEXTS], axis=1)
    for exact in (by_counts_of_no, YES.astype(object).mask(SMALL, YES.map("{0}-{0}".format))):
        assert (fit(exact).bag_counts_[:, 1] == YES).all()
    model = fit(YES.astype(object).mask(SMALL, "100-200"), impossible="suppress")
    assert model.left_out_["impossible"] == SMALL.sum()
    assert np.isnan(model.bag_counts_[SMALL.to_numpy()]).all()


def test_initial_count_is_expectation() -> None:
    rng = np.random.default_rng(0)
    size = np.full(3000, 40.0)
    count = betabinom.rvs(40, 2.0, 10.0, size=3000, random_state=rng).astype(float)
    bags = np.flatnonzero(count < 10)
    counts = np.column_stack([size - count, count])
    counts[bags] = np.nan
    guess = CountRanges(bags, np.zeros(len(bags)), np.full(len(bags), 9.0)).first_guess(counts, size)
    inside = betabinom.pmf(np.arange(10), 40, 2.0, 10.0)
    assert guess == pytest.approx(np.full(len(bags), inside @ np.arange(10) / inside.sum()), abs=0.15)
    assert guess.mean() == pytest.approx(count[bags].mean(), abs=0.15)


def test_ranges_count_weights() -> None:
    double = fit((2 * YES).astype(object).mask(SMALL, "<15"), sample_weight=np.full(600, 2.0))
    assert double.bag_sizes_.sum() == 1200
    small = double.bag_counts_[SMALL.to_numpy(), 1]
    assert ((small > 0) & (small < 14)).all()
    assert np.corrcoef(small, YES[SMALL])[0, 1] > 0.5


def test_choose_trains_on_ranges_and_judges_by_exact_counts() -> None:
    methods = ["bag-mean-linear", "bag-soft-label-linear"]
    found = choose(FRAME, BAGS, counts=TEXTS, methods=methods, folds=2, repeats=1, progress=False)
    assert (found.board["failure"] == "").all()
    dropped = YES.astype(float).mask(SMALL)
    without = choose(FRAME, BAGS, counts=dropped, methods=methods, folds=2, repeats=1, progress=False)
    assert not np.allclose(found.folds["kl"], without.folds["kl"])


def test_expected_counts_are_not_exact_bounds() -> None:
    model = LLPClassifier("bag-gp", params={"draws": 0}).fit(FRAME, BAGS, counts=TEXTS)
    exact = YES.astype(float).mask(SMALL)
    assert model.score_bags(FRAME, BAGS) != model.score_bags(FRAME, BAGS, counts=exact)
    groups = model.estimate(FRAME, BAGS, by=BAGS)
    assert (groups["count_min"] == 0).all()


@pytest.mark.parametrize(
    ("counts", "given", "told"),
    [
        (YES.astype(object).mask(SMALL, "100-200"), {}, "100 to 200.*impossible='suppress'"),
        (pd.Series("100-200", YES.index), {}, r"100 to 200 .* Correct them\.$"),
        (TEXTS, {"noise": 1.0}, "noise="),
        (TEXTS, {"as_shares": True}, "as_shares=True"),
        (TEXTS.mask(SMALL, "about 5"), {}, "numbers"),
        (counted(BAGS, VOTES + (np.arange(600) % 5 == 0)).astype(object).replace(3, "1-4"), {}, "two classes"),
    ],
)
def test_impossible_input_is_refused(counts: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        fit(counts, **given)
    assert "\n" not in str(error.value)
