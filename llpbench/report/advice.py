"""Recommended methods by bagging and bag size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from pandas import isna

from llpbench.core.cell import NATURAL
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.board_tables import places_of
from llpbench.report.boards import HEADLINE, REFERENCE, Board, Column, Leaderboards, Summary
from llpbench.report.leaderboard import COLUMNS, mean
from llpbench.report.report_table import Field, Heading, ReportTable, columns_of, score, text
from llpbench.report.tabulate import part_of

ADVICE = "which-method"
"""Name of the page and of its table."""

ALIKE = 0.5
"""Methods within this many points of AUC of the best mean are recommended, too."""

AHEAD = 1.0
"""Lead in points of AUC from which another method is mentioned for a dataset."""

LEAST = 55.0
"""AUC x 100 below which no method is recommended, because the order of rows is near chance."""

MOST_DATASETS = 6
"""Largest number of datasets that are listed by name."""

EXPLAINED = ("training_bags", "take", "score", "interval", "next", "caution")
"""Captions that explain columns."""

SHARE = "bag-share"
"""Method that predicts the proportions of a row's bag."""

KINDS = {
    "ordered": "bags cut from rows sorted by features",
    "random": "bags of random rows",
    "kmeans": "bags of similar rows (clusters)",
    "principal-component": "bags cut from rows sorted along the first principal component",
    "dirichlet": "bags with chosen proportions, made with labels",
    NATURAL: "bags by a column, such as the district or the day",
}
"""Descriptions of the built-in baggings."""

CHANCE = 50.0
"""AUC x 100 of a random order."""


@dataclass(frozen=True)
class _Case:
    """Plain rows of a board, ranked on the columns of one bag size."""

    board: Board
    means: Mapping[int, Summary]
    """mean over datasets by row, without rows that lack runs"""

    @property
    def best(self) -> Summary:
        """Best mean."""
        return self.means[self.board.ranked[0]]

    @property
    def may_be_chance(self) -> bool:
        """Whether the best mean is within two standard deviations of chance."""
        return self.best.std is not None and self.best.mean - 2 * self.best.std <= CHANCE

    @property
    def recommended(self) -> list[int]:
        """Rows with the best mean, or a mean within `ALIKE` of it; empty if the best mean may be chance."""
        limit = max(LEAST, self.best.mean - ALIKE)
        return [] if self.may_be_chance else [row for row in self.board.ranked if self.means[row].mean >= limit]

    @property
    def columns(self) -> list[Column]:
        """Columns that count."""
        return [self.board.columns[place] for place in self.board.counting_columns]

    def name(self, row: int) -> str:
        """Return the name of a method, or its whole label if another row has the same method. A floor is marked."""
        who = self.board.rows[row].contender
        if [other.contender.method for other in self.board.rows].count(who.method) == 1:
            return words.method_text(self.board.rows[row])
        return words.clean(who.label)

    def name_with(self, row: int, value: float) -> str:
        """Return the name of a method with a value."""
        return f"{self.name(row)} {value:.1f}"


def advice(leaderboards: Leaderboards) -> ReportTable | None:
    """Return a line for each bagging and bag size with at least two methods; None if there is none.

    Uses the fine-grained boards. Direct methods have no epochs, so their scores do not depend on the criterion.
    """
    cases = [case for board in leaderboards.of("fine") for case in _cases(board)]
    if not cases:
        return None
    classes = words.classes_text((column.dataset, column.classes) for case in cases for column in case.columns)
    datasets = sorted({column.dataset for case in cases for column in case.columns})
    columns = {
        "bags": [text(kind(case.board)) for case in cases],
        "datasets": [text(_datasets(case)) for case in cases],
        "rows of a bag": [text(_size_range(case)) for case in cases],
        "training bags": [text(_training_bags(case)) for case in cases],
        "take": [Field(tuple(_methods(case)) or ("none",)) for case in cases],
        "AUC": [score(case.best, digits=1) for case in cases],
        f"{words.LEVEL} CI of rank": [Field(_rank_intervals(case)) for case in cases],
        "next best, best network": [Field(tuple(_next_best(case)) or (words.NOTHING,)) for case in cases],
        "caution": [Field(tuple(map(words.clean, _cautions(case))) or (words.NOTHING,)) for case in cases],
    }
    headings = (Heading(name, numeric=name == "AUC") for name in columns)
    return columns_of(
        ADVICE,
        "Which method for my data?",
        f"{words.caption('advice', datasets=datasets)} {classes}".rstrip(),
        zip(headings, columns.values(), strict=True),
        {"Columns": [words.caption(f"advice_{name}", alike=f"{ALIKE:g}", ahead=f"{AHEAD:g}") for name in EXPLAINED]},
    )


