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
from typing import Any

import numpy as np
from pandas import DataFrame, MultiIndex, Series, concat, isna

from llpbench.core.cell import bagging_text, is_without_labels, without_key
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA, METRICS, Criterion, Metric
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import one_line
from llpbench.report.boards import (
    FEWEST_BAGS,
    HEADLINE,
    Board,
    Column,
    Contender,
    Leaderboards,
    Mark,
    Row,
    Score,
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
    VARIABLES,
    configuration,
    items,
    settings,
    shown,
    tidy,
)

LABELS = CRITERIA["auc"]
"""Criterion of methods trained on labels, on every board."""

_NAME = ["method", "encoder", "pretraining"]
_COLUMN = ["dataset", "bag_size", "by"]
_BAGS = ["bagging", "max_bags"]
_CONTENDER = [*Contender._fields]
_CELL = [*_NAME, *_COLUMN, *_BAGS, "protocol", "settings"]
_DECLARED = ["kind", "role", "reference", "configuration", "chosen"]
_FACTS = ["ensemble", "precision", "changed", "status", "reason", "stale", "classes", "bags", "validation_bags"]
_SIZES = ["least_rows", "median_rows", "most_rows"]
_COSTS = [
    *(name for name in VARIABLES if name.startswith("seconds")),
    "memory_mb",
    "parameters",
    "machine",
    "version",
    "finished",
]
_OF_RUNS = ["run", "cell", "seed", *_CELL, *_DECLARED, *_FACTS, *_SIZES, *_COSTS]
"""Columns of the tidy table that boards use."""


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
    groups = _groups(_runs_of(frame))
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
        self._measures = frame.set_index(["run", "criterion"])[[*MEASURES]]
        self._runs_with = {name: {*frame["run"][frame["criterion"] == name]} for name in BOARD_CRITERIA}

    def _has_criterion(self, group: DataFrame, criterion: Criterion) -> bool:
        """Return whether a run has the criterion; a fine-grained one needs labels of validation rows."""
        done = group["run"][group["status"] == "ok"]
        return done.empty or bool(done.isin(self._runs_with[criterion.name]).any())

    def board(self, criterion: Criterion, group: DataFrame) -> Board | None:
        """Return the board of a group of runs; None if it has no row."""
        if not self._has_criterion(group, criterion):
            return None
        runs = concat([_untuned(group), *_tuned(criterion, group, self._tunings, self._stale)], ignore_index=True)
        if runs.empty:
            return None
        last = runs.groupby([*_CONTENDER, *_COLUMN], sort=False)["source"].transform("last")
        runs = self._measured(runs[runs["source"] == last].reset_index(drop=True), group, criterion)
        columns, records = _columns(runs, criterion), [self._records[run] for run in runs["run"]]
        contenders = [
            Contender(method, encoder or None, *others)
            for method, encoder, *others in runs[_CONTENDER].drop_duplicates().itertuples(index=False, name=None)
        ]
        runs = runs.assign(row=runs.groupby(_CONTENDER, sort=False).ngroup(), column=runs.groupby(_COLUMN).ngroup())
        runs = runs.sort_values(["row", "column", "seed"], ignore_index=True)
        max_bags = int(group["max_bags"].iat[0]) or None
        unordered = Board(
            criterion,
            bagging_text(group["bagging"].iat[0], max_bags),
            json.loads(group["joined"].iat[0]),
            tuple(columns),
            tuple(_rows(runs, contenders, columns, self._records, self._metric)),
            runs,
            MultiIndex.from_arrays([[], []]),
            self._metric,
            max_bags=max_bags,
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

    def _measured(self, runs: DataFrame, group: DataFrame, criterion: Criterion) -> DataFrame:
        """Return the runs with their measures at the epoch that the criterion chose; labels choose that of ceilings."""
        by_labels = (runs["role"] == "ceiling") & self._has_criterion(group, LABELS)
        chosen_by = np.where(by_labels, LABELS.name, criterion.name)
        runs[[*MEASURES]] = self._measures.reindex(MultiIndex.from_arrays([runs["run"], chosen_by])).to_numpy()
        runs["value"] = shown(runs, self._metric.name)
        return runs


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
        runs=board.runs.assign(row=board.runs["row"].map(places).astype(int)),
        counting=counting,
    )


def _order(board: Board, contenders: Sequence[Contender], counting: MultiIndex) -> tuple[dict[int, int], list[int]]:
    """Return ranks by row, and the order of rows: trained on labels, ranked (best first), unranked."""
    values = board.sign * wide(board.runs, len(contenders))
    counted = values.reindex(counting)
    lacking = counted.isna().sum()
    means = values.groupby(level=0).mean().mean()
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
    methods = {contenders[number].method for number in voters}
    runs = runs[runs["row"].isin(voters)]
    votes = runs.groupby(["column", "seed"]).agg(methods=("method", "nunique"), done=("value", "count"))
    counts = np.array([columns[column].counts for column in votes.index.get_level_values(0)], dtype=bool)
    counting = votes.index[(2 * votes["methods"] > len(methods)) & (votes["done"] > 0) & counts]
    assert isinstance(counting, MultiIndex)
    return counting


