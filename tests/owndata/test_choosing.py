"""`choose`: held-out bags, honest intervals, and advice that says when it cannot tell."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import refusal
from districts import counted, people
from scipy.stats import ttest_1samp

from llpbench.core.bags import FloatArray, Rows
from llpbench.core.method import Predictor
from llpbench.data.bag_tables import BagLabels
from llpbench.data.reading_bags import values_of_bags
from llpbench.owndata import choosing
from llpbench.owndata.choosing import DECIDES, MethodChoice, _as_times, _corrected, _later_folds, choose
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.doubts import Doubts
from llpbench.owndata.fitting import YARDSTICK

LINEAR = ("bag-mean-linear", "bag-soft-label-linear")
BETTER, UNSURE, WORSE = (0.5, 0.1, 0.9), (0.5, -0.1, 1.1), (-2.0, -3.0, -1.0)
ONE_BAG = pd.DataFrame({"no": [15] * 19 + [14], "yes": [0] * 19 + [1]})
FRAME, BAGS, VOTES = people(300, 20)
TABLE = counted(BAGS, VOTES)


def chosen(**more: Any) -> MethodChoice:
    return choose(**{"X": FRAME, "bags": BAGS, "counts": TABLE, "methods": LINEAR, "repeats": 1, "folds": 3} | more)


@pytest.fixture(scope="module")
def found() -> MethodChoice:
    return chosen(repeats=2)


def test_scores_are_of_held_out_bags_whose_own_columns_are_dropped(found: MethodChoice) -> None:
    records = chosen(folds=4).folds.query(f"method == '{LINEAR[0]}'").to_dict("records")
    for given, fold in zip(records, choosing._random_folds(TABLE.to_numpy(dtype=float), 4, 1, 0), strict=True):
        names = TABLE.index[fold.held]
        out = np.isin(BAGS, names)
        model = LLPClassifier(LINEAR[0]).fit(FRAME[~out], BAGS[~out], counts=TABLE.drop(names))

        def shrunk(rows: Rows, predict: Predictor = model._model.predictor, uniform: float = 0.5 / sum(~out)) -> Any:
            return (1 - uniform) * predict(rows) + uniform / 2  # what a fold does to predictions

        model._model = replace(model._model, predictor=shrunk)
        scores = model.score_bags(FRAME[out], BAGS[out], counts=TABLE.loc[names])
        assert scores == pytest.approx({name: given[name] for name in scores})
    of_one = pd.DataFrame({"number": 1.5, "remark": "text"}, FRAME.index[BAGS == "d03"], dtype=object)
    wider, plain = (each.folds.query(f"method == '{LINEAR[0]}'") for each in (chosen(X=FRAME.join(of_one)), found))
    assert np.isclose(wider[DECIDES], plain[DECIDES][:3]).sum() == 1  # the fold of this bag


def test_intervals_are_corrected_for_overlapping_training() -> None:
    gains = np.random.default_rng(0).normal(1.0, 1.0, 10)
    naive, honest = _corrected(gains, 0.0)[1:], _corrected(gains, 0.25)[1:]
    assert naive == pytest.approx(tuple(ttest_1samp(gains, 0.0).confidence_interval()))
    assert np.ptp(honest) == pytest.approx(np.ptp(naive) * np.sqrt((0.1 + 0.25) / 0.1))
    assert _corrected(gains, 0.25, comparisons=5)[1] < honest[0]


def test_only_intervals_of_methods_depend_on_their_number(found: MethodChoice) -> None:
    more = pd.concat([found.folds, found.folds.assign(method=found.folds["method"] + " again")])
    few, many = (choosing.compared(folds, LINEAR[0], 0.5).set_index("method") for folds in (found.folds, more))
    assert few.loc[YARDSTICK, "high"] == many.loc[YARDSTICK, "high"]
    assert few.loc[LINEAR[1], "high"] < many.loc[LINEAR[1], "high"]


@pytest.mark.parametrize(
    ("gains", "unexplained", "best", "told"),
    [
        ({"one": UNSURE, "two": WORSE}, 0.0, "auto", "one"),
        ({"one": BETTER, "two": (0.4, 0.2, 0.6)}, 0.0, "one", r"0\.5000 \[0\.1000, 0\.9000\]"),
        ({"two": WORSE}, 0.0, "auto", "(?s)(?=.*two).*off by 6.0 points"),
        ({YARDSTICK: (-0.1, -0.4, 0.2)}, 0.0, "auto", "too few"),
        ({"one": BETTER}, 0.3, "auto", r"one .*0\.5000 \[0\.1000, 0\.9000\] .*30 %"),  # confounded
    ],
)
def test_advice_states_what_is_known(gains: dict[str, Any], unexplained: float, best: str, told: str) -> None:
    """Gains over `auto`, with their intervals."""
    board = [
        {"method": name, "gain": gain, "low": low, "high": high, "l1": 0.24 if name == YARDSTICK else 0.12}
        for name, (gain, low, high) in ({"auto": (0.0, 0.0, 0.0), YARDSTICK: (-3.0, -4.0, -2.0)} | gains).items()
    ]
    doubts = Doubts(unexplained=unexplained, noise=0.5, agreement=0.9)
    chosen, advice = choosing._advised(pd.DataFrame(board), "auto", doubts, {"auto"} if YARDSTICK in gains else ())
    assert (chosen, bool(re.search(told, advice))) == (best, True)


def test_best_mean_replaces_absent_auto_also_with_suppressed_bags_and_a_class_in_one_bag() -> None:
    """`shares` knows no feature, so that the yardstick ties it; no bag without counts or with the class is held out."""
    methods = {"shares": LLPClassifier(YARDSTICK), "linear": LLPClassifier(LINEAR[0])}
    frame, bags, votes = people(1200, 60)
    table = counted(bags, votes).assign(rare=0.0).set_axis(["no", "yes", "rare"], axis=1)
    table.loc["d07", ["no", "rare"]] += [-1, 1]
    table.loc["d03"] = np.nan
    found = choose(frame, bags, counts=table, methods=methods)
    assert (found.reference, found.best, found.board[DECIDES].max() < 1.0) == ("linear", "linear", True)
    assert not re.search(f"too few|{YARDSTICK}", found.advice)


def test_folds_hold_out_all_bags_once_per_repeat_and_baseline_is_no_candidate(found: MethodChoice) -> None:
    assert (len(found.folds), found.board["method"][0]) == (2 * 3 * 3, "bag-mean-linear")
    assert set(found.board["method"]) == {*LINEAR, YARDSTICK}
    two = chosen(methods=f"{YARDSTICK}, {LINEAR[0]}")
    assert (two.reference, two.best, {*two.board["method"]}) == (LINEAR[0], LINEAR[0], {YARDSTICK, LINEAR[0]})
    first = found.folds.query("repeat == 0")
    assert np.allclose(chosen(methods=[YARDSTICK, *LINEAR]).folds[DECIDES], first[DECIDES])


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"time": range(20), "repeats": 2}, "repeats must be 1 with time="),
        ({"repeats": 0}, "repeats must be a whole number from 1, got 0"),
        ({"methods": ["auto"]}, "must be two or more, got ['bag-gp-gbdt']"),
        ({"methods": ["auto", "nothing"]}, "nothing"),
        ({"methods": {"one": "bag-gp", "two": LLPClassifier()}}, "'one' must be an LLPClassifier, got 'bag-gp'"),
        ({"methods": {1: LLPClassifier(), 2: LLPClassifier("bag-gp")}}, "methods must be names"),
        ({"methods": {YARDSTICK: LLPClassifier(), "one": LLPClassifier("bag-gp")}}, repr(YARDSTICK)),
        ({"counts": ONE_BAG, "bags": np.arange(300) // 15}, "class 'yes' must be in more bags, got 1 of 20"),
        ({"classes": ["no", "yes", "maybe"]}, "classes"),
    ],
)
def test_impossible_comparison_is_refused(more: dict[str, Any], told: str) -> None:
    with refusal(re.escape(told)):
        chosen(**more)


@pytest.mark.usefixtures("tiny_bench")
def test_failing_method_is_a_row_with_reason(found: MethodChoice) -> None:
    wrong = {"auto": LLPClassifier("auto", params={"nonsense": 1}), "broken": LLPClassifier("broken")}
    some = chosen(repeats=2, methods=wrong | {name: LLPClassifier(name) for name in LINEAR})
    failed = some.board.set_index("method").loc[["auto", "broken"]]
    assert re.search(r"nonsense.*\n.*no luck \(tiny_bench.py:", "\n".join(failed.pop("failure")))
    assert failed.isna().all(axis=None)
    fleeting = ["seconds", "failure"]
    pd.testing.assert_frame_equal(some.board.iloc[:-2].drop(columns=fleeting), found.board.drop(columns=fleeting))
    assert (some.reference, some.best, some.union) == (LINEAR[0], found.best, None)
    with refusal("no luck"):
        chosen(methods={"broken": LLPClassifier("broken"), "other": LLPClassifier("broken")})
    with refusal(r"'broken' failed: ValueError: no luck \(tiny_bench.py:"):
        LLPClassifier("broken").fit(FRAME, BAGS, counts=TABLE)


def test_interrupted_comparison_keeps_finished_folds(found: MethodChoice, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = LLPClassifier.fit

    def interrupted(*given: Any, **more: Any) -> Any:
        if next(fits) == stop:
            raise KeyboardInterrupt
        return fit(*given, **more)

    monkeypatch.setattr(LLPClassifier, "fit", interrupted)
    fits, stop = count(1), 1 + 2 * 3 + 2  # in the third fold; the first fit checks the bags
    some = chosen(repeats=2)
    expected = found.folds.query("repeat == 0 and fold < 2")
    pd.testing.assert_frame_equal(some.folds.drop(columns="seconds"), expected.drop(columns="seconds"))
    assert "2 of 6 folds" in some.advice
    methods = {"auto": LLPClassifier("bag-mean-linear"), LINEAR[1]: LLPClassifier(LINEAR[1])}
    monkeypatch.setattr(choosing, "AUTO", "bag-mean-linear")
    fits, stop = count(1), 1 + 3 * 3 + 1  # the fit to all bags
    last = chosen(methods=methods)
    assert (len(last.folds), last.reference, last.union, "3 of 3 folds" in last.advice) == (9, "auto", None, True)
    fits, stop = count(1), 1 + 3 + 1
    with pytest.raises(KeyboardInterrupt):
        chosen(repeats=2)


def times(given: Any) -> FloatArray:
    """Times of three bags with a row each."""
    return values_of_bags(given, "time", ["a", "b", "c"], BagLabels(np.arange(3), ["a", "b", "c"]), _as_times)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"c": 3, "a": 1.5, "b": 2}, id="mapping"),
        pytest.param(pd.Series(["2024-03-01", "2024-01-31", "2024-02-01"], index=["c", "a", "b"]), id="dates as texts"),
        pytest.param(["2024-01-31T10:00", "2024-01-31T11:00 ", "2024-02-01"], id="times of day"),
        pytest.param(pd.date_range("2024-01-01", periods=3), id="dates"),
        pytest.param([date(2023, 12, 31), "2024-01-01", np.datetime64("2024-01-02")], id="all kinds of dates"),
        pytest.param(np.array(["9", "10", "11"]), id="numbers as texts"),
    ],
)
def test_times_of_any_form_order_bags(given: Any) -> None:
    assert (np.diff(times(given)) > 0).all()
    assert np.diff(_as_times(["2024-02-28", "2024-03-01T12:00"])) == pytest.approx([2.5])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["2024-01-01", 5, 6], "got '2024-01-01'"),
        (["2024-01-01", "soon", "2024-01-02"], "got 'soon'"),
        (["2024-13-01", "2024-01-01", "2024-01-02"], "got '2024-13-01'"),
        ([1, None, 3], "got nan"),
        ([pd.NaT, pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")], "got NaT"),
        ([1, 2], "3 bags, got 2"),
        ({"a": 1, "c": 2}, "none for 1 bag .'b'"),
        (pd.Series([1, 2, 3, 4], index=["a", "b", "c", "a"]), "two for 'a'"),
        (5, "got 5"),
    ],
)
def test_invalid_time_is_refused(given: Any, told: str) -> None:
    with refusal(f"^time.*{told}"):
        times(given)


def test_time_folds_train_on_earlier_bags_only_and_need_different_times() -> None:
    times = np.random.default_rng(0).integers(0, 30, 60).astype(float)
    known = np.arange(60) % 7 > 0
    parts = list(_later_folds(np.where(known[:, None], [1.0, 1.0], np.nan), times, 4))
    for part in parts:
        assert (part.train == (times < times[part.held].min())).all()
    assert [6 <= len(part.held) <= 16 for part in parts] == [True] * 4
    held = np.concatenate([part.held for part in parts])
    assert sorted(held) == [*np.flatnonzero(known & (times >= times[parts[0].held].min()))]
    for few in ([0] * 6, [0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 3, 3]):
        with refusal("fewer folds"):
            list(_later_folds(np.ones((6, 2)), np.array(few, float), 3))


def test_time_folds_reveal_drift() -> None:
    """A feature that counts the days explains shares of days between those seen, and misleads beyond them."""
    rng, day = np.random.default_rng(0), np.repeat(np.arange(30), 10)
    frame = pd.DataFrame({"day": day + rng.normal(0, 0.1, 300), "noise": rng.normal(size=300)})
    counts = np.round(np.minimum(np.arange(30), 30 - np.arange(30)) / 1.6)
    random, later = (chosen(X=frame, bags=day, counts=counts, time=time) for time in (None, range(30)))
    assert (later.later, random.later, len(later.folds)) == (True, False, 3 * 3)
    assert later.board["kl"].min() > 1.5 * random.board["kl"].min()
