"""From journal records to boards: which runs stand in which row and column of which board."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from llpbench.core.cell import Cell
from llpbench.core.criteria import METRICS, Criterion
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import one_line
from llpbench.report.boards import (
    NOTHING_STALE,
    Board,
    Column,
    ColumnKey,
    Contender,
    Leaderboards,
    Row,
    Score,
    board_criteria,
)
from llpbench.report.notes import failure_notes, stale_notes, surprise_notes
from llpbench.report.origin import origin_of
from llpbench.report.ranking import completed, leaders, ranked
from llpbench.report.wording import trials_text

_NAMED = {"method", "encoder", "pretraining", "dataset", "bagging", "bag_size", "protocol"}
"""what the rows, columns and headings of a board say; all else in a spec is a row's configuration"""

_NO_PROTOCOL = "null"


@dataclass
class _Cell:
    """The runs of one benchmark cell, by seed."""

    id: str
    spec: Mapping[str, Any]
    runs: dict[int, Record] = field(default_factory=dict)

    @property
    def column(self) -> ColumnKey:
        return self.spec["dataset"], self.spec["bag_size"]

    @property
    def method(self) -> Mapping[str, Any]:
        return self.runs[max(self.runs)]["method"]

    @property
    def name(self) -> tuple[str, str | None, str]:
        return self.spec["method"], self.spec["encoder"], self.spec["pretraining"]


def tabulate(
    records: Sequence[Record],
    *,
    common: bool = False,
    stale: Mapping[str, str] = NOTHING_STALE,
    tunings: Sequence[TuningRecord] = (),
) -> Leaderboards:
    """Every board that `records` have something to say on. Of two records of the same run the last one counts.

    What a search has chosen by a criterion is a row of the boards of that criterion, and of no other; a configuration
    that only a search has chosen is no row of its own.

    With `common`, a board shows only the runs (column, seed) that all its rows have completed, but for rows that have
    completed none. `stale`: by run id, what has changed in the code since the run was made.
    """
    runs = {record["run"]: record for record in records}
    found = [tuning for tuning in tunings if tuning["status"] == "ok"]
    groups = _comparable(_cells(runs.values()))
    order = sorted(groups, key=lambda group: (group[0], group[1] == _NO_PROTOCOL, group[1]))
    boards = [
        _board(criterion, groups[group], common, stale, found)
        for criterion in board_criteria()
        for group in order
        if _is_judged(groups[group], criterion)
    ]
    boards = [board for board in boards if board.rows]  # some have nothing but what another criterion has chosen
    return Leaderboards(tuple(boards), origin_of(list(runs.values())), tuple(found))


def _is_judged(cells: Iterable[_Cell], criterion: Criterion) -> bool:
    """Whether any run has the criterion; none has a fine-grained one where nobody knows labels of validation rows."""
    results = [run["results"] for cell in cells for run in cell.runs.values() if run["status"] == "ok"]
    return not results or any(criterion.name in each for each in results)


def _cells(runs: Iterable[Record]) -> list[_Cell]:
    cells: dict[str, _Cell] = {}
    for record in runs:
        cell = cells.setdefault(record["cell"], _Cell(record["cell"], record["spec"]))
        cell.runs[record["seed"]] = record
    return list(cells.values())


def _comparable(cells: Iterable[_Cell]) -> dict[tuple[str, str], list[_Cell]]:
    """Cells by bagging and protocol.

    Methods without epochs have no protocol: they join each one, in the columns that it covers, and have boards of
    their own only for columns where nothing else has run.
    """
    groups: dict[tuple[str, str], list[_Cell]] = defaultdict(list)
    protocols: dict[tuple[str, ColumnKey], set[str]] = defaultdict(set)
    without: list[_Cell] = []
    for cell in cells:
        if cell.spec["protocol"] is None:
            without.append(cell)
            continue
        protocol = json.dumps(cell.spec["protocol"], sort_keys=True)
        groups[cell.spec["bagging"], protocol].append(cell)
        protocols[cell.spec["bagging"], cell.column].add(protocol)
    for cell in without:
        bagging = cell.spec["bagging"]
        joined = protocols.get((bagging, cell.column), {_NO_PROTOCOL})
        for protocol in joined:
            # where protocols share a column, one's seeds are no gap in the other: take those that it has run itself
            seeds = _seeds(groups[bagging, protocol], cell.column) if len(joined) > 1 else set(cell.runs)
            runs = {seed: run for seed, run in cell.runs.items() if seed in seeds}
            if runs:
                groups[bagging, protocol].append(_Cell(cell.id, cell.spec, runs))
    return groups


