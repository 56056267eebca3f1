"""Results of journals as a table, as leaderboards and as plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.core.criteria import BOARD_CRITERIA, METRICS
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import hint, plural, some_of
from llpbench.results.frame import tidy

if TYPE_CHECKING:
    from pandas import DataFrame

    from llpbench.report.boards import Board
    from llpbench.report.plots.layout import Drawing
    from llpbench.report.publishing import Published
    from llpbench.report.tabulate import Leaderboards
    from llpbench.results.journal import Contents

Source = str | PathLike[str]


@dataclass(frozen=True)
class Results:
    """Runs of one or several journals. A notebook shows their first leaderboard."""

    records: Sequence[Record]
    """runs as the journal has them (`llpbench.core.record.Record`)"""
    tunings: Sequence[TuningRecord] = ()
    stale: Mapping[str, str] = field(default_factory=dict)
    """by run or search id: what has changed in the code since"""
    warnings: tuple[str, ...] = ()
    """problems of the journals"""
    _folders: tuple[Path, ...] = ()
    """folders of the journals"""
    _omitted: str = ""
    """parts of a journal that these results lack; "" if none"""

    @classmethod
    def of(cls, contents: Contents, folders: Iterable[Path] = (), omitted: str = "") -> Results:
        """Return the results of a journal's contents: the runs that count, and those that are stale."""
        from llpbench.results.staleness import stale_reasons

        records, tunings = [*contents.counting.values()], [*contents.tunings.values()]
        stale = stale_reasons([*records, *tunings])
        return cls(records, tunings, stale, (*contents.warnings, *contents.disputes), tuple(folders), omitted)

    def publish(self, out: Source, *, plots: Source | None = None, metric: str = "auc") -> Published:
        """Write the report of these results: leaderboards and page into `out`, figures into `plots`.

        Raises `LLPBenchError` for an unknown metric, or if a file cannot be written.
        """
        from llpbench.report.board_tables import Report
        from llpbench.report.publishing import Published

        report = Report(self.ranked_by(metric), self.warnings)
        return Published.write(report, Path(out), plots=None if plots is None else Path(plots))

    @cached_property
    def frame(self) -> DataFrame:
        """One row for each run and criterion; `llpbench.results.frame.COLUMNS` explains the columns.

        Metrics are as recorded: AUC from 0 to 1. Boards, `leaderboard` and `scores` show it times 100.
        """
        return tidy(self.records, self.stale, self.tunings)

    @cached_property
    def leaderboards(self) -> Leaderboards:
        """All boards."""
        return self.ranked_by("auc")

    def ranked_by(self, metric: str) -> Leaderboards:
        """Return all boards with a test metric to show and rank by. Raises `LLPBenchError` if it is unknown."""
        from llpbench.report.tabulate import Leaderboards

        if metric not in METRICS:
            raise LLPBenchError(f"unknown metric {metric!r}. {hint(metric, METRICS)}Available: {', '.join(METRICS)}.")
        return Leaderboards.of(self.records, stale=self.stale, tunings=self.tunings, metric=metric)

    def leaderboard(
        self,
        criterion: str | None = None,
        *,
        bagging: str | None = None,
        epochs: int | None = None,
        metric: str = "auc",
    ) -> DataFrame:
        """Return one board as numbers: a row for each entry (method, encoder, pretraining and configuration).

        Ranked entries come first, then those trained on labels (`role` "ceiling" or "supervised") and those that lack
        runs. Columns are those of `boards.csv`: a word for the column of the board and a word for its part. AUC and
        other rates are times 100, unlike in `frame`. Intervals (`_low`, `_high`) are of 95 %. `frame.attrs["title"]`
        names the board.

        `criterion`: what chose the epochs; the default needs no labels of rows. A board of datasets without labels
        shows this criterion on test bags, without ranks.

        `bagging`, `epochs`: which board, if the criterion has several; the default is the one with most runs. Boards of
        runs with `max_bags=13` have a bagging such as "13 ordered". All runs in bags of natural keys share the board
        "natural" (tested on other bags: "natural:split=bags"). `metric`: what entries are ranked by. Raises
        `LLPBenchError` if there is no such board.
        """
        from llpbench.report.overview import Standings

        boards = self.leaderboards if metric == "auc" else self.ranked_by(metric)
        standings = Standings.of(self._board(criterion, bagging, epochs, boards))
        frame = standings.lines.sort_values("rank", kind="stable", ignore_index=True)
        frame.attrs["title"] = standings.title
        return frame

    @cached_property
    def scores(self) -> DataFrame:
        """Every score of every board in long form: one row a board, entry and task.

        `mean` and `std` of `metric` times 100 are over `values` runs; `failed`, `missing` and `stale` count runs.
        """
        from pandas import concat

        shown = ["mean", "std", "values", "failed", "missing", "stale"]
        self._board(None, None, None)  # raises if there is none
        parts = []
        for board in (*self.leaderboards.boards, *self.leaderboards.unlabelled):
            entries, tasks = board.entries[["rank", *_NAMES]], board.tasks[["dataset", "bag_size", "by"]]
            found = board.scores[shown].join(entries, on="entry").join(tasks, on="task").reset_index(drop=True)
            protocol = dict.fromkeys(("epochs", "patience", "bags_per_step")) | dict(board.protocol or {})
            of = {"criterion": board.criterion.name, "bagging": board.bagging, "metric": board.metric.name}
            parts.append(found.assign(**of, **protocol))
        return concat(parts, ignore_index=True)

    def plot(
        self,
        kind: str = "bag-size",
        *,
        criterion: str | None = None,
        bagging: str | None = None,
        epochs: int | None = None,
    ) -> Drawing:
        """Return a plot of the report by its kind: `bag-size`, `time`, `differences`, `robustness`, ...

        Notebooks display the plot. You may change `figure`, a matplotlib figure with title and caption.

        The board is chosen as in `leaderboard`. Raises `LLPBenchError` if there is none, and names the available
        boards.
        """
        from llpbench.report.plots.figures import KINDS, proportions
        from llpbench.report.plots.layout import Drawing

        boards = self.leaderboards
        board = self._board(criterion, bagging, epochs)
        if kind != "proportions" and kind not in KINDS:
            raise LLPBenchError(
                f"unknown plot {kind!r}. {hint(kind, KINDS)}Available: {', '.join(KINDS)}, proportions."
            )
        drawings = proportions(boards) if kind == "proportions" else KINDS[kind](board, "")
        if (drawing := Drawing.captioned(drawings)) is not None:
            return drawing
        left_out = f" The table of published results leaves out {self._omitted}." if self._omitted else ""
        raise LLPBenchError(f"these results lack the runs that plot {kind!r} shows.{left_out}")

    def predictions(self, run: str) -> DataFrame:
        """Return the predictions of a run that was made with `save_predictions=True`.

        One row a validation or test row: `row` (its place in the dataset), `split`, `label`, and for each criterion
        and class a column `CRITERION/CLASS` of probabilities. Raises `LLPBenchError` if they were not saved.
        """
        from pandas import read_parquet

        from llpbench.running.settings import PREDICTIONS

        finished = next((record["finished"] for record in self.records if record["run"] == run), None)
        files = (folder / PREDICTIONS / f"{run}.parquet" for folder in self._folders)
        for frame in map(read_parquet, filter(Path.is_file, files)):
            if frame.attrs.get("finished", finished) == finished:  # else of an earlier record of the run
                return frame
        raise LLPBenchError(f"no predictions of {run!r} were saved. Run with save_predictions=True, retry='done'.")

    def _board(
        self, criterion: str | None, bagging: str | None, epochs: int | None, boards: Leaderboards | None = None
    ) -> Board:
        chosen = boards or self.leaderboards
        labelled = chosen.headline_boards(most=None) if criterion is None else chosen.boards
        for board in (*labelled, *chosen.unlabelled):
            same = criterion in (None, board.criterion.name) and bagging in (None, board.bagging)
            if same and epochs in (None, (board.protocol or {}).get("epochs")):
                return board
        asked = {"criterion": criterion, "bagging": bagging, "epochs": epochs}
        wanted = ", ".join(f"{name}={value!r}" for name, value in asked.items() if value is not None)
        is_metric = criterion in METRICS and criterion not in BOARD_CRITERIA
        found = [
            f"{board.criterion.name} {board.bagging!r} ({(board.protocol or {}).get('epochs', 'no')} epochs)"
            for board in (*self.leaderboards.boards, *self.leaderboards.unlabelled)
        ]
        advice = f"Use metric={criterion!r}. " * is_metric
        raise LLPBenchError(
            f"these results have no board{' with ' * bool(wanted)}{wanted}. {advice}"
            f"Available: {', '.join(some_of(found, _MOST_BOARDS)) or 'none'}."
        )

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        lines = [self._heading(), *self.warnings]
        if self.leaderboards.boards or self.leaderboards.unlabelled:
            board = self.leaderboard()
            best = board[[*_SHOWN]].head(_MOST_ENTRIES).astype(object).fillna("")
            lines += [board.attrs["title"], best.to_string(index=False, float_format="{:.1f}".format)]
        return "\n".join(lines)

    def _heading(self) -> str:
        """Return the numbers of runs, methods and datasets, and of failed and stale runs."""
        failed = sum(record["status"] != "ok" for record in self.records)
        parts = [plural(len(self.records), "run"), *([f"{failed:,} failed"] if failed else [])]
        parts += [f"{len(self.stale):,} stale"] if self.stale else []
        specs = [record["spec"] for record in self.records]
        methods, datasets = (len({spec[part] for spec in specs}) for part in ("method", "dataset"))
        parts += [plural(methods, "method"), plural(datasets, "dataset")] if specs else []
        return f"<llpbench results: {', '.join(parts)}>"


