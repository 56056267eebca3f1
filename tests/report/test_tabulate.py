"""Boards, entries and tasks of runs, and their scores."""

from __future__ import annotations

import math
from typing import Any

import pytest
from factory import PROTOCOL, failed, record, runs
from made import fine, fine_boards

from llpbench.core.record import Record
from llpbench.report.board_tables import names_of, whole_table
from llpbench.report.boards import Summary, summarise
from llpbench.report.notes import FAILED, SURPRISES, notes
from llpbench.report.tabulate import tabulate
from llpbench.report.wording import DIFFERENCES_NOTE, STALE_NOTE, WITHOUT_VALUE, score_lines


def test_mean_and_sample_std_over_seeds() -> None:
    summary = fine(runs("dllp", 0.88, 0.90, 0.92)).summary(0, 0)
    assert summary == pytest.approx((90.0, 2.0, 3))  # ddof 1: sqrt((4 + 0 + 4) / 2)
    assert summarise([0.1 + 0.2] * 3) == Summary(0.1 + 0.2, 0.0, 3), "a spread of exactly 0"


def test_each_criterion_has_its_own_board() -> None:
    boards = tabulate([record(aucs={"auc": 0.9, "mpiou": 0.8, "l1": 0.7, "kl": 0.6})]).boards
    shown = [(b.criterion.regime, b.criterion.name, b.summary(0, 0)) for b in boards]
    expected = [("fine", "auc", 90.0), ("coarse", "mpiou", 80.0), ("coarse", "l1", 70.0)]
    assert shown == [(regime, name, (mean, None, 1)) for regime, name, mean in expected]
    lacking = tabulate([record(aucs={"auc": 0.9, "mpiou": 0.8}), record(seed=1)]).boards
    assert [board.score(0, 0).undefined for board in lacking] == [0, 0, 1]


def test_tasks_of_methods_without_epochs_keep_board_name() -> None:
    every = [record("dllp"), record("bag-gp", encoder=None), record("bag-gp", encoder=None, bag_size=256)]
    boards = fine_boards(every)
    assert [[*board.tasks["bag_size"]] for board in boards] == [[64], [256]]
    assert names_of(boards) == ["fine-ordered", "fine-ordered-direct"]
    longer = record("llp-vat", protocol={**PROTOCOL, "epochs": 7})
    names = names_of(fine_boards([*every, longer]))
    assert len({*names}) == 3
    assert all(name.startswith("fine-ordered-") for name in names)
    assert names_of(fine_boards(every[2:])) == ["fine-ordered"]


def test_board_states_spread_of_bags() -> None:
    def bags(**facts: float | None) -> dict[str, Any]:
        return {**record()["bags"], **facts}

    board = fine(
        [
            record(bags=bags(spread=4.0, separation=1.2)),
            record("llp-vat", bags=bags(spread=4.0, separation=1.2)),  # same bags, so they count once
            record(seed=1, bags=bags(spread=7.0, separation=None, dropped=1200, pooled=30)),
            record(bag_size=256),
        ]
    )
    assert notes(board)[DIFFERENCES_NOTE] == (
        "adult 64: proportions vary 5.5 times as much as those of random bags of these sizes; rows of two bags are "
        "1.2 times as far apart as rows of one bag; 1,200 training rows dropped from bags that are too small or "
        "too large; 30 of them pooled",
    )
    assert whole_table(board, "fine").notes["How training bags differ"] == notes(board)[DIFFERENCES_NOTE]


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
    assert "different assignments" not in " ".join(notes(board)[SURPRISES])


def test_only_several_seeds_are_suspiciously_good() -> None:
    def suspected(*values: float) -> bool:
        board = fine([*runs("supervised", 0.80, 0.81, 0.82, role="ceiling"), *runs("dllp", *values)])
        return any("above" in line and "dllp" in line for line in notes(board).get(SURPRISES, ()))

    assert suspected(0.90, 0.91, 0.92)
    assert not suspected(0.70, 0.91, 0.95), "one standard deviation below the ceiling"
    assert not suspected(0.90), "one seed has no standard deviation"


