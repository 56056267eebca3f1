"""Boards, entries and tasks of runs, and their scores."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import cast

import pytest
from factory import PROTOCOL, failed, fine_alone, make_cell_of, make_record, record, runs, searched
from made import fine, fine_boards, summary

from llpbench.core.cell import Cell
from llpbench.core.record import Record, TuningRecord
from llpbench.report.board_tables import _score_lines
from llpbench.report.boards import Board
from llpbench.report.tabulate import Leaderboards
from llpbench.report.wording import DIFFERENT_DATA, FAILED, STALE_NOTE, WITHOUT_VALUE
from llpbench.results.journal import Contents


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


def test_bags_with_most_results_come_first() -> None:
    lost = [failed("a", bagging="random", seed=seed) for seed in range(3)]
    first, last = Leaderboards.of([*lost, record("a")]).groups()
    assert [[board.bagging for board in group.values()] for group in (first, last)] == [["ordered"] * 3, ["random"] * 3]


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


def test_methods_without_a_common_seed_have_a_board() -> None:
    alone = [record(method, 0.8, seed=seed) for seed, method in enumerate(("a", "b", "c"))]
    board = fine([*alone, record("a", dataset="credit"), record("b", dataset="credit")])
    assert [*board.tasks["seeds"]] == [(), (0,)]
    assert board.scores["mean"].loc[:, 0].tolist() == [80.0] * 3
    assert board.scores["expected"].loc[:, 0].tolist() == [1] * 3
    assert [*board.counting] == [(1, 0)]


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
    (first, second), where = board.notes[FAILED], "dllp (mlp) on adult 64, seed"
    assert (first, second) == (f"{where}s 0, 2: loss became NaN in epoch 4", f"{where} 1: killed")
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
        *runs("dllp", 0.8, 0.8, protocol=short),
        *runs("dllp", *[0.9] * 5),
        *runs("ridge", *[0.7] * 5, encoder=None),
    ]
    found = [(board.protocol, board.scores[["expected", "missing"]].values.tolist()) for board in fine_boards(records)]
    assert sorted(found, key=str) == [(short, [[2, 0]] * 2), (PROTOCOL, [[5, 0]] * 2)]


def test_direct_runs_with_seeds_of_no_protocol_join_every_board() -> None:
    short = {**PROTOCOL, "epochs": 30}
    direct = [record("ridge", 0.7, seed=seed, encoder=None, protocol=None) for seed in (5, 6)]
    for board in fine_boards([*runs("dllp", 0.8, 0.8, protocol=short), *runs("dllp", 0.9, 0.9), *direct]):
        assert sorted(board.entries["method"]) == ["dllp", "ridge"]


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


def test_training_of_averaged_networks_is_that_of_their_average() -> None:
    limits, own = {"300", "20"}, {"4"}

    def numbers(*records: Record) -> set[str]:
        return {*re.findall(r"\d+", fine(records).training)} - {str(PROTOCOL["bags_per_step"])}

    averaged, direct = record("a", average="half:4"), record("c", encoder=None)
    assert numbers(averaged) == numbers(averaged, direct) == own
    assert numbers(averaged, record("b"), direct) == limits | own
    assert numbers(record("b"), direct) == limits


def test_origin_names_each_source_once() -> None:
    records = [
        record(seed=0),
        record(seed=1, code={"version": "0.1.0", "commit": "fedcba9876543210", "dirty": True}),
        failed(seed=2, libraries={"torch": "2.11.0", "numpy": "2.4.6"}, hardware={}),
    ]
    found = Leaderboards.of(records).origin
    assert found == {
        "Runs": "3 (1 failed)",
        "Code": "llpbench 0.1.0 (0123456789; fedcba9876, uncommitted changes)",
        "Libraries": "numpy 2.4.6, torch 2.11.0 and 2.13.0",
        "Hardware": "EPYC (cpu), 1 thread a run",
    }
    assert Leaderboards.of(records[2:]).origin.keys() == found.keys() - {"Hardware"}


START = make_cell_of("dllp")
BETTER, COARSE, FORMER = (replace(START, params={"weight": weight}) for weight in (0.5, 0.9, 0.7))


def seeds(cell: Cell, *aucs: float) -> list[Record]:
    """Runs of a cell, seed by seed, with these test AUCs by every criterion."""
    found = []
    for seed, auc in enumerate(aucs):
        run = make_record(cell, seed)
        for result in run["results"].values():
            result["test"] = {**result["test"], "auc": auc, "mpiou": auc / 2, "l1": 1 - auc}
        found.append(run)
    return found


TUNINGS = [searched(START, "fine", {"auc": (BETTER, 0.83, 0.80)})]
TUNINGS += [searched(START, "coarse", {"l1": (COARSE, 0.02, 0.05), "mpiou": (START, 0.9, 0.9)})]
RECORDS = [*seeds(START, 0.80, 0.82, 0.81), *seeds(BETTER, 0.82, 0.85, 0.82), *seeds(COARSE, 0.70, 0.71, 0.72)]


def board(found: Leaderboards, criterion: str) -> Board:
    (one,) = [each for each in found.boards if each.criterion.name == criterion]
    return one


def by_label(board: Board, fact: str) -> dict[str, str | None]:
    """Return a fact that all runs of an entry share."""
    return {board.labels[entry]: of.iat[0] for entry, of in board.runs.groupby("entry")[fact]}


def test_tuned_entry_is_shown_under_its_criterion_only() -> None:
    found = Leaderboards.of(RECORDS, tunings=TUNINGS)
    rows = {name: by_label(board(found, name), "cell") for name in ("auc", "mpiou", "l1")}
    usual = {"dllp (mlp)": START.id}
    assert rows["auc"] == usual | {"dllp (mlp, tuned, 10 trials)": BETTER.id}
    assert rows["l1"] == usual | {"dllp (mlp, tuned, 10 trials)": COARSE.id}
    assert rows["mpiou"] == usual | {"dllp (mlp, tuned, 10 trials)": START.id}
    entries = board(found, "mpiou").entries
    assert [*entries["is_default"]] == [label == "dllp (mlp)" for label in entries["label"]]


def test_repeated_search_adds_no_entry() -> None:
    old = {**TUNINGS[0], "finished": "2025-01-01T00:00:00Z", "numerics": 0}
    old["best"] = {"auc": {**TUNINGS[0]["best"]["auc"], "cell": FORMER.id}}
    records = [*RECORDS, *seeds(FORMER, 0.9, 0.9, 0.9, 0.9)]
    earlier = Contents({}, {TUNINGS[0]["tuning"]: cast(TuningRecord, old)})
    joined = Contents.joined([earlier, Contents({}, {each["tuning"]: each for each in TUNINGS})]).tunings
    found = board(Leaderboards.of(records, tunings=list(joined.values())), "auc")
    assert {*found.labels} == {"dllp (mlp)", "dllp (mlp, tuned, 10 trials)"}
    assert found.tasks["seeds"][0] == (0, 1, 2)
    missing = board(Leaderboards.of(records, tunings=TUNINGS), "auc")
    assert "dllp (mlp, weight=0.7)" in {*missing.labels}


def test_stale_search_makes_its_runs_stale() -> None:
    stale = {TUNINGS[0]["tuning"]: "version of method 1, now 2", f"{BETTER.id}-1": "numerics 0, now 1"}
    found = board(Leaderboards.of(RECORDS, tunings=TUNINGS, stale=stale), "auc")
    search = "its search: version of method 1, now 2"
    tuned = found.runs["entry"].map(found.entries["is_tuned"])
    assert [*found.runs["stale"][tuned]] == [search, "numerics 0, now 1", search]
    assert [*found.runs["stale"][~tuned]] == ["", "", ""]


def test_different_searches_have_own_entries() -> None:
    usual = searched(START, "fine", {"auc": (BETTER, 0.83, 0.80)}, space={"weight": {"low": 0.1, "high": 1.0}})
    choice = {"auc": (COARSE, 0.84, 0.80)}

    def labels(*others: TuningRecord) -> dict[str, str | None]:
        found = board(Leaderboards.of(RECORDS, tunings=[usual, *others]), "auc")
        return {label.partition("mlp, ")[2][:-1]: name for label, name in by_label(found, "search").items() if name}

    assert labels() == {"tuned, 10 trials": usual["tuning"]}
    seed = searched(START, "fine", choice, seed=7, space=usual["spec"]["space"])
    assert labels(seed) == {"tuned, 10 trials, seed=1000": usual["tuning"], "tuned, 10 trials, seed=7": seed["tuning"]}
    wide = searched(START, "fine", choice, space={"weight": {"low": 0.01, "high": 1.0}})
    lows = {0.1: usual["tuning"], 0.01: wide["tuning"]}
    assert labels(wide) == {f"tuned, 10 trials, space.weight.low={low}": search for low, search in lows.items()}
