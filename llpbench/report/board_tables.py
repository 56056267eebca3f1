"""From boards to tables: what each published table shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from statistics import median
from typing import TYPE_CHECKING

from llpbench.core.text import plural, slug
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, Board, Column, Row, Score, Summary, summarise
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, number, score, text
from llpbench.report.standings import Standing, Standings

if TYPE_CHECKING:
    from pandas import DataFrame

SHORT = {"auc": "fine", "mpiou": "coarse-mpiou", "l1": "coarse-l1"}
"""what the files of a criterion's boards are called"""
ELSEWHERE = ("mean rank", "gap closed", "wins")
"""columns of the overall table that have no room beside all scores"""
OVERALL = "-overall"
"""how the names of tables over all columns end"""
OWN_SIZES = "own-sizes"
"""how those of tables end whose baggings have no size"""


def names_of(boards: Sequence[Board]) -> list[str]:
    """What tells boards apart in names of files, e.g. `fine-ordered`, or `fine-ordered-e100-p10-b2` where a bagging has
    several protocols."""
    taken: Counter[str] = Counter()
    names = []
    for board in boards:
        name = name_of(board, boards)
        taken[name] += 1  # names of baggings may differ in signs alone
        names.append(name if taken[name] == 1 else f"{name}-{taken[name]}")
    return names


def name_of(board: Board, boards: Iterable[Board]) -> str:
    """As `names_of` has it, but for its last word."""
    peers = [other for other in boards if other.criterion == board.criterion and other.bagging == board.bagging]
    name = f"{SHORT[board.criterion.name]}-{slug(board.bagging)}"
    if len(peers) == 1:
        return name
    protocol = board.protocol or {}
    return "-".join([name, *(f"{key[0]}{value}" for key, value in protocol.items())] if protocol else [name, "direct"])


def board_tables(board: Board, name: str) -> list[ReportTable]:
    """The whole of a board: where every row stands over all columns, then a table for each bag size."""
    sizes = sorted({column.bag_size for column in board.columns})
    return [overall(board, name), *(scores(board, size, name) for size in sizes)]


def overall(board: Board, name: str) -> ReportTable:
    """Where every row stands over all columns."""
    found = Standings(board)
    columns = len({column for column, _ in found.runs})
    numbers = (
        Heading("rank"),
        *_row_headings(board),
        Heading("mean AUC", SCORE),
        Heading("95 % of rank", ("low", "high")),
        Heading("tie", numeric=False),
        Heading("mean rank"),
        Heading("gap closed"),
        Heading("wins"),
        Heading("coverage", ("done", "failed", "expected", "stale")),
    )
    rows = [
        (text(words.rank_text(row)), *_row_fields(board, row), *_standing(standing))
        for row, standing in zip(board.rows, found.rows, strict=True)
    ]
    return ReportTable(
        name=f"{name}{OVERALL}",
        title=f"{words.title(board)}: over all columns",
        caption=_caption(board, words.OVERALL.format(columns=plural(columns, "column"), runs=len(found.runs))),
        headings=numbers,
        rows=tuple(rows),
        notes={
            what: lines
            for what, lines in (
                ("Failed or undefined", board.failures),
                (words.STALE_NOTE, board.stale),
                ("Worth a look", board.surprises),
            )
            if lines
        },
    )


def whole(board: Board, overall: ReportTable) -> ReportTable:
    """Every row in every column of a board, with its place `overall` (the table of that name) before its scores."""
    kept = [n for n, heading in enumerate(overall.headings) if heading.text not in ELSEWHERE]
    return replace(
        overall,
        headings=(
            *(overall.headings[n] for n in kept),
            *(Heading(column.title, SCORE) for column in board.columns),
        ),
        rows=tuple(
            (
                *(place[n] for n in kept),
                *(_score_field(each, (number, i) in board.leaders) for i, each in enumerate(row.scores)),
            )
            for number, (place, row) in enumerate(zip(overall.rows, board.rows, strict=True))
        ),
    )


