"""What a run shows: a live display in a terminal, plain lines anywhere else."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bench import make_settings
from factory import failed, make_cell_of, make_record, record, runs
from rich.console import Console

from llpbench.core.cell import Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Status
from llpbench.core.text import duration
from llpbench.running import display as displays
from llpbench.running import runner
from llpbench.running.display import LiveDisplay, PlainDisplay, make_display
from llpbench.running.notebook import NotebookDisplay, cell_output
from llpbench.running.run_progress import figure, in_short, title
from llpbench.running.schedule import Job
from llpbench.training.specification import make_cell

JOB = Job(make_cell_of(), (0, 1))


def terminal(height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, height=height)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "kind"), [(True, "", LiveDisplay), (True, "1", PlainDisplay), (False, "", PlainDisplay)]
)
def test_only_a_terminal_gets_a_live_display(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, no_color: str, kind: type
) -> None:
    monkeypatch.setattr(displays, "Console", lambda **_: Console(file=io.StringIO(), force_terminal=is_terminal))
    monkeypatch.setenv("NO_COLOR", no_color)
    assert type(make_display()) is kind


def test_a_job_says_what_differs_from_the_default(tiny_bench: Path, tmp_path: Path) -> None:  # noqa: ARG001
    job = Job(make_cell("quick-a", "tiny", bag_size=8, params={"seconds": 0.12345}), (0, 1, 2))
    assert title(job) == "quick-a on tiny ordered 8 (3 seeds), seconds=0.1235"
    assert str(replace(job, cell=make_cell("quick-a", "tiny", bag_size=8))) == "quick-a on tiny ordered 8 (3 seeds)"


def test_a_run_in_a_terminal(tiny_bench: Path, tmp_path: Path) -> None:
    console = terminal()
    settings = make_settings(
        tiny_bench, tmp_path, methods="quick-a,broken", set=("quick-a.seconds=0.3",), bag_sizes="8"
    )
    runner.run(settings, LiveDisplay(console))
    text = shown(console)
    assert "/4 runs" in text
    assert "quick-a on tiny ordered 8 (2 seeds)" in text
    assert "ValueError: no luck" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0, "the cursor must come back"


def test_the_live_display_shows_bar_epoch_criterion_failures_and_time() -> None:
    display = LiveDisplay(terminal())
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


def test_plain_lines_are_few_and_take_markup_as_it_is() -> None:
    console = Console(file=io.StringIO(), width=40)
    with PlainDisplay(console) as display:
        display.begin(2)
        display.say("[bold]a line that is longer than the width of the terminal[/]")
        display.started(JOB)
        for epoch in range(5):
            display.progressed(JOB, Epoch(epoch, 5, "auc", 0.5, 2))
        display.finished(JOB, [make_record(JOB.cell, 0), make_record(JOB.cell, 1, "failed")])
    assert shown(console).splitlines() == [
        "[bold]a line that is longer than the width of the terminal[/]",
        "started dllp mlp on adult ordered 256 (2 seeds)",
        "failed dllp mlp on adult ordered 256 (2 seeds) in 0 s, 2/2 runs: AUC 90.0; bad luck (1 seed of 2)",
    ]


def test_a_line_of_a_finished_cell_carries_its_figure() -> None:
    console = Console(file=io.StringIO(), width=40)
    with PlainDisplay(console) as display:
        display.begin(2)
        display.started(JOB)
        display.finished(JOB, runs("dllp", 0.881, 0.883))
    assert shown(console).splitlines()[-1] == f"ok {JOB} in 0 s, 2/2 runs: AUC 88.2 ± 0.1"


def test_the_board_fills_below_the_bar_and_keeps_to_the_terminals_height() -> None:
    display = LiveDisplay(terminal(height=14))
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


def test_the_figure_of_a_cell_is_that_of_its_seeds_with_labels_of_validation_rows() -> None:
    coarse = record("dllp", aucs={"mpiou": 0.8, "l1": 0.8})
    assert figure([coarse]) == figure([failed()]) == figure([]) == ""
    assert figure([*runs("dllp", 0.881), failed(seed=1)]) == "AUC 88.1"
    assert figure(runs("dllp", 0.8, 0.9)) == "AUC 85.0 ± 7.1"


def test_an_outcome_is_the_first_failure() -> None:
    statuses: tuple[Status, ...] = ("ok", "failed", "out-of-memory")
    ok, other, memory = (make_record(JOB.cell, seed, status) for seed, status in enumerate(statuses))
    assert in_short([ok]) == ("ok", "")
    assert in_short([ok, other, memory]) == ("failed", "bad luck (2 seeds of 3)")
    assert in_short([memory]) == ("out-of-memory", "bad luck")
    assert in_short([]) == ("unfinished", "")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (99.4, "99 s"), (100, "2 min"), (5400, "90 min"), (7500, "2 h 05 min"), (4e6, "1,111 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_notebook_shows_one_output_that_is_updated(tiny_bench: Path, tmp_path: Path) -> None:
    outputs: list[str] = []
    settings = make_settings(tiny_bench, tmp_path, methods="quick-a,broken", bag_sizes="8")
    runner.run(settings, NotebookDisplay(outputs.append))
    assert all(output.startswith("<pre") for output in outputs)
    during = " ".join(outputs)
    assert "/4 runs" in during
    assert "quick-a on tiny ordered 8 (2 seeds)" in during
    assert "4 runs to do in 2 cells" in outputs[-1], "what was said remains"
    assert "ValueError: no luck" in outputs[-1]
    assert "/4 runs" not in outputs[-1], "the bar does not"
    assert re.search(r"4 of 4 runs in \d+ s, 2 failed", outputs[-1])


def test_what_is_refused_leaves_no_output(monkeypatch: pytest.MonkeyPatch, tiny_bench: Path, tmp_path: Path) -> None:
    calls: list[str] = []
    stand_in: Any = ModuleType("IPython.display")  # IPython is not needed to test, and need not be installed

    class Handle:
        def update(self, html: str) -> None:
            calls.append(f"update {html}")

    def display(html: str, *, display_id: bool) -> Handle:
        assert display_id
        calls.append(f"display {html}")
        return Handle()

    stand_in.HTML, stand_in.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", stand_in)
    with pytest.raises(LLPBenchError, match="unknown method 'quik-a'"):
        runner.run(make_settings(tiny_bench, tmp_path, methods="quik-a"), NotebookDisplay(cell_output()))
    with NotebookDisplay(cell_output()):
        pass
    assert calls == []
    with NotebookDisplay(cell_output()) as shown:
        shown.say("one")
    assert [call.split()[0] for call in calls] == ["display", "update"]
    assert all("one" in call for call in calls)


def test_a_notebook_gets_a_display_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(displays, "Console", lambda **_: Console(file=io.StringIO(), force_jupyter=True))
    monkeypatch.setattr("llpbench.running.notebook.cell_output", lambda: print)
    assert type(make_display()) is NotebookDisplay
