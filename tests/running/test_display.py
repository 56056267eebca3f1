"""What a run shows: a live display in a terminal, plain lines anywhere else."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import make_settings
from factory import failed, make_cell_of, make_record, record, runs
from rich.console import Console

from llpbench.core.cell import Epoch
from llpbench.core.record import Record, TuningRecord
from llpbench.running import display as displays
from llpbench.running import runner
from llpbench.running.display import (
    BOARD_TITLE,
    Display,
    Show,
    draw_board,
    figure,
)
from llpbench.running.schedule import Job

JOB = Job(make_cell_of(), (0, 1))


def terminal(height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, height=height)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def notebook(show: Show) -> Display:
    return Display(displays._html_console(), "notebook", show)


def test_terminal_run_shows_progress_and_board(tiny_bench: Path, tmp_path: Path) -> None:
    console = terminal()
    settings = make_settings(
        tiny_bench, tmp_path, methods="quick-a,broken", set=("quick-a.seconds=0.3",), bag_sizes="8"
    )
    runner.run(settings, Display(console, "live"))
    text = shown(console)
    assert "/4 runs" in text
    assert "quick-a on tiny ordered 8 (2 seeds)" in text
    assert "ValueError: no luck" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0, "the cursor must come back"


def test_live_display_shows_progress_and_failures() -> None:
    display = Display(terminal(), "live")
    display.begin(6)
    display.estimate(200.0)
    display.started(JOB)
    display.progressed(JOB, Epoch(epoch=4, epochs=40, criterion="auc", value=0.8125, members=2))
    display.finished(JOB, [make_record(JOB.cell, 0), make_record(JOB.cell, 1, "failed")])
    display.started(JOB)
    display.progressed(JOB, Epoch(epoch=4, epochs=40, criterion="auc", value=0.8125, members=2))
    console = terminal()
    console.print(display.render())
    text = shown(console)
    for part in ("2/6 runs", "1 failed", "about 3 min left", "epoch 5/40", "auc 0.812", str(JOB)):
        assert part in text


def test_plain_display_escapes_markup() -> None:
    console = Console(file=io.StringIO(), width=40)
    with Display(console, "plain") as display:
        display.begin(4)
        display.say("[bold]a line that is longer than the width of the terminal[/]")
        display.started(JOB)
        for epoch in range(5):
            display.progressed(JOB, Epoch(epoch, 5, "auc", 0.5, 2))
        display.finished(JOB, [make_record(JOB.cell, 0), make_record(JOB.cell, 1, "failed")])
        display.started(JOB)
        display.finished(JOB, runs("dllp", 0.881, 0.883))
    assert shown(console).splitlines() == [
        "[bold]a line that is longer than the width of the terminal[/]",
        "started dllp mlp on adult ordered 256 (2 seeds)",
        "failed dllp mlp on adult ordered 256 (2 seeds) in 0 s, 2/4 runs: AUC 90.0; bad luck (1 seed of 2)",
        "started dllp mlp on adult ordered 256 (2 seeds)",
        "ok dllp mlp on adult ordered 256 (2 seeds) in 0 s, 4/4 runs: AUC 88.2 ± 0.1",
    ]


def test_live_board_fits_terminal_height() -> None:
    display = Display(terminal(height=14), "live")
    display.begin(80, runs("done-before", 0.7))
    for number in range(20):
        job = Job(make_cell_of(f"method-{number}"), (0,))
        display.started(job)
        display.finished(job, runs(f"method-{number}", 0.5 + number / 100))
    display.started(JOB)
    console = terminal(height=14)
    console.print(display.render())
    lines = shown(console).splitlines()
    assert len(lines) < 14
    assert "preliminary" in shown(console)
    assert "done-before" in next(line for line in lines if "70.0" in line)
    assert lines.index(next(line for line in lines if "method-19" in line)) < len(lines) - 1
    assert "and 15 more methods" in lines[-1]


def test_cell_score_is_mean_over_labelled_seeds() -> None:
    coarse = record("dllp", aucs={"mpiou": 0.8, "l1": 0.8})
    assert figure([coarse]) == figure([failed()]) == figure([]) == ""
    assert figure([*runs("dllp", 0.881), failed(seed=1)]) == "AUC 88.1"
    assert figure(runs("dllp", 0.8, 0.9)) == "AUC 85.0 ± 7.1"


def test_notebook_updates_one_output(tiny_bench: Path, tmp_path: Path) -> None:
    outputs: list[str] = []
    settings = make_settings(tiny_bench, tmp_path, methods="quick-a,broken", bag_sizes="8")
    runner.run(settings, notebook(outputs.append))
    assert all(output.startswith("<pre") for output in outputs)
    during = " ".join(outputs)
    assert "/4 runs" in during
    assert "quick-a on tiny ordered 8 (2 seeds)" in during
    assert "4 runs to do in 2 cells" in outputs[-1], "what was said remains"
    assert "ValueError: no luck" in outputs[-1]
    assert "/4 runs" not in outputs[-1], "the bar does not"
    assert re.search(r"4 of 4 runs in \d+ s, 2 failed", outputs[-1])


def live_board(records: Sequence[Record], height: int = 40, searches: Sequence[TuningRecord] = ()) -> list[list[str]]:
    """The words of each line below the title."""
    drawn = draw_board(records, searches, height)
    if drawn is None:
        return []
    console = Console(file=io.StringIO(), width=120)
    console.print(drawn)
    assert isinstance(console.file, io.StringIO)
    title, *found = console.file.getvalue().splitlines()
    assert title.strip() == BOARD_TITLE
    assert len(found) < height
    return [line.split() for line in found]


HEADINGS = ["method", "AUC", "columns", "runs"]


def test_live_board_sorts_best_first() -> None:
    again = [*runs("[/red]", 0.95), *runs("[/red]", 0.7)]  # repeated; its name is no markup
    found = live_board([*runs("dllp", 0.8, 0.82), *runs("bag-mean-linear", 0.9, encoder=None), *again])
    assert found == [
        HEADINGS,
        ["bag-mean-linear", "90.0", "1/1", "1"],
        ["dllp", "mlp", "81.0", "1/1", "2"],
        ["[/red]", "mlp", "70.0", "1/1", "1"],
    ]


def test_method_with_missing_task_has_no_mean() -> None:
    both = [*runs("whole", 0.7, 0.7, bag_size=64), *runs("whole", 0.6, bag_size=256)]
    found = live_board([*runs("easy-only", 0.99, bag_size=64), *both])
    assert found == [HEADINGS, ["whole", "mlp", "65.0", "2/2", "3"], ["easy-only", "mlp", "–", "1/2", "1"]]


def test_live_board_shows_configurations_tuned_by_labels() -> None:
    start = make_cell_of("dllp", 64)
    chosen, other, mine = (replace(start, params={"weight": weight}) for weight in (0.5, 0.9, 0.1))
    search: Any = {"tuning": "x", "spec": {"cell": start.spec}, "method": make_record(start)["method"]}
    search["best"] = {"auc": {"cell": chosen.id}, "l1": {"cell": other.id}}
    search["former"] = {}
    records = [make_record(cell) for cell in (start, chosen, other, mine)]
    assert [line[:3] for line in live_board(records)[1:]] == [
        *(["dllp", "mlp", "90.0"], ["dllp", "mlp", "weight=0.1"]),
        *(["dllp", "mlp", "weight=0.5"], ["dllp", "mlp", "weight=0.9"]),
    ]
    assert [line[:3] for line in live_board(records, searches=[search])[1:]] == [
        *(["dllp", "mlp", "90.0"], ["dllp", "mlp", "tuned"], ["dllp", "mlp", "weight=0.1"])
    ]


def test_failed_and_unlabelled_runs_are_gaps() -> None:
    lines = live_board([*runs("dllp", 0.8), failed("broken"), failed("dllp", seed=1)])
    assert lines[1:] == [["dllp", "mlp", "80.0", "1/1", "1"], ["broken", "mlp", "–", "0/1", "0"]]
    assert live_board([record("dllp", aucs={"mpiou": 0.8, "l1": 0.8})])[1] == ["dllp", "mlp", "–", "0/1", "0"]
