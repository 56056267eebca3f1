"""What counts of bags say of their rows: spread and effects, from predictions of bags that were held out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bagged import in_bags, rows_of
from districts import counted, people
from scipy.special import expit

from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.owndata.bag_effects import KnownBags, held_out_predictions, rare_classes, shows_features_help
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.fitting import FitSettings

SIZE = 40
BAG = np.repeat(np.arange(60), SIZE)


def log_loss(proba: FloatArray, labels: Any) -> float:
    return float(-np.log(np.where(labels == 1, proba, 1 - proba)).mean())


def bagged(logits: FloatArray, labels: Any) -> BaggedRows:
    """Bags of `SIZE` rows, one behind the other, whose only feature is a logit."""
    index = np.arange(len(labels)).reshape(-1, SIZE)
    positives = np.asarray(labels)[index].sum(axis=1)
    counts = np.stack([SIZE - positives, positives], axis=1)
    return in_bags(rows_of(logits[:, None].tolist()), index.tolist(), counts.tolist())


def two(share: FloatArray) -> FloatArray:
    return np.stack([1 - share, share], axis=1)


def drawn(share: FloatArray, seed: int = 1) -> IntArray:
    """Labels of rows with these probabilities."""
    return (np.random.default_rng(seed).random(len(share)) < share).astype(np.int64)


@pytest.fixture(scope="module")
def rows() -> tuple[FloatArray, FloatArray]:
    """Logits of rows in 60 random bags, and of each bag."""
    rng = np.random.default_rng(0)
    return rng.normal(0, 1.5, 60 * SIZE), rng.normal(0, 1, 60)[BAG]


def test_stable_predictions_keep_spread(rows: tuple[FloatArray, FloatArray]) -> None:
    logits, _ = rows
    known = bagged(logits, drawn(expit(logits)))
    learned = KnownBags.learn(known, two(expit(logits)), two(expit(logits)))
    assert learned.spread > 0.65
    assert learned.deviation < 0.15
    assert np.abs(learned.effects).max() < 0.2


def test_unstable_predictions_shrink_to_share(rows: tuple[FloatArray, FloatArray]) -> None:
    """In-sample predictions meet every bag; held-out ones are as far from them as chance."""
    logits, effects = rows
    truth, fitted = expit(0.3 * logits + effects), two(expit(logits + effects))
    held_out = two(expit(logits + np.random.default_rng(3).normal(0, 1, 60)[BAG]))
    known, fresh = bagged(logits, drawn(truth)), drawn(truth, seed=2)
    learned = KnownBags.learn(known, fitted, held_out)
    assert learned.spread < 0.45
    assert learned.deviation > 0.4
    in_sample = KnownBags.learn(known, fitted, None)
    loss = log_loss(learned(fitted, BAG)[:, 1], fresh)
    assert loss < log_loss(known.proportions[BAG, 1].clip(0.5 / SIZE, 1 - 0.5 / SIZE), fresh)
    assert loss < log_loss(in_sample(fitted, BAG)[:, 1], fresh) - 0.05


def test_unsupported_rows_get_bag_share(rows: tuple[FloatArray, FloatArray]) -> None:
    """Features order the rows of a bag the wrong way, and other bags do not say so."""
    logits, effects = rows
    truth = expit(-0.3 * logits + effects)
    known, fresh = bagged(logits, drawn(truth)), drawn(truth, seed=2)
    held_out = two(expit(logits + np.random.default_rng(3).normal(0, 1, 60)[BAG]))
    learned = KnownBags.learn(known, two(expit(logits)), held_out)
    assert learned.spread < 0.12
    proba, share = learned(two(expit(logits)), BAG)[:, 1], known.proportions[BAG, 1]
    assert log_loss(proba, fresh) < log_loss((SIZE * share + 0.5) / (SIZE + 1), fresh) + 0.02
    inside = proba[BAG == 7][np.argsort(logits[BAG == 7])]
    assert (np.diff(inside) > 0).all(), "rows keep their order"


def test_count_noise_is_not_taken_for_effect(rows: tuple[FloatArray, FloatArray]) -> None:
    logits, _ = rows
    rng, proba = np.random.default_rng(1), two(expit(logits))
    exact = bagged(logits, (rng.random(len(logits)) < expit(logits)).astype(np.int64))
    counts = exact.counts + rng.normal(0, 8, 60)[:, None] * [-1, 1]
    noisy = (replace(exact, counts=counts, noise=noise) for noise in (8.0, 0.0))
    deviations = [KnownBags.learn(each, proba, proba).deviation for each in noisy]
    assert deviations[0] < 0.25 < deviations[1]


def test_held_out_logits_use_unseen_bags() -> None:
    known = bagged(np.arange(10.0 * SIZE), np.arange(10 * SIZE) % 3 // 2)
    seen: list[tuple[set[float], set[float]]] = []

    def learn(part: BaggedRows, rows: Rows) -> FloatArray:
        seen.append(({*part.rows.numeric[:, 0]}, {*rows.numeric[:, 0]}))
        return two(rows.numeric[:, 0] / 1000)

    proba = held_out_predictions(known, learn, seed=0)
    assert len(seen) == 3
    assert all(not one & other for one, other in seen)
    assert np.allclose(proba[:, 1], known.rows.numeric[:, 0] / 1000, atol=0.01)


def test_overfitted_trees_use_counts() -> None:
    """Columns of the bag alone, as height and distance of a village, let trees meet every training bag."""
    rng = np.random.default_rng(0)
    bags = np.repeat(np.arange(60), 12)
    effect = rng.normal(0, 0.7, 60)[bags]
    frame = pd.DataFrame({"x": rng.normal(size=720), "height": rng.random(60)[bags], "way": rng.random(60)[bags]})
    labels = (rng.random(720) < expit(0.7 * frame["x"] + effect)).astype(int)
    model = LLPClassifier("count-gbdt", params={"trees": 400, "least": 1.0})
    model.fit(frame, bags, counts=counted(bags, labels)[1])
    new = frame.assign(x=rng.normal(size=720))
    truth = (rng.random(720) < expit(0.7 * new["x"] + effect)).astype(int)
    share = ((pd.Series(labels).groupby(bags).sum() + 0.5) / 13).to_numpy()[bags]
    by_features, by_bag = (model.predict_proba(new, bags=each)[:, 1] for each in (None, bags))
    assert log_loss(by_bag, truth) < log_loss(by_features, truth) - 0.01
    assert log_loss(by_bag, truth) < log_loss(share, truth) - 0.005


@pytest.mark.parametrize(("bags", "fits"), [(5, 1), (12, 4)])
def test_few_bags_are_not_held_out(bags: int, fits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    called, fit = [], FitSettings._predictor

    def counted_fit(self: FitSettings, *given: Any) -> Any:
        called.append(given)
        return fit(self, *given)

    monkeypatch.setattr(FitSettings, "_predictor", counted_fit)
    frame, where, votes = people(300, bags)
    model = LLPClassifier("bag-mean-linear").fit(frame, where, counts=counted(where, votes))
    for _ in range(2):
        model.predict_proba(frame, bags=where)
    assert len(called) == fits


def test_features_that_do_not_help_are_told_from_those_that_do() -> None:
    frame, bags, votes = people(1200, 60)
    model = LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counted(bags, votes))
    assert model.features_help() is True
    with_nobody = replace(model._known, counts=np.pad(model._known.counts, ((0, 0), (0, 1))))
    assert shows_features_help(with_nobody, np.column_stack([0.3 * model.predict_proba(frame), np.full(1200, 0.7)]))
    rng, shown = np.random.default_rng(0), []
    for _ in range(40):  # features and votes are independent
        noise = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("abc"))
        counts = counted(bags[:600], rng.integers(0, 2, 600))
        shown.append(LLPClassifier("bag-mean-linear").fit(noise, bags[:600], counts=counts).features_help())
    assert shown.count(True) <= 5
    few = np.arange(1200) % 4
    assert LLPClassifier("bag-mean-linear").fit(frame, few, counts=counted(few, votes)).features_help() is None


@pytest.mark.parametrize(
    ("bags", "positives", "expected"), [(20, 1, (True, True)), (800, 1, (False, True)), (800, 8, (False, False))]
)
def test_rare_classes_depend_on_bags_and_shares(bags: int, positives: int, expected: tuple[bool, bool]) -> None:
    nothing = np.zeros((30 * bags, 0))
    index = np.arange(30 * bags).reshape(bags, 30)
    known = BaggedRows(Rows(nothing, nothing, nothing), index, np.tile([30.0 - positives, positives], (bags, 1)))
    assert rare_classes(known) == expected
