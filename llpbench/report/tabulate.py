"""From journal records to boards: which runs stand in which row and column of which board."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from llpbench.core.cell import bagging_text, is_without_labels
from llpbench.core.criteria import CRITERIA, Criterion
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import one_line
from llpbench.report.boards import (
    FEWEST_BAGS,
    NOTHING_STALE,
    Board,
    Column,
    ColumnKey,
    Contender,
    Leaderboards,
    Row,
    Score,
    board_criteria,
    values_of,
)
from llpbench.report.contenders import CellRuns, contenders, tuned
from llpbench.report.notes import difference_notes, failure_notes, stale_notes, surprise_notes
from llpbench.report.origin import origin_of
from llpbench.report.ranking import completed, leaders, ranked
from llpbench.results.choices import chosen_by_searches

_NO_PROTOCOL = "null"

_Bags = tuple[str, int]
"""the bagging, and the most training bags (0: all)"""

LABELS = CRITERIA["auc"]
"""chooses the epochs of what is trained on labels of rows, on every board: one ceiling for all of them"""


def tabulate(
    records: Sequence[Record],
    *,
    common: bool = False,
    stale: Mapping[str, str] = NOTHING_STALE,
    tunings: Sequence[TuningRecord] = (),
) -> Leaderboards:
    """Every board that `records` have something to say on. Of two records of the same run the last one counts.

    What a search has chosen by a criterion is a row of the boards of that criterion, and of no other; a configuration
    that only a search has chosen, be it one that has been made anew since, is no row of its own.

    With `common`, a board shows only the runs (column, seed) that all its rows have completed, but for rows that have
    completed none. `stale`: by id of a run or search, what has changed in the code since it was made; the runs of what
    a stale search has chosen are stale with it.
    """
    runs = {record["run"]: record for record in records}
    found = [tuning for tuning in tunings if tuning["status"] == "ok"]
    chosen = chosen_by_searches(tunings)
    groups = _comparable(_cells(runs.values()))
    number = Counter(cell.spec["bagging"] for cells in groups.values() for cell in cells for _ in cell.runs)

    def place(group: tuple[_Bags, str]) -> tuple[Any, ...]:
        """What has most runs comes first: it is what a reader looks for."""
        (bagging, most), protocol = group
        return -number[bagging], bagging, most, protocol == _NO_PROTOCOL, protocol

    order = sorted(groups, key=place)
    boards = [
        _board(criterion, groups[group], common, stale, found, chosen)
        for criterion in board_criteria()
        for group in order
        if _is_judged(groups[group], criterion)
    ]
    boards = [board for board in boards if board.rows]  # some have nothing but what another criterion has chosen
    labelled = [board for board in boards if not is_without_labels(board.bagging)]
    return Leaderboards(
        tuple(labelled),
        origin_of(list(runs.values())),
        tuple(found),
        tuple(board for board in boards if board not in labelled and board.criterion.regime == "coarse"),
    )


def _is_judged(cells: Iterable[CellRuns], criterion: Criterion) -> bool:
    """Whether any run has the criterion; none has a fine-grained one where nobody knows labels of validation rows."""
    results = [run["results"] for cell in cells for run in cell.runs.values() if run["status"] == "ok"]
    return not results or any(criterion.name in each for each in results)


def _cells(runs: Iterable[Record]) -> list[CellRuns]:
    cells: dict[str, CellRuns] = {}
    for record in runs:
        cell = cells.setdefault(record["cell"], CellRuns(record["cell"], record["spec"]))
        cell.runs[record["seed"]] = record
    return list(cells.values())


def _comparable(cells: Iterable[CellRuns]) -> dict[tuple[_Bags, str], list[CellRuns]]:
    """Cells by bags and protocol.

    Methods without epochs have no protocol: they join each one, in the columns that it covers, and have boards of
    their own only for columns where nothing else has run.
    """
    groups: dict[tuple[_Bags, str], list[CellRuns]] = defaultdict(list)
    protocols: dict[tuple[_Bags, ColumnKey], set[str]] = defaultdict(set)
    without: list[CellRuns] = []
    for cell in cells:
        if cell.spec["protocol"] is None:
            without.append(cell)
            continue
        protocol = json.dumps(cell.spec["protocol"], sort_keys=True)
        groups[_bags(cell), protocol].append(cell)
        protocols[_bags(cell), cell.column].add(protocol)
    for cell in without:
        bags = _bags(cell)
        joined = protocols.get((bags, cell.column), {_NO_PROTOCOL})
        for protocol in joined:
            # where protocols share a column, one's seeds are no gap in the other: take those that it has run itself
            seeds = _seeds(groups[bags, protocol], cell.column) if len(joined) > 1 else set(cell.runs)
            runs = {seed: run for seed, run in cell.runs.items() if seed in seeds}
            if runs:
                groups[bags, protocol].append(CellRuns(cell.id, cell.spec, runs))
    return groups


def _bags(cell: CellRuns) -> _Bags:
    return cell.spec["bagging"], cell.spec.get("max_bags", 0)


def _seeds(cells: Iterable[CellRuns], column: ColumnKey) -> set[int]:
    return {seed for cell in cells if cell.column == column for seed in cell.runs}


def _board(
    criterion: Criterion,
    cells: list[CellRuns],
    common: bool,
    stale: Mapping[str, str],
    tunings: Sequence[TuningRecord],
    chosen: Collection[str],
) -> Board:
    by_contender: dict[Contender, dict[ColumnKey, CellRuns]] = defaultdict(dict)
    for contender, cell in (*contenders(cells, chosen), *tuned(criterion, cells, tunings)):
        by_contender[contender][cell.column] = cell
    shown = [cell for found in by_contender.values() for cell in found.values()]
    columns = tuple(
        _column(key, [cell for cell in shown if cell.column == key], criterion) for key in sorted(_keys(shown))
    )

    def rows() -> list[Row]:
        return [
            Row(contender, tuple(_score(found.get(column.key), column, chooses, stale) for column in columns))
            for contender, found in by_contender.items()
            for chooses in (LABELS if contender.role == "ceiling" and _is_judged(cells, LABELS) else criterion,)
        ]

    failures = failure_notes(columns, ranked(rows(), columns))  # of all runs, whichever are shown
    if common:
        columns = _common(columns, rows())
    ordered = ranked(rows(), columns)
    protocol = next((cell.spec["protocol"] for cell in cells if cell.spec["protocol"] is not None), None)
    return Board(
        criterion=criterion,
        bagging=bagging_text(cells[0].spec["bagging"], cells[0].spec.get("max_bags")),
        protocol=protocol,
        columns=columns,
        rows=ordered,
        leaders=leaders(ordered, columns),
        failures=failures,
        surprises=surprise_notes(columns, ordered, [run for cell in shown for run in cell.runs.values()]),
        stale=stale_notes(columns, ordered),
        max_bags=cells[0].spec.get("max_bags"),
        differences=difference_notes(columns, [run for cell in shown for run in cell.runs.values()]),
        common=common,
    )


def _keys(cells: Iterable[CellRuns]) -> set[ColumnKey]:
    return {cell.column for cell in cells}


def _column(key: ColumnKey, cells: Sequence[CellRuns], criterion: Criterion) -> Column:
    """A column of some cells: their seeds, and what their bags are like. Runs that failed early know no bags."""
    runs = [run for cell in cells for run in cell.runs.values()]
    bags = [run["bags"] for run in runs]
    sizes = [found["sizes"] for found in bags if "sizes" in found]
    validation = [found["validation"] for found in bags if "validation" in found]
    middle = float(median(size[1] for size in sizes)) if sizes else 0.0
    seeds: dict[int, set[str]] = defaultdict(set)  # one vote a method, as in `ranking.runs_that_count`
    for cell in cells:
        for seed in cell.runs:
            seeds[seed].add(cell.spec["method"])
    methods = {cell.spec["method"] for cell in cells}
    return Column(
        *key,
        seeds=tuple(sorted(seeds)),
        sizes=(min(size[0] for size in sizes), middle, max(size[2] for size in sizes)) if sizes else None,
        validation=(min(validation), max(validation)) if validation else None,
        classes=next((n for run in runs if (n := run["dataset"].get("classes")) is not None), None),
        counts=criterion.regime == "fine" or min(validation, default=FEWEST_BAGS) >= FEWEST_BAGS,
        extra=frozenset(seed for seed, voters in seeds.items() if 2 * len(voters) < len(methods)),
    )


def _common(columns: Sequence[Column], rows: Iterable[Row]) -> tuple[Column, ...]:
    """The columns with those seeds that all rows have completed; columns without any are left out."""
    runs = [found for row in rows if (found := completed(row))]
    shared = set.intersection(*runs) if runs else set()
    left = [
        column._replace(seeds=tuple(s for s in column.seeds if (i, s) in shared)) for i, column in enumerate(columns)
    ]
    return tuple(column for column in left if column.seeds)


def _score(cell: CellRuns | None, column: Column, criterion: Criterion, stale: Mapping[str, str]) -> Score:
    runs = {seed: cell.runs[seed] for seed in column.seeds if seed in cell.runs} if cell else {}
    succeeded = {seed: run for seed, run in runs.items() if run["status"] == "ok"}
    chosen = {
        seed: run["results"][criterion.name] for seed, run in succeeded.items() if criterion.name in run["results"]
    }
    epochs = [result["epoch"] for result in chosen.values() if result["epoch"] is not None]
    seconds = [run["times"]["total"] for run in succeeded.values() if "total" in run["times"]]
    return Score(
        cell=cell.id if cell else None,
        values=values_of(runs, criterion),
        succeeded=tuple(succeeded),
        failures={seed: _reason(run) for seed, run in runs.items() if run["status"] != "ok"},
        missing=tuple(seed for seed in column.seeds if seed not in runs and seed not in column.extra),
        stale={seed: why for seed, run in runs.items() if (why := _why_stale(run, cell, stale))},
        best_epoch=median(epochs) if epochs else None,
        seconds=median(seconds) if seconds else None,
        runs=runs,
        tuning=cell.search if cell else None,
    )


def _why_stale(run: Record, cell: CellRuns | None, stale: Mapping[str, str]) -> str:
    """Why a run is stale, or the search that has chosen what it is of; "" if neither is."""
    search = stale.get(cell.search, "") if cell and cell.search else ""
    return stale.get(run["run"], "") or (search and f"its search: {search}")


def _reason(run: Record) -> str:
    reason = one_line(run["reason"]) or "no reason was given"
    return reason if run["status"] == "failed" else f"{run['status']}: {reason}"
