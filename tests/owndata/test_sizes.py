"""What a fit costs and shows: bags and tables of all sizes, threads, and the stage of a long fit."""

from __future__ import annotations

import functools
import io
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bagged import in_bags, rows_of
from bench import refusal
from districts import counted, people
from rich.console import Console
from threadpoolctl import threadpool_info

from llpbench import LLPClassifier
from llpbench.blocks import bag_process, trees
from llpbench.blocks.side_by_side import workers
from llpbench.blocks.trees import _later
from llpbench.core.bags import BaggedRows, Holdout, IntArray, Ragged
from llpbench.core.metrics import holdout_criteria
from llpbench.data.bag_tables import BagLabels
from llpbench.owndata import fitted, fitting
from llpbench.owndata.fitting import FitSettings


def bagged(seed: int = 0, rows: int = 60, bags: int = 7) -> tuple[BaggedRows, BaggedRows]:
    """The same bags, padded and not."""
    rng = np.random.default_rng(seed)
    of_row = rng.permutation(np.append(np.arange(bags), rng.integers(0, bags, rows - bags)))
    sizes = np.bincount(of_row)
    counts = np.stack([sizes - sizes // 3, sizes // 3], axis=1).astype(float)
    counts[2] = np.nan
    index = [np.flatnonzero(of_row == bag).tolist() for bag in range(bags)]
    padded = in_bags(rows_of(rng.normal(size=(rows, 2)).tolist()), index, counts.tolist())
    return padded, replace(padded, index=BagLabels(of_row, [*range(bags)]).index())


def test_criteria_of_unpadded_bags_equal_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    padded, ragged = bagged()
    p = np.random.default_rng(1).random(60)
    proba = np.stack([1 - p, p], axis=1)
    expected = holdout_criteria(proba, Holdout(padded.rows, padded.index, padded.counts, labels=None))
    names = ("mpiou", "mpiou-hard", "l1", "l1-hard", "kl", "likelihood")
    for most in (fitting.MOST_PADDED, 40):
        monkeypatch.setattr(fitted, "MOST_PADDED", most)
        assert fitted.coarse_criteria(proba, ragged) == pytest.approx({name: expected[name] for name in names})


def test_large_bags_train_networks_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, ragged = bagged()
    monkeypatch.setattr(fitting, "_LARGEST_IN_STEP", 4)
    parts = fitting._in_parts(ragged, np.random.default_rng(0))
    assert parts.sizes.max() == 4
    assert sorted(parts.bag_by_bag) == list(range(60))
    whole = ragged.bag_of_row[[rows[0] for rows in parts.index]]
    assert all((ragged.bag_of_row[rows] == bag).all() for rows, bag in zip(parts.index, whole, strict=True))
    assert np.allclose(parts.proportions, ragged.proportions[whole])
    assert np.array_equal(parts.known, ragged.known[whole])


def test_large_bags_are_not_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_PADDED", 100)
    of_row = np.append(np.repeat(np.arange(60), 2), np.full(500, 60))
    bags = replace(bagged(rows=620)[1], index=BagLabels(of_row, [*range(61)]).index(), counts=np.ones((61, 2)))
    assert not any(fitting._held_out(bags, 0.5, seed)[60] for seed in range(20))


@pytest.mark.parametrize("method", ["count-gbdt", "dllp"])
def test_large_bag_causes_little_padding(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 bags of a row and one of 1,000: a padded index has a million places."""
    cells: list[int] = []
    padded = BaggedRows.padded

    def watched(self: BaggedRows, bags: IntArray, width: int) -> IntArray:
        cells.append(len(bags) * width)
        return padded(self, bags, width)

    monkeypatch.setattr(BaggedRows, "padded", watched)
    monkeypatch.setattr(fitting, "MOST_PADDED", 10_000)
    frame, _, votes = people(2000, 10)
    bags = np.arange(2000).clip(max=1000)
    table = counted(bags, votes)
    settings: dict[str, Any] = (
        {"params": {"trees": 100}} if method == "count-gbdt" else {"epochs": 1, "bags_per_step": 16}
    )
    model = LLPClassifier(method, **settings).fit(frame, bags, counts=table)
    assert isinstance(model._known.index, Ragged)
    model.score_bags(frame, bags, counts=table)
    assert max(cells) < 10_000


def test_one_class_per_row_is_refused() -> None:
    bags = np.repeat([0, 1, 2], 10)
    counts = pd.DataFrame(np.equal.outer(range(3), bags) * 1, columns=[f"row {number}" for number in range(30)])
    frame = pd.DataFrame({"a": np.arange(30.0) % 7})
    with refusal("30 classes for 30 rows"):
        LLPClassifier("bag-share").fit(frame, bags, counts=counts)
    LLPClassifier("bag-share").fit(pd.concat([frame] * 5), np.tile(bags, 5), counts=5 * counts)


def test_auto_is_independent_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag_process, "_SCORED", 2)
    grown: dict[int | None, int] = {}

    def watched(compute: object) -> object:
        return _later(lambda: (compute(), grown.setdefault(jobs, threading.get_ident()))[0])  # type: ignore[operator]

    monkeypatch.setattr(trees, "_later", watched)
    (frame, bags, votes), found = people(240, 30), []
    for jobs in (1, 2):
        model = LLPClassifier(n_jobs=jobs, random_state=3).fit(frame, bags, counts=counted(bags, votes))
        found.append(model.predict_proba(frame))
    assert np.allclose(found[0], found[1], atol=1e-6), "two threads may add up in another order"
    assert grown[1] == threading.get_ident() != grown[2]


def test_small_tables_use_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(5), raising=False)
    large = fitting._SMALL + 1
    for jobs, rows, blas, expected in (None, 9, 1, 1), (-1, 9, 1, 5), (1, 9, 1, 1), (2, 9, 1, 2), (2, large, 2, 2):
        with FitSettings(n_jobs=jobs)._threads(rows):
            assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {blas}
            assert workers() == expected


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_in_terminal_only(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    screen = io.StringIO()
    console = functools.partial(Console, file=screen, force_terminal=terminal, width=100, highlight=False)
    monkeypatch.setattr(fitting, "Console", lambda **_: console())
    monkeypatch.delenv("NO_COLOR", raising=False)
    with fitting.progress_display() as display:
        display.add_task("sample of bags", total=None)
    assert ("sample of bags" in screen.getvalue()) == terminal
    assert terminal or not screen.getvalue().strip()
