"""What accuracy costs: mean test AUC against training time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pandas import Series

from llpbench.core.record import Record
from llpbench.core.text import plural
from llpbench.report.boards import Board, Row
from llpbench.report.costs import Cost, cost_of
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import row_styles
from llpbench.report.ranking import Run, over_datasets, runs_that_count
from llpbench.report.statistics import pareto_front


def time(board: Board, name: str) -> Iterator[Drawing]:
    """Mean test AUC against seconds of training, with the front of rows that no other row beats in both."""
    counting = runs_that_count([row for row in board.rows if row.contender.role != "ceiling"], board.columns)
    number = len({column for column, _ in counting})
    found = [cost for row in board.rows if (cost := cost_of(row, counting, board.columns)) is not None]
    machines = {cost.row.contender: _machines(cost.row, counting) for cost in found}
    usual = Counter(machines.values()).most_common(1)[0][0] if found else frozenset()
    costs = [cost for cost in found if machines[cost.row.contender] == usual]
    if not costs:
        return
    ahead = front(costs)
    styles, names = row_styles(cost.row for cost in costs), layout.labels(board.rows)
    figure, (ax,) = layout.panels(1, across=1, height=3.9)
    for cost in costs:
        look = styles[cost.row.contender]
        low, high = (
            over_datasets({c: f(each) for c, each in cost.by_column.items()}, board.columns) for f in (min, max)
        )
        overall = board.standings.mean(cost.row)
        spread = overall.std or 0.0 if overall is not None else 0.0
        ax.plot([low, high], [cost.auc, cost.auc], color=look.colour, linewidth=1, zorder=2)
        ax.plot([cost.seconds] * 2, [cost.auc - spread, cost.auc + spread], color=look.colour, linewidth=1, zorder=2)
        ax.plot([cost.seconds], [cost.auc], zorder=3, **{**look.points(), "markersize": 6})
    ax.set_xscale("log")
    ax.margins(x=0.06, y=0.06)
    _draw_front(ax, ahead)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(visible=True)
    ax.set_xlabel("training time of a run (seconds)")
    ax.set_ylabel("mean test AUC × 100")
    points = [
        layout.NamedPoint(cost.seconds, cost.auc, names[cost.row.contender], styles[cost.row.contender].colour)
        for cost in costs
    ]
    layout.label_points(ax, points, (6.2, 3.4))
    left_out, others = len(board.rows) - len(found), len(found) - len(costs)
    about = About(
        kind="time",
        name=f"time-{name}",
        title="Accuracy and training time",
        caption=layout.sentences(
            f"Means over datasets, of {number} columns; lines: from the fastest to the slowest seed of each "
            "column, and "
            "one standard deviation of the mean over seeds. Time: training steps with warm-up, and pretraining where "
            "there is one. Hollow: pretrained.",
            "Steps: what can be had for at most so many seconds; ceilings see every label and stay outside.",
            _shared_note([run for cost in costs for run in _runs(cost.row, counting)]),
            f"{plural(left_out, 'row')} without all of these runs and their times left out." if left_out else "",
            f"{plural(others, 'row')} from other machines left out, whose times cannot be compared." if others else "",
            layout.setting(board),
        ),
        bagging=board.bagging,
        criterion=board.criterion.name,
    )
    yield Drawing(about, figure)


def _machines(row: Row, counting: set[Run]) -> frozenset[str]:
    """What the runs of a row were computed on, as far as it decides how long they take."""
    facts = ("name", "device", "threads", "precision", "compiled")
    return frozenset(str([run["hardware"].get(fact) for fact in facts]) for run in _runs(row, counting))


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


def _runs(row: Row, counting: set[Run]) -> list[Record]:
    return [row.scores[column].runs[seed] for column, seed in sorted(counting)]


def _shared_note(runs: Sequence[Record]) -> str:
    """Whose times are upper bounds, because others used the device meanwhile."""
    shared = sum(run["hardware"].get("shared") is True for run in runs)
    unknown = sum(run["hardware"].get("shared") is None for run in runs)
    return layout.sentences(
        f"In {shared} of {len(runs)} runs others used the device, so their times are upper bounds." if shared else "",
        f"{unknown} of {len(runs)} runs do not say whether others used the device." if unknown else "",
    )
