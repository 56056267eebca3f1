"""Later bags are held out: what a time is, which bags a fold has, and what learns from them."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench.core.bags import FloatArray
from llpbench.core.errors import LLPBenchError
from llpbench.owndata.choosing import choose, held_to_trained, later_folds
from llpbench.owndata.times import as_times, read_times

BAGS = ["a", "b", "c"]
LINEAR = ["bag-mean-linear", "bag-soft-label-linear"]
FRAME, DISTRICTS, VOTES = people(200, 20)
COUNTS = counted(DISTRICTS, VOTES)


@pytest.mark.parametrize(
    "time",
    [
        {"c": 3, "a": 1.5, "b": 2},
        pd.Series(["2024-03-01", "2024-01-31", "2024-02-01"], index=["c", "a", "b"]),
        ["2024-01-31T10:00", "2024-01-31T11:00", "2024-02-01"],
        pd.date_range("2024-01-01", periods=3),
        [date(2023, 12, 31), "2024-01-01", np.datetime64("2024-01-02")],
        np.array(["9", "10", "11"]),
    ],
)
def test_times_of_any_form_order_bags(time: Any) -> None:
    assert (np.diff(read_times(time, BAGS, np.arange(3))) > 0).all()
    assert np.diff(as_times(["2024-02-28", "2024-03-01T12:00"])) == pytest.approx([2.5])


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (["2024-01-01", 5, 6], "got 5 and '2024-01-01'"),
        (["2024-01-01", "soon", "2024-01-02"], "got 'soon'"),
        (["2024-13-01", "2024-01-01", "2024-01-02"], "got '2024-13-01'"),
        ([1, None, 3], "1 bag"),
        ([1, 2], "3 bags, got 2"),
        ({"a": 1, "c": 2}, "none for bag 'b'"),
        (pd.Series([1, 2, 3, 4], index=[*BAGS, "a"]), "two entries for bag 'a'"),
        (5, "got 5"),
        ([True, False, True], "got True"),
    ],
)
def test_invalid_time_is_refused(time: Any, told: str) -> None:
    with pytest.raises(LLPBenchError, match=f"^[^\n]*{told}[^\n]*$"):
        read_times(time, BAGS, np.arange(3))


def test_time_folds_train_on_earlier_bags_only() -> None:
    rng = np.random.default_rng(0)
    times = rng.integers(0, 30, 60).astype(float)
    counts: FloatArray = np.ones((60, 2))
    counts[::7] = np.nan
    parts = list(later_folds(counts, times, 4))
    known = np.asarray(~np.isnan(counts).any(axis=1))
    assert len(parts) == 4
    for part in parts:
        assert times[part.train].max() < times[part.held].min()
        assert (part.train == (times < times[part.held].min())).all()
        assert known[part.held].all()
        assert 6 <= len(part.held) <= 16
    held = np.concatenate([part.held for part in parts])
    assert len(set(held)) == len(held)
    assert {*held} == {*np.flatnonzero(known & (times >= times[parts[0].held].min()))}
    ratio = np.mean([len(part.held) / (part.train & known).sum() for part in parts])
    assert held_to_trained(parts, counts) == pytest.approx(ratio)


@pytest.mark.parametrize("times", [[0.0] * 6, [0.0, 0, 0, 1, 1, 1], [0.0, 1, 2, 3, 3, 3]])
def test_too_few_times_are_refused(times: list[float]) -> None:
    with pytest.raises(LLPBenchError, match="fewer folds"):
        list(later_folds(np.ones((6, 2)), np.array(times), 3))


def test_time_folds_reveal_drift() -> None:
    """A feature that counts the days explains shares of days between those seen, and misleads beyond them."""
    rng = np.random.default_rng(0)
    day = np.repeat(np.arange(30), 10)
    frame = pd.DataFrame({"day": day + rng.normal(0, 0.1, 300), "noise": rng.normal(size=300)})
    share = np.where(np.arange(30) < 15, np.arange(30), 30 - np.arange(30)) / 16
    counts = dict(enumerate(np.round(10 * share)))
    given: dict[str, Any] = {"counts": counts, "methods": LINEAR, "folds": 3, "progress": False}
    random = choose(frame, day, repeats=1, **given)
    later = choose(frame, day, time={bag: bag for bag in counts}, **given)
    assert later.later
    assert not random.later
    assert len(later.folds) == 3 * 3
    assert later.board["kl"].min() > 1.5 * random.board["kl"].min()


def test_time_needs_one_repeat() -> None:
    with pytest.raises(LLPBenchError, match="repeats"):
        choose(FRAME, DISTRICTS, counts=COUNTS, time=range(20), repeats=2)