def _mark(row: Row, *, has_encoder: bool) -> Mark:
    """Return the mark of a row. A ceiling has an encoder, unless no row of the board (`has_encoder`) has one."""
    if row.contender.role != "ceiling":
        return row.contender.role
    is_direct = row.contender.encoder is None and has_encoder
    return "ceiling" if row.is_plain and not is_direct else "supervised"


def _rows(
    runs: DataFrame,
    contenders: Sequence[Contender],
    columns: Sequence[Column],
    records: Mapping[str, Record],
    metric: Metric,
) -> Iterator[Row]:
    """Yield the rows of a board without ranks."""
    scores = _scores(runs, columns, records, metric)
    facts = runs.groupby("row").agg(
        changed=("changed", "max"), ensemble=("ensemble", "max"), precision=("precision", "first")
    )
    for number, (contender, fact) in enumerate(zip(contenders, facts.itertuples(index=False), strict=True)):
        yield Row(
            contender,
            tuple(
                scores.get((number, place), Score(missing=_missing(column, set())))
                for place, column in enumerate(columns)
            ),
            is_default=not contender.tuned and not fact.changed,
            ensemble=int(fact.ensemble),
            precision=fact.precision,
        )


def _scores(
    runs: DataFrame, columns: Sequence[Column], records: Mapping[str, Record], metric: Metric
) -> dict[tuple[int, int], Score]:
    """Return the scores by row and column."""
    parts = ("row", "column", "seed", "run", "cell", "search", "status", "reason", "value", "stale")
    cells: dict[tuple[int, int], list[tuple[Any, ...]]] = defaultdict(list)
    for row, column, *run in zip(*(runs[part].tolist() for part in parts), strict=True):
        cells[row, column].append(tuple(run))
    return {key: _score(columns[key[1]], cell, records, metric) for key, cell in cells.items()}


def _score(column: Column, cell: Sequence[tuple[Any, ...]], records: Mapping[str, Record], metric: Metric) -> Score:
    """Return the score of the runs of a cell: (seed, run, cell, search, status, reason, value, stale)."""
    done = {seed: records[run]["results"].values() for seed, run, _, _, status, *_ in cell if status == "ok"}
    return Score(
        cell=cell[0][2],
        values={seed: value for seed, *_, value, _ in cell if not isna(value)},
        failures={seed: _reason(status, reason) for seed, _, _, _, status, reason, *_ in cell if status != "ok"},
        missing=_missing(column, {seed for seed, *_ in cell}),
        stale={seed: change for seed, *_, change in cell if change},
        runs={seed: records[run] for seed, run, *_ in cell},
        tuning=cell[0][3],
        uncomputed=tuple(s for s, results in done.items() if not any(metric.name in r["test"] for r in results)),
    )


def _missing(column: Column, seeds: set[int]) -> tuple[int, ...]:
    return tuple(seed for seed in column.seeds if seed not in seeds | column.extra)


def _reason(status: str, reason: str) -> str:
    line = one_line(reason) or "no reason was given"
    return line if status == "failed" else f"{status}: {line}"


def _columns(runs: DataFrame, criterion: Criterion) -> list[Column]:
    """Return the columns of some runs. Runs that failed early do not know their bags."""
    facts = runs.groupby(_COLUMN).agg(
        least=("least_rows", "min"),
        median=("median_rows", "median"),
        most=("most_rows", "max"),
        fewest_bags=("validation_bags", "min"),
        most_bags=("validation_bags", "max"),
        classes=("classes", "first"),
        methods=("method", "nunique"),
    )
    methods: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)
    for (*key, seed), number in runs.groupby([*_COLUMN, "seed"])["method"].nunique().items():
        methods[tuple(key)][int(seed)] = number
    return [
        Column(
            dataset,
            int(size),
            tuple(methods[dataset, size, key]),
            None if isna(fact.most) else (int(fact.least), float(fact.median), int(fact.most)),
            None if isna(fact.fewest_bags) else (int(fact.fewest_bags), int(fact.most_bags)),
            None if isna(fact.classes) else int(fact.classes),
            criterion.regime == "fine" or not fact.fewest_bags < FEWEST_BAGS,
            frozenset(seed for seed, number in methods[dataset, size, key].items() if 2 * number < fact.methods),
            key,
        )
        for (dataset, size, key), fact in zip(facts.index, facts.itertuples(), strict=True)
    ]


def _texts(values: Iterable[str], like: DataFrame) -> Series:
    """Return a column of texts that may have any character, unlike pandas' own strings."""
    return Series([*values], index=like.index, dtype=object)


