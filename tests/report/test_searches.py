"""What tuning changes in the order of methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from factory import make_cell_of, make_record

from llpbench.core.criteria import Regime
from llpbench.core.record import Record, TuningRecord
from llpbench.core.tuning_spec import Tuning
from llpbench.report.assembling import make_report
from llpbench.report.boards import Board
from llpbench.report.tabulate import tabulate
from llpbench.report.tuning_tables import tuning_order

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
    assert tuning_order(board, tunings[:1], "x") is None, "one method has no order"


def test_over_columns_only_methods_that_have_each_are_ranked_and_the_page_begins_with_it() -> None:
    made = [
        *((search("a", size=8), 0.9, 0.7), (search("b", size=8), 0.8, 0.8), (search("c", size=8), 0.5, 0.9)),
        *((search("a", size=4), 0.9, 0.9), (search("b", size=4), 0.7, 0.95)),
    ]
    records = [run for found, default, tuned in made for run in runs(found, default, tuned)]
    first = make_report(records, tunings=[each for each, _, _ in made]).tuning[0]
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
