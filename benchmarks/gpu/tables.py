"""The short table at the end, from rows alone."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.gpu import campaign, correctness, measures, ray_check
from benchmarks.gpu.part import PROCESS
from benchmarks.gpu.rows import Row, Rows
from llpbench.core.text import duration

_WIDTH = 150


def render(rows: Rows, notes: Sequence[str], seconds: float) -> str:
    """Everything that is shown, as text."""
    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False, force_terminal=False)
    if (speeds := _speeds(rows)) is not None:
        console.print(speeds)
    table = Table(title=f"{rows.device}, {duration(seconds)}", show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for lines in (correctness.summary(rows), _ratios(rows), _costs(rows), _ray(rows), _campaign(rows)):
        for what, found in lines:
            table.add_row(what, found)
        table.add_section()
    for note in notes:
        table.add_row("note", note)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def something_failed(rows: Rows) -> bool:
    """Whether the last row of anything says so, or nothing was done."""
    parts = (correctness.PART, measures.PART, ray_check.PART, campaign.PART)
    last = [row for part in parts for row in rows.last(part).values() if row.status != "started"]
    return not last or any(row.status == "failed" and row.values.get("how") != "stopped" for row in last)


def _speeds(rows: Rows) -> Table | None:
    """A line for each way in which DLLP was trained."""
    found = [row for row in rows.last(measures.PART).values() if row.status == "ok" and "way" in row.values]
    if not found:
        return None
    table = Table(title="DLLP on Adult, ordered bags of 256, 2 bags a step")
    numbers = ("members", "seed-epochs/s", "vs eager", "s/epoch", "first step s", "MB")
    for heading in ("encoder", "way", *numbers):
        table.add_column(heading, justify="right" if heading in numbers else "left")
    eager = {row.values["encoder"]: row for row in found if row.values["way"].startswith("one at")}
    for row in sorted(found, key=lambda row: (row.values["encoder"] != "saint", row.key)):
        values, base = row.values, eager.get(row.values["encoder"])
        memory = values["memory_mb"]
        table.add_row(
            values["encoder"],
            values["way"],
            str(values["members"]),
            f"{_speed(row):.3g}",
            f"{_speed(row) / _speed(base):.2f}x" if base else "",
            f"{values['seconds']:.3g}",
            f"{values['first']:.1f}",
            "unknown" if memory is None else f"{memory:,.0f}",
        )
    return table


def _speed(row: Row) -> float:
    return float(row.values["members"] / row.values["seconds"])


def _ratios(rows: Rows) -> Iterator[tuple[str, str]]:
    """The two goals: what ten seeds cost beside one, and seed-epochs beside eager training of one at a time."""
    last = rows.last(measures.PART)
    for way in ("compiled-recorded", "recorded", "compiled", "stacked"):
        times = {
            n: last[key].values for n in (1, 10) if (key := f"{way} saint {n}") in last and last[key].status == "ok"
        }
        eager = last.get("eager saint 1")
        if len(times) == 2 and eager is not None and eager.status == "ok":
            speed = 10 / times[10]["seconds"] * eager.values["seconds"]
            ratio = times[10]["seconds"] / times[1]["seconds"]
            yield f"10 seeds of SAINT, {way}", f"{ratio:.2f}x of 1 seed (goal 2.5x), {speed:.1f}x eager (goal 20x)"


def _costs(rows: Rows) -> Iterator[tuple[str, str]]:
    last = rows.last(measures.PART)
    steps = {
        key.split()[1]: row.values["seconds"]
        for key, row in last.items()
        if key.startswith("step ") and row.status == "ok"
    }
    if "dllp" in steps:
        yield "step relative to dllp", ", ".join(f"{name} {each / steps['dllp']:.1f}x" for name, each in steps.items())
    todo = sum(row.status == "started" for row in last.values())
    failed = [f"{key}: {row.values['reason']}" for key, row in last.items() if row.status in ("failed", "skipped")]
    if todo:
        yield "unfinished measures", str(todo)
    for told in failed:
        yield "not measured", told


def _ray(rows: Rows) -> Iterator[tuple[str, str]]:
    for row in rows.last(ray_check.PART).values():
        if row.key == PROCESS and row.status == "ok":
            continue
        told = "; ".join(row.values.get("wrong", [])) or row.values.get("reason", "")
        if row.status == "ok":
            told = f"equal within {row.values['apart']:.2g}, shares {row.values['shares']}, a killed worker was retried"
        yield f"Ray: {row.key}", f"{row.status}: {told}"


def _campaign(rows: Rows) -> Iterator[tuple[str, str]]:
    for key, row in rows.last(campaign.PART).items():
        values = row.values
        if values.get("how") == "done":
            auc = "" if values["auc"] is None else f", test AUC {100 * values['auc']:.2f}"
            told = f"{values['seeds']} seeds in {duration(values['seconds'])}, {values['epochs']:.0f} epochs{auc}"
        elif "how" in values:
            where = f"after {duration(values['seconds'])} in epoch {values['last epoch']}"
            told = f"{values['seeds']} seeds: {values['how']} {where} {values['reason']}"
        else:
            told = f"{row.status} {values.get('reason', '')}"
        yield key if key.startswith("data ") else f"cell: {key}", told
