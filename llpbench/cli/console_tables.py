"""Tables in the terminal: datasets, plans, searches, checks, effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isnan
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from llpbench.cli.output import tables_console
from llpbench.core.cell import Cell
from llpbench.core.effects import FeatureEffect, FeatureEffects, bin_text
from llpbench.core.text import printable

if TYPE_CHECKING:
    from llpbench.conformance import Verdict
    from llpbench.core.record import TuningRecord
    from llpbench.data.catalogue import CatalogueEntry, Findings
    from llpbench.running.planning import Plan

_STYLES = {
    "done": "green",
    "ok": "green",
    "failed": "red",
    "stale": "magenta",
    "to run": "cyan",
    "impossible": "yellow",
    "does not apply": "yellow",
}


def show(table: Table) -> None:
    """Print a table."""
    tables_console().print(table)


def show_texts(title: str, caption: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of texts, split into parts that fit the width."""
    from llpbench.report.report_table import Field, Heading, ReportTable
    from llpbench.report.terminal import render_tables

    columns = [
        (Heading(name, numeric=False), [*map(Field.text, texts)])
        for name, texts in zip(headings, zip(*rows, strict=True), strict=True)
    ]
    render_tables([ReportTable("", title, caption, columns)], tables_console())


def percent(share: float, lower: float, upper: float) -> str:
    """Return a share with its interval; `-` for the share of nobody."""
    return "-" if isnan(share) else f"{100 * share:.1f} [{100 * lower:.1f}, {100 * upper:.1f}]"


def catalogue_table(entries: Iterable[CatalogueEntry]) -> Table:
    """Return the table of datasets and where they are read from."""
    rows = []
    for entry in entries:
        spec, facts = entry.spec, entry.spec.facts
        size = [_number(facts.rows), _number(len(facts.columns))] if facts else ["", ""]
        rows.append([spec.name, spec.code, *size, entry.found, entry.source, spec.licence])
    return _table(["dataset", "code", "rows", "features", "found", "source", "licence"], rows)


def findings_table(findings: Iterable[Findings]) -> Table:
    """Return the table of checks of datasets."""
    rows = []
    for found in findings:
        location = found.location.kind if found.location else ""
        rows.append([found.spec.name, found.check, location, found.fingerprint[:16], found.problem])
    return _table(["dataset", "check", "found", "fingerprint", "problem"], rows)


def plan_table(plan: Plan) -> Table:
    """Return the table of searches and cells with their states and seeds."""
    table = _table(["cell", "state", "done", "failed", "stale", "missing"], ())
    for planned in plan.entries:
        seeds = (_seeds(part) for part in (planned.done, planned.failed, [*planned.stale], planned.missing))
        name = _cell(planned.cell) if planned.tuning is None else str(planned.tuning)
        table.add_row(_text(name), _text(planned.state, style=_STYLES[planned.state]), *seeds)
    return table


def tunings_table(records: Iterable[TuningRecord]) -> Table:
    """Return the table of configurations that searches chose, by criterion."""
    headings = ["cell", "criterion", "trials", "stopped", "failed", "default", "best", "changed"]
    table = _table(headings, ())
    for record in records:
        start = record["spec"]["cell"]
        states = Counter(trial["status"] for trial in record["trials"])
        numbers = [str(len(record["trials"])), str(states["stopped"]), str(states["failed"] + states["out-of-memory"])]
        for name, choice in record["best"].items():
            values = ["" if value is None else f"{value:.4f}" for value in (choice["default"], choice["value"])]
            differs = {key: value for key, value in choice["params"].items() if value != start["params"].get(key)}
            changed = ", ".join(f"{key}={value}" for key, value in differs.items())
            table.add_row(*map(_text, (str(Cell.of(start)), name, *numbers, *values, changed or "nothing")))
        if not record["best"]:
            table.add_row(*map(_text, (str(Cell.of(start)), "", *numbers, "", "", record["reason"])))
    return table


def effects_table(effects: Iterable[FeatureEffect]) -> Table:
    """Return the table of effects of features: size, uncertainty, and where they are lowest and highest."""
    table = _table(["feature", "importance", "undetermined", "lowest", "", "highest", ""], ())
    for effect in FeatureEffects(effects).strongest(12):
        ends = []
        for place in (int(effect.values.argmin()), int(effect.values.argmax())):
            value = f"{effect.values[place]:+.2f} ± {2 * effect.std[place]:.2f}"
            ends += [_text(value), _text(bin_text(effect, place))]
        table.add_row(_text(effect.name), f"{effect.importance:.2f}", f"{effect.undetermined:.2f}", *ends)
    return table


def _cell(cell: Cell) -> str:
    """Return the name of a cell, with the differences to other cells of the same method."""
    from llpbench.training.specification import configuration  # torch

    differs = configuration(cell)
    return f"{cell} ({differs})" if differs else str(cell)


def verdicts_table(verdicts: Iterable[Verdict]) -> Table:
    """Return the table of checks and their results. Checks with the same failure are one row."""
    table = _table(["check", "result", "detail"], ())
    rows: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in verdicts:
        alike = (verdict.result, verdict.check.name if verdict.result == "ok" else verdict.detail)
        rows.setdefault(alike, []).append(verdict)
    for first, *others in rows.values():
        more = f" (the same result in: {', '.join(other.check.name for other in others)})" if others else ""
        table.add_row(
            _text(f"{first.check.title}{more}"), _text(first.result, style=_STYLES[first.result]), _text(first.detail)
        )
    return table


def _seeds(seeds: Sequence[int]) -> str:
    """Return `0-9` for consecutive seeds, `0,3,7` otherwise."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _text(value: str, style: str = "") -> Text:
    """Return the text of a cell without control characters."""
    return Text(printable(value), style=style)


def _table(headings: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    return table
