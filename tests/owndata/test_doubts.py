"""What a fit or a prediction warns of: doubts about bags, rare classes, and rows in unknown bags."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people, silent, warned
from scipy.special import expit

from llpbench.core.bags import FloatArray
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.doubts import Doubts, Union


@pytest.mark.parametrize(
    ("doubts", "told"),
    [
        (Doubts(0.0, 0.5, 0.8), []),
        (Doubts(0.294, 0.5, 0.8), ["29 % of the variance"]),
        (Doubts(0.0, 0.5, 0.104), ["rank correlation 0.10"]),
        (Doubts(0.0, 0.93, 0.8), ["93 % of the estimated effects"]),
        (Doubts(0.3, 0.95, 0.1), ["30 % of the variance", "95 % of the estimated effects", "rank correlation 0.10"]),
        (Doubts(0.0, 0.95, 0.1, held_out=5.0), []),  # held-out bags replace other doubts
        (Doubts(0.5, 0.95, 0.1, held_out=5.0), ["50 % of the variance"]),
    ],
)
def test_warning_has_numbers(doubts: Doubts, told: list[str]) -> None:
    assert bool(doubts.warning) == bool(told)
    assert all(each in doubts.warning for each in told)
    assert "\n" not in doubts.warning


@pytest.mark.parametrize(
    ("bags", "shares", "told"),
    [
        (40, (0.1, 0.9), r"^[5-9]\d % of the variance of bags' proportions[^\n]*$"),  # an effect that no feature tells
        (8, (0.4, 0.4), "of the estimated effects of features is noise"),  # bags that differ by chance alone
    ],
)
def test_doubtful_bags_are_warned_of(bags: int, shares: tuple[float, float], told: str) -> None:
    rng = np.random.default_rng(0)
    of_row = np.repeat(np.arange(bags), 25)
    frame = pd.DataFrame({"a": rng.normal(size=len(of_row)), "b": rng.normal(size=len(of_row))})
    votes = (rng.random(len(of_row)) < rng.uniform(*shares, bags)[of_row]).astype(int)
    with warned("doubts", told, times=1):
        model = LLPClassifier(params={"trees": 200, "rounds": 2}).fit(frame, of_row, counts=counted(of_row, votes))
    assert model.doubts_ is not None
    assert model.doubts_.confounded == (bags == 40)


@pytest.mark.filterwarnings("error")
def test_explained_bags_are_not_warned_of() -> None:
    frame, bags, votes = people(600, 40)
    model = LLPClassifier(params={"trees": 200, "rounds": 2}).fit(frame, bags, counts=counted(bags, votes))
    assert model.doubts_ is not None
    assert model.doubts_.warning == ""
    assert model.doubts_.agreement > 0.5
    assert model.doubts_.noise < 0.7
    assert LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counted(bags, votes)).doubts_ is None


@pytest.mark.filterwarnings("ignore::llpbench.core.errors.LLPBenchWarning")
def test_bags_that_differ_less_than_by_chance_are_not_confounded() -> None:
    sizes = np.array([15, 18, 21, 24, 27, 30])
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(sizes.sum(), 2)), columns=["a", "b"])
    model = LLPClassifier(params={"trees": 200, "rounds": 2}).fit(
        frame, np.repeat(np.arange(6), sizes), counts=dict(enumerate((sizes // 3).tolist()))
    )
    assert isinstance(model._model.predictor, Union)
    assert model._model.predictor.process.unexplained > 0.2  # the process sees no difference from confounded bags
    assert model.doubts_ is not None
    assert (model.doubts_.unexplained, model.doubts_.confounded) == (0.0, False)


def test_constant_direct_method_is_warned_of() -> None:
    """Every bag has the same share."""
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=800)})
    bags = np.repeat(np.arange(20), 40)
    with warned("same predictions", match=r"^the model gives all rows the same probabilities \(0.5, 0.5\)"):
        LLPClassifier("bag-mean-linear").fit(frame, bags, counts=dict.fromkeys(range(20), 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LLPClassifier("bag-share").fit(frame, bags, counts=dict.fromkeys(range(20), 20))


ROWS, SIZE = 4000, 50


def table(weight: float, share: float, seed: int = 0, rows: int = ROWS) -> tuple[pd.DataFrame, Any]:
    """Rows of four features, with labels of a rare class that depend on the first one."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 4)), columns=list("abcd"))
    logits = weight * frame["a"].to_numpy()
    offset = np.log(share / (1 - share)) - weight**2 / 2
    return frame, (rng.random(rows) < expit(logits + offset)).astype(int)


def bagged(labels: Any) -> tuple[Any, Any]:
    bags = np.arange(len(labels)) // SIZE
    return bags, pd.Series(labels).groupby(bags).sum()


def log_loss(proba: FloatArray, labels: Any) -> float:
    return float(-np.log(np.where(labels == 1, proba, 1 - proba)).mean())