def _runs_of(frame: DataFrame) -> DataFrame:
    """Return one line per run of the tidy table.

    All runs of a cell have the declaration of its last seed. Bags by natural keys are one bagging: each key of a
    dataset is a column.
    """
    kinds = [*map(without_key, frame["bagging"])]
    frame = frame.assign(bagging=[kind for kind, _ in kinds], by=_texts((key for _, key in kinds), frame))
    runs = frame[_OF_RUNS].drop_duplicates("run")
    runs = runs.assign(
        encoder=_texts((encoder or "" for encoder in runs["encoder"]), runs),
        max_bags=runs["max_bags"].fillna(0).astype(int),
    )
    last = runs.sort_values("seed").drop_duplicates("cell", keep="last").set_index("cell")[_DECLARED]
    first = runs.drop_duplicates("cell").set_index("cell")[_CELL]
    for facts in (last, first):
        runs[[*facts]] = facts.loc[runs["cell"]].set_index(runs.index)
    return runs.assign(tuned=False, search=None, source=runs["cell"], joined=runs["protocol"])


def _groups(runs: DataFrame) -> list[DataFrame]:
    """Return the runs of each bagging and protocol, the bagging with most runs first.

    Methods without epochs join every protocol, in the columns that it has. In columns where nothing else has run they
    are a group of their own. If protocols share a column, direct runs join with the seeds of each protocol.
    """
    place = [*_BAGS, *_COLUMN]
    trained, direct = (runs[(runs["protocol"] == NO_PROTOCOL) == without] for without in (False, True))
    protocols = trained[[*place, "joined"]].drop_duplicates()
    seeds = trained[[*place, "joined", "seed"]].drop_duplicates()
    joined = direct.drop(columns="joined").merge(protocols, how="left", on=place)
    has_several = joined.groupby("run")["joined"].transform("nunique") > 1
    has_seed = MultiIndex.from_frame(joined[[*seeds]]).isin(MultiIndex.from_frame(seeds))
    joined = joined[~has_several | has_seed].fillna({"joined": NO_PROTOCOL})
    together = concat([trained, joined], ignore_index=True)
    number = together["bagging"].value_counts()

    def order(key: tuple[Any, ...]) -> tuple[Any, ...]:
        bagging, max_bags, protocol = key
        return -number[bagging], bagging, max_bags, protocol == NO_PROTOCOL, protocol

    groups = dict([*together.groupby([*_BAGS, "joined"], sort=False)])
    return [groups[key] for key in sorted(groups, key=order)]


def _untuned(group: DataFrame) -> DataFrame:
    """Return the runs of configurations that no search chose, with texts that distinguish them."""
    runs = group[~group["chosen"].astype(bool)]
    cells = runs.drop_duplicates("cell")
    names = [*zip(*(cells[part] for part in _NAME), strict=True)]
    columns = [*zip(*(cells[part] for part in _COLUMN), strict=True)]
    texts = _distinct(names, columns, [*cells["configuration"]], [*cells["settings"]])
    by_cell = dict(zip(cells["cell"], texts, strict=True))
    return runs.assign(configuration=_texts((by_cell[cell] for cell in runs["cell"]), runs))


def _tuned(
    criterion: Criterion, group: DataFrame, tunings: Iterable[TuningRecord], stale: Mapping[str, str]
) -> Iterator[DataFrame]:
    """Yield the runs of each configuration that a search chose by a criterion, on other seeds than the search's.

    Searches that differ in settings have different rows.
    """
    choices = []
    for tuning in sorted(tunings, key=lambda tuning: (tuning["finished"], tuning["tuning"])):
        if choice := tuning["best"].get(criterion.name):
            runs = group[(group["cell"] == choice["cell"]) & (group["seed"] != tuning["spec"]["seed"])]
            if len(runs):
                choices.append((tuning, runs))
    specs = [tuning["spec"] for tuning, _ in choices]
    names = [(tuple(runs[_NAME].iloc[0]), trials_text(spec)) for spec, (_, runs) in zip(specs, choices, strict=True)]
    facts = _differing(names, [_search_facts(spec) for spec in specs])
    texts = _distinct(
        [(name, frozenset(fact)) for name, fact in zip(names, facts, strict=True)],
        [tuple(runs[_COLUMN].iloc[0]) for _, runs in choices],
        [configuration(tuning["method"]["changed"], tuning["spec"]["cell"]) for tuning, _ in choices],
        [settings(spec["cell"]) for spec in specs],
    )
    for (tuning, runs), (_, trials), text, fact in zip(choices, names, texts, facts, strict=True):
        parts = [text, f"tuned, {trials}", *sorted(fact)]
        declared, change = tuning["method"], stale.get(tuning["tuning"], "")
        yield runs.assign(
            configuration=_texts([", ".join(filter(None, parts))] * len(runs), runs),
            kind=declared["kind"],
            role=declared["role"],
            reference=_texts([declared["reference"] or ""] * len(runs), runs),
            tuned=True,
            search=tuning["tuning"],
            source=runs["cell"] + tuning["tuning"],
            stale=runs["stale"].where(runs["stale"] != "", f"its search: {change}" if change else ""),
        )


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
