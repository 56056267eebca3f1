"""What one factor does alone: a row of panels for each dataset, a panel for each arm of a study, lines for methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from llpbench.core.record import Record
from llpbench.core.studies import STUDIES, Arm, Study
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Leaderboards
from llpbench.report.plots import layout
from llpbench.report.plots.plot import About
from llpbench.report.plots.saving import Drawing
from llpbench.report.plots.style import method_style
from llpbench.report.study_arms import places, values_of_line
from llpbench.report.study_runs import Setting, StudyRuns, classes_of, collect

MOST_ROWS = 6
"""of datasets"""

AXES = {"bag_size": "rows of a bag", "max_bags": "training bags"}

Curve = list[tuple[int, list[float]]]
"""what varies, and the values of the seeds"""


def study_arms(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """A figure for each study with arms, and each setting in which any of it has run."""
    records = leaderboards.records
    for study in STUDIES.values():
        if study.arms:
            found = collect(study, records)
            for setting in sorted(found, key=lambda each: (not each.is_papers, str(each))):
                yield from _figure(study, setting, found[setting])


def _figure(study: Study, setting: Setting, found: StudyRuns) -> Iterator[Drawing]:
    datasets = [
        dataset
        for dataset in sorted({dataset for _, dataset in found.runs})
        if any(len(curve) > 1 for arm in study.arms for curve in _curves(study, found, dataset, arm).values())
    ]
    drawn = datasets[:MOST_ROWS]
    if not drawn:
        return
    across = len(study.arms)
    panels = {(dataset, arm.title): _curves(study, found, dataset, arm) for dataset in drawn for arm in study.arms}
    methods = [
        method for method in next(iter(study.factors.values())) if any(method in curves for curves in panels.values())
    ]
    styles = {method: method_style(_name(study, method)) for method in methods}
    legend = [layout.key(styles[method], layout.shown(method)) for method in methods]
    figure, axes = layout.panels(len(panels), across=across, height=1.75, below=0.25 + layout.legend_height(legend))
    for row, dataset in enumerate(drawn):
        own = axes[row * across : (row + 1) * across]
        for ax, arm in zip(own, study.arms, strict=True):
            curves = panels[dataset, arm.title]
            for method in reversed(methods):  # the best on top
                if method in curves:
                    _draw(ax, curves[method], styles[method].curve(), styles[method].colour)
            ticks = sorted({x for curve in curves.values() for x, _ in curve})
            _axis(ax, ticks)
            ax.set_title(layout.shown(arm.title) if row == 0 else "")
            ax.set_xlabel(AXES[arm.varies] if row == len(drawn) - 1 else "")
        _share_y(own, [panels[dataset, arm.title] for arm in study.arms])
        own[0].set_ylabel(f"{layout.shown(dataset)}\ntest AUC × 100")
    layout.legend_below(figure, legend)
    yield Drawing(
        About(
            kind="arms",
            name=f"study-{study.name}",
            title=study.title,
            caption=layout.sentences(
                study.question,
                words.caption("plot_arms"),
                f"The first {len(drawn)} of {plural(len(datasets), 'dataset')}." if len(drawn) < len(datasets) else "",
                words.sentence(str(setting)),
                classes_of(run for run in found.every.values() if run["spec"]["dataset"] in drawn),
            ),
            bagging=setting.bagging,
        ),
        figure,
    )


def _name(study: Study, label: str) -> str:
    method: str = next(iter(study.factors.values()))[label]["method"]
    return method


def _curves(study: Study, found: StudyRuns, dataset: str, arm: Arm) -> Mapping[str, Curve]:
    """By method, the places of an arm that have values."""
    curves: dict[str, Curve] = {}
    for method, along in places(study, arm).items():
        values = [(place.x, _values(study, place.line, found.runs.get((place.line, dataset), ()))) for place in along]
        if known := [(x, own) for x, own in values if own]:
            curves[method] = known
    return curves


def _values(study: Study, line: int, runs: Sequence[Record]) -> list[float]:
    return [value for _, value in sorted(values_of_line(study, line, runs).items())]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _draw(ax: Axes, curve: Curve, look: Mapping[str, object], colour: str) -> None:
    ax.plot([x for x, _ in curve], [_mean(values) for _, values in curve], **look)  # type: ignore[arg-type]
    seeds = [(x, value) for x, values in curve if len(values) > 1 for value in values]
    at, height = [x for x, _ in seeds], [value for _, value in seeds]
    ax.scatter(at, height, s=9, color=colour, alpha=0.4, linewidth=0, zorder=1)


def _axis(ax: Axes, ticks: Sequence[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_locator(FixedLocator(list(ticks)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(list(ticks), [f"{tick:,}" for tick in ticks])
    ax.yaxis.grid(visible=True)


def _share_y(axes: Sequence[Axes], panels: Sequence[Mapping[str, Curve]]) -> None:
    """One scale for the panels of a dataset, numbered on the left."""
    means = [_mean(values) for curves in panels for curve in curves.values() for _, values in curve]
    margin = 0.06 * (max(means) - min(means)) or 1.0
    for place, ax in enumerate(axes):
        ax.set_ylim(min(means) - margin, max(means) + margin)
        ax.tick_params(labelleft=place == 0)
