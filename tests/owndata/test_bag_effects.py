"""What counts of bags say of their rows, from held-out bags; and what a fit or a prediction warns of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bagged import in_bags, rows_of
from districts import counted, people, reloaded, silent, warned
from scipy.special import expit, logit

from llpbench.core.bags import BaggedRows, FloatArray, IntArray, Rows
from llpbench.owndata.bag_effects import KnownBags, held_out_predictions, rare_classes, shows_features_help
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.doubts import Doubts
from llpbench.owndata.fitting import FitSettings

SIZE, ROWS = 40, 4000
BAG = np.repeat(np.arange(60), SIZE)
_RNG = np.random.default_rng(0)
LOGITS, EFFECTS = _RNG.normal(0, 1.5, 60 * SIZE), _RNG.normal(0, 1, 60)[BAG]  # of rows in random bags, and of each bag


def linear(frame: Any, bags: Any, counts: Any, **given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(frame, bags, counts=counts, **given)


def auto(frame: Any, bags: Any, counts: Any) -> LLPClassifier:
    return LLPClassifier(params={"trees": 200, "rounds": 2}).fit(frame, bags, counts=counts)


def log_loss(proba: FloatArray, labels: Any) -> float:
    return float(-np.log(np.where(labels == 1, proba, 1 - proba)).mean())


def bagged(logits: FloatArray, labels: Any) -> BaggedRows:
    """Bags of `SIZE` rows, one behind the other, whose only feature is a logit."""
    index, share = np.arange(len(labels)).reshape(-1, SIZE), np.reshape(labels, (-1, SIZE)).mean(axis=1)
    return in_bags(rows_of(logits[:, None]), index, np.rint(SIZE * two(share)))


def two(share: FloatArray) -> FloatArray:
    return np.stack([1 - share, share], axis=1)


def drawn(share: FloatArray, seed: int = 1) -> IntArray:
    """Labels of rows with these probabilities."""
    return (np.random.default_rng(seed).random(len(share)) < share).astype(np.int64)


PROBA = two(expit(LOGITS))
HELD_OUT = two(expit(LOGITS + np.random.default_rng(3).normal(0, 1, 60)[BAG]))
"""as far from the bags as chance"""


def test_stable_predictions_keep_spread_also_with_noisy_counts() -> None:
    known = bagged(LOGITS, drawn(expit(LOGITS)))
    learned = KnownBags.learn(known, PROBA, PROBA)
    assert learned.spread > 0.65
    assert learned.deviation < 0.15
    assert np.abs(learned.effects).max() < 0.2
    counts = known.counts + np.random.default_rng(1).normal(0, 8, 60)[:, None] * [-1, 1]  # noise is no effect of bags
    noisy = (replace(known, counts=counts, noise=noise) for noise in (8.0, 0.0))
    deviations = [KnownBags.learn(each, PROBA, PROBA).deviation for each in noisy]
    assert deviations[0] < 0.25 < deviations[1]


def test_unstable_predictions_shrink_to_share() -> None:
    """In-sample predictions have the shares of every bag; held-out ones do not."""
    truth, fitted = expit(0.3 * LOGITS + EFFECTS), two(expit(LOGITS + EFFECTS))
    known, fresh = bagged(LOGITS, drawn(truth)), drawn(truth, seed=2)
    learned, in_sample = (KnownBags.learn(known, fitted, held_out) for held_out in (HELD_OUT, None))
    assert learned.spread < 0.45
    assert learned.deviation > 0.4
    loss = log_loss(learned(fitted, BAG)[:, 1], fresh)
    assert loss < log_loss(known.proportions[BAG, 1].clip(0.5 / SIZE, 1 - 0.5 / SIZE), fresh)
    assert loss < log_loss(in_sample(fitted, BAG)[:, 1], fresh) - 0.05


def test_unsupported_rows_get_bag_share() -> None:
    """Features order the rows of a bag the wrong way, and other bags do not say so."""
    truth = expit(-0.3 * LOGITS + EFFECTS)
    known, fresh = bagged(LOGITS, drawn(truth)), drawn(truth, seed=2)
    learned = KnownBags.learn(known, PROBA, HELD_OUT)
    assert learned.spread < 0.12
    proba, share = learned(PROBA, BAG)[:, 1], known.proportions[BAG, 1]
    assert log_loss(proba, fresh) < log_loss((SIZE * share + 0.5) / (SIZE + 1), fresh) + 0.02
    inside = proba[BAG == 7][np.argsort(LOGITS[BAG == 7])]
    assert (np.diff(inside) > 0).all(), "rows keep their order"


def test_held_out_logits_use_unseen_bags() -> None:
    known = bagged(np.arange(10.0 * SIZE), np.arange(10 * SIZE) % 3 // 2)
    seen: list[tuple[set[float], set[float]]] = []

    def learn(part: BaggedRows, rows: Rows) -> FloatArray:
        seen.append(({*part.rows.numeric[:, 0]}, {*rows.numeric[:, 0]}))
        return two(rows.numeric[:, 0] / 1000)

    proba = held_out_predictions(known, learn, seed=0)
    assert proba is not None
    assert [not one & other for one, other in seen] == [True] * 3
    assert np.allclose(proba[:, 1], known.rows.numeric[:, 0] / 1000, atol=0.01)


def test_overfitted_trees_use_counts() -> None:
    """Columns of the bag alone, as height and distance of a village, let trees meet every training bag."""
    rng, bags = np.random.default_rng(0), np.repeat(np.arange(60), 12)
    effect = rng.normal(0, 0.7, 60)[bags]
    frame = pd.DataFrame({"x": rng.normal(size=720), "height": rng.random(60)[bags], "way": rng.random(60)[bags]})
    new = frame.assign(x=rng.normal(size=720))
    labels, truth = (drawn(expit(0.7 * rows["x"] + effect), seed) for seed, rows in enumerate((frame, new)))
    counts = pd.Series(labels).groupby(bags).sum()
    model = LLPClassifier("count-gbdt", params={"trees": 400, "least": 1.0}).fit(frame, bags, counts=counts)
    by_features, by_bag = (log_loss(model.predict_proba(new, bags=each)[:, 1], truth) for each in (None, bags))
    assert by_bag < by_features - 0.01
    assert by_bag < log_loss((counts.to_numpy()[bags] + 0.5) / 13, truth) - 0.005


@pytest.mark.parametrize(("bags", "fits"), [(5, 1), (12, 4)])
def test_few_bags_are_not_held_out(bags: int, fits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    called, fit = [], FitSettings._predictor

    def counted_fit(self: FitSettings, *given: Any) -> Any:
        called.append(given)
        return fit(self, *given)

    monkeypatch.setattr(FitSettings, "_predictor", counted_fit)
    frame, where, votes = people(300, bags)
    model = linear(frame, where, counted(where, votes))
    assert np.array_equal(model.predict_proba(frame, where), model.predict_proba(frame, where))
    assert len(called) == fits


def test_features_that_do_not_help_are_told_from_those_that_do() -> None:
    frame, bags, votes = people(1200, 60)
    model = linear(frame, bags, counted(bags, votes))
    assert model.features_help() is True
    known = model._known
    with_nobody = replace(known, counts=np.pad(known.counts, ((0, 0), (0, 1))))
    assert shows_features_help(with_nobody, np.column_stack([0.3 * model.predict_proba(frame), np.full(1200, 0.7)]))
    others = (known.counts.sum(axis=0) - known.counts) / (known.sizes.sum() - known.sizes)[:, None]
    between = (known.prior + others[known.bag_of_row]) / 2
    assert shows_features_help(known, between), "features are compared with the share of other bags, not of all"
    rng, shown = np.random.default_rng(0), []
    for _ in range(40):  # features and votes are independent
        noise, votes_of_noise = rng.normal(size=(600, 3)), rng.integers(0, 2, 600)
        shown.append(linear(noise, bags[:600], counted(bags[:600], votes_of_noise)).features_help())
    assert shown.count(True) <= 5
    few = np.arange(1200) % 4
    assert linear(frame, few, counted(few, votes)).features_help() is None


def test_rare_classes_depend_on_bags_and_shares() -> None:
    for bags, positives, expected in (20, 1, (True, True)), (800, 1, (False, True)), (800, 8, (False, False)):
        rows, index = rows_of([[0.0]] * (30 * bags)), np.arange(30 * bags).reshape(bags, 30)
        assert rare_classes(in_bags(rows, index, [[30.0 - positives, positives]] * bags)) == expected


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
    ids=str,
)
def test_warning_has_numbers(doubts: Doubts, told: list[str]) -> None:
    assert (bool(doubts.warning), "\n" in doubts.warning) == (bool(told), False)
    assert all(each in doubts.warning for each in told)


@pytest.mark.parametrize(
    ("bags", "shares", "told"),
    [
        (40, (0.1, 0.9), r"^[5-9]\d % of the variance of bags' proportions[^\n]*$"),  # an effect that no feature tells
        (8, (0.4, 0.4), "of the estimated effects of features is noise"),  # bags that differ by chance alone
    ],
)
def test_doubtful_bags_are_warned_of(bags: int, shares: tuple[float, float], told: str) -> None:
    rng, of_row = np.random.default_rng(0), np.repeat(np.arange(bags), 25)
    features = rng.normal(size=(2, 25 * bags)).T
    votes = 1 * (rng.random(25 * bags) < rng.uniform(*shares, bags)[of_row])
    with warned("doubts", told, times=1):
        model = auto(features, of_row, counted(of_row, votes))
    assert model.doubts_ is not None
    assert model.doubts_.confounded == (bags == 40)


@pytest.mark.parametrize("persons", [None, 0, 1], ids=["two classes", "nobody in a third", "one in a third"])
def test_explained_bags_are_not_warned_of_also_with_an_empty_class(persons: int | None) -> None:
    frame, bags, votes = people(600, 40)
    table = counted(bags, votes)
    if persons is not None:
        table[2] = 0
        table.iloc[0] += [-persons, 0, persons]
    with silent("" if persons is None else "doubts"):
        model = auto(frame, bags, table)
        assert linear(frame, bags, table).doubts_ is None
    assert model.doubts_ is not None
    assert (model.doubts_.warning, model.doubts_.agreement > 0.5, model.doubts_.noise < 0.7) == ("", True, True)
    assert (model.predict_proba(frame).mean(axis=0)[2:] < 0.02).all()


@pytest.mark.filterwarnings("ignore::llpbench.core.errors.LLPBenchWarning")
@pytest.mark.parametrize("more", [[0] * 6, [3, -2, 2, -3, 3, -3]])  # chi-squared 0 and 9.1, of 5 degrees of freedom
def test_bags_that_do_not_differ_significantly_are_not_confounded(more: list[int]) -> None:
    sizes = np.array([15, 18, 21, 24, 27, 30])
    model = auto(np.random.default_rng(0).normal(size=(135, 2)), np.repeat(np.arange(6), sizes), sizes // 3 + more)
    assert model.doubts_ is not None
    assert (model.doubts_.unexplained, model.doubts_.confounded) == (0.0, False)


def test_same_predictions_for_all_rows_are_warned_of() -> None:
    """Every bag has the same share; and a learning rate at which a network learns nothing."""
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=800)})
    bags, half = np.repeat(np.arange(20), 40), dict.fromkeys(range(20), 20)
    with warned("same predictions", match=r"^the model gives all rows the same probabilities \(0.5, 0.5\)"):
        linear(frame, bags, half)
    with silent():
        LLPClassifier("bag-share").fit(frame, bags, counts=half)
    params = {"weight_decay": 0.5, "learning_rate": 0.05}
    with warned("same predictions"):
        LLPClassifier("dllp", params=params, epochs=30).fit(frame * 0, bags, counts={bag: 8 + bag for bag in half})


def rare(weight: float, share: float, seed: int = 0, rows: int = ROWS) -> tuple[pd.DataFrame, Any, Any, Any]:
    """Rows of four features, with labels of a rare class that depend on the first one; bags of 50, and their counts."""
    rng, bags = np.random.default_rng(seed), np.arange(rows) // 50
    frame = pd.DataFrame(rng.normal(size=(rows, 4)), columns=[*"abcd"])
    labels = (rng.random(rows) < expit(weight * frame["a"].to_numpy() + logit(share) - weight**2 / 2)).astype(int)
    return frame, labels, bags, pd.Series(labels).groupby(bags).sum()


@pytest.mark.parametrize(
    ("method", "params", "share"),
    [("bag-mean-linear", {}, 0.015), ("bag-mean-linear", {}, 0.08), ("count-gbdt", {"trees": 100}, 0.015)],
)
def test_uninformative_features_give_rare_class_its_share(
    method: str, params: dict[str, Any], share: float, tmp_path: Path
) -> None:
    frame, labels, bags, counts = rare(0.0, share)
    with warned("few positives", match=f"^{labels.sum()} of 4,000 rows"):
        model = LLPClassifier(method, params=params).fit(frame, bags, counts=counts)
    new, truth, *_ = rare(0.0, share, seed=1)
    proba, mean = model.predict_proba(new)[:, 1], labels.mean()
    assert proba.mean() == pytest.approx(mean, rel=0.05)
    assert log_loss(proba, truth) < log_loss(0 * proba + mean, truth) * 1.02
    loaded = reloaded(model, tmp_path)
    for of_rows in (None, bags):
        assert np.array_equal(loaded.predict_proba(new, of_rows), model.predict_proba(new, of_rows))


def test_informative_features_keep_spread() -> None:
    frame, labels, bags, counts = rare(3.0, 0.05, rows=10_000)
    with silent("few positives"):
        model = linear(frame, bags, counts)
    new, truth, *_ = rare(3.0, 0.05, seed=1)
    assert log_loss(model.predict_proba(new)[:, 1], truth) < log_loss(np.full(ROWS, labels.mean()), truth) - 0.005


@pytest.mark.parametrize("people", [0, 3, 40], ids="{} people".format)
def test_small_class_among_three_keeps_share(people: int) -> None:
    """Ridge on bag means gives a class of nobody 2 % of all rows."""
    frame, labels, bags, _ = rare(1.0, 0.4)
    labels[:: ROWS // people if people else 2 * ROWS][:people] = 2
    counts = pd.crosstab(bags, labels).reindex(columns=[0, 1, 2], fill_value=0)
    model = linear(frame, bags, counts)
    assert model.predict_proba(frame).mean(axis=0) == pytest.approx(counts.sum() / ROWS, abs=3e-4)
    assert model.doubts_ is None


@pytest.mark.parametrize(("bags", "held_out"), [(5, False), (8, True)])
def test_warning_of_few_positives_has_no_evidence_without_held_out_bags(bags: int, held_out: bool) -> None:
    frame, _, where, _ = rare(0.0, 0.1, rows=50 * bags)
    with warned("few positives", times=1) as told:
        linear(frame, where, {bag: 4 + bag % 3 for bag in range(bags)})
    assert ("nats" in told[0]) == held_out


def test_negative_noisy_counts_do_not_raise_share() -> None:
    frame, _, bags, counts = rare(1.0, 0.015)
    noisy = counts + np.random.default_rng(0).normal(0, 3, len(counts))
    given = pd.DataFrame({0: 50 - noisy, 1: noisy})
    with warned("few positives", match=f"^{noisy.sum():,.0f} of 4,000 rows"):
        model = linear(frame, bags, given, noise=3.0)
    assert model.predict_proba(frame)[:, 1].mean() == pytest.approx(noisy.sum() / ROWS, rel=0.05)
    assert noisy.clip(lower=0).sum() > 1.3 * noisy.sum()


@pytest.mark.parametrize(
    ("number", "label", "told"),
    [
        (600, "far", r"^all rows .* such as 'far' \(fit had 'd00' and 'd01'\):"),
        (300, "far", "^300 of 600 rows .* such as 'far'"),
        (450, None, "^450 of 600 rows .* or in no bag:"),
        (100, "far", ""),
    ],
)
def test_many_unknown_bags_are_warned_of(number: int, label: Any, told: str) -> None:
    frame, bags, votes = people(600, 12)
    model, bags = linear(frame, bags, counted(bags, votes)), bags.astype(object)
    bags[:number] = label
    with warned("unknown bags", match=told) if told else silent():
        found = model.predict_proba(frame, bags)
    assert np.array_equal(found[:number], model.predict_proba(frame)[:number])
