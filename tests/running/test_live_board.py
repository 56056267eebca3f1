"""The board of a run that goes on: true, also where methods have unequal columns."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from factory import failed, make_cell_of, make_record, record, runs
from rich.console import Console

from llpbench.core.record import Record, TuningRecord
from llpbench.running.live_board import TITLE, draw


def board(records: Sequence[Record], height: int = 40, searches: Sequence[TuningRecord] = ()) -> list[list[str]]:
    """The words of each line below the title."""
    drawn = draw(records, searches, height)
    if drawn is None:
        return []
    console = Console(file=io.StringIO(), width=120)
    console.print(drawn)
    assert isinstance(console.file, io.StringIO)
    title, *found = console.file.getvalue().splitlines()
    assert title.strip() == TITLE
    assert len(found) < height
    return [line.split() for line in found]


HEADINGS = ["method", "AUC", "columns", "runs"]


def test_best_first_with_the_number_of_runs() -> None:
    found = board([*runs("dllp", 0.8, 0.82), *runs("bag-mean-linear", 0.9, encoder=None), *runs("floor", 0.7, 0.7)])
    assert found == [
        HEADINGS,
        ["bag-mean-linear", "90.0", "1/1", "1"],
        ["dllp", "mlp", "81.0", "1/1", "2"],
        ["floor", "mlp", "70.0", "1/1", "2"],
    ]


def test_a_method_that_lacks_a_column_has_no_mean() -> None:
    both = [*runs("whole", 0.7, 0.7, bag_size=64), *runs("whole", 0.6, bag_size=256)]
    found = board([*runs("easy-only", 0.99, bag_size=64), *both])
    assert found == [HEADINGS, ["whole", "mlp", "65.0", "2/2", "3"], ["easy-only", "mlp", "–", "1/2", "1"]]


def test_what_a_search_has_chosen_by_labels_is_tuned_and_what_another_criterion_has_is_left_out() -> None:
    start = make_cell_of("dllp", 64)
    chosen, other, mine = (replace(start, params={"weight": weight}) for weight in (0.5, 0.9, 0.1))
    search: Any = {"tuning": "x", "spec": {"cell": start.spec}, "method": make_record(start)["method"]}
    search["best"] = {"auc": {"cell": chosen.id}, "l1": {"cell": other.id}}
    search["former"] = {}
    records = [make_record(cell) for cell in (start, chosen, other, mine)]
    assert [line[:3] for line in board(records)[1:]] == [
        *(["dllp", "mlp", "90.0"], ["dllp", "mlp", "weight=0.1"]),
        *(["dllp", "mlp", "weight=0.5"], ["dllp", "mlp", "weight=0.9"]),
    ]
    assert [line[:3] for line in board(records, searches=[search])[1:]] == [
        *(["dllp", "mlp", "90.0"], ["dllp", "mlp", "tuned"], ["dllp", "mlp", "weight=0.1"])
    ]


def test_failures_and_runs_without_labels_of_validation_rows_are_gaps() -> None:
    lines = board([*runs("dllp", 0.8), failed("broken"), failed("dllp", seed=1)])
    assert lines[1:] == [["dllp", "mlp", "80.0", "1/1", "1"], ["broken", "mlp", "–", "0/1", "0"]]
    assert board([record("dllp", aucs={"mpiou": 0.8, "l1": 0.8})])[1] == ["dllp", "mlp", "–", "0/1", "0"]


def test_rows_are_labelled_by_everything_in_which_they_differ() -> None:
    names = [
        line[:-3]
        for line in board(
            [
                record("dllp", 0.9, role="ceiling"),
                record("dllp", 0.8, pretraining="self+bag"),
                record("dllp", 0.7, params={"hidden": 128}),
                record("dllp", 0.6, encoder="saint"),
            ]
        )[1:]
    ]
    assert names == [
        ["dllp", "mlp", "(ceiling)"],
        ["dllp", "mlp", "self+bag"],
        ["dllp", "mlp", "hidden=128"],
        ["dllp", "saint"],
    ]


def test_names_are_text_and_no_markup() -> None:
    assert board(runs("[/red]", 0.9))[1] == ["[/red]", "mlp", "90.0", "1/1", "1"]


def test_a_run_made_again_replaces_what_it_was() -> None:
    assert board([*runs("dllp", 0.6), *runs("dllp", 0.9)])[1] == ["dllp", "mlp", "90.0", "1/1", "1"]


def test_it_keeps_to_the_room_there_is() -> None:
    many = [
        each for size in range(1, 13) for name in "abcdefgh" for each in runs(name, 0.5 + size / 100, bag_size=size)
    ]
    assert board(many)[1] == ["a", "mlp", "56.5", "12/12", "12"]
    assert board(many, height=6)[-1] == ["and", "5", "more", "methods"]
    assert len(board(many, height=6)) == 5
    assert board(many, height=3) == []
    assert board([]) == []
