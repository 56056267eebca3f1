"""Results to look at: journals as a table, as leaderboards and as plots."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.core.criteria import METRICS
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import hint, plural
from llpbench.results.frame import tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from llpbench.report import Leaderboards
    from llpbench.report.boards import Board
    from llpbench.report.report_table import ReportTable

Source = str | PathLike[str]


@dataclass(frozen=True)
class Picture:
    """A plot, which a notebook shows by itself."""

    title: str
    caption: str
    figure: Figure
    """matplotlib's, to change what one likes; title and caption are part of it, and so of what is saved"""

    def save(self, path: Source) -> None:
        """Write it as PNG, SVG or PDF, by the suffix of `path`."""
        from llpbench.report.plots.saving import save_figure

        save_figure(lambda: self.figure, Path(path))

    def __repr__(self) -> str:
        return f"<llpbench plot: {self.title}>"

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.figure.savefig(file, format="png", dpi=110)
        return file.getvalue()


@dataclass(frozen=True)
class Results:
    """The runs of one or several journals. A notebook shows the leaderboard of the most of them."""

    records: Sequence[Record]
    """as the journal holds them (`llpbench.core.record.Record`)"""
    tunings: Sequence[TuningRecord] = ()
    stale: Mapping[str, str] = field(default_factory=dict)
    """by run or search id: what has changed in the code since"""
    warnings: tuple[str, ...] = ()
    """what is wrong with the journals"""
    folders: tuple[Path, ...] = ()
    """where they stand"""
    omitted: str = ""
    """what these results lack that a journal has; "" if nothing"""

    @cached_property
    def frame(self) -> DataFrame:
        """One row a run and criterion; what the columns mean is `llpbench.results.frame.COLUMNS`."""
        return tidy(self.records, self.stale, self.tunings)

    @cached_property
    def leaderboards(self) -> Leaderboards:
        """Every board, as values: what `leaderboard` and `plot` are made from."""
        return self.ranked_by("auc")

    def ranked_by(self, metric: str) -> Leaderboards:
        """Every board, with another test metric to show and rank by."""
        from llpbench.report.tabulate import tabulate

        if metric not in METRICS:
            raise LLPBenchError(f"unknown metric {metric!r}. {hint(metric, METRICS)}There are: {', '.join(METRICS)}.")
        return tabulate(self.records, stale=self.stale, tunings=self.tunings, metric=metric)

    def leaderboard(
        self, criterion: str = "auc", *, bagging: str | None = None, epochs: int | None = None, metric: str = "auc"
    ) -> DataFrame:
        """Every method in every column of one board, as numbers: place, intervals, then mean, std and n by column.

        Ranked rows first, then those that lack runs on which the others are ranked (their `rank` and means are
        missing), last what is trained on labels of rows (`role` "ceiling" or "supervised"). A row is a method with an
        encoder, a pretraining and a configuration. `metric`: what rows are ranked by, percentages times 100. Of several
        boards of the criterion (other baggings, other numbers of epochs) the one with most runs, unless they are named.
        `frame.attrs` has its title and caption. Raises `LLPBenchError` if there is none.
        """
        from pandas import DataFrame, array

        from llpbench.report.board_tables import overall, whole

        boards = self.leaderboards if metric == "auc" else self.ranked_by(metric)
        board = self._board(criterion, bagging, epochs, boards)
        table = whole(board, overall(board, criterion))
        values, order = list(table.values()), _ceilings_last(board)
        frame = DataFrame([values[place] for place in order], columns=table.names)
        rows = [board.rows[place] for place in order]
        frame["rank"] = array([row.rank for row in rows], dtype="Int64")
        frame.insert(frame.columns.get_loc("method") + 1, "role", [row.mark for row in rows])
        frame.attrs |= {"title": table.title, "caption": table.caption}
        return frame

    def plot(
        self,
        kind: str = "bag-size",
        *,
        criterion: str = "auc",
        bagging: str | None = None,
        epochs: int | None = None,
        dataset: str | None = None,
        bag_size: int | None = None,
    ) -> Picture:
        """A plot of the report, by its kind: `bag-size`, `time`, `differences`, `heat-map`, `learning-curves`, ...

        The board is chosen as `leaderboard` does; of several plots of the kind, the first, or that of `dataset` and
        `bag_size`. Raises `LLPBenchError` if there is none, and names those that there are.
        """
        import matplotlib

        from llpbench.report.plots.gallery import every_kind
        from llpbench.report.plots.saving import captioned
        from llpbench.report.plots.style import RC

        asked_for = {"dataset": dataset, "bag_size": bag_size}
        boards = self.leaderboards
        chosen = type(boards)((self._board(criterion, bagging, epochs),), boards.origin, boards.tunings)
        seen: dict[str, list[str]] = {}
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(RC)
            for drawing in every_kind(chosen):
                about = drawing.about
                sizes = "all bag sizes" if about.bag_size is None else f"bags of {about.bag_size}"
                seen.setdefault(about.kind, []).append(f"{about.dataset or 'all datasets'} in {sizes}")
                if about.kind == kind and all(
                    value is None or getattr(about, name) == value for name, value in asked_for.items()
                ):
                    captioned(drawing.figure, about)
                    return Picture(about.title, about.caption, drawing.figure)
        if kind in seen:
            asked = ", ".join(f"{name}={value!r}" for name, value in asked_for.items() if value is not None)
            raise LLPBenchError(f"plot {kind!r} is not drawn for {asked}. There is: {'; '.join(seen[kind])}.")
        there_are = f"There are: {', '.join(seen)}." if seen else "There is too little to draw."
        there_are += f" The table of published results leaves out {self.omitted}." if self.omitted else ""
        raise LLPBenchError(f"these results have no plot {kind!r}. {hint(kind, seen)}{there_are}")

    def predictions(self, run: str) -> DataFrame:
        """What a run has predicted, where it was told to keep that (`--save-predictions`).

        One row a validation or test row: `row` (its place in the dataset), `split`, `label`, and for each criterion
        and class a column `CRITERION/CLASS` of probabilities. Raises `LLPBenchError` if they were not kept.
        """
        from pandas import read_parquet

        from llpbench.running.settings import PREDICTIONS

        for folder in self.folders:
            if (file := folder / PREDICTIONS / f"{run}.parquet").is_file():
                return read_parquet(file)
        raise LLPBenchError(f"no predictions of {run!r} were kept. Run with save_predictions=True, retry='done'.")

    def _board(
        self, criterion: str, bagging: str | None, epochs: int | None, boards: Leaderboards | None = None
    ) -> Board:
        for board in (boards or self.leaderboards).boards:
            same = board.criterion.name == criterion and bagging in (None, board.bagging)
            if same and epochs in (None, (board.protocol or {}).get("epochs")):
                return board
        found = (
            f"{board.criterion.name} {board.bagging} ({(board.protocol or {}).get('epochs', 'no')} epochs)"
            for board in self.leaderboards.boards
        )
        raise LLPBenchError(
            f"these results have no board by {criterion!r} of what was asked for. "
            f"There are: {', '.join(found) or 'none'}."
        )

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        failed = sum(record["status"] != "ok" for record in self.records)
        parts = [plural(len(self.records), "run"), *([f"{failed:,} failed"] if failed else [])]
        parts += [f"{len(self.stale):,} stale"] if self.stale else []
        return f"<llpbench results: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from llpbench.report.board_tables import overall

        words = [html.escape(repr(self).strip("<>"))]
        words += [html.escape(warning) for warning in self.warnings]
        boards = self.leaderboards.boards
        table = _as_html(overall(boards[0], "board"), _ceilings_last(boards[0])) if boards else ""
        return "".join([*(f"<p>{line}</p>" for line in words), table])


