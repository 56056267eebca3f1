"""From the tidy table to boards: the runs of each row and column, and the order of rows, columns and boards.

A run, here, is a (column, seed). Those that more than half of the methods have attempted, and at least one row has
completed, count, in columns that do (`Column.counts`). So a method gains nothing from a failed run (without it, it is
not ranked), and nobody loses a rank because a newcomer also ran on columns or seeds of its own. A floor is ranked like
every other row that knows bags alone.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
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
from llpbench.report.notes import difference_notes, failure_notes, stale_notes, surprise_notes
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
"""chooses the epochs of what is trained on labels of rows, on every board: one ceiling for all of them"""

_NAME = ["method", "encoder", "pretraining"]
_COLUMN = ["dataset", "bag_size", "by"]
_BAGS = ["bagging", "max_bags"]
_WHO = [*Contender._fields]
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
"""Columns of the tidy table that boards need of a run."""


def tabulate(
    records: Sequence[Record],
    *,
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    metric: str = HEADLINE,
) -> Leaderboards:
    """Every board that `records` have something to say on. Of two records of the same run the last one counts.

    What a search has chosen by a criterion is a row of the boards of that criterion, and of no other; a configuration
    that only a search has chosen, be it one that has been repeated since, is no row of its own.

    `stale`: by id of a run or search, what has changed in the code since it was made; the runs of what
    a stale search has chosen are stale with it. `metric`: what boards show and rank by.
    """
    runs = {record["run"]: record for record in records}
    found = [tuning for tuning in tunings if tuning["status"] == "ok"]
    frame = tidy(runs.values(), stale, tunings, BOARD_CRITERIA)
    journal = _Journal(frame, runs, found, stale, METRICS[metric])
    boards = [
        board for name in BOARD_CRITERIA for group in journal.groups if (board := journal.board(CRITERIA[name], group))
    ]
    labelled = [board for board in boards if not is_without_labels(board.bagging)]
    return Leaderboards(
        tuple(labelled),
        origin_of(list(runs.values())),
        tuple(found),
        tuple(board for board in boards if board not in labelled and board.criterion.regime == "coarse"),
    )


class _Journal:
    """The tidy table, and what boards need besides."""

    def __init__(
        self,
        frame: DataFrame,
        records: Mapping[str, Record],
        tunings: Sequence[TuningRecord],
        stale: Mapping[str, str],
        metric: Metric,
    ) -> None:
        self._records, self._tunings, self._stale, self._metric = records, tunings, stale, metric
        self._measured = frame.set_index(["run", "criterion"])[[*MEASURES]]
        self._judged = {name: {*frame["run"][frame["criterion"] == name]} for name in BOARD_CRITERIA}
        self.groups = _groups(_runs_of(frame))

    def _is_judged(self, group: DataFrame, criterion: Criterion) -> bool:
        """Whether any run has a criterion; none has a fine-grained one if validation rows have no labels."""
        done = group["run"][group["status"] == "ok"]
        return done.empty or bool(done.isin(self._judged[criterion.name]).any())

    def board(self, criterion: Criterion, group: DataFrame) -> Board | None:
        """The board of a group; None where a criterion has nothing to say, or has chosen nothing there."""
        if not self._is_judged(group, criterion):
            return None
        runs = concat([_set_by_hand(group), *_tuned(criterion, group, self._tunings, self._stale)], ignore_index=True)
        if runs.empty:
            return None
        last = runs.groupby([*_WHO, *_COLUMN], sort=False)["source"].transform("last")
        runs = runs[runs["source"] == last].reset_index(drop=True)
        by_labels = (runs["role"] == "ceiling") & self._is_judged(group, LABELS)
        chooses = np.where(by_labels, LABELS.name, criterion.name)
        measured = self._measured.reindex(MultiIndex.from_arrays([runs["run"], chooses]))
        runs[[*MEASURES]] = measured.to_numpy()
        runs["value"] = shown(runs, self._metric.name)
        columns, records = _columns(runs, criterion), [self._records[run] for run in runs["run"]]
        contenders = [_contender(*who) for who in runs[_WHO].drop_duplicates().itertuples(index=False, name=None)]
        runs = runs.assign(row=runs.groupby(_WHO, sort=False).ngroup(), column=runs.groupby(_COLUMN).ngroup())
        runs = runs.sort_values(["row", "column", "seed"], ignore_index=True)
        most = int(group["max_bags"].iat[0]) or None
        start = Board(
            criterion,
            bagging_text(group["bagging"].iat[0], most),
            json.loads(group["joined"].iat[0]),
            tuple(columns),
            (),
            runs,
            MultiIndex.from_arrays([[], []]),
            self._metric,
            max_bags=most,
            differences=difference_notes(columns, records),
        )
        found = _ordered(start, _rows(runs, contenders, columns, self._records), columns, runs)
        return replace(
            found,
            failures=failure_notes(found.columns, found.rows, self._metric),
            surprises=surprise_notes(found.columns, found.rows, records, self._metric),
            stale=stale_notes(found.columns, found.rows),
        )


def _rows(
    runs: DataFrame, contenders: Sequence[Contender], columns: Sequence[Column], records: Mapping[str, Record]
) -> list[Row]:
    """The rows of a board, not yet in order."""
    scores = _scores(runs, columns, records)
    facts = runs.groupby("row").agg(
        changed=("changed", "max"), ensemble=("ensemble", "max"), precision=("precision", "first")
    )
    return [
        Row(
            who,
            tuple(scores.get((number, n), _missing(column)) for n, column in enumerate(columns)),
            is_default=not who.tuned and not changed,
            ensemble=int(ensemble),
            precision=precision,
        )
        for who, (number, changed, ensemble, precision) in zip(contenders, facts.itertuples(name=None), strict=True)
    ]


def _ordered(start: Board, rows: Sequence[Row], columns: Sequence[Column], runs: DataFrame) -> Board:
    """A board of some rows, each with its rank, in their order. `runs`: by the places of `rows` and `columns`."""
    contenders = [row.contender for row in rows]
    counting = _counting(runs, contenders, columns)
    ranks, order = _order(runs, contenders, columns, counting, start.sign)
    encoded = any(who.encoder for who in contenders)
    final = {number: place for place, number in enumerate(order)}
    return replace(
        start,
        columns=tuple(columns),
        rows=tuple(replace(rows[n], rank=ranks.get(n), mark=_mark(rows[n], encoded)) for n in order),
        runs=runs.assign(row=runs["row"].map(final).astype(int)),
        counting=counting,
    )


def part_of(board: Board, rows: Sequence[int], columns: Sequence[int]) -> Board:
    """A board of some rows and columns, by place, ranked there."""
    row_places, column_places = ({old: new for new, old in enumerate(places)} for places in (rows, columns))
    runs = board.runs[board.runs["row"].isin(rows) & board.runs["column"].isin(columns)]
    runs = runs.assign(row=runs["row"].map(row_places), column=runs["column"].map(column_places))
    kept = [replace(board.rows[n], scores=tuple(board.rows[n].scores[c] for c in columns)) for n in rows]
    return _ordered(board, kept, [board.columns[place] for place in columns], runs)


def _contender(method: str, encoder: str, *more: Any) -> Contender:
    return Contender(method, encoder or None, *more)


def _texts(values: Iterable[str], like: DataFrame) -> Series:
    """A column of texts that may hold any character, unlike pandas' own strings."""
    return Series([*values], index=like.index, dtype=object)


