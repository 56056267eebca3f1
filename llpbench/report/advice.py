"""Recommended methods by bagging and bag size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite

from pandas import DataFrame, concat, isna

from llpbench.core.cell import NATURAL
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import HEADLINE, REFERENCE, Board, Leaderboards, Summary
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
    """Plain entries of a board, ranked on the tasks of one bag size."""

    board: Board
    means: Mapping[int, Summary]
    """mean over datasets by entry, without entries that lack runs"""

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
        """Entries with the best mean, or a mean within `ALIKE` of it; empty if the best mean may be chance."""
        limit = max(LEAST, self.best.mean - ALIKE)
        return [] if self.may_be_chance else [entry for entry in self.board.ranked if self.means[entry].mean >= limit]

    @property
    def tasks(self) -> DataFrame:
        """Tasks that count."""
        return self.board.tasks.loc[self.board.counting_tasks]

    def name(self, entry: int) -> str:
        """Return the name of a method, or its whole label if another entry has the same method. A floor is marked."""
        methods = self.board.entries["method"].tolist()
        is_only = methods.count(methods[entry]) == 1
        return words.method_texts(self.board)[entry] if is_only else words.clean(self.board.labels[entry])

    def name_with(self, entry: int, value: float) -> str:
        """Return the name of a method with a value."""
        return f"{self.name(entry)} {value:.1f}"


def advice(leaderboards: Leaderboards) -> ReportTable | None:
    """Return a line for each bagging and bag size with at least two methods; None if there is none.

    Uses the fine-grained boards. Direct methods have no epochs, so their scores do not depend on the criterion.
    """
    cases = [case for board in leaderboards.of("fine") for case in _cases(board)]
    if not cases:
        return None
    tasks = concat([case.tasks for case in cases])
    classes = words.classes_text(zip(tasks["dataset"], tasks["classes"], strict=True))
    datasets = sorted({*tasks["dataset"]})
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
    names = [*zip(board.entries["method"], board.entries["encoder"], strict=True)]
    precisions, is_plain = board.entries["precision"], board.entries["is_plain"]
    in_reference = {name for name, precision in zip(names, precisions, strict=True) if precision == REFERENCE}
    for size in sorted({*board.tasks["bag_size"]}, key=lambda size: size or 0):
        tasks = [task for task, other in enumerate(board.tasks["bag_size"]) if other == size]
        plain = [
            entry
            for entry in sorted(board.runs["entry"][board.runs["task"].isin(tasks)].unique())
            # results in bfloat16 count only if there are none in float32
            if is_plain[entry] and (precisions[entry] == REFERENCE or names[entry] not in in_reference)
        ]
        part = part_of(board, plain, tasks)
        # on boards ranked by another metric, an entry may have no AUC
        without = {entry for entry in part.ranked if entry not in _means(part, HEADLINE)}
        if without:
            labels = {part.labels[entry] for entry in without}
            part = part_of(board, [entry for entry in plain if board.labels[entry] not in labels], tasks)
        if len(part.ranked) >= 2:
            yield _Case(part, _means(part, HEADLINE))


def _means(board: Board, metric: str) -> dict[int, Summary]:
    return {
        int(entry): Summary(value, std if isfinite(std) else None, int(n))
        for entry, value, std, n in mean(board, metric).itertuples(name=None)
    }


def kind(board: Board) -> str:
    """Return a description of the board's bagging."""
    name, *options = board.bagging.removeprefix(f"{board.max_bags:,} " if board.max_bags else "").split(":")
    keys = {*board.tasks["by"]}
    description = f"{name}: {KINDS[name]}" if name in KINDS else name
    if name == NATURAL and len(keys) == 1:
        description = f"grouped by {' and '.join(keys.pop().split('+'))}"
    others = ", ".join(option for option in options if not option.startswith("split="))
    description += f" ({others})" if others else ""
    description += ", tested on other bags" if "split=bags" in options else ""
    return description + (f", {plural(board.max_bags, 'training bag')}" if board.max_bags else "")


def _datasets(case: _Case) -> str:
    datasets = case.tasks["dataset"].unique()
    return ", ".join(datasets) if len(datasets) <= MOST_DATASETS else f"{len(datasets)} datasets"


def _size_range(case: _Case) -> str:
    """Return the smallest and largest number of rows in a bag."""
    tasks = case.tasks
    sizes = tasks[["least_rows", "most_rows"]].astype(float).T.fillna(tasks["bag_size"].astype(float))
    low, high = sizes.min(axis=None), sizes.max(axis=None)
    if isna(low):
        return words.NOTHING
    return f"{low:,.0f}" if low == high else f"{low:,.0f}–{high:,.0f}"


def _training_bags(case: _Case) -> str:
    """Return the median number of training bags over runs."""
    number = case.board.runs["bags"].median()
    return words.NOTHING if isna(number) else f"{number:,.0f}"


def _rank_intervals(case: _Case) -> tuple[str, ...]:
    """Return the interval of the rank of each recommended method."""
    fields = COLUMNS["interval"].fields(case.board)
    return tuple(fields[entry].lines[0] for entry in case.recommended) or (words.NOTHING,)


def _methods(case: _Case) -> list[str]:
    return [case.name(entry) for entry in case.recommended]


def _next_best(case: _Case) -> list[str]:
    """Return the best method that is not recommended, and the best network if that is another one."""
    kinds, roles = case.board.entries["kind"], case.board.entries["role"]
    others = [entry for entry in case.board.ranked if entry not in case.recommended]
    networks = [entry for entry in case.board.ranked if kinds[entry] == "neural" and not roles[entry]]
    lines = [case.name_with(entry, case.means[entry].mean) for entry in others[:1]]
    if others and kinds[others[0]] != "neural":
        which = "best network" if len(networks) > 1 else "only network"
        later = [entry for entry in networks if entry in others]
        lines += [f"{which} {case.name_with(entry, case.means[entry].mean)}" for entry in later[:1]]
    return lines


def _cautions(case: _Case) -> Iterator[str]:
    """Yield warnings: datasets that another method leads, shares of bags as good as features, means near chance."""
    board = case.board
    means = board.counted(HEADLINE)[board.ranked].groupby(level=0).mean()
    for task, scores in means.dropna(how="all").iterrows():
        best, leader = scores[case.recommended].max(), scores.idxmax()
        if scores[leader] > best + AHEAD:
            lead = case.name_with(leader, scores[leader])
            yield f"{board.tasks.at[task, 'dataset']}: {best:.1f}, but {lead}"
    for entry, share in _means(board, f"{HEADLINE}-known-bags").items():
        is_share = entry in board.ranked and board.entries.at[entry, "method"] == SHARE
        if is_share and share.mean >= case.best.mean - ALIKE:
            yield f"the proportions of a row's own bag alone have {share.mean:.1f}"
    if case.may_be_chance:
        yield f"{case.best.mean:.1f} is within two standard deviations of chance"