def _cases(board: Board) -> Iterator[_Case]:
    """Yield the bag sizes of a board on which at least two methods are ranked."""
    in_reference = {(row.contender.method, row.contender.encoder) for row in board.rows if row.precision == REFERENCE}
    for size in sorted({column.bag_size for column in board.columns}, key=lambda size: size or 0):
        places = places_of(board, size)
        plain = [
            n
            for n, row in enumerate(board.rows)
            if row.is_plain
            and any(row.scores[place].cell for place in places)
            # results in bfloat16 count only if there are none in float32
            and (row.precision == REFERENCE or (row.contender.method, row.contender.encoder) not in in_reference)
        ]
        part = part_of(board, plain, places)
        if len(part.ranked) >= 2:
            yield _Case(part, _means(part, HEADLINE))


def _means(board: Board, metric: str) -> dict[int, Summary]:
    return {
        int(row): Summary(value, std if isfinite(std) else None, int(n))
        for row, value, std, n in mean(board, metric).itertuples(name=None)
    }


def kind(board: Board) -> str:
    """Return a description of the board's bagging."""
    name, *options = board.bagging.removeprefix(f"{board.max_bags:,} " if board.max_bags else "").split(":")
    keys = {column.by for column in board.columns}
    description = f"{name}: {KINDS[name]}" if name in KINDS else name
    if name == NATURAL and len(keys) == 1:
        description = f"grouped by {' and '.join(keys.pop().split('+'))}"
    others = ", ".join(option for option in options if not option.startswith("split="))
    description += f" ({others})" if others else ""
    description += ", tested on other bags" if "split=bags" in options else ""
    return description + (f", {plural(board.max_bags, 'training bag')}" if board.max_bags else "")


def _datasets(case: _Case) -> str:
    datasets = list(dict.fromkeys(column.dataset for column in case.columns))
    return ", ".join(datasets) if len(datasets) <= MOST_DATASETS else f"{len(datasets)} datasets"


def _size_range(case: _Case) -> str:
    """Return the smallest and largest number of rows in a bag."""
    sizes = [size for column in case.columns for size in column.sizes or [column.bag_size] if size is not None]
    if not sizes:
        return words.NOTHING
    low, high = min(sizes), max(sizes)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _training_bags(case: _Case) -> str:
    """Return the median number of training bags over runs."""
    number = case.board.runs["bags"].median()
    return words.NOTHING if isna(number) else f"{number:,.0f}"


def _rank_intervals(case: _Case) -> tuple[str, ...]:
    """Return the interval of the rank of each recommended method."""
    fields = COLUMNS["interval"].fields(case.board)
    return tuple(fields[row].lines[0] for row in case.recommended) or (words.NOTHING,)


def _methods(case: _Case) -> list[str]:
    return [case.name(row) for row in case.recommended]


def _next_best(case: _Case) -> list[str]:
    """Return the best method that is not recommended, and the best network if that is another one."""
    contenders = [row.contender for row in case.board.rows]
    others = [row for row in case.board.ranked if row not in case.recommended]
    networks = [row for row in case.board.ranked if contenders[row].kind == "neural" and not contenders[row].role]
    lines = [case.name_with(row, case.means[row].mean) for row in others[:1]]
    if others and contenders[others[0]].kind != "neural":
        which = "best network" if len(networks) > 1 else "only network"
        later = [row for row in networks if row in others]
        lines += [f"{which} {case.name_with(row, case.means[row].mean)}" for row in later[:1]]
    return lines


def _cautions(case: _Case) -> Iterator[str]:
    """Yield warnings: datasets that another method leads, shares of bags as good as features, means near chance."""
    board = case.board
    means = board.counted(HEADLINE)[board.ranked].groupby(level=0).mean()
    for place, scores in means.dropna(how="all").iterrows():
        best, leader = scores[case.recommended].max(), scores.idxmax()
        if scores[leader] > best + AHEAD:
            lead = case.name_with(leader, scores[leader])
            yield f"{board.columns[place].dataset}: {best:.1f}, but {lead}"
    for row, share in _means(board, f"{HEADLINE}-known-bags").items():
        is_share = row in board.ranked and board.rows[row].contender.method == SHARE
        if is_share and share.mean >= case.best.mean - ALIKE:
            yield f"the proportions of a row's own bag alone have {share.mean:.1f}"
    if case.may_be_chance:
        yield f"{case.best.mean:.1f} is within two standard deviations of chance"