def _runs_of(frame: DataFrame) -> DataFrame:
    """One line a run; what a method's declaration says is that of the last seed of its cell.

    Bags by natural keys are of one kind: each key of a dataset is a column of the same board.
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
    """Runs by bags and protocol, the groups of the bagging with most runs first.

    Methods without epochs have no protocol: they join each one, in the columns that it covers, and have boards of
    their own only for columns where nothing else has run. Where protocols share a column, one's seeds are no gap in
    the other: it takes those that it has run itself.
    """
    place = [*_BAGS, *_COLUMN]
    trained, direct = (runs[(runs["protocol"] == NO_PROTOCOL) == without] for without in (False, True))
    known = trained[[*place, "joined"]].drop_duplicates()
    seeds = trained[[*place, "joined", "seed"]].drop_duplicates()
    joined = direct.drop(columns="joined").merge(known, how="left", on=place)
    several = joined.groupby("run")["joined"].transform("nunique") > 1
    own = MultiIndex.from_frame(joined[[*seeds]]).isin(MultiIndex.from_frame(seeds))
    joined = joined[~several | own].fillna({"joined": NO_PROTOCOL})
    every = concat([trained, joined], ignore_index=True)
    number = every["bagging"].value_counts()

    def order(key: tuple[Any, ...]) -> tuple[Any, ...]:
        bagging, most, protocol = key
        return -number[bagging], bagging, most, protocol == NO_PROTOCOL, protocol

    found = dict([*every.groupby([*_BAGS, "joined"], sort=False)])
    return [found[key] for key in sorted(found, key=order)]


def _set_by_hand(group: DataFrame) -> DataFrame:
    """The runs of configurations that somebody has set, with the hyperparameters that differ from the defaults."""
    own = group[~group["chosen"].astype(bool)]
    cells = own.drop_duplicates("cell")
    names = [*zip(*(cells[part] for part in _NAME), strict=True)]
    columns = [*zip(*(cells[part] for part in _COLUMN), strict=True)]
    texts = _distinct(names, columns, [*cells["configuration"]], [*cells["settings"]])
    known = dict(zip(cells["cell"], texts, strict=True))
    return own.assign(configuration=_texts((known[cell] for cell in own["cell"]), own))


def _tuned(
    criterion: Criterion, group: DataFrame, tunings: Iterable[TuningRecord], stale: Mapping[str, str]
) -> Iterator[DataFrame]:
    """Configurations that searches chose by a criterion and that have run on other seeds than the search.

    Searches that differ in more than where they were made stand in rows of their own.
    """
    found = []
    for tuning in sorted(tunings, key=lambda tuning: (tuning["finished"], tuning["tuning"])):
        if choice := tuning["best"].get(criterion.name):
            own = group[(group["cell"] == choice["cell"]) & (group["seed"] != tuning["spec"]["seed"])]
            if len(own):
                found.append((tuning, own))
    specs = [tuning["spec"] for tuning, _ in found]
    names = [(tuple(own[_NAME].iloc[0]), trials_text(spec)) for spec, (_, own) in zip(specs, found, strict=True)]
    how = _differing(names, [_how(spec) for spec in specs])
    texts = _distinct(
        [(name, frozenset(own)) for name, own in zip(names, how, strict=True)],
        [tuple(own[_COLUMN].iloc[0]) for _, own in found],
        [configuration(tuning["method"]["changed"], tuning["spec"]["cell"]) for tuning, _ in found],
        [settings(spec["cell"]) for spec in specs],
    )
    for (tuning, own), (_, trials), text, further in zip(found, names, texts, how, strict=True):
        parts = [text, f"tuned, {trials}", *sorted(further)]
        declared, reason = tuning["method"], stale.get(tuning["tuning"], "")
        yield own.assign(
            configuration=_texts([", ".join(filter(None, parts))] * len(own), own),
            kind=declared["kind"],
            role=declared["role"],
            reference=_texts([declared["reference"] or ""] * len(own), own),
            tuned=True,
            search=tuning["tuning"],
            source=own["cell"] + tuning["tuning"],
            stale=own["stale"].where(own["stale"] != "", f"its search: {reason}" if reason else ""),
        )


def _distinct(
    names: Sequence[Hashable], columns: Sequence[Hashable], changed: Sequence[str], whole: Sequence[str]
) -> list[str]:
    """Text that distinguishes cells with the same names and columns: hyperparameters `changed` from the defaults.

    Where two cells of a column share that (the defaults have changed since, or a part of the specification that reports
    know nothing of differs), what not all cells of that name share stands in its place. `whole`: all settings, as JSON.
    """
    seen = Counter(zip(names, columns, changed, strict=True))
    vague = {name for (name, _, _), number in seen.items() if number > 1}
    parts = [items(json.loads(each)) if name in vague else set() for name, each in zip(names, whole, strict=True)]
    return [
        ", ".join(sorted(own)) if name in vague else text
        for name, own, text in zip(names, _differing(names, parts), changed, strict=True)
    ]


def _differing(names: Sequence[Hashable], parts: Sequence[set[str]]) -> list[set[str]]:
    """Parts of each set that not all sets of the same name share."""
    shared: dict[Hashable, set[str]] = {}
    for name, own in zip(names, parts, strict=True):
        shared[name] = shared.get(name, own) & own
    return [own - shared[name] for name, own in zip(names, parts, strict=True)]


def _how(search: Mapping[str, Any]) -> set[str]:
    """Facts that decide the choice of a search besides its start, number of trials and sampler."""
    spaces = {f"{name} {range_text(each)}" for name, each in search["space"].items()}
    return {*spaces, f"seed {search['seed']}", f"{search['together']} together", f"eta {search['eta']}"}


def _columns(runs: DataFrame, criterion: Criterion) -> list[Column]:
    """Columns of some runs: their seeds, and what their bags are like. Runs that failed early know no bags."""
    facts = runs.groupby(_COLUMN).agg(
        least=("least_rows", "min"),
        median=("median_rows", "median"),
        most=("most_rows", "max"),
        fewest_bags=("validation_bags", "min"),
        most_bags=("validation_bags", "max"),
        classes=("classes", "first"),
        methods=("method", "nunique"),
    )
    voters: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)  # one vote a method, as in `_counting`
    for (*key, seed), number in runs.groupby([*_COLUMN, "seed"])["method"].nunique().items():
        voters[tuple(key)][int(seed)] = number
    return [
        Column(
            dataset,
            int(size),
            tuple(voters[dataset, size, key]),
            None if isna(own.most) else (int(own.least), float(own.median), int(own.most)),
            None if isna(own.fewest_bags) else (int(own.fewest_bags), int(own.most_bags)),
            None if isna(own.classes) else int(own.classes),
            criterion.regime == "fine" or not own.fewest_bags < FEWEST_BAGS,
            frozenset(seed for seed, number in voters[dataset, size, key].items() if 2 * number < own.methods),
            key,
        )
        for (dataset, size, key), own in zip(facts.index, facts.itertuples(), strict=True)
    ]


def _counting(runs: DataFrame, contenders: Sequence[Contender], columns: Sequence[Column]) -> MultiIndex:
    """Runs in columns that count, attempted by more than half of the methods and completed by at least one row.

    A method has one vote, however many rows it has: arms of a study on one column are not to take the others away. What
    was tuned besides has none.
    """
    learners = {number for number, who in enumerate(contenders) if who.role != "ceiling"}
    voters = {number for number in learners if not contenders[number].tuned} or learners
    methods = {contenders[number].method for number in voters}
    own = runs[runs["row"].isin(voters)]
    votes = own.groupby(["column", "seed"]).agg(methods=("method", "nunique"), done=("value", "count"))
    counts = np.array([columns[column].counts for column in votes.index.get_level_values(0)], dtype=bool)
    found = votes.index[(2 * votes["methods"] > len(methods)) & (votes["done"] > 0) & counts]
    assert isinstance(found, MultiIndex)
    return found


def _order(
    runs: DataFrame, contenders: Sequence[Contender], columns: Sequence[Column], counting: MultiIndex, sign: int
) -> tuple[dict[int, int], list[int]]:
    """Ranks by row, and the rows as shown: what is trained on labels, ranked rows best first, rows without a rank."""
    values = sign * wide(runs, len(contenders))
    counted = values.reindex(counting)
    lacking = counted.isna().sum()
    shown_means = values.groupby(level=0).mean().mean()
    means = (
        means_over_datasets(counted, [column.dataset for column in columns]) if len(counted) else Series(dtype=float)
    )
    learners = [number for number, who in enumerate(contenders) if who.role != "ceiling"]
    complete = [number for number in learners if len(counted) and not lacking[number]]
    ranks = means.loc[complete].rank(method="min", ascending=False).astype(int).to_dict() if complete else {}

    def place(number: int) -> tuple[Any, ...]:
        label = contenders[number].label
        if contenders[number].role == "ceiling":
            mean = shown_means[number]
            return 0, np.inf if isna(mean) else -mean, label
        return (1, ranks[number], label) if number in ranks else (2, lacking[number], label)

    return {int(number): int(rank) for number, rank in ranks.items()}, sorted(range(len(contenders)), key=place)


def _mark(row: Row, encoded: bool) -> Mark:
    """A ceiling is what gaps are measured by: with an encoder, unless no row of the board has any."""
    if row.contender.role != "ceiling":
        return row.contender.role
    without = row.contender.encoder is None and encoded
    return "ceiling" if row.is_plain and not without else "supervised"


def _scores(runs: DataFrame, columns: Sequence[Column], records: Mapping[str, Record]) -> dict[tuple[int, int], Score]:
    """By row and column."""
    parts = ("row", "column", "seed", "run", "cell", "search", "status", "reason", "value", "epoch", "seconds", "stale")
    found: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    for row, column, *run in zip(*(runs[part].tolist() for part in parts), strict=True):
        found.setdefault((row, column), []).append(tuple(run))
    return {key: _score(columns[key[1]], own, records) for key, own in found.items()}


def _score(column: Column, own: Sequence[tuple[Any, ...]], records: Mapping[str, Record]) -> Score:
    seeds, runs, cells, searches, statuses, reasons, values, epochs, seconds, stale = zip(*own, strict=True)
    done = [status == "ok" for status in statuses]
    known = [value for value, ok in zip(epochs, done, strict=True) if ok and not isna(value)]
    times = [value for value, ok in zip(seconds, done, strict=True) if ok and not isna(value)]
    return Score(
        cell=cells[0],
        values={seed: value for seed, value in zip(seeds, values, strict=True) if not isna(value)},
        failures={
            seed: _reason(status, reason)
            for seed, status, reason in zip(seeds, statuses, reasons, strict=True)
            if status != "ok"
        },
        missing=tuple(seed for seed in column.seeds if seed not in {*seeds, *column.extra}),
        stale={seed: why for seed, why in zip(seeds, stale, strict=True) if why},
        best_epoch=median(known) if known else None,
        seconds=median(times) if times else None,
        runs={seed: records[run] for seed, run in zip(seeds, runs, strict=True)},
        tuning=searches[0],
    )


def _missing(column: Column) -> Score:
    return Score(missing=tuple(seed for seed in column.seeds if seed not in column.extra))


def _reason(status: str, reason: str) -> str:
    line = one_line(reason) or "no reason was given"
    return line if status == "failed" else f"{status}: {line}"
