"""Boards, entries and tasks of runs, and their scores."""

from __future__ import annotations

import math

import pytest
from factory import PROTOCOL, failed, fine_alone, record, runs
from made import fine, fine_boards, summary

from llpbench.core.record import Record
from llpbench.report.board_tables import _score_lines
from llpbench.report.tabulate import Leaderboards
from llpbench.report.wording import DIFFERENT_DATA, FAILED, STALE_NOTE, WITHOUT_VALUE


def names_of(records: list[Record]) -> list[str]:
    """Names of the boards whose epochs are chosen by labels."""
    names = Leaderboards.of(fine_alone(records)).names
    return [name for board, name in names.items() if board.criterion.name == "auc"]


def test_each_criterion_has_its_own_board() -> None:
    boards = Leaderboards.of([record(aucs={"auc": 0.9, "mpiou": 0.8, "l1": 0.7, "kl": 0.6})]).boards
    shown = [(b.criterion.regime, b.criterion.name, summary(b)) for b in boards]
    expected = [("fine", "auc", 90.0), ("coarse", "mpiou", 80.0), ("coarse", "l1", 70.0)]
    assert shown == [(regime, name, (mean, None, 1)) for regime, name, mean in expected]
    lacking = Leaderboards.of([record(aucs={"auc": 0.9, "mpiou": 0.8}), record(seed=1)]).boards
    assert [board.scores.loc[(0, 0)].undefined for board in lacking] == [0, 0, 1]


def test_tasks_of_methods_without_epochs_keep_board_name() -> None:
    every = [record("dllp"), record("bag-gp", encoder=None), record("bag-gp", encoder=None, bag_size=256)]
    boards = fine_boards(every)
    assert [[*board.tasks["bag_size"]] for board in boards] == [[64], [256]]
    assert names_of(every) == ["fine-ordered", "fine-ordered-direct"]
    longer = record("llp-vat", protocol={**PROTOCOL, "epochs": 7})
    names = names_of([*every, longer])
    assert len({*names}) == 3
    assert all(name.startswith("fine-ordered-") for name in names)
    assert names_of(every[2:]) == ["fine-ordered"]


def test_natural_keys_are_tasks_of_one_board() -> None:
    places = [("adult", "column:by=job+sex"), ("adult", "column:by=job"), ("credit", "column:by=city")]
    records = [
        record(method, auc, dataset=dataset, bagging=bagging, bag_size=0, seed=seed)
        for method, auc in (("a", 0.9), ("b", 0.8))
        for dataset, bagging in (*places, ("adult", "column:by=job:split=bags"))
        for seed in (0, 1)
    ]
    boards = fine_boards(records)
    assert [board.bagging for board in boards] == ["natural", "natural:split=bags"]
    board = boards[0]
    assert [*board.tasks[["dataset", "bag_size", "by"]].itertuples(index=False, name=None)] == [
        *(("adult", None, "job"), ("adult", None, "job+sex"), ("credit", None, "city"))
    ]
    assert [*board.tasks["title"]][1] == "adult by job and sex"
    assert board.datasets == ["adult", "credit"]
    assert {*board.scores["runs"]} == {2}
    assert board.notes[DIFFERENT_DATA] == ()


def test_baggings_and_protocols_are_never_mixed() -> None:
    short = {**PROTOCOL, "epochs": 30}
    records = [record(), record(bagging="random"), record(protocol=short), record(protocol=short, seed=1)]
    boards = fine_boards([*records, record("ridge", encoder=None)])
    assert [(b.bagging, b.protocol, b.scores.loc[(0, 0)].expected, len(b.entries)) for b in boards] == [
        *(("ordered", short, 2, 2), ("ordered", PROTOCOL, 1, 2), ("random", PROTOCOL, 1, 1))
    ]


def test_board_uses_last_record_of_run() -> None:
    retried = fine([failed(seed=0), record(auc=0.8, seed=0)])
    assert (summary(retried), retried.scores.loc[(0, 0)].failed) == ((80.0, None, 1), 0)
    broken = fine([record(auc=0.8, seed=0), failed(seed=0)])
    assert broken.scores[["values", "failed"]].loc[(0, 0)].tolist() == [0, 1]


def test_every_expected_seed_has_a_state() -> None:
    records = [*runs("a", 0.9, 0.9, 0.9, 0.9), record("b", 0.8, seed=0), failed("b", seed=2)]
    b = fine(records).scores.loc[(1, 0)]
    assert (b.runs, b.failed, b.missing, b.expected) == (2, 1, 2, 4)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_undefined_values_are_never_averaged(value: float | None) -> None:
    found = fine(runs("dllp", 0.8, value, 0.9))
    assert summary(found) == pytest.approx((85.0, 7.0710678, 2))
    assert found.scores.loc[(0, 0)].undefined == 1


