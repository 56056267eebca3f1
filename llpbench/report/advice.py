"""Table that recommends methods by bagging and bag size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from llpbench.core.cell import NATURAL
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.board_tables import places_of
from llpbench.report.boards import HEADLINE, REFERENCE, Board, Column, Leaderboards, Summary
from llpbench.report.leaderboard import mean
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, columns_of, score, text
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

SHARE = "bag-share"
"""Method that predicts the proportions of a row's bag."""

KINDS = {
    "ordered": "rows sorted by features",
    "random": "randomly assigned rows",
    "kmeans": "clusters of similar rows",
    "principal-component": "rows sorted along the first principal component",
    "dirichlet": "chosen proportions, made by labels",
    NATURAL: "groups such as districts or days",
}
"""Descriptions of the built-in baggings."""

CHANCE = 50.0
"""AUC x 100 of a random order."""


@dataclass(frozen=True)
class _Case:
    """Plain rows of a board, ranked on the columns of one bag size."""

    board: Board
    means: Mapping[int, Summary]
    """Mean over datasets, for rows without missing runs."""
    taken: tuple[int, ...]
    """Recommended rows: the best mean and all within `ALIKE` of it; empty if the best mean may be chance."""

    @property
    def columns(self) -> list[Column]:
        """Columns that count in means."""
        return [self.board.columns[place] for place in self.board.counting_columns]

    def named(self, row: int, mean: float) -> str:
        """Name of a method, followed by its mean."""
        return f"{words.clean(words.method_text(self.board.rows[row]))} {mean:.1f}"


def advice(leaderboards: Leaderboards) -> ReportTable | None:
    """Return a line for each bagging and bag size with methods to compare; None if there is none.

    Uses the fine-grained boards. Direct methods have no epochs, so their scores do not depend on the criterion.
    """
    cases = [case for board in leaderboards.of("fine") for case in _cases(board)]
    if not cases:
        return None
    classes = words.classes_text((column.dataset, column.classes) for case in cases for column in case.columns)
    caption = words.caption("advice", alike=f"{ALIKE:g}", ahead=f"{AHEAD:g}", least=f"{LEAST:g}")
    columns = {
        "bags": [text(kind(case.board)) for case in cases],
        "datasets": [text(_datasets(case)) for case in cases],
        "rows of a bag": [text(_range([end for column in case.columns for end in _sizes(column)])) for case in cases],
        "take": [_taken(case) for case in cases],
        "AUC": [score(case.means[case.board.ranked[0]], digits=1) for case in cases],
        "next best": [_next_best(case) for case in cases],
        "caution": [_caution(case) for case in cases],
    }
    headings = (Heading(name, SCORE) if name == "AUC" else Heading(name, numeric=False) for name in columns)
    return columns_of(
        ADVICE,
        "Which method for my data?",
        " ".join(filter(None, (caption, classes))),
        zip(headings, columns.values(), strict=True),
    )


def _cases(board: Board) -> Iterator[_Case]:
    twins = {(row.contender.method, row.contender.encoder) for row in board.rows if row.precision == REFERENCE}
    for size in sorted({column.bag_size for column in board.columns}):
        places = places_of(board, size)
        plain = [
            n
            for n, row in enumerate(board.rows)
            if row.is_plain
            and any(row.scores[place].cell for place in places)
            # results in bfloat16 count only if there are none in float32
            and (row.precision == REFERENCE or (row.contender.method, row.contender.encoder) not in twins)
        ]
        part = part_of(board, plain, places)
        if len(part.ranked) < 2:
            continue
        means = _means(part)
        bar = max(LEAST, max(means[row].mean for row in part.ranked) - ALIKE)
        alike = tuple(row for row in part.ranked if means[row].mean >= bar)
        yield _Case(part, means, () if _may_be_chance(means[part.ranked[0]]) else alike)


def _means(board: Board, metric: str = HEADLINE) -> dict[int, Summary]:
    return {
        int(row): Summary(value, std if isfinite(std) else None, int(n))
        for row, value, std, n in mean(board, metric).itertuples(name=None)
    }


def _datasets(case: _Case) -> str:
    datasets = list(dict.fromkeys(column.dataset for column in case.columns))
    return ", ".join(datasets) if len(datasets) <= MOST_DATASETS else f"{len(datasets)} datasets"


def _taken(case: _Case) -> Field:
    names = [case.board.rows[row].contender.method for row in case.taken]
    return Field(tuple(names) or ("none",), {"": ", ".join(names)})


def kind(board: Board) -> str:
    """Return a description of the board's bagging; its name if it has no description."""
    name, *options = board.bagging.removeprefix(f"{board.max_bags:,} " if board.max_bags else "").split(":")
    keys = {column.by for column in board.columns}
    found = f"{name}: {KINDS[name]}" if name in KINDS else name
    if name == NATURAL and len(keys) == 1:
        found = f"grouped by {' and '.join(keys.pop().split('+'))}"
    others = ", ".join(option for option in options if not option.startswith("split="))
    new = ", rows of groups not seen in training" if "split=bags" in options else ""
    few = f", {plural(board.max_bags, 'training bag')}" if board.max_bags else ""
    return f"{found} ({others}){new}{few}" if others else f"{found}{new}{few}"


def _sizes(column: Column) -> tuple[int, ...]:
    if column.sizes is None:
        return (column.bag_size,) if column.bag_size else ()
    return column.sizes[0], column.sizes[2]


def _range(values: Sequence[int]) -> str:
    if not values:
        return words.NOTHING
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _next_best(case: _Case) -> Field:
    """Return the best method that is not recommended, and the best network if it is another one."""
    others = [row for row in case.board.ranked if row not in case.taken]
    contenders = [row.contender for row in case.board.rows]
    every = [row for row in case.board.ranked if contenders[row].kind == "neural" and not contenders[row].role]
    networks = [row for row in every if row in others[1:]]
    if others and contenders[others[0]].kind == "neural":
        networks = []
    which = "best network" if len(every) > 1 else "only network"
    lines = [case.named(row, case.means[row].mean) for row in others[:1]]
    lines += [f"{which} {case.named(row, case.means[row].mean)}" for row in networks[:1]]
    return Field(tuple(lines) or (words.NOTHING,), {"": ", ".join(lines)})


def _may_be_chance(best: Summary) -> bool:
    """Return whether the best mean is within two standard deviations of chance."""
    return best.std is not None and best.mean - 2 * best.std <= CHANCE


def _caution(case: _Case) -> Field:
    """Return warnings: datasets that another method leads, a bag's share as good as features, means near chance."""
    board, lines = case.board, []
    means = board.counted(HEADLINE)[board.ranked].groupby(level=0).mean()
    for place, own in means.dropna(how="all").iterrows():
        ours, lead = own[[*case.taken]].max(), own.idxmax()
        if own[lead] > ours + AHEAD:
            lines.append(f"{board.columns[place].dataset}: {ours:.1f}, but {case.named(lead, own[lead])}")
    best = case.means[board.ranked[0]]
    shares = _means(board, f"{HEADLINE}-known-bags")
    lines += [
        f"the share of a row's bag alone has {share.mean:.1f} (if the bag is known)"
        for row, share in shares.items()
        if row in board.ranked and board.rows[row].contender.method == SHARE and share.mean >= best.mean - ALIKE
    ]
    if _may_be_chance(best):
        lines.append(f"{best.mean:.1f} is within two standard deviations of chance")
    return Field(tuple(map(words.clean, lines)) or (words.NOTHING,), {"": "; ".join(lines)})