_MOST_BOARDS, _MOST_ENTRIES = 10, 10
"""boards that an error lists, and entries that a notebook shows"""

_NAMES = ("method", "encoder", "pretraining", "configuration")
"""Columns that identify an entry."""

_SHOWN = ("rank", *_NAMES, "role", "mean", "std", "interval_low", "interval_high", "floor_points")
"""Columns of a board that a notebook shows."""


def load_results(*sources: Source | Iterable[Source]) -> Results:
    """Return the results of journals: names of published ones, the `--out` of runs, or journal files.

    `"published"`, `"core"`, `"few-bags"`, `"natural"`, `"rare"` and `"multiclass"` are tables that ship with the
    package. They have no learning curves, diagnostics, reliability bins or histograms; `"leaderboards"`,
    `"leaderboards/core"` and the like of a checkout have them.

    Several are read as one, as `llpbench report --journal A --journal B` does; without any, that in `results/`. Raises
    `LLPBenchError` for a file that is not a journal.

    Examples
    --------
    >>> from llpbench import load_results
    >>> results = load_results("published")
    >>> len(results) > 1000
    True
    """
    from llpbench.results.merging import EXCERPT, OMITTED, journal_files, merge
    from llpbench.running.settings import OPTIONS

    named: list[str] = []
    for source in sources:
        try:
            named += [fspath(source)] if isinstance(source, str | PathLike) else [fspath(each) for each in source]
        except TypeError as error:
            raise LLPBenchError(f"a source must be a path or 'published', got {source!r}.") from error
    if sources and not named:
        raise LLPBenchError("sources must be paths or 'published', got an empty list.")
    paths = [path for name in named or [str(OPTIONS["out"].default)] for path in journal_files(name)]
    omitted = OMITTED if any(path.name == EXCERPT for path in paths) else ""
    return Results.of(merge(paths), (path.parent for path in paths), omitted)
