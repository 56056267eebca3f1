"""Plots of searches, the importance of their hyperparameters, and what tuning changes in the order of methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from factory import make_cell_of, make_record

from llpbench.core.criteria import Regime
from llpbench.core.record import Record, TuningRecord
from llpbench.core.tunings import Tuning
from llpbench.report.boards import Board
from llpbench.report.importance import Importance, compared, importance
from llpbench.report.pages import pages
from llpbench.report.plots import draw_all
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.search_history import search_histories
from llpbench.report.plots.search_importance import search_importances
from llpbench.report.tabulate import tabulate
from llpbench.report.tuning_order import tuning_order

SPACE: dict[str, dict[str, Any]] = {
    "rate": {"low": 1e-5, "high": 1e-1, "log": True},
    "size": {"choices": [1, 2, 4]},
    "mode": {"choices": ["a", "b"]},
    "only_b": {"low": 0.0, "high": 1.0, "when": {"mode": ["b"]}},
}
START = {"rate": 1e-3, "size": 2, "mode": "a", "only_b": 0.5, "fixed": 7}


def trial(number: int, params: Mapping[str, Any], value: float | None, **changes: Any) -> dict[str, Any]:
    values = {} if value is None else {"auc": value, "kl": value, "l1": value, "mpiou": value}
    usual: dict[str, Any] = {"number": number, "params": params, "status": "ok", "values": values, "rungs": []}
    return {**usual, **changes}


def search(
    method: str = "dllp", trials: int = 40, size: int = 256, regime: Regime = "fine", role: str = ""
) -> TuningRecord:
    """Only the rate matters, and what is only of mode b a little there; the best is trial 1."""
    rng = np.random.default_rng(0)
    start = replace(make_cell_of(method, size), params=START)
    made = [trial(0, dict(START), 0.5)]
    for number in range(1, trials):
        rate, mode = float(10 ** rng.uniform(-5, -1)), "ab"[number % 2]
        params = {"rate": rate, "size": int(rng.choice([1, 2, 4])), "mode": mode}
        only_b = float(rng.uniform()) if mode == "b" else 0.5
        extra = {"only_b": only_b} if mode == "b" else {}
        value = 0.9 if number == 1 else 0.8 + 0.02 * math.log10(rate) + 0.02 * only_b
        made.append(trial(number, params | extra, value))
    tuning = Tuning(start, regime, trials, SPACE)
    run: dict[str, Any] = {**make_record(start)}
    names = ("schema", "status", "reason", "dataset", "memory_mb", "sources", "numerics", "code")
    kept = {name: run[name] for name in (*names, "libraries", "hardware", "finished")}
    chosen = replace(start, params={**START, "rate": 0.1})
    best = {"trial": 1, "cell": chosen.id, "params": chosen.params, "value": 0.9, "default": 0.5}
    declared = {**run["method"], "role": role, "changed": {}}
    own = {"tuning": tuning.id, "spec": tuning.spec, "best": dict.fromkeys(tuning.boards, best), "trials": made}
    return cast(TuningRecord, {**kept, **own, "method": declared, "times": {"total": 1.0}, "epochs": 9})


def runs(found: TuningRecord, default: float, tuned: float | None) -> Iterator[Record]:
    """Two seeds of what a search started from, and of what it has chosen."""
    start = Tuning.of(found["spec"]).cell
    for cell, auc, changed in (
        (start, default, {}),
        (replace(start, params={**START, "rate": 0.1}), tuned, {"rate": 0.1}),
    ):
        if auc is None:
            continue
        for seed in range(2):
            run = make_record(cell, seed)
            run["method"] = {**run["method"], "role": found["method"]["role"], "changed": changed}
            for result in run["results"].values():
                result["test"] = {**result["test"], "auc": auc + seed / 1000}
            yield run


def boards(*made: tuple[TuningRecord, float, float | None]) -> list[Board]:
    records = [run for found, default, tuned in made for run in runs(found, default, tuned)]
    return list(tabulate(records, tunings=[found for found, _, _ in made]).boards)


def test_the_hyperparameter_that_matters_has_nearly_all_the_variance() -> None:
    found = importance(search())
    assert isinstance(found, Importance)
    assert (found.trials, found.epochs) == (40, None)
    assert list(found.shares) == sorted(SPACE)
    assert found.shares["rate"] > 70
    assert sum(found.shares.values()) <= 101
    assert all(share < 15 for name, share in found.shares.items() if name != "rate")
    assert importance(search()) == found, "the same again"


def test_without_a_pattern_or_with_few_trials_nothing_is_told() -> None:
    assert importance(search(trials=9)) == "only 9 trials of at least 10"
    noise, equal, rng = search(), search(), np.random.default_rng(1)
    for one, other in zip(noise["trials"], equal["trials"], strict=True):
        one["values"], other["values"] = {"auc": float(rng.normal())}, {"auc": 0.5}
    assert importance(noise) == "no pattern in its trials"
    assert importance(equal) == "all trials equal"


def test_trials_are_compared_where_all_that_were_stopped_have_been() -> None:
    found = search(trials=20)
    for number, each in enumerate(found["trials"]):
        each["rungs"] = [[3, 0.1 * number]] if number % 2 else [[3, 0.1 * number], [9, 0.9]]
        each["status"] = "stopped" if number % 3 else "ok"
    found["trials"][1]["rungs"] = [[3, None]]
    found["trials"][2] |= {"status": "failed", "rungs": [], "values": {}}
    trials, values, epochs = compared(found)
    assert epochs == 3
    assert [each["number"] for each in trials] == [0, *range(3, 20)]
    assert values == pytest.approx([0.0, *(0.1 * number for number in range(3, 20))])


def pictures(board: Board, tunings: list[TuningRecord]) -> list[Drawing]:
    return [*search_histories(board, tunings, "x"), *search_importances(board, tunings, "x")]


def drawn(found: TuningRecord) -> list[Drawing]:
    (board,) = [each for each in boards((found, 0.8, 0.9)) if each.criterion.name == "auc"]
    return pictures(board, [found])


def test_a_course_shows_every_trial_the_best_so_far_and_the_default() -> None:
    found = search(trials=12)
    found["trials"][3] |= {"status": "stopped", "rungs": [[3, 0.7]]}
    found["trials"][4] |= {"status": "failed", "values": {}}
    history, shares = drawn(found)
    assert (history.about.kind, shares.about.kind) == ("search-history", "search-importance")
    (ax,) = history.figure.axes
    assert ax.get_title() == "dllp\nadult 256"
    assert ax.get_ylabel() == "AUC × 100"
    assert "AUC of validation rows × 100" in history.about.caption
    lines = {(line.get_marker(), line.get_linestyle()): line for line in ax.lines}
    assert list(lines["o", "None"].get_xdata()) == [0, 1, 2, *range(5, 12)]  # type: ignore[arg-type]
    assert list(lines["x", "None"].get_xdata()) == [3]  # type: ignore[arg-type]
    assert list(lines["|", "None"].get_xdata()) == [4]  # type: ignore[arg-type]
    best = lines["None", "-"]
    assert list(zip(best.get_xdata(), best.get_ydata(), strict=True)) == [(0, 50), (1, 90), (11, 90)]  # type: ignore[arg-type]
    assert list(lines["None", "--"].get_ydata()) == [50, 50]  # type: ignore[arg-type]


def test_trials_beyond_a_panel_are_arrows_and_a_legend_names_what_is_there() -> None:
    found = search(trials=12)
    usual, _ = drawn(found)
    found["trials"][5]["values"] = {"auc": 0.01}
    found["trials"][6] |= {"status": "failed", "values": {}}
    far, shares = drawn(found)
    for history, there in ((usual, False), (far, True)):
        texts = {text.get_text() for text in history.figure.legends[0].get_texts()}
        assert ("failed" in texts) == ("beyond the panel" in texts) == there
    (ax,) = far.figure.axes
    arrows = [line for line in ax.lines if line.get_marker() == "v"]
    assert [list(line.get_xdata()) for line in arrows] == [[5]]  # type: ignore[arg-type]
    assert shares.about.note.startswith("% of the variance")


def test_importance_says_from_how_many_trials_and_a_gap_where_nothing_can_be_told() -> None:
    _, shares = drawn(search())
    assert "40 trials a search, at their end" in shares.about.caption
    (ax,) = shares.figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == sorted(SPACE)
    shares.figure.draw_without_rendering()
    bars = max(patch.get_window_extent().x1 for patch in ax.patches)
    assert min(text.get_window_extent().x0 for text in ax.texts) > bars, "numbers stand on the ground alone"
    assert max(text.get_window_extent().x0 for text in ax.texts) < bars + 40, "and beside their bars"
    _, few = drawn(search(trials=5))
    assert {text.get_text() for text in few.figure.axes[0].texts} == {"–"}
    assert "of none here" in few.about.caption
    assert "–: nothing can be told of dllp on adult 256 (only 5 trials of at least 10)." in few.about.caption


def test_many_searches_fill_pages_and_no_more_than_there_is_room_for(tmp_path: Path) -> None:
    found = [search(f"m{n}", 5, size) for n in range(9) for size in (4, 8, 16)]
    records = [run for each in found for run in runs(each, 0.8, 0.9)]
    (board,) = [each for each in tabulate(records, tunings=found).boards if each.criterion.name == "auc"]
    many = pictures(board, found)
    assert [each.about.name for each in many] == [*("search-history-x-1", "search-history-x-2", "search-importance-x")]
    assert [len(each.figure.axes) for each in many] == [15, 12, 9]
    assert "Part 2 of 2." in many[1].about.caption
    one = [search(trials=12), search(trials=12, regime="coarse")]
    plots = draw_all(tabulate([*runs(one[0], 0.8, 0.9)], tunings=one), tmp_path)
    assert sorted(plot.name for plot in plots if plot.kind.startswith("search")) == [
        *("search-history-coarse-mpiou-ordered", "search-history-fine-ordered"),
        *("search-importance-coarse-mpiou-ordered", "search-importance-fine-ordered"),
    ]


def test_the_order_is_among_methods_that_have_both() -> None:
    made = [(search("a"), 0.9, 0.91), (search("b"), 0.8, 0.95), (search("c"), 0.7, 0.8), (search("d"), 0.99, None)]
    floor = (search("low", role="floor"), 0.5, 0.99)
    (board,) = [each for each in boards(*made, floor) if each.criterion.name == "auc"]
    tunings = [found for found, _, _ in (*made, floor)]
    table = tuning_order(board, tunings, "x")
    assert table is not None
    assert [(row[0].lines[0], row[-1].lines[0]) for row in table.rows] == [
        *(("low (floor)", "4 → 1"), ("b", "2 → 2"), ("a", "1 → 3"), ("c", "3 → 4"))
    ]
    assert table.notes == {"Pairs of methods that change places": ("adult 256: 4 of 6",)}
    assert [row["adult 256 tuned"] for row in table.values()] == [1, 2, 3, 4]
    assert tuning_order(board, tunings[:1], "x") is None, "one method has no order"


def test_over_columns_only_methods_that_have_each_are_ranked_and_the_page_begins_with_it() -> None:
    made = [
        *((search("a", size=8), 0.9, 0.7), (search("b", size=8), 0.8, 0.8), (search("c", size=8), 0.5, 0.9)),
        *((search("a", size=4), 0.9, 0.9), (search("b", size=4), 0.7, 0.95)),
    ]
    records = [run for found, default, tuned in made for run in runs(found, default, tuned)]
    found = tabulate(records, tunings=[each for each, _, _ in made])
    (page,) = [page for page in pages(found) if page.name == "tuning"]
    first = page.tables[0]
    assert first.title.startswith("Order before and after tuning, fine-grained")
    assert [heading.text for heading in first.headings[-3:]] == ["adult 4", "adult 8", "all columns"]
    order = {row[0].lines[0]: [field.lines[0] for field in row[-3:]] for row in first.rows}
    assert order == {
        "b": ["2 → 1", "2 → 2", "2 → 1"],
        "a": ["1 → 2", "1 → 3", "1 → 2"],
        "c": ["–", "3 → 1", "–"],
    }


def test_columns_with_too_few_bags_have_no_order() -> None:
    made = [(search("a", size=size), 0.9, 0.7) for size in (4, 8)] + [(search("b", size=8), 0.8, 0.8)]
    made.append((search("b", size=4), 0.8, 0.8))
    tunings = [found for found, _, _ in made]
    (board,) = [each for each in boards(*made) if each.criterion.name == "auc"]
    few = replace(board, columns=(board.columns[0]._replace(counts=False), *board.columns[1:]))
    table = tuning_order(few, tunings, "x")
    assert table is not None
    assert [heading.text for heading in table.headings[-1:]] == ["adult 8"]
    assert "adult 4" not in {heading.text for heading in table.headings}
    assert tuning_order(replace(few, columns=few.columns[:1]), tunings, "x") is None


def test_of_several_searches_for_a_method_that_of_most_trials_counts() -> None:
    short, long = search("a", trials=10), search("a", trials=40)
    other = (search("b"), 0.85, 0.85)
    better = replace(Tuning.of(long["spec"]).cell, params={**START, "rate": 0.05})
    long["best"] = {"auc": {**long["best"]["auc"], "cell": better.id}}
    records = [*runs(short, 0.9, 0.8), *runs(*other)]
    for run in runs(short, 0.9, 0.99):
        if run["method"]["changed"]:
            cell = {"run": better.run_id(run["seed"]), "cell": better.id, "spec": better.spec}
            records.append(cast(Record, {**run, **cell}))
    tunings = [short, long, other[0]]
    (board,) = [each for each in tabulate(records, tunings=tunings).boards if each.criterion.name == "auc"]
    table = tuning_order(board, tunings, "x")
    assert table is not None
    assert {row[0].lines[0]: row[-1].lines[0] for row in table.rows} == {"a": "1 → 1", "b": "2 → 2"}
