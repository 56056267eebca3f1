"""Effect of one factor: a row of panels for each dataset, a panel for each arm of a study, lines for methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from llpbench.core.studies import STUDIES, Arm, Study
from llpbench.report import wording as words
from llpbench.report.boards import Leaderboards
from llpbench.report.plots import layout
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import method_style
from llpbench.report.study_arms import places
from llpbench.report.study_runs import Setting, StudyRuns, collect, values_of_line

MOST_ROWS = 4
"""of datasets"""

MOST_LINES = 5

HEIGHT = 1.7
"""inches of a panel"""

AXES = {"bag_size": "rows of a bag", "max_bags": "training bags"}

Curve = list[tuple[int, float]]
"""what varies, and the mean over seeds"""


def study_arms(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """A figure for each study with arms, and each setting in which any of it has run."""
    records = leaderboards.records
    for study in STUDIES.values():
        if study.arms:
            found = collect(study, records)
            for setting in sorted(found, key=lambda each: (not each.is_papers, str(each))):
                yield from _figure(study, setting, found[setting])


def _figure(study: Study, setting: Setting, found: StudyRuns) -> Iterator[Drawing]:
    every = sorted({dataset for _, dataset in found.runs})
    panels = {(dataset, arm.title): _curves(study, found, dataset, arm) for dataset in every for arm in study.arms}
    drawn = [each for each in every if any(len(c) > 1 for arm in study.arms for c in panels[each, arm.title].values())]
    drawn = drawn[:MOST_ROWS]
    if not drawn:
        return
    ran = [method for method in next(iter(study.factors.values())) if any(method in each for each in panels.values())]
    methods, across = ran[:MOST_LINES], len(study.arms)
    figure, axes = layout.panels(len(drawn) * across, across=across, height=HEIGHT, below=0.25)
    for row, dataset in enumerate(drawn):
        own = axes[row * across : (row + 1) * across]
        shown = [{m: curve for m, curve in panels[dataset, arm.title].items() if m in methods} for arm in study.arms]
        values = [y for curves in shown for curve in curves.values() for _, y in curve]
        margin = 0.08 * (max(values) - min(values)) or 1.0
        for ax, arm, curves in zip(own, study.arms, shown, strict=True):
            for method, curve in curves.items():
                look = method_style(_name(study, method))
                ax.plot([x for x, _ in curve], [y for _, y in curve], label=layout.shown(method), **look.curve())
            _axis(ax, sorted({x for curve in curves.values() for x, _ in curve}))
            ax.set_ylim(min(values) - margin, max(values) + margin)
            ax.tick_params(labelleft=ax is own[0])
            ax.set_title(layout.shown(arm.title) if row == 0 else "")
            ax.set_xlabel(AXES[arm.varies] if row == len(drawn) - 1 else "")
        own[0].set_ylabel(f"{layout.shown(dataset)}\ntest AUC × 100")
    layout.legend(figure)
    changes = {arm.title: _change([panels[each, arm.title] for each in drawn], methods) for arm in study.arms}
    facts: dict[str, Any] = {"changes": changes, "question": study.question, "left": len(ran) - len(methods)}
    several = any((run["dataset"].get("classes") or 2) > 2 for run in found.every.values())
    yield Drawing(
        kind="arms",
        name=f"study-{study.name}",
        title=words.caption("title_arms", **facts),
        setting=f"{setting}{layout.SEVERAL_CLASSES if several else ''}",
        caption=words.caption("plot_arms", **facts),
        figure=figure,
    )


def _name(study: Study, label: str) -> str:
    method: str = next(iter(study.factors.values()))[label]["method"]
    return method


def _curves(study: Study, found: StudyRuns, dataset: str, arm: Arm) -> Mapping[str, Curve]:
    """By method, the places of an arm that have values."""
    curves: dict[str, Curve] = {}
    for method, along in places(study, arm).items():
        values = [
            (place.x, values_of_line(study.lines[place.line], found.runs.get((place.line, dataset), ())))
            for place in along
        ]
        if known := [(x, fmean(own.values())) for x, own in values if own]:
            curves[method] = known
    return curves


def _change(panels: Sequence[Mapping[str, Curve]], methods: Sequence[str]) -> float | None:
    """Change from the first to the last level of an arm, averaged over the drawn methods and then over datasets."""
    found = [[c[-1][1] - c[0][1] for m, c in curves.items() if m in methods and len(c) > 1] for curves in panels]
    known = [fmean(own) for own in found if own]
    return fmean(known) if known else None


def _axis(ax: Axes, ticks: Sequence[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(list(ticks), [f"{tick:,}" for tick in ticks])
    ax.yaxis.grid(visible=True)