def _standing(standing: Standing) -> tuple[Field, ...]:
    interval = standing.interval
    shown = (words.NOTHING,) if interval is None else (f"{interval[0]}–{interval[1]}",)
    low, high = interval or (None, None)
    lacks = {"failed": standing.failed, words.STALE: standing.stale}
    overall = score(standing.overall)
    if standing.overall is not None and standing.overall.n == 0:
        overall = Field((f"{standing.overall.mean:.2f}", "no seed in common"), overall.values)
    return (
        overall,
        Field(shown, {"low": low, "high": high}),
        text(standing.group or words.NOTHING),
        number(standing.mean_rank, 1),
        number(standing.gap_closed, 0),
        number(standing.wins, 0),
        Field(
            (f"{standing.done}/{standing.expected}", *(f"{number} {what}" for what, number in lacks.items() if number)),
            {"done": standing.done, "expected": standing.expected, **lacks},
        ),
    )


def scores(board: Board, bag_size: int, name: str) -> ReportTable:
    """The scores of one bag size: a column for each dataset."""
    places = _places(board, bag_size)
    columns = [board.columns[i] for i in places]
    bags = words.bags_text(bag_size)
    tried = [(n, row) for n, row in enumerate(board.rows) if any(row.scores[i].cell for i in places)]
    others = [row.contender.label for row in board.rows if not any(row.scores[i].cell for i in places)]
    return ReportTable(
        name=f"{name}-{bag_size or OWN_SIZES}",
        title=f"{words.title(board)}, {bags}",
        caption=_caption(board, words.CAPTION, words.validation_text(board, columns)),
        headings=(
            Heading("rank"),
            *_row_headings(board),
            *(Heading(_short_title(column), SCORE) for column in columns),
        ),
        rows=tuple(
            (
                text(words.rank_text(row)),
                *_row_fields(board, row),
                *(_score_field(row.scores[i], (n, i) in board.leaders) for i in places),
            )
            for n, row in tried
        ),
        notes={f"Not run with {bags}": (", ".join(others),)} if others else {},
    )


def _places(board: Board, bag_size: int) -> list[int]:
    """The columns of one bag size, by index."""
    return [index for index, column in enumerate(board.columns) if column.bag_size == bag_size]


def _short_title(column: Column) -> str:
    """Of a column in a table of one bag size, which names its bags if their sizes are not just that."""
    return column.title if column.unequal or not column.bag_size else column.dataset


def _score_field(of: Score, leads: bool) -> Field:
    field = score(of.headline, strong=leads)
    lacks = {"failed": len(of.failures), "missing": len(of.missing), words.STALE: len(of.stale)}
    return Field(tuple(words.score_lines(of)), {**field.values, **lacks}, leads)


def selection_gap(fine: Board, coarse: Board, name: str) -> ReportTable:
    """What selecting epochs by proportions instead of labels costs: fine minus coarse, run by run."""

    def gaps(row: Row, column: int) -> Summary | None:
        other = next((each for each in coarse.rows if each.contender == row.contender), None)
        if other is None:
            return None
        key = fine.columns[column].key
        there = next((n for n, each in enumerate(coarse.columns) if each.key == key), None)
        if there is None:
            return None
        first, second = (of.values.get(HEADLINE, {}) for of in (row.scores[column], other.scores[there]))
        return summarise([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])

    neural = [row for row in fine.rows if row.contender.kind != "direct"]
    return _by_column(
        fine,
        neural,
        gaps,
        name=f"selection-gap-{name}",
        title=f"Selection gap, {fine.bagging} bags: AUC by labels minus AUC by {coarse.criterion.title}",
        caption=words.SELECTION_GAP,
    )


