"""Which method for which bags: what the runs of a journal say, in one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from llpbench.report import wording as words
from llpbench.report.board_tables import places_of
from llpbench.report.boards import HEADLINE, REFERENCE, Board, Column, Leaderboards, Row, Summary
from llpbench.report.costs import cost_of
from llpbench.report.ranking import ranked
from llpbench.report.report_table import SCORE, Field, Heading, ReportTable, score, text

ADVICE = "which-method"
"""the page, and its table"""

ALIKE = 0.5
"""points of AUC below the best mean that make no difference to what is advised"""

AHEAD = 1.0
"""points of AUC by which another method must lead on a dataset to be named"""

LEAST = 55.0
"""AUC x 100 below which nothing is advised: rows are hardly told apart"""

MOST_DATASETS = 6
"""that are named"""

SHARE = "bag-share"
"""the method that knows the bag of a row and nothing else"""

KINDS = {
    "ordered": "rows sorted by features",
    "random": "rows dealt out at random",
    "kmeans": "clusters of like rows",
    "principal-component": "rows sorted along the first principal component",
    "dirichlet": "chosen proportions, made by labels",
}
"""what the baggings that come along are, in words"""

SIMPLEST = "bag-mean-linear"
"""whoever takes more than ridge on the means of bags wants to know what that brings"""

CHANCE = 50.0
"""AUC x 100 of an order that tells nothing"""


@dataclass(frozen=True)
class _Case:
    """The plain rows of a board in the columns of one bag size, ranked there."""

    board: Board
    taken: tuple[Row, ...]
    """the best mean and all that are alike; none where rows are hardly told apart, or that may be chance"""

    @property
    def ranked(self) -> list[Row]:
        """Best first."""
        return self.board.standings.ranked

    @property
    def columns(self) -> list[Column]:
        """That count."""
        return self.board.standings.counting

    def mean(self, row: Row, metric: str = HEADLINE) -> Summary | None:
        """Over datasets."""
        return self.board.standings.mean(row, metric)


def advice(leaderboards: Leaderboards) -> ReportTable | None:
    """A line for each kind and size of bags on which methods can be compared; None if there is none.

    Of the boards whose epochs labels of validation rows choose, which direct methods do not need.
    """
    cases = [case for board in leaderboards.of("fine") for case in _cases(board)]
    if not cases:
        return None
    classes = words.classes_text((column.dataset, column.classes) for case in cases for column in case.columns)
    return ReportTable(
        name=ADVICE,
        title="Which method for my data?",
        caption=" ".join(filter(None, (words.ADVICE.format(alike=ALIKE, ahead=AHEAD, least=LEAST), classes))),
        headings=(
            Heading("bags", numeric=False),
            Heading("datasets", numeric=False),
            Heading("rows of a bag", numeric=False),
            Heading("training bags", numeric=False),
            Heading("take", numeric=False),
            Heading("AUC", SCORE),
            Heading("seconds", numeric=False),
            Heading("next best", numeric=False),
            Heading("ridge", numeric=False),
            Heading("with labels", numeric=False),
            Heading("caution", numeric=False),
        ),
        rows=tuple(map(_line, cases)),
    )


def _cases(board: Board) -> Iterator[_Case]:
    for size in sorted({column.bag_size for column in board.columns}):
        places = places_of(board, size)
        columns = tuple(board.columns[place] for place in places)
        plain = [
            replace(row, scores=tuple(row.scores[place] for place in places))
            for row in board.rows
            if row.is_plain and not _has_twin(row, board)
        ]
        rows = ranked([row for row in plain if any(score.cell for score in row.scores)], columns)
        part = replace(board, columns=columns, rows=rows, leaders=frozenset())
        means = {row.contender: part.standings.mean(row) for row in part.standings.ranked}
        known = [mean.mean for mean in means.values() if mean is not None]
        if len(known) < 2:
            continue
        bar = max(LEAST, max(known) - ALIKE)
        taken = [row for row in rows if (mean := means.get(row.contender)) is not None and mean.mean >= bar]
        yield _Case(part, () if _may_be_chance(part.standings.mean(part.standings.ranked[0])) else tuple(taken))


def _has_twin(row: Row, board: Board) -> bool:
    """Whether it stands on the board in float32, too."""
    names = {(each.contender.method, each.contender.encoder) for each in board.rows if each.precision == REFERENCE}
    return row.precision != REFERENCE and (row.contender.method, row.contender.encoder) in names


def _line(case: _Case) -> tuple[Field, ...]:
    best = case.ranked[0]
    datasets = list(dict.fromkeys(column.dataset for column in case.columns))
    named = ", ".join(datasets) if len(datasets) <= MOST_DATASETS else f"{len(datasets)} datasets"
    return (
        text(kind(case.board)),
        text(named),
        text(_range([end for column in case.columns for end in _sizes(column)])),
        text(_range(_numbers(case))),
        Field(tuple(row.contender.method for row in case.taken) or ("none",), {"": _names(case.taken)}),
        score(case.mean(best), digits=1),
        text(_seconds(case)),
        _next_best(case),
        text(_best(case, [row for row in case.ranked if row.contender.method == SIMPLEST])),
        text(_best(case, [row for row in case.board.rows if row.contender.role == "ceiling"])),
        _caution(case),
    )


def kind(board: Board) -> str:
    """How rows became bags, in words; as the bagging is called where there are none."""
    name, *options = board.bagging.removeprefix(f"{board.max_bags:,} " if board.max_bags else "").split(":")
    keys = next((option.removeprefix("by=") for option in options if option.startswith("by=")), "")
    found = f"{name}: {KINDS[name]}" if name in KINDS else name
    if keys:
        found = f"grouped by {' and '.join(keys.split('+'))}"
    others = ", ".join(option for option in options if not option.startswith(("by=", "split=")))
    new = ", rows of groups not seen in training" if "split=bags" in options else ""
    return f"{found} ({others}){new}" if others else f"{found}{new}"


def _sizes(column: Column) -> tuple[int, ...]:
    if column.sizes is None:
        return (column.bag_size,) if column.bag_size else ()
    return column.sizes[0], column.sizes[2]


def _numbers(case: _Case) -> list[int]:
    """Of training bags."""
    runs = (run for row in case.ranked for score in row.scores for run in score.runs.values())
    return [number for run in runs if (number := run["bags"].get("number"))]


def _range(values: Sequence[int]) -> str:
    if not values:
        return words.NOTHING
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _seconds(case: _Case) -> str:
    """Of training: the least and most of the columns' means, of all that are taken."""
    standings = case.board.standings
    costs = [cost_of(row, standings.runs, case.board.columns) for row in case.taken]
    means = [sum(each) / len(each) for cost in costs if cost is not None for each in cost.by_column.values()]
    if not means:
        return words.NOTHING
    low, high = (words.seconds_text(end(means)) for end in (min, max))
    return low if low == high else f"{low}–{high}"