def test_failures_are_listed_once_per_reason() -> None:
    board = fine([record(), failed(dataset="credit")])
    assert [*board.tasks["title"]] == ["adult 64", "credit 64"]
    assert board.notes[FAILED] == ("dllp (mlp) on credit 64, seed 0: loss became NaN in epoch 4",)
    memory = fine([record(status="out-of-memory", reason="10 members\nneed 90 GB", results={})])
    assert memory.notes[FAILED] == ("dllp (mlp) on adult 64, seed 0: out-of-memory: 10 members need 90 GB",)
    board = fine([failed(seed=0), failed(seed=1, reason="killed"), failed(seed=2), record(auc=None, seed=3)])
    assert board.notes[FAILED] == (
        "dllp (mlp) on adult 64, seeds 0, 2: loss became NaN in epoch 4",
        "dllp (mlp) on adult 64, seed 1: killed",
    )
    assert len(board.notes[WITHOUT_VALUE]) == 1


def test_run_older_than_metric_is_not_failed() -> None:
    old, new = record("dllp", seed=0), record("dllp", seed=1)
    new["results"]["auc"]["test"]["brier"] = None
    board = fine([old, new, failed("mine")], metric="brier")
    found = board.scores.loc[(0, 0)]
    assert found[["uncomputed", "undefined", "values"]].tolist() == [1, 1, 0]
    assert [line.partition(" ")[0] for line in board.notes[FAILED]] == ["mine"]
    assert len(board.notes[WITHOUT_VALUE]) == 2
    assert {"1/2 undefined", "1/2 not computed"} <= {*_score_lines(next(board.scores.itertuples()))}


def test_seeds_of_other_protocol_are_no_gap() -> None:
    short = {**PROTOCOL, "epochs": 30}
    records = [
        *runs("dllp", *[0.8] * 2, protocol=short),
        *runs("dllp", *[0.9] * 5),
        *runs("ridge", *[0.7] * 5, encoder=None),
    ]
    found = [
        (board.protocol, board.scores[["expected", "missing"]].to_numpy().tolist()) for board in fine_boards(records)
    ]
    assert sorted(found, key=str) == [(short, [[2, 0]] * 2), (PROTOCOL, [[5, 0]] * 2)]


def test_labels_name_differences_from_defaults() -> None:
    records = [record(auc=w, params={"weight": w, "mode": "soft", "rate": 1e-3}) for w in (0.9, 0.8)]
    for run in records:
        run["method"]["changed"] = {"weight": run["spec"]["params"]["weight"]}
    assert fine(records).labels == ["dllp (mlp, weight=0.9)", "dllp (mlp, weight=0.8)"]
    assert fine(records[:1]).labels == ["dllp (mlp, weight=0.9)"], "even alone"
    for run in records:  # of defaults that have changed since
        run["method"]["changed"] = {}
    assert sorted(fine(records).labels) == ["dllp (mlp, weight=0.8)", "dllp (mlp, weight=0.9)"]


def test_unequal_bag_sizes_are_least_median_most() -> None:
    sizes = enumerate(([1, 9, 11000], [2, 12, 11660]))
    records = [record(bags={"sizes": each, "validation": 7}, bag_size=0, seed=seed) for seed, each in sizes]
    (task,) = fine(records).tasks.itertuples()
    assert (task.title, task.is_unequal) == ("adult 1–10.5–11,660", True)


def test_stale_runs_are_marked_and_explained() -> None:
    records = [*runs("dllp", 0.8, 0.9), *runs("dllp", 0.7, 0.8, bag_size=256), *runs("mine", 0.6, 0.7)]
    old = {run["run"]: "dllp.py has changed" for run in records[1:4]}
    board = fine(records, stale=old)
    assert board.scores.loc[(0, 0)].stale == 1
    assert board.notes[STALE_NOTE] == ("dllp (mlp) on adult 64, adult 256 (3 runs): dllp.py has changed",)
    every = fine(records, stale={run["run"]: "numerics 2" for run in records})
    assert every.notes[STALE_NOTE] == ("all 6 runs: numerics 2",)


def test_note_on_different_data() -> None:
    records = [record("a", seed=0), record("b", seed=0, data={"fingerprint": "other", "manifest": "other"})]
    found = [note.partition(":")[0] for note in fine(records).notes[DIFFERENT_DATA]]
    assert found == ["adult", "adult 64, seed 0"]


def test_origin_names_each_source_once() -> None:
    records = [
        record(seed=0),
        record(seed=1, code={"version": "0.1.0", "commit": "fedcba9876543210", "dirty": True}),
        failed(seed=2, libraries={"torch": "2.11.0", "numpy": "2.4.6"}),
    ]
    found = Leaderboards.of(records).origin
    assert (found.runs, found.failed) == (3, 1)
    assert found.code == {"0.1.0": ["0123456789", "fedcba9876, with uncommitted changes"]}
    assert found.libraries == ["numpy 2.4.6", "torch 2.11.0 and 2.13.0"]
    assert found.hardware == ["EPYC (cpu), 1 thread a run, float32"]
