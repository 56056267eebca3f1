"""What `method="auto"` warns of, from bags alone."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.doubts import DoubtfulFit, Doubts, SamePredictions


@pytest.mark.parametrize(
    ("doubts", "told"),
    [
        (Doubts(0.0, 0.5, 0.8), []),
        (Doubts(0.294, 0.5, 0.8), ["29 % of the variance", "rows. Check"]),
        (Doubts(0.0, 0.5, 0.104), ["rank correlation 0.10"]),
        (Doubts(0.0, 0.93, 0.8), ["93 % of the estimated effects"]),
        (Doubts(0.3, 0.95, 0.1), ["30 % of the variance", "95 % of the estimated effects", "rank correlation 0.10"]),
        (Doubts(0.0, 0.95, 0.1, held_out=5.0), []),  # held-out bags replace other doubts
        (Doubts(0.5, 0.95, 0.1, held_out=5.0), ["50 % of the variance"]),
    ],
)
def test_a_warning_is_one_line_with_the_numbers(doubts: Doubts, told: list[str]) -> None:
    assert bool(doubts.warning) == bool(told)
    assert all(each in doubts.warning for each in told)
    assert "\n" not in doubts.warning


def test_bags_with_causes_of_their_own_are_warned_of() -> None:
    """Shares of bags follow an effect of the bag, which no feature tells."""
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(40), 30)
    frame = pd.DataFrame({"a": rng.normal(size=1200), "b": rng.normal(size=1200)})
    share = rng.uniform(0.1, 0.9, 40)
    votes = rng.random(1200) < share[bags]
    params = {"trees": 200, "rounds": 2}
    with pytest.warns(DoubtfulFit, match=r"^[5-9]\d % of the variance of bags' proportions.*") as told:
        model = LLPClassifier(params=params).fit(frame, bags, counts=counted(bags, votes.astype(int)))
    assert len(told) == 1
    assert "\n" not in str(told[0].message)
    assert model.doubts_ is not None
    assert model.doubts_.confounded


@pytest.mark.filterwarnings("error")
def test_bags_that_features_explain_are_not() -> None:
    frame, bags, votes = people(600, 40)
    model = LLPClassifier(params={"trees": 200, "rounds": 2}).fit(frame, bags, counts=counted(bags, votes))
    assert model.doubts_ is not None
    assert model.doubts_.warning == ""
    assert model.doubts_.agreement > 0.5
    assert model.doubts_.noise < 0.7
    assert LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counted(bags, votes)).doubts_ is None


def test_bags_that_tell_nothing_are_warned_of() -> None:
    """Eight bags that differ by chance alone."""
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(8), 25)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    votes = (rng.random(200) < 0.4).astype(int)
    with pytest.warns(DoubtfulFit, match="of the estimated effects of features is noise"):
        LLPClassifier(params={"trees": 200, "rounds": 2}).fit(frame, bags, counts=counted(bags, votes))


def test_a_direct_method_that_gives_all_rows_the_same_is_told() -> None:
    """Every bag has the same share."""
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=800)})
    bags = np.repeat(np.arange(20), 40)
    with pytest.warns(SamePredictions, match=r"^the model gives all rows the same probabilities \(0.5, 0.5\)"):
        LLPClassifier("bag-mean-linear").fit(frame, bags, counts=dict.fromkeys(range(20), 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LLPClassifier("bag-share").fit(frame, bags, counts=dict.fromkeys(range(20), 20))