def _seeds(cells: Iterable[_Cell], column: ColumnKey) -> set[int]:
    return {seed for cell in cells if cell.column == column for seed in cell.runs}


def _board(
    criterion: Criterion,
    cells: list[_Cell],
    common: bool,
    stale: Mapping[str, str],
    tunings: Sequence[TuningRecord],
) -> Board:
    columns = tuple(_column(key, [cell for cell in cells if cell.column == key]) for key in sorted(_keys(cells)))
    by_contender: dict[Contender, dict[ColumnKey, _Cell]] = defaultdict(dict)
    own = _without_chosen(cells, tunings)
    for contender, cell in (*zip(_contenders(own), own, strict=True), *_tuned(criterion, cells, tunings)):
        by_contender[contender][cell.column] = cell

    def rows() -> list[Row]:
        return [
            Row(contender, tuple(_score(found.get(column.key), column, criterion, stale) for column in columns))
            for contender, found in by_contender.items()
        ]

    failures = failure_notes(columns, ranked(rows()))  # of all runs, whichever are shown
    if common:
        columns = _common(columns, rows())
    ordered = ranked(rows())
    protocol = next((cell.spec["protocol"] for cell in cells if cell.spec["protocol"] is not None), None)
    return Board(
        criterion=criterion,
        bagging=cells[0].spec["bagging"],
        protocol=protocol,
        columns=columns,
        rows=ordered,
        leaders=leaders(ordered),
        failures=failures,
        surprises=surprise_notes(columns, ordered, [run for cell in cells for run in cell.runs.values()]),
        stale=stale_notes(columns, ordered),
        common=common,
    )


def _keys(cells: Iterable[_Cell]) -> set[ColumnKey]:
    return {cell.column for cell in cells}


def _column(key: ColumnKey, cells: Sequence[_Cell]) -> Column:
    """A column of some cells: their seeds, and what their bags are like. Runs that failed early know no bags."""
    runs = [run for cell in cells for run in cell.runs.values()]
    bags = [run["bags"] for run in runs]
    sizes = [found["sizes"] for found in bags if "sizes" in found]
    validation = [found["validation"] for found in bags if "validation" in found]
    middle = float(median(size[1] for size in sizes)) if sizes else 0.0
    return Column(
        *key,
        seeds=tuple(sorted(_seeds(cells, key))),
        sizes=(min(size[0] for size in sizes), middle, max(size[2] for size in sizes)) if sizes else None,
        validation=(min(validation), max(validation)) if validation else None,
        classes=next((n for run in runs if (n := run["dataset"].get("classes")) is not None), None),
    )


def _common(columns: Sequence[Column], rows: Iterable[Row]) -> tuple[Column, ...]:
    """The columns with those seeds that all rows have completed; columns without any are left out."""
    runs = [found for row in rows if (found := completed(row))]
    shared = set.intersection(*runs) if runs else set()
    left = [
        column._replace(seeds=tuple(s for s in column.seeds if (i, s) in shared)) for i, column in enumerate(columns)
    ]
    return tuple(column for column in left if column.seeds)


def _contenders(cells: Sequence[_Cell]) -> list[Contender]:
    """Who runs in each cell, with the hyperparameters that differ from the defaults.

    Where these do not tell two cells of a column apart (the defaults have changed since, or a part of the
    specification that reports know nothing of differs), what not all cells of that name share stands in their place.
    """
    items = [_items({key: value for key, value in cell.spec.items() if key not in _NAMED}) for cell in cells]
    shared: dict[tuple[str, str | None, str], set[str]] = {}
    for cell, own in zip(cells, items, strict=True):
        shared[cell.name] = shared.get(cell.name, own) & own
    changes = [_items({**cell.method["changed"], **_precision(cell.spec)}) for cell in cells]
    seen = Counter((cell.name, cell.column, frozenset(changed)) for cell, changed in zip(cells, changes, strict=True))
    declared = {cell.spec["method"]: cell.method for cell in cells}
    vague = {name for (name, _, _), number in seen.items() if number > 1}
    return [
        Contender(
            *cell.name,
            configuration=", ".join(sorted(own - shared[cell.name] if cell.name in vague else changed)),
            kind=declared[cell.spec["method"]]["kind"],
            role=declared[cell.spec["method"]]["role"],
            reference=declared[cell.spec["method"]]["reference"] or "",
        )
        for cell, changed, own in zip(cells, changes, items, strict=True)
    ]