def gap_closed(board: Board, name: str) -> ReportTable:
    """How much of the way from the floor to the ceiling each row goes, column by column."""
    found = Standings(board)
    columns = sorted({column for column, _ in found.runs})
    rows = []
    for row in board.rows:
        gaps = found.gaps_closed(row)
        each = (number(gaps.get(column), 0) for column in columns)
        rows.append((*_row_fields(board, row), number(found.gap_closed(row), 0), *each))
    titles = [Heading(board.columns[column].title) for column in columns]
    return ReportTable(
        name=f"gap-closed-{name}",
        title=f"Gap closed between floor and ceiling, {words.lowered(words.title(board))}",
        caption=_caption(board, words.GAP_CLOSED),
        headings=(*_row_headings(board), Heading("mean"), *titles),
        rows=tuple(rows),
    )


def robustness(board: Board, name: str) -> ReportTable | None:
    """How much a method depends on the seed: the paper's ranking by standard deviation; None with too few rows."""
    from pandas import DataFrame

    from llpbench.report import statistics

    found = Standings(board)
    columns = sorted({column for column, _ in found.runs})
    spreads = {
        row.contender: [summary.std if (summary := found.spread(row, column)) else None for column in columns]
        for row in found.ranked
    }
    if len(spreads) < 2 or any(std is None for stds in spreads.values() for std in stds):
        return None
    stds = DataFrame({contender.label: values for contender, values in spreads.items()}).T
    ranks = statistics.robustness(stds)
    ordered = sorted(found.ranked, key=lambda row: (float(ranks[row.contender.label]), row.contender.label))
    return ReportTable(
        name=f"robustness-{name}",
        title=f"Robustness, {words.lowered(words.title(board))}",
        caption=_caption(board, words.ROBUSTNESS),
        headings=(
            *_row_headings(board),
            Heading("mean rank of std"),
            *(Heading(board.columns[column].title, ("std",)) for column in columns),
        ),
        rows=tuple(
            (
                *_row_fields(board, row),
                number(float(ranks[row.contender.label]), 3),
                *(Field((f"{std:.2f}",), {"std": std}) for std in spreads[row.contender] if std is not None),
            )
            for row in ordered
        ),
    )


def timing(board: Board, bag_size: int, name: str) -> ReportTable:
    """What a run costs, training and prediction apart."""
    places = _places(board, bag_size)
    rows = [row for row in board.rows if any(row.scores[i].succeeded for i in places)]
    return ReportTable(
        name=f"timing-{name}-{bag_size or OWN_SIZES}",
        title=f"Time and memory, {board.bagging} {words.bags_text(bag_size)}, {words.protocol_text(board.protocol)}",
        caption=_caption(board, words.TIMING),
        headings=(
            *_row_headings(board),
            *(Heading(f"{board.columns[i].dataset}, train s") for i in places),
            *(Heading(what) for what in ("predict s", "warm-up s", "pretrain s", "memory MB", "parameters", "epochs")),
            Heading("shared", ("runs", "of")),
        ),
        rows=tuple(
            (
                *_row_fields(board, row),
                *(_seconds(row.scores[i]) for i in places),
                *_costs(row, places),
            )
            for row in rows
        ),
    )


def _seconds(of: Score) -> Field:
    """Of training steps; seeds that trained together have the same, so there is no spread to show."""
    seconds = [run["times"]["train"] for run in of.runs.values() if run["status"] == "ok" and "train" in run["times"]]
    return number(median(seconds) if seconds else None, 1)


def _costs(row: Row, places: Sequence[int]) -> Iterator[Field]:
    runs = [run for i in places for run in row.scores[i].runs.values() if run["status"] == "ok"]
    for what, digits in (("predict", 3), ("warm-up", 2), ("pretraining", 1)):
        known = [run["times"][what] for run in runs if run["times"].get(what) is not None]
        yield number(median(known) if known else None, digits)
    yield number(max((run["memory_mb"] for run in runs if run["memory_mb"] is not None), default=None), 0)
    yield number(max((run["parameters"] for run in runs), default=None))
    yield number(median(run["epochs"] for run in runs) if row.contender.kind != "direct" else None, 0)
    marks = [run["hardware"].get("shared") for run in runs]
    shared = sum(mark is True for mark in marks)
    unknown = "?" if None in marks else ""
    yield Field((f"{shared}/{len(runs)}{unknown}",), {"runs": None if unknown else shared, "of": len(runs)})


