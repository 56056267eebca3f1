"""Sorted lines with a name each: leads of the first method, effects of pretraining, robustness."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from statistics import median

from matplotlib.figure import Figure

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.board_tables import robustness
from llpbench.report.boards import Board
from llpbench.report.leaderboard import comparisons
from llpbench.report.plots import layout
from llpbench.report.plots.layout import CLEAR, OPEN, WIDTH, Drawing
from llpbench.report.statistics import MeanDifference, compared

_MOST_ENTRIES = 20

LONGEST = 30
"""Characters of a name beside a line."""


def differences(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the lead of the first entry over each method that it is compared with (`leaderboard.comparisons`)."""
    verdict = comparisons(board)
    if not verdict.leads:
        return
    drawn = dict([*verdict.leads.items()][:_MOST_ENTRIES])
    worse = [entry for entry, lead in verdict.leads.items() if lead.is_better]
    first = layout.labels(board)[board.ranked[0]].strip()
    unit = "points" if board.metric.percent else "units"
    label = f"lead of {first} in {unit} of {board.metric.title}"
    yield layout.of_board(
        board,
        name,
        "differences",
        _figure(board, drawn, worse, label),
        first=first,
        number=len(verdict.leads),
        clear=len(worse) if verdict.is_tested else None,
        over=verdict.over,
        left_out=verdict.left_out,
        hidden=len(verdict.leads) - len(drawn),
    )


def pretraining(board: Board, name: str) -> Iterator[Drawing]:
    """Draw each entry with pretraining minus the same entry without, over datasets (or seeds of a single dataset)."""
    others = zip(*(board.entries[name] for name in ("method", "encoder", "configuration", "is_tuned")), strict=True)
    names = [*zip(others, board.entries["pretraining"], strict=True)]
    plain = {name: entry for entry, (name, pretraining) in enumerate(names) if pretraining == "none"}
    values = board.sign * board.values()
    effects = compared(
        {
            entry: gains
            for entry, (name, pretraining) in enumerate(names)
            if pretraining != "none" and name in plain and (gains := board.paired(values[entry] - values[plain[name]]))
        }
    )
    ordered = sorted(effects.items(), key=lambda effect: -effect[1].points)[:_MOST_ENTRIES]
    if not ordered:
        return
    significant = [entry for entry, effect in ordered if effect.is_significant]
    yield layout.of_board(
        board,
        name,
        "pretraining",
        _figure(board, dict(ordered), significant, "points that pretraining adds"),
        number=len(ordered),
        clear=len(significant),
        middle=median(effect.points for _, effect in ordered),
        over="datasets" if board.tasks["dataset"].nunique() > 1 else "seeds",
    )


def _figure(board: Board, gains: Mapping[int, MeanDifference], significant: Collection[int], label: str) -> Figure:
    """Draw a line for each entry: the mean, its interval, and both as text on the right; `significant` ones in blue."""
    names = layout.labels(board, longest=LONGEST)
    figure, ax = layout.named_lines([names[entry] for entry in gains])
    for place, (entry, gain) in enumerate(gains.items()):
        colour = CLEAR if entry in significant else OPEN
        if gain.has_interval:
            ax.plot([gain.low, gain.high], [place, place], color=colour, linewidth=1.6, zorder=2)
        face = colour if entry in significant else "white"
        ax.plot([gain.points], [place], "o", markersize=5.5, zorder=3, markerfacecolor=face, markeredgecolor=colour)
        text = words.difference_text(gain).replace("-", "−")
        ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(0, color="0.3", linewidth=0.8, zorder=1)
    ax.set_xlabel(label)
    return figure


def robustness_bars(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the mean rank of the standard deviation over seeds of each entry, with the deviation beside it."""
    ranking = robustness(board)
    drawn = ranking.head(_MOST_ENTRIES)
    if drawn.empty:
        return
    names = layout.labels(board, ranking.index, longest=LONGEST)
    figure = Figure(figsize=(WIDTH, 0.7 + 0.21 * len(drawn)))
    ax = figure.subplots()
    bars = ax.barh([names[entry] for entry in drawn.index], drawn["mean_rank"], color=CLEAR, height=0.7)
    ax.bar_label(bars, [f"± {std:.1f}" for std in drawn["std"]], padding=3)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(0, 1.18 * drawn["mean_rank"].max())
    ax.set_xlabel("mean rank of the standard deviation")
    yield layout.of_board(
        board,
        name,
        "robustness",
        figure,
        least=names[ranking.index[0]],
        most=names[ranking.index[-1]],
        tasks=plural(int(drawn["tasks"].max()), "task"),
        hidden=len(ranking) - len(drawn),
    )
