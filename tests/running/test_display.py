"""What a run shows: a live display in a terminal, plain lines anywhere else."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
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
from llpbench.core.record import Record, Status, TuningRecord
from llpbench.core.text import duration
from llpbench.running import display as displays
from llpbench.running import runner
from llpbench.running.display import Display, Show, cell_output, figure, in_short, make_display, title
from llpbench.running.live_board import TITLE, draw
from llpbench.running.schedule import Job
from llpbench.training.specification import make_cell

JOB = Job(make_cell_of(), (0, 1))


def terminal(height: int = 40) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120, height=height)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def notebook(show: Show) -> Display:
    return Display(displays._html_console(), "notebook", show)


def test_terminal_and_notebook_have_own_displays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(displays, "cell_output", lambda: print)
    monkeypatch.setattr(displays, "_html_console", Console)
    for options, no_color, form in (
        ({"force_terminal": True}, "", "live"),
        ({"force_terminal": True}, "1", "plain"),
        ({"force_terminal": False}, "", "plain"),
        ({"force_jupyter": True}, "", "notebook"),
    ):
        made: Any = Console(file=io.StringIO(), **options)  # type: ignore[arg-type]
        monkeypatch.setattr(displays, "Console", lambda made=made, **_: made)
        monkeypatch.setenv("NO_COLOR", no_color)
        assert make_display().form == form


def test_job_title_shows_differences_from_defaults(tiny_bench: Path, tmp_path: Path) -> None:  # noqa: ARG001
    job = Job(make_cell("quick-a", "tiny", bag_size=8, params={"seconds": 0.12345}), (0, 1, 2))
    assert title(job) == "quick-a on tiny ordered 8 (3 seeds), seconds=0.1235"
    assert str(replace(job, cell=make_cell("quick-a", "tiny", bag_size=8))) == "quick-a on tiny ordered 8 (3 seeds)"


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


def test_outcome_shows_first_failure() -> None:
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
def test_durations_are_formatted(seconds: float, text: str) -> None:
    assert duration(seconds) == text


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


def test_refused_run_leaves_no_output(monkeypatch: pytest.MonkeyPatch, tiny_bench: Path, tmp_path: Path) -> None:
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
        runner.run(make_settings(tiny_bench, tmp_path, methods="quik-a"), notebook(cell_output()))
    with notebook(cell_output()):
        pass
    assert calls == []
    with notebook(cell_output()) as shown:
        shown.say("one")
    assert [call.split()[0] for call in calls] == ["display", "update"]
    assert all("one" in call for call in calls)


def live_board(records: Sequence[Record], height: int = 40, searches: Sequence[TuningRecord] = ()) -> list[list[str]]:
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


def test_labels_show_all_differences() -> None:
    records = [
        record("dllp", 0.9, role="ceiling"),
        record("dllp", 0.8, pretraining="self+bag"),
        record("dllp", 0.7, params={"hidden": 128}),
        record("dllp", 0.6, encoder="saint"),
    ]
    assert [line[:-3] for line in live_board(records)[1:]] == [
        ["dllp", "mlp", "(ceiling)"],
        ["dllp", "mlp", "self+bag"],
        ["dllp", "mlp", "hidden=128"],
        ["dllp", "saint"],
    ]


def test_live_board_fits_available_width() -> None:
    many = [
        each for size in range(1, 13) for name in "abcdefgh" for each in runs(name, 0.5 + size / 100, bag_size=size)
    ]
    assert live_board(many)[1] == ["a", "mlp", "56.5", "12/12", "12"]
    assert live_board(many, height=6)[-1] == ["and", "5", "more", "methods"]
    assert len(live_board(many, height=6)) == 5
    assert live_board(many, height=3) == []
    assert live_board([]) == []