def statistics_tables(board: Board, name: str) -> list[ReportTable]:
    """Win rates and p values of the ranked rows against one another; what needs more than there is, is left out."""
    found = Standings(board)
    friedman = found.friedman
    note = (
        words.NO_FRIEDMAN
        if friedman is None
        else (
            f"Friedman: chi² = {friedman.statistic:.2f}, p = {friedman.p:.2g} over {friedman.blocks} columns; "
            f"Nemenyi's critical difference of mean ranks at 0.05: {friedman.critical_difference:.2f}."
        )
    )
    if len(found.compared) < len(found.ranked):
        note += f" Of {len(found.ranked):,} ranked methods the first {len(found.compared)} are compared."
    tables = []
    if found.win_rates is not None:
        caption = f"{words.WIN_RATES} {note}"
        title = f"Win rates in percent, {words.lowered(words.title(board))}"
        tables.append(_matrix(found.win_rates, 100, 0, f"wins-{name}", title, _caption(board, caption)))
    if found.wilcoxon is not None:
        title = f"Wilcoxon-Holm p values, {words.lowered(words.title(board))}"
        caption = _caption(board, words.WILCOXON)
        tables.append(_matrix(found.wilcoxon, 1, 3, f"wilcoxon-{name}", title, caption))
    return tables


def _matrix(frame: DataFrame, times: float, digits: int, name: str, title: str, caption: str) -> ReportTable:
    labels = [str(label) for label in frame.index]
    rows = []
    for row in labels:
        values = (None if row == column else times * float(frame.loc[row, column]) for column in labels)
        rows.append((text(row), *(number(value, digits) for value in values)))
    headings = (Heading("row against column", numeric=False), *map(Heading, labels))
    return ReportTable(name, title, caption, headings, tuple(rows))


def _by_column(
    board: Board,
    rows: Sequence[Row],
    measure: Callable[[Row, int], Summary | None],
    *,
    name: str,
    title: str,
    caption: str,
) -> ReportTable:
    """A summary of each row in each column, and its mean over the columns that count."""
    found = {row.contender: [measure(row, column) for column in range(len(board.columns))] for row in rows}
    shared = sorted({column for column, _ in Standings(board).runs})
    return ReportTable(
        name=name,
        title=title,
        caption=_caption(board, f"{caption} Mean: over {plural(len(shared), 'column')} that most methods have."),
        headings=(
            *_row_headings(board),
            Heading("mean"),
            *(Heading(column.title, SCORE) for column in board.columns),
        ),
        rows=tuple(
            (*_row_fields(board, row), number(_mean(found[row.contender], shared)), *map(score, found[row.contender]))
            for row in rows
        ),
    )


def _mean(values: Sequence[Summary | None], columns: Sequence[int]) -> float | None:
    """None unless there is a value in each of the columns."""
    chosen = [value.mean for column in columns if (value := values[column]) is not None]
    return fsum(chosen) / len(chosen) if chosen and len(chosen) == len(columns) else None


def _row_headings(board: Board) -> list[Heading]:
    return [Heading(name, numeric=False) for name in ("method", *_details(board))]


def _row_fields(board: Board, row: Row) -> list[Field]:
    details = (str(getattr(row.contender, name) or "") for name in _details(board))
    return [text(row.contender.method), *map(text, details)]


def _details(board: Board) -> list[str]:
    """The columns that tell rows of the same method apart, where any row needs them."""
    contenders = [row.contender for row in board.rows]
    needed: Mapping[str, bool] = {
        "encoder": any(contender.encoder for contender in contenders),
        "pretraining": any(contender.pretraining != "none" for contender in contenders),
        "configuration": any(contender.configuration for contender in contenders),
    }
    return [name for name, shown in needed.items() if shown]


def _caption(board: Board, *explained: str) -> str:
    """Everything is labelled with protocol, encoder and hardware."""
    return " ".join(filter(None, (words.sentence(words.setting(board)), *explained, words.sizes_text(board.columns))))