def test_baggings_and_protocols_are_never_mixed() -> None:
    short = {**PROTOCOL, "epochs": 30}
    records = [record(), record(bagging="random"), record(protocol=short), record(protocol=short, seed=1)]
    boards = fine_boards([*records, record("ridge", encoder=None)])
    assert [(b.bagging, b.protocol, b.score(0, 0).expected, len(b.entries)) for b in boards] == [
        *(("ordered", short, 2, 2), ("ordered", PROTOCOL, 1, 2), ("random", PROTOCOL, 1, 1))
    ]


def test_board_uses_last_record_of_run() -> None:
    retried = fine([failed(seed=0), record(auc=0.8, seed=0)])
    assert (retried.summary(0, 0), retried.score(0, 0).failed) == (Summary(80.0, None, 1), 0)
    broken = fine([record(auc=0.8, seed=0), failed(seed=0)])
    assert (broken.summary(0, 0), broken.score(0, 0).failed) == (None, 1)


def test_every_expected_seed_has_a_state() -> None:
    records = [*runs("a", 0.9, 0.9, 0.9, 0.9), record("b", 0.8, seed=0), failed("b", seed=2)]
    b = fine(records).score(1, 0)
    assert (b.runs, b.failed, b.missing, b.expected) == (2, 1, 2, 4)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_undefined_values_are_never_averaged(value: float | None) -> None:
    found = fine(runs("dllp", 0.8, value, 0.9))
    assert found.summary(0, 0) == pytest.approx((85.0, 7.0710678, 2))
    assert found.score(0, 0).undefined == 1


def test_failures_are_listed_once_per_reason() -> None:
    board = fine([record(), failed(dataset="credit")])
    assert [*board.tasks["title"]] == ["adult 64", "credit 64"]
    assert notes(board)[FAILED] == ("dllp (mlp) on credit 64, seed 0: loss became NaN in epoch 4",)
    memory = fine([record(status="out-of-memory", reason="10 members\nneed 90 GB", results={})])
    assert notes(memory)[FAILED] == ("dllp (mlp) on adult 64, seed 0: out-of-memory: 10 members need 90 GB",)
    board = fine([failed(seed=0), failed(seed=1, reason="killed"), failed(seed=2), record(auc=None, seed=3)])
    assert notes(board)[FAILED] == (
        "dllp (mlp) on adult 64, seeds 0, 2: loss became NaN in epoch 4",
        "dllp (mlp) on adult 64, seed 1: killed",
    )
    assert len(notes(board)[WITHOUT_VALUE]) == 1


def test_run_older_than_metric_is_not_failed() -> None:
    old, new = record("dllp", seed=0), record("dllp", seed=1)
    new["results"]["auc"]["test"]["brier"] = None
    board = fine([old, new, failed("mine")], metric="brier")
    found = board.score(0, 0)
    assert (found.uncomputed, found.undefined, found.values) == (1, 1, 0)
    assert [line.partition(" ")[0] for line in notes(board)[FAILED]] == ["mine"]
    assert len(notes(board)[WITHOUT_VALUE]) == 2
    assert {"1/2 undefined", "1/2 not computed"} <= {*score_lines(board, 0, 0)}


class TestMethodsWithoutEpochs:
    def test_seeds_of_other_protocol_are_no_gap(self) -> None:
        short = {**PROTOCOL, "epochs": 30}
        records = [
            *runs("dllp", *[0.8] * 2, protocol=short),
            *runs("dllp", *[0.9] * 5),
            *runs("ridge", *[0.7] * 5, encoder=None),
        ]
        boards = fine_boards(records)
        assert len(boards) == 2
        for board in boards:
            assert board.protocol is not None
            expected = 2 if board.protocol["epochs"] == 30 else 5
            assert [*board.scores["expected"]] == [expected, expected]
            assert not board.scores["missing"].any()


