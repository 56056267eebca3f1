"""Boards of a journal: from the tidy table to rows, columns and ranks.

A run is a (column, seed). It counts if more than half of the methods have attempted it, at least one row has completed
it, and its column counts. A row without one of these runs has no rank. So no method gains from a failed run, and none
loses its rank because another method ran on more columns or seeds. Floors are ranked like all rows trained on bags.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from operator import attrgetter, itemgetter
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame, MultiIndex, concat, isna

from llpbench.core.cell import bagging_text, is_without_labels, without_key
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, METRICS, Criterion, Metric
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import one_line
from llpbench.report.boards import (
    FEWEST_BAGS,
    HEADLINE,
    REFERENCE,
    RUN,
    Board,
    Column,
    ColumnKey,
    Contender,
    Leaderboards,
    Mark,
    Row,
    Score,
    grouped_means,
    means_over_datasets,
    wide,
)
from llpbench.report.notes import difference_notes, failure_notes, stale_notes, surprise_notes, value_notes
from llpbench.report.origin import origin_of
from llpbench.report.wording import range_text, trials_text
from llpbench.results.frame import (
    MEASURES,
    NO_PROTOCOL,
    NO_STALE_RUNS,
    configuration,
    items,
    settings,
    shown,
    tidy,
)

LABELS = CRITERIA["auc"]
"""Criterion of methods trained on labels, on every board."""

_OF_RUN = ("run", "cell", "seed", "status", "reason", "stale")
_OF_CELL = ("method", "encoder", "pretraining", "dataset", "bag_size", "bagging", "max_bags", "protocol", "settings")
_DECLARED = ("configuration", "kind", "role", "reference", "chosen")


class _Run(NamedTuple):
    """A run as a row of a board has it."""

    place: int
    """position in the table of runs"""
    run: str
    cell: str
    seed: int
    contender: Contender
    column: ColumnKey
    bags: tuple[str, int]
    """bagging and number of training bags (0 without a limit)"""
    protocol: str
    settings: str
    chosen: bool
    """whether the configuration comes only from searches"""
    status: str
    reason: str
    stale: str
    search: str | None = None
    """id of the search that chose the configuration"""

    @property
    def name(self) -> tuple[str, str | None, str]:
        """Method, encoder and pretraining."""
        return self.contender[:3]


class _Group(NamedTuple):
    """Runs of a bagging and protocol."""

    bags: tuple[str, int]
    protocol: str
    runs: list[_Run]


def tabulate(
    records: Sequence[Record],
    *,
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    metric: str = HEADLINE,
) -> Leaderboards:
    """Return all boards of some records. Of several records of a run the last one counts.

    A configuration that a search chose by a criterion is a row on the boards of that criterion only.

    `stale`: what has changed in the code since a run or search, by its id. If a search is stale, so are the runs of its
    choice. `metric`: what boards show and rank by.
    """
    runs = {record["run"]: record for record in records}
    successful = [tuning for tuning in tunings if tuning["status"] == "ok"]
    frame = tidy(runs.values(), stale, tunings, BOARD_CRITERIA)
    maker = _BoardMaker(frame, runs, successful, stale, METRICS[metric])
    groups = _groups(maker.runs)
    boards = [
        board
        for name in BOARD_CRITERIA
        for group in groups
        if (board := maker.board(CRITERIA[name], group)) is not None
    ]
    return Leaderboards(
        tuple(board for board in boards if not is_without_labels(board.bagging)),
        origin_of(list(runs.values())),
        tuple(successful),
        tuple(board for board in boards if is_without_labels(board.bagging) and board.criterion.regime == "coarse"),
    )


class _BoardMaker:
    """Makes boards from the tidy table."""

    def __init__(
        self,
        frame: DataFrame,
        records: Mapping[str, Record],
        tunings: Sequence[TuningRecord],
        stale: Mapping[str, str],
        metric: Metric,
    ) -> None:
        self._records, self._tunings, self._stale, self._metric = records, tunings, stale, metric
        self._lines = {key: line for line, key in enumerate(zip(frame["run"], frame["criterion"], strict=True))}
        unmeasured = np.full(len(MEASURES), np.nan)  # the last line, of runs without the criterion
        self._measures = np.vstack([frame[[*MEASURES]].to_numpy(), unmeasured])
        self._table = frame.drop(columns=["criterion", "regime", *MEASURES]).drop_duplicates("run", ignore_index=True)
        self.runs = _runs_of(self._table)

    def _has_criterion(self, runs: Iterable[_Run], criterion: Criterion) -> bool:
        """Return whether a run has the criterion; a fine-grained one needs labels of validation rows."""
        done = [run.run for run in runs if run.status == "ok"]
        return not done or any((run, criterion.name) in self._lines for run in done)

    def board(self, criterion: Criterion, group: _Group) -> Board | None:
        """Return the board of a group of runs; None if it has no row."""
        if not self._has_criterion(group.runs, criterion):
            return None
        candidates = [*_untuned(group.runs), *_tuned(criterion, group.runs, self._tunings, self._stale)]
        last = {(run.contender, run.column): (run.cell, run.search) for run in candidates}
        runs = [run for run in candidates if (run.cell, run.search) == last[run.contender, run.column]]
        if not runs:
            return None
        records = [self._records[run.run] for run in runs]
        columns = _columns(runs, records, criterion)
        rows = {contender: row for row, contender in enumerate(dict.fromkeys(run.contender for run in runs))}
        places = {column.key: place for place, column in enumerate(columns)}
        runs.sort(key=lambda run: (rows[run.contender], places[run.column], run.seed))
        table = self._measured(runs, criterion, has_labels=self._has_criterion(group.runs, LABELS))
        table["row"] = [rows[run.contender] for run in runs]
        table["column"] = [places[run.column] for run in runs]
        bagging, max_bags = group.bags
        unordered = Board(
            criterion,
            bagging_text(bagging, max_bags or None),
            json.loads(group.protocol),
            tuple(columns),
            tuple(_rows(runs, table["value"].tolist(), [*rows], columns, self._records, self._metric)),
            table,
            MultiIndex.from_arrays([[], []]),
            self._metric,
            max_bags=max_bags or None,
            differences=difference_notes(columns, records),
        )
        board = _ordered(unordered)
        return replace(
            board,
            failures=failure_notes(board.columns, board.rows),
            without_value=value_notes(board.columns, board.rows, self._metric),
            surprises=surprise_notes(board.columns, board.rows, records, self._metric),
            stale=stale_notes(board.columns, board.rows),
        )

    def _measured(self, runs: Sequence[_Run], criterion: Criterion, *, has_labels: bool) -> DataFrame:
        """Return the table of some runs, measured at the epoch that the criterion chose.

        Labels choose the epoch of ceilings, if any run has them.
        """
        chosen_by = [LABELS if has_labels and run.contender.role == "ceiling" else criterion for run in runs]
        lines = [self._lines.get((run.run, by.name), -1) for run, by in zip(runs, chosen_by, strict=True)]
        facts = self._table.take([run.place for run in runs]).reset_index(drop=True)
        table = concat([facts, DataFrame(self._measures[lines], columns=[*MEASURES])], axis="columns")
        return table.assign(value=shown(table, self._metric.name))


def part_of(board: Board, rows: Sequence[int], columns: Sequence[int]) -> Board:
    """Return the board of some rows and columns, with their ranks among each other."""
    new_rows, new_columns = ({old: new for new, old in enumerate(places)} for places in (rows, columns))
    runs = board.runs[board.runs["row"].isin(rows) & board.runs["column"].isin(columns)]
    return _ordered(
        replace(
            board,
            rows=tuple(replace(board.rows[n], scores=tuple(board.rows[n].scores[c] for c in columns)) for n in rows),
            columns=tuple(board.columns[place] for place in columns),
            runs=runs.assign(row=runs["row"].map(new_rows), column=runs["column"].map(new_columns)),
        )
    )


def _ordered(board: Board) -> Board:
    """Return a board with ranks and marks, its rows in their order."""
    contenders = [row.contender for row in board.rows]
    counting = _counting(board.runs, contenders, board.columns)
    ranks, order = _order(board, contenders, counting)
    has_encoder = any(contender.encoder for contender in contenders)
    places = {number: place for place, number in enumerate(order)}
    return replace(
        board,
        rows=tuple(
            replace(board.rows[n], rank=ranks.get(n), mark=_mark(board.rows[n], has_encoder=has_encoder)) for n in order
        ),
        runs=board.runs.assign(row=[places[row] for row in board.runs["row"]]),
        counting=counting,
    )


def _order(board: Board, contenders: Sequence[Contender], counting: MultiIndex) -> tuple[dict[int, int], list[int]]:
    """Return ranks by row, and the order of rows: trained on labels, ranked (best first), unranked."""
    values = board.sign * wide(board.runs, len(contenders))
    counted = values.reindex(counting)
    lacking = counted.isna().sum()
    means = grouped_means(values).mean()
    learners = [number for number, contender in enumerate(contenders) if contender.role != "ceiling"]
    complete = [number for number in learners if len(counted) and not lacking[number]]
    ranks: dict[int, int] = {}
    if complete:
        ranked = means_over_datasets(counted, [column.dataset for column in board.columns]).loc[complete]
        ranks = {int(n): int(rank) for n, rank in ranked.rank(method="min", ascending=False).items()}

    def order(number: int) -> tuple[Any, ...]:
        label = contenders[number].label
        if contenders[number].role == "ceiling":
            return 0, np.inf if isna(means[number]) else -means[number], label
        return (1, ranks[number], label) if number in ranks else (2, lacking[number], label)

    return ranks, sorted(range(len(contenders)), key=order)


def _counting(runs: DataFrame, contenders: Sequence[Contender], columns: Sequence[Column]) -> MultiIndex:
    """Return the runs that count: attempted by more than half of the methods and completed by at least one row.

    A method has one vote, no matter how many rows it has. Tuned rows have none.
    """
    learners = {number for number, contender in enumerate(contenders) if contender.role != "ceiling"}
    voters = {number for number in learners if not contenders[number].tuned} or learners
    methods: dict[tuple[int, int], set[str]] = defaultdict(set)
    done = set()
    for row, value, *run in zip(*(runs[name].tolist() for name in ("row", "value", *RUN)), strict=True):
        if row in voters:
            methods[run[0], run[1]].add(contenders[row].method)
            if not isnan(value):
                done.add((run[0], run[1]))
    number = len({contenders[row].method for row in voters})
    counting = sorted(run for run in done if 2 * len(methods[run]) > number and columns[run[0]].counts)
    return MultiIndex.from_arrays(np.array(counting, dtype=int).reshape(-1, 2).T, names=RUN)


def _mark(row: Row, *, has_encoder: bool) -> Mark:
    """Return the mark of a row. A ceiling has an encoder, unless no row of the board (`has_encoder`) has one."""
    if row.contender.role != "ceiling":
        return row.contender.role
    is_direct = row.contender.encoder is None and has_encoder
    return "ceiling" if row.is_plain and not is_direct else "supervised"


def _rows(
    runs: Sequence[_Run],
    values: Sequence[float],
    contenders: Sequence[Contender],
    columns: Sequence[Column],
    records: Mapping[str, Record],
    metric: Metric,
) -> Iterator[Row]:
    """Yield the rows of a board without ranks, of runs sorted by row, column and seed. `values`: their metric."""
    cells: dict[tuple[Contender, ColumnKey], list[tuple[_Run, float]]] = defaultdict(list)
    of_row: dict[Contender, list[Record]] = defaultdict(list)
    for run, value in zip(runs, values, strict=True):
        cells[run.contender, run.column].append((run, value))
        of_row[run.contender].append(records[run.run])
    for contender in contenders:
        specs = [record["spec"] for record in of_row[contender]]
        yield Row(
            contender,
            tuple(_score(column, cells[contender, column.key], records, metric) for column in columns),
            is_default=not contender.tuned
            and not any(record["method"]["changed"] or "average" in record["spec"] for record in of_row[contender]),
            ensemble=max(spec.get("ensemble", 1) for spec in specs),
            precision=specs[0].get("precision", REFERENCE),
        )


def _score(column: Column, cell: Sequence[tuple[_Run, float]], records: Mapping[str, Record], metric: Metric) -> Score:
    """Return the score of the runs of a cell and their values."""
    runs = {run.seed: run for run, _ in cell}
    missing = tuple(seed for seed in column.seeds if seed not in runs and seed not in column.extra)
    if not runs:
        return Score(missing=missing)
    first = cell[0][0]
    done = {seed: records[run.run]["results"].values() for seed, run in runs.items() if run.status == "ok"}
    return Score(
        cell=first.cell,
        values={run.seed: value for run, value in cell if not isnan(value)},
        failures={seed: _reason(run.status, run.reason) for seed, run in runs.items() if run.status != "ok"},
        missing=missing,
        stale={seed: run.stale for seed, run in runs.items() if run.stale},
        runs={seed: records[run.run] for seed, run in runs.items()},
        tuning=first.search,
        uncomputed=tuple(s for s, results in done.items() if not any(metric.name in r["test"] for r in results)),
    )


def _reason(status: str, reason: str) -> str:
    line = one_line(reason) or "no reason was given"
    return line if status == "failed" else f"{status}: {line}"


def _columns(runs: Sequence[_Run], records: Sequence[Record], criterion: Criterion) -> list[Column]:
    """Return the columns of some runs. Runs that failed early do not know their bags."""
    methods: dict[ColumnKey, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    of_column: dict[ColumnKey, list[Record]] = defaultdict(list)
    for run, record in zip(runs, records, strict=True):
        methods[run.column][run.seed].add(run.contender.method)
        of_column[run.column].append(record)
    columns = (_column(key, found, methods[key], criterion) for key, found in of_column.items())
    return sorted(columns, key=attrgetter("order"))


def _column(key: ColumnKey, records: Sequence[Record], methods: Mapping[int, set[str]], criterion: Criterion) -> Column:
    """Return the column of some runs. `methods`: those that have run, by seed."""
    dataset, size, by = key
    sizes = [record["bags"]["sizes"] for record in records if "sizes" in record["bags"]]
    validation = [record["bags"]["validation"] for record in records if "validation" in record["bags"]]
    classes = (record["dataset"].get("classes") for record in records)
    number = len(set().union(*methods.values()))
    return Column(
        dataset,
        size,
        tuple(sorted(methods)),
        (int(min(s[0] for s in sizes)), float(median(s[1] for s in sizes)), int(max(s[2] for s in sizes)))
        if sizes
        else None,
        (int(min(validation)), int(max(validation))) if validation else None,
        next((known for known in classes if known is not None), None),
        criterion.regime == "fine" or min(validation, default=FEWEST_BAGS) >= FEWEST_BAGS,
        frozenset(seed for seed, names in methods.items() if 2 * len(names) < number),
        by,
    )


def _runs_of(table: DataFrame) -> list[_Run]:
    """Return the runs of a table with one line per run.

    All runs of a cell have the declaration of its last seed. Bags by natural keys are one bagging: each key of a
    dataset is a column.
    """
    lines = table[[*_OF_CELL, *_DECLARED, *_OF_RUN]].to_dict("records")
    first = {line["cell"]: line for line in reversed(lines)}
    last = {line["cell"]: line for line in sorted(lines, key=itemgetter("seed"))}
    runs = []
    for place, line in enumerate(lines):
        spec, declared = first[line["cell"]], last[line["cell"]]
        kind, key = without_key(spec["bagging"])
        contender = Contender(
            spec["method"],
            spec["encoder"] or None,
            spec["pretraining"],
            *(declared[name] for name in ("configuration", "kind", "role", "reference")),
        )
        runs.append(
            _Run(
                place,
                line["run"],
                line["cell"],
                line["seed"],
                contender,
                (spec["dataset"], None if isnan(spec["bag_size"]) else int(spec["bag_size"]), key),
                (kind, 0 if isnan(spec["max_bags"]) else int(spec["max_bags"])),
                spec["protocol"],
                spec["settings"],
                declared["chosen"],
                line["status"],
                line["reason"],
                line["stale"],
            )
        )
    return runs


def _groups(runs: Iterable[_Run]) -> list[_Group]:
    """Return the runs of each bagging and protocol, the bagging with most runs first.

    Methods without epochs join every protocol, in the columns that it has. In columns where nothing else has run they
    are a group of their own. If protocols share a column, direct runs join with the seeds of each protocol.
    """
    seeds: dict[tuple[Any, ...], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    groups: dict[tuple[tuple[str, int], str], list[_Run]] = defaultdict(list)
    direct = []
    for run in runs:
        if run.protocol == NO_PROTOCOL:
            direct.append(run)
        else:
            seeds[run.bags, run.column][run.protocol].add(run.seed)
            groups[run.bags, run.protocol].append(run)
    for run in direct:
        protocols = seeds.get((run.bags, run.column), {NO_PROTOCOL: {run.seed}})
        for protocol, shared in protocols.items():
            if len(protocols) == 1 or run.seed in shared:
                groups[run.bags, protocol].append(run)
    number = Counter[str]()
    for ((bagging, _), _), members in groups.items():
        number[bagging] += len(members)

    def order(group: _Group) -> tuple[Any, ...]:
        (bagging, max_bags), protocol, _ = group
        return -number[bagging], bagging, max_bags, protocol == NO_PROTOCOL, protocol

    return sorted((_Group(*key, members) for key, members in groups.items()), key=order)


def _untuned(runs: Iterable[_Run]) -> list[_Run]:
    """Return the runs of configurations that no search chose, with texts that distinguish them."""
    runs = [run for run in runs if not run.chosen]
    cells = {run.cell: run for run in reversed(runs)}.values()
    texts = _distinct(
        [run.name for run in cells],
        [run.column for run in cells],
        [run.contender.configuration for run in cells],
        [run.settings for run in cells],
    )
    by_cell = {run.cell: run.contender._replace(configuration=text) for run, text in zip(cells, texts, strict=True)}
    return [run._replace(contender=by_cell[run.cell]) for run in runs]


def _tuned(
    criterion: Criterion, group: Iterable[_Run], tunings: Iterable[TuningRecord], stale: Mapping[str, str]
) -> Iterator[_Run]:
    """Yield the runs of each configuration that a search chose by a criterion, on other seeds than the search's.

    Searches that differ in settings have different rows.
    """
    by_cell: dict[str, list[_Run]] = defaultdict(list)
    for run in group:
        by_cell[run.cell].append(run)
    choices = []
    for tuning in sorted(tunings, key=lambda tuning: (tuning["finished"], tuning["tuning"])):
        if choice := tuning["best"].get(criterion.name):
            runs = [run for run in by_cell.get(choice["cell"], ()) if run.seed != tuning["spec"]["seed"]]
            if runs:
                choices.append((tuning, runs))
    specs = [tuning["spec"] for tuning, _ in choices]
    names = [(runs[0].name, trials_text(spec)) for spec, (_, runs) in zip(specs, choices, strict=True)]
    facts = _differing(names, [_search_facts(spec) for spec in specs])
    texts = _distinct(
        [(name, frozenset(fact)) for name, fact in zip(names, facts, strict=True)],
        [runs[0].column for _, runs in choices],
        [configuration(tuning["method"]["changed"], tuning["spec"]["cell"]) for tuning, _ in choices],
        [settings(spec["cell"]) for spec in specs],
    )
    for (tuning, runs), (name, trials), text, fact in zip(choices, names, texts, facts, strict=True):
        whole = ", ".join(filter(None, (text, f"tuned, {trials}", *sorted(fact))))
        declared, change = tuning["method"], stale.get(tuning["tuning"], "")
        contender = Contender(*name, whole, declared["kind"], declared["role"], declared["reference"] or "", tuned=True)
        for run in runs:
            reason = run.stale or (f"its search: {change}" if change else "")
            yield run._replace(contender=contender, search=tuning["tuning"], stale=reason)


def _distinct(
    names: Sequence[Hashable], columns: Sequence[Hashable], changed: Sequence[str], whole: Sequence[str]
) -> list[str]:
    """Return texts that distinguish cells of the same name: usually the hyperparameters `changed` from the defaults.

    If these do not distinguish two cells of a column, for example after a change of the defaults, all settings that
    cells of the name do not share are used. `whole`: all settings of a cell, as JSON.
    """
    counts = Counter(zip(names, columns, changed, strict=True))
    vague = {name for (name, _, _), number in counts.items() if number > 1}
    parts = [items(json.loads(text)) if name in vague else set() for name, text in zip(names, whole, strict=True)]
    return [
        ", ".join(sorted(differing)) if name in vague else text
        for name, differing, text in zip(names, _differing(names, parts), changed, strict=True)
    ]


def _differing(names: Sequence[Hashable], parts: Sequence[set[str]]) -> list[set[str]]:
    """Return the parts of each set that not all sets of its name share."""
    shared: dict[Hashable, set[str]] = {}
    for name, members in zip(names, parts, strict=True):
        shared[name] = shared.get(name, members) & members
    return [members - shared[name] for name, members in zip(names, parts, strict=True)]


def _search_facts(search: Mapping[str, Any]) -> set[str]:
    """Return settings of a search besides its start, number of trials and sampler."""
    spaces = {f"{name} {range_text(space)}" for name, space in search["space"].items()}
    return {*spaces, f"seed {search['seed']}", f"{search['together']} together", f"eta {search['eta']}"}
