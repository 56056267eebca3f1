"""What accuracy costs: mean test AUC against training time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pandas import Series

from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.report.boards import Board, Column, Row
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import row_styles
from llpbench.report.ranking import completed, mean_over_datasets, over_datasets, runs_that_count
from llpbench.report.statistics import pareto_front


@dataclass(frozen=True)
class Cost:
    """A row over the runs that count."""

    row: Row
    seconds: float
    auc: float


def time(board: Board, name: str) -> Iterator[Drawing]:
    """Mean test AUC against seconds of training, with the front of rows that no other row beats in both."""
    counting = runs_that_count([row for row in board.rows if row.contender.role != "ceiling"], board.columns)
    number = len({column for column, _ in counting})
    costs = [cost for row in board.rows if (cost := cost_of(row, counting, board.columns)) is not None]
    if not costs:
        return
    ahead = front(costs)
    styles, names = row_styles(cost.row for cost in costs), layout.labels(board.rows)
    legend = layout.handles(styles, {cost.row.contender: names[cost.row.contender] for cost in costs}, lines=False)
    if ahead:
        legend.append(Line2D([], [], color="0.45", linewidth=1, label="Pareto front"))
    figure, (ax,) = layout.panels(1, across=1, height=3.3, below=layout.legend_height(legend))
    for cost in costs:
        ax.plot([cost.seconds], [cost.auc], **{**styles[cost.row.contender].points(), "markersize": 7})
    ax.set_xscale("log")
    _draw_front(ax, ahead)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(visible=True)
    ax.set_xlabel("training time of a run (seconds)")
    ax.set_ylabel("mean test AUC × 100")
    layout.legend_below(figure, legend, keys=1.4)
    left_out = len(board.rows) - len(costs)
    about = About(
        kind="time",
        name=f"time-{name}",
        title="Accuracy and training time",
        caption=layout.sentences(
            f"Means over datasets, of {number} columns. Time: training steps "
            "with warm-up, and pretraining where there is one. Hollow: pretrained.",
            "The front joins the rows that no other row beats in both; ceilings see every label and stay outside it.",
            _shared_note([run for cost in costs for run in _runs(cost.row, counting)]),
            f"{plural(left_out, 'row')} without all of these runs and their times left out." if left_out else "",
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)


def cost_of(row: Row, counting: set[tuple[int, int]], columns: Sequence[Column]) -> Cost | None:
    """Of a row that has completed every run that counts, and whose runs say how long they took; None of others."""
    if not counting or counting - completed(row):
        return None
    by_column: dict[int, list[float]] = {}
    for column, seed in sorted(counting):
        run = row.scores[column].runs[seed]
        found = training_seconds(run)
        if found is None:
            return None
        by_column.setdefault(column, []).append(found)
    means = {column: fsum(values) / len(values) for column, values in by_column.items()}
    return Cost(row, over_datasets(means, columns), mean_over_datasets(row, counting, columns))


def training_seconds(run: Record) -> float | None:
    """Steps, warm-up and pretraining of one run; None where it does not say, or took no time at all."""
    times = run["times"]
    if times.get("train") is None or (run["spec"]["pretraining"] != "none" and times.get("pretraining") is None):
        return None
    pretraining = times["pretraining"] if run["spec"]["pretraining"] != "none" else 0.0
    return fsum((times["train"], times.get("warm-up") or 0.0, pretraining)) or None


def front(costs: Sequence[Cost]) -> list[Cost]:
    """The Pareto front of all but ceilings, cheapest first."""
    able = {cost.row.contender.label: cost for cost in costs if cost.row.contender.role != "ceiling"}
    seconds = Series({label: cost.seconds for label, cost in able.items()}, dtype=float)
    value = Series({label: cost.auc for label, cost in able.items()}, dtype=float)
    return [able[label] for label in pareto_front(seconds, value)] if able else []


def _draw_front(ax: Axes, ahead: Sequence[Cost]) -> None:
    """What can be had for at most so many seconds: a step up at each row of the front."""
    if ahead:
        ax.set_xlim(ax.get_xlim())
        seconds = [*(cost.seconds for cost in ahead), ax.get_xlim()[1]]
        values = [*(cost.auc for cost in ahead), ahead[-1].auc]
        ax.plot(seconds, values, drawstyle="steps-post", color="0.45", linewidth=1, zorder=1)


def _runs(row: Row, counting: set[tuple[int, int]]) -> list[Record]:
    return [row.scores[column].runs[seed] for column, seed in sorted(counting)]


def _shared_note(runs: Sequence[Record]) -> str:
    """Whose times are upper bounds, because others used the device meanwhile."""
    shared = sum(run["hardware"].get("shared") is True for run in runs)
    unknown = sum(run["hardware"].get("shared") is None for run in runs)
    return layout.sentences(
        f"In {shared} of {len(runs)} runs others used the device, so their times are upper bounds." if shared else "",
        f"{unknown} of {len(runs)} runs do not say whether others used the device." if unknown else "",
    )
