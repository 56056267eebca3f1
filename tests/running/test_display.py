"""What a run shows: a live display in a terminal, plain lines anywhere else."""

from __future__ import annotations

import io
import re

from factory import failed, make_cell_of, make_record, record, runs
from rich.console import Console

from llpbench.core.cell import Epoch
from llpbench.running.display import Display, figure
from llpbench.running.schedule import Job

JOB = Job(make_cell_of(), (0, 1))


def terminal(height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, height=height)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())


def test_live_display_shows_progress_and_failures() -> None:
    console = terminal()
    with Display(console, live=True) as display:
        display.begin(60)
        display.estimate(200.0)
        display.started(JOB)
        display.finished(JOB, [make_record(JOB.cell, 0), make_record(JOB.cell, 1, "failed")])
        for number in range(20):
            display.started(Job(make_cell_of(f"method-{number}"), (0,)))
        display.started(JOB)
        last = Job(make_cell_of("method-3"), (0,))
        display.progressed(last, Epoch(epoch=4, epochs=40, criterion="auc", value=0.8125, members=2))
        console.file = io.StringIO()
        display._bars.refresh()
        text = shown(console)
    for part in (r"2/60, 1 failed, until about", r"method-3 mlp .* epoch 5/40, auc 0.812"):
        assert re.search(part, text)
    assert "method-11 " in text
    assert "method-12 " not in text, "there is room for twelve"


def test_plain_display_escapes_markup() -> None:
    console = Console(file=io.StringIO(), width=40)
    with Display(console, live=False) as display:
        display.begin(4)
        display.say("[bold]a line that is longer than the width of the terminal[/]")
        display.started(JOB)
        for epoch in range(5):
            display.progressed(JOB, Epoch(epoch, 5, "auc", 0.5, 2))
        display.finished(JOB, [make_record(JOB.cell, 0), make_record(JOB.cell, 1, "failed")])
        display.started(JOB)
        display.finished(JOB, runs("dllp", 0.881, 0.883))
    said, _, failure, _, success = shown(console).splitlines()  # epochs have no line, and no line is wrapped
    assert said == "[bold]a line that is longer than the width of the terminal[/]"
    assert re.search(r"^failed dllp mlp .* 2/4 .*AUC 90\.0.*bad luck", failure)
    assert re.search(r"^ok dllp mlp .* 4/4 .*AUC 88\.2 ± 0\.1", success)


def test_cell_score_is_mean_over_labelled_seeds() -> None:
    coarse = record("dllp", aucs={"mpiou": 0.8, "l1": 0.8})
    assert figure([coarse]) == figure([failed()]) == figure([]) == ""
    assert figure([*runs("dllp", 0.881), failed(seed=1)]) == "AUC 88.1"
    assert figure(runs("dllp", 0.8, 0.9)) == "AUC 85.0 ± 7.1"