class TestConfigurations:
    def test_labels_name_differences_from_defaults(self) -> None:
        records = [record(auc=w, params={"weight": w, "mode": "soft", "rate": 1e-3}) for w in (0.9, 0.8)]
        for run in records:
            run["method"]["changed"] = {"weight": run["spec"]["params"]["weight"]}
        assert fine(records).labels == ["dllp (mlp, weight=0.9)", "dllp (mlp, weight=0.8)"]
        assert fine(records[:1]).labels == ["dllp (mlp, weight=0.9)"], "even alone"
        for run in records:  # of defaults that have changed since
            run["method"]["changed"] = {}
        assert sorted(fine(records).labels) == ["dllp (mlp, weight=0.8)", "dllp (mlp, weight=0.9)"]


class TestBags:
    @staticmethod
    def sized(*sizes: float, validation: int = 7, **facts: Any) -> Record:
        return record(bags={"sizes": list(sizes), "validation": validation}, **facts)

    def test_unequal_bag_sizes_are_least_median_most(self) -> None:
        records = [self.sized(1, 9, 11000, bag_size=0), self.sized(2, 12, 11660, validation=9, bag_size=0, seed=1)]
        (task,) = fine(records).tasks.itertuples()
        assert (task.title, task.is_unequal) == ("adult 1–10.5–11,660", True)


class TestStale:
    def test_stale_runs_are_marked_and_explained(self) -> None:
        records = [*runs("dllp", 0.8, 0.9), *runs("dllp", 0.7, 0.8, bag_size=256), *runs("mine", 0.6, 0.7)]
        old = {run["run"]: "dllp.py has changed" for run in records[1:4]}
        board = fine(records, stale=old)
        assert board.score(0, 0).stale == 1
        assert notes(board)[STALE_NOTE] == ("dllp (mlp) on adult 64, adult 256 (3 runs): dllp.py has changed",)
        every = fine(records, stale={run["run"]: "numerics 2" for run in records})
        assert notes(every)[STALE_NOTE] == ("all 6 runs: numerics 2",)


class TestSurprises:
    def test_note_on_scores_below_chance(self) -> None:
        records = [*runs("flipped", 0.2, 0.3), *runs("rarely", 0.9, 0.4999, 0.8, bag_size=256)]
        cells = [records[0]["cell"], records[2]["cell"]]
        assert set(notes(fine(records))[SURPRISES]) == {
            f"flipped (mlp): AUC below 50, worse than chance, on adult 64, seeds 0, 1 (cell {cells[0]}): 20.00, 30.00",
            f"rarely (mlp): AUC below 50, worse than chance, on adult 256, seed 1 (cell {cells[1]}): 49.99",
        }

    def test_note_on_scores_above_supervised(self) -> None:
        records = [
            *runs("supervised", 0.90, 0.90, role="ceiling"),
            *runs("close", 0.89, 0.92),
            *runs("leaky", 0.98, 0.99),
        ]
        surprises = notes(fine(records))[SURPRISES]
        assert "leaky (mlp): more than one std above every ceiling, on adult 64" in surprises
        assert not any(line.startswith("close") for line in surprises)
        board = fine([*records[:2], *runs("dllp", 0.85, 0.86), *runs("low", 0.80, 0.81, role="floor")])
        assert notes(board)[SURPRISES] == ("supervised (mlp): the same AUC for all seeds, on adult 64",)

    def test_note_on_different_data(self) -> None:
        records = [record("a", seed=0), record("b", seed=0, data={"fingerprint": "other", "manifest": "other"})]
        assert notes(fine(records))[SURPRISES] == (
            "adult: its runs saw 2 different versions of the data, so they cannot be compared",
            "adult 64, seed 0: its runs saw 2 different assignments to bags, so they cannot be compared",
        )


def test_origin_names_each_source_once() -> None:
    records = [
        record(seed=0),
        record(seed=1, code={"version": "0.1.0", "commit": "fedcba9876543210", "dirty": True}),
        failed(seed=2, libraries={"torch": "2.11.0", "numpy": "2.4.6"}),
    ]
    found = tabulate(records).origin
    assert (found.runs, found.failed) == (3, 1)
    assert found.code == {"0.1.0": ("0123456789", "fedcba9876, with uncommitted changes")}
    assert found.libraries == ("numpy 2.4.6", "torch 2.11.0 and 2.13.0")
    assert found.hardware == ("EPYC (cpu), 1 thread a run, float32",)