@pytest.mark.parametrize(("method", "params"), [("bag-mean-linear", {}), ("count-gbdt", {"trees": 100})])
def test_uninformative_features_give_rare_class_its_share(method: str, params: dict[str, Any]) -> None:
    frame, labels = table(0.0, 0.015)
    bags, counts = bagged(labels)
    with warned("few positives", match=f"^{labels.sum()} of 4,000 rows"):
        model = LLPClassifier(method, params=params).fit(frame, bags, counts=counts)
    new, truth = table(0.0, 0.015, seed=1)
    proba = model.predict_proba(new)[:, 1]
    share = labels.mean()
    assert proba.mean() == pytest.approx(share, rel=0.05)
    assert log_loss(proba, truth) < log_loss(np.full(ROWS, share), truth) * 1.02


def test_informative_features_keep_spread() -> None:
    frame, labels = table(3.0, 0.05, rows=10_000)
    bags, counts = bagged(labels)
    with silent("few positives"):
        model = LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counts)
    new, truth = table(3.0, 0.05, seed=1)
    proba = model.predict_proba(new)[:, 1]
    assert log_loss(proba, truth) < log_loss(np.full(ROWS, labels.mean()), truth) - 0.005


def test_saved_calibrated_model_predicts_same(tmp_path: Path) -> None:
    frame, labels = table(1.0, 0.015, rows=2000)
    bags, counts = bagged(labels)
    with warned("few positives"):
        model = LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counts)
    model.save(tmp_path / "model")
    loaded = LLPClassifier.load(tmp_path / "model")
    for of_rows in (None, bags):
        assert np.array_equal(loaded.predict_proba(frame, of_rows), model.predict_proba(frame, of_rows))


def test_fit_warns_of_collapsed_network() -> None:
    """A learning rate at which nothing is learned, from weights whose predictions hardly differ."""
    frame, labels = table(0.0, 0.3, rows=600)
    bags, counts = bagged(labels)
    with warned("same predictions"):
        LLPClassifier("dllp", params={"weight_decay": 0.5, "learning_rate": 0.05}, epochs=30).fit(
            frame * 0 + 1.0, bags, counts=counts
        )


@pytest.mark.parametrize("people", [0, 3, 40])
def test_small_class_among_three_keeps_share(people: int) -> None:
    """Ridge on bag means gives a class of nobody 2 % of all rows."""
    frame, labels = table(1.0, 0.4)
    labels[:: ROWS // people if people else 2 * ROWS][:people] = 2
    bags = np.arange(ROWS) // SIZE
    counts = pd.crosstab(bags, labels).reindex(columns=[0, 1, 2], fill_value=0)
    model = LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counts)
    assert model.predict_proba(frame).mean(axis=0) == pytest.approx(counts.sum() / ROWS, abs=3e-4)
    assert model.doubts_ is None


def test_negative_noisy_counts_do_not_raise_share() -> None:
    frame, labels = table(1.0, 0.015)
    bags, counts = bagged(labels)
    noisy = counts + np.random.default_rng(0).normal(0, 3, len(counts))
    given = pd.DataFrame({0: SIZE - noisy, 1: noisy})
    with warned("few positives", match=f"^{noisy.sum():,.0f} of 4,000 rows"):
        model = LLPClassifier("bag-mean-linear").fit(frame, bags, counts=given, noise=3.0)
    assert model.predict_proba(frame)[:, 1].mean() == pytest.approx(noisy.sum() / ROWS, rel=0.05)
    assert noisy.clip(lower=0).sum() > 1.3 * noisy.sum()


FRAME, BAGS, VOTES = people(600, 12)


@pytest.fixture(scope="module")
def model() -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(FRAME, BAGS, counts=counted(BAGS, VOTES))


def first_rows(number: int, label: Any) -> Any:
    found = BAGS.astype(object)
    found[:number] = label
    return found


@pytest.mark.parametrize(
    ("bags", "told"),
    [
        (first_rows(600, "far"), r"^all rows .* such as 'far' \(fit had 'd00' and 'd01'\):"),
        (first_rows(300, "far"), "^300 of 600 rows .* such as 'far'"),
        (first_rows(450, None), "^450 of 600 rows .* or in no bag:"),
    ],
)
def test_many_unknown_bags_are_warned_of(bags: Any, told: str, model: LLPClassifier) -> None:
    with warned("unknown bags", match=told):
        found = model.predict_proba(FRAME, bags)
    strange = ~np.isin(bags.astype(str), model.bags_.astype(str))
    assert np.array_equal(found[strange], model.predict_proba(FRAME)[strange])


def test_few_unknown_bags_raise_no_warning(model: LLPClassifier) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict_proba(FRAME, first_rows(100, "far"))
    assert np.array_equal(found[:100], model.predict_proba(FRAME)[:100])