def _ceilings_last(board: Board) -> list[int]:
    """The places of a board's rows, what is trained on labels of rows behind the others: incomplete ones at the end."""

    def last(place: int) -> tuple[bool, bool]:
        ceiling = board.rows[place].contender.role == "ceiling"
        return ceiling, ceiling and place not in board.complete

    return sorted(range(len(board.rows)), key=last)


def _as_html(table: ReportTable, order: Iterable[int]) -> str:
    """A table as people read it, its rows in an order of their places."""
    # notebooks put everything on the right, and break lines anywhere
    usual = [f"text-align:{'right' if heading.numeric else 'left'}" for heading in table.headings]
    head = "".join(
        f'<th style="{style}">{html.escape(heading.text)}</th>'
        for heading, style in zip(table.headings, usual, strict=True)
    )
    rows = (
        "".join(
            f'<td style="{style};white-space:nowrap">{"<br>".join(html.escape(line) for line in each.lines)}</td>'
            for each, style in zip(table.rows[place], usual, strict=True)
        )
        for place in order
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    title, caption = html.escape(table.title), html.escape(table.caption)
    return (
        f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><small>{caption}</small></p>"
    )


def load_results(*sources: Source | Iterable[Source]) -> Results:
    """Return the results of journals: `"published"`, the `--out` of runs, or journal files.

    `"published"` is the table that ships with the package. It has no learning curves, diagnostics, reliability bins or
    histograms; `"leaderboards"` of a checkout has them.

    Several are read as one, as `llpbench report --journal A --journal B` does; without any, that in `results/`. Raises
    `LLPBenchError` for what is no journal.
    """
    from llpbench.results.merging import journal_files, merge
    from llpbench.results.published import OMITTED, TABLE
    from llpbench.results.staleness import stale_runs, stale_searches
    from llpbench.running.settings import default

    named: list[str] = []
    for source in sources:
        try:
            named += [fspath(source)] if isinstance(source, str | PathLike) else [fspath(each) for each in source]
        except TypeError as error:
            raise LLPBenchError(f"a source of results is a path or 'published', got {source!r}") from error
    if sources and not named:
        raise LLPBenchError("no source of results was given, but an empty list. Name a path or 'published'.")
    paths = [path for name in named or [str(default("out"))] for path in journal_files(name)]
    merged = merge(paths)
    records, tunings = list(merged.records.values()), list(merged.tunings.values())
    return Results(
        records,
        tunings,
        stale_runs(records) | stale_searches(tunings),
        (*merged.warnings, *merged.disputed),
        tuple(path.parent for path in paths),
        OMITTED if any(path.name == TABLE for path in paths) else "",
    )