def _without_chosen(cells: Sequence[_Cell], tunings: Iterable[TuningRecord]) -> list[_Cell]:
    """The cells but for those that are there because a search has chosen them."""
    starts = {Cell.of(tuning["spec"]["cell"]).id for tuning in tunings}
    chosen = {choice["cell"] for tuning in tunings for choice in tuning["best"].values()} - starts
    return [cell for cell in cells if cell.id not in chosen or not cell.method["changed"]]


def _tuned(
    criterion: Criterion, cells: Iterable[_Cell], tunings: Iterable[TuningRecord]
) -> Iterator[tuple[Contender, _Cell]]:
    """What searches have chosen by a criterion, as far as it has run."""
    by_id = {cell.id: cell for cell in cells}
    for tuning in sorted(tunings, key=lambda tuning: tuning["finished"]):  # of equal ones the last counts
        choice = tuning["best"].get(criterion.name)
        if choice is None or choice["cell"] not in by_id:
            continue
        spec, method, cell = tuning["spec"], tuning["method"], by_id[choice["cell"]]
        how = f"tuned, {trials_text(spec)}"
        start = sorted(_items({**method["changed"], **_precision(spec["cell"])}))
        yield (
            Contender(
                spec["cell"]["method"],
                spec["cell"]["encoder"],
                spec["cell"]["pretraining"],
                configuration=", ".join([*start, how]),
                kind=method["kind"],
                role=method["role"],
                reference=method["reference"] or "",
                tuned=True,
            ),
            _Cell(cell.id, cell.spec, {seed: run for seed, run in cell.runs.items() if seed != spec["seed"]}),
        )


def _precision(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Results of another precision than float32, the only one that a specification names, have rows of their own."""
    return {"precision": spec["precision"]} if "precision" in spec else {}


def _items(configuration: Mapping[str, Any]) -> set[str]:
    """`{"params": {"weight": 0.1}}` as `{"weight=0.1"}`; what is not in `params` keeps its path."""
    items: set[str] = set()
    for key, value in configuration.items():
        if isinstance(value, Mapping):
            prefix = "" if key == "params" else f"{key}."
            items |= {prefix + item for item in _items(value)}
        else:
            items.add(f"{key}={json.dumps(value, sort_keys=True)}")
    return items


def _score(cell: _Cell | None, column: Column, criterion: Criterion, stale: Mapping[str, str]) -> Score:
    runs = {seed: cell.runs[seed] for seed in column.seeds if seed in cell.runs} if cell else {}
    succeeded = {seed: run for seed, run in runs.items() if run["status"] == "ok"}
    chosen = {
        seed: run["results"][criterion.name] for seed, run in succeeded.items() if criterion.name in run["results"]
    }
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for seed, result in chosen.items():
        for metric, value in result["test"].items():
            if value is not None and math.isfinite(value):
                percent = metric in METRICS and METRICS[metric].percent
                values[metric][seed] = 100.0 * value if percent else value
    epochs = [result["epoch"] for result in chosen.values() if result["epoch"] is not None]
    seconds = [run["times"]["total"] for run in succeeded.values() if "total" in run["times"]]
    return Score(
        cell=cell.id if cell else None,
        values=dict(values),
        succeeded=tuple(succeeded),
        failures={seed: _reason(run) for seed, run in runs.items() if run["status"] != "ok"},
        missing=tuple(seed for seed in column.seeds if seed not in runs),
        stale={seed: stale[run["run"]] for seed, run in runs.items() if run["run"] in stale},
        best_epoch=median(epochs) if epochs else None,
        seconds=median(seconds) if seconds else None,
        runs=runs,
    )


def _reason(run: Record) -> str:
    reason = one_line(run["reason"]) or "no reason was given"
    return reason if run["status"] == "failed" else f"{run['status']}: {reason}"