def _next_best(case: _Case) -> Field:
    """The best of the others, and the best network where that is another."""
    others = [row for row in case.ranked if row not in case.taken]
    every = [row for row in case.ranked if row.contender.kind == "neural" and not row.contender.role]
    networks = [row for row in every if row in others[1:]]
    first, network = ([_told(row, case.mean(row)) for row in rows[:1]] for rows in (others, networks))
    if others and others[0].contender.kind == "neural":
        network = []
    which = "best network" if len(every) > 1 else "only network"
    lines = [*first, *(f"{which} {told}" for told in network)]
    return Field(tuple(lines) or (words.NOTHING,), {"": ", ".join(lines)})


def _best(case: _Case, rows: Sequence[Row]) -> str:
    means = [mean.mean for row in rows if (mean := case.mean(row)) is not None]
    return f"{max(means):.1f}" if means else words.NOTHING


def _may_be_chance(best: Summary | None) -> bool:
    """Whether seeds are so far apart that the best mean says nothing."""
    return best is not None and best.std is not None and best.mean - 2 * best.std <= CHANCE


def _caution(case: _Case) -> Field:
    """Datasets on which another row leads what is taken, where the bag's share says as much as all features, and where
    seeds are so far apart that the best mean may be chance."""
    lines = []
    for place, column in enumerate(case.board.columns):
        means = {row.contender: found for row in case.ranked if (found := case.board.standings.spread(row, place))}
        ours = [means[row.contender].mean for row in case.taken if row.contender in means]
        lead = max(means, key=lambda contender: means[contender].mean, default=None)
        if ours and lead is not None and means[lead].mean > max(ours) + AHEAD:
            told = _told(next(row for row in case.ranked if row.contender == lead), means[lead])
            lines.append(f"{column.dataset}: {max(ours):.1f}, but {told}")
    best = case.mean(case.ranked[0])
    shares = (case.mean(row, f"{HEADLINE}-known-bags") for row in case.ranked if row.contender.method == SHARE)
    lines += [
        f"{share.mean:.1f} by the share of a row's bag alone, where that is known"
        for share in shares
        if share is not None and best is not None and share.mean >= best.mean - ALIKE
    ]
    if best is not None and _may_be_chance(best):
        lines.append(f"{best.mean:.1f} is within two standard deviations of chance")
    return Field(tuple(map(words.clean, lines)) or (words.NOTHING,), {"": "; ".join(lines)})


def _told(row: Row, mean: Summary | None) -> str:
    return words.clean(words.method_text(row)) + ("" if mean is None else f" {mean.mean:.1f}")


def _names(rows: Sequence[Row]) -> str:
    return ", ".join(row.contender.method for row in rows)
