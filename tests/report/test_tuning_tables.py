"""Tuned entries: on the boards of the criterion that chose them and on no other."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from factory import make_cell_of, make_record, searched

from llpbench.core.cell import Cell
from llpbench.core.record import Record, TuningRecord
from llpbench.report.boards import Board
from llpbench.report.tabulate import Leaderboards
from llpbench.results.journal import Contents

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


TUNINGS = [
    searched(START, "fine", {"auc": (BETTER, 0.83, 0.80)}),
    searched(START, "coarse", {"l1": (COARSE, 0.02, 0.05), "mpiou": (START, 0.9, 0.9)}),
]
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
    assert board(found, "mpiou").entries.set_index("label")["is_default"].to_dict() == {
        "dllp (mlp)": True,
        "dllp (mlp, tuned, 10 trials)": False,
    }


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
        return {
            label.partition("mlp, ")[2][:-1]: search for label, search in by_label(found, "search").items() if search
        }

    assert labels() == {"tuned, 10 trials": usual["tuning"]}
    seed = searched(START, "fine", choice, seed=7, space=usual["spec"]["space"])
    assert labels(seed) == {"tuned, 10 trials, seed=1000": usual["tuning"], "tuned, 10 trials, seed=7": seed["tuning"]}
    wide = searched(START, "fine", choice, space={"weight": {"low": 0.01, "high": 1.0}})
    assert labels(wide) == {
        "tuned, 10 trials, space.weight.low=0.1": usual["tuning"],
        "tuned, 10 trials, space.weight.low=0.01": wide["tuning"],
    }
