"""Figures of your data: effects of features, and shares of groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from llpbench.core.effects import FeatureEffect, FeatureEffects
from llpbench.report.plots import layout
from llpbench.report.plots.layout import GREY

_MOST_PANELS = 9

_MOST_CATEGORIES = 10
"""Most frequent categories of a feature that are shown."""

_COLOUR = "#0072b2"


def effect_panels(effects: Sequence[FeatureEffect], title: str) -> Figure:
    """Draw the strongest effects with two posterior standard deviations on either side.

    Numeric features are steps, categories are points. Axes are limited by the values, so a band may be cut off. The
    grey number is the share of the prior's variance that is left; it is 1 if bags contain no information on a feature.
    """
    drawn = FeatureEffects(effects).strongest(_MOST_PANELS)
    figure, axes, across = layout.panels(len(drawn), height=1.9, below=0.1, share_y=True)
    for place, (ax, effect) in enumerate(zip(axes, drawn, strict=True)):
        _numeric(ax, effect) if effect.codes is None else _categorical(ax, effect)
        ax.axhline(0, color="0.6", linewidth=0.6, zorder=1)
        ax.set_title(layout.shown(effect.name, 20))
        ax.text(1, 1.03, f"{effect.undetermined:.2f}", transform=ax.transAxes, ha="right", va="bottom", color="0.5")
        if place % across == 0:
            ax.set_ylabel(effect.scale)
    values = np.concatenate([effect.values for effect in drawn])
    margin = 0.25 * float(np.ptp(values)) or 1.0
    axes[0].set_ylim(values.min() - margin, values.max() + margin)
    legend = (
        "Band: ± 2 posterior standard deviations. Grey: posterior variance / prior variance (1: bags show nothing)."
    )
    layout.add_caption(figure, legend)
    figure.suptitle(layout.shown(title, 100), x=0.01, ha="left")
    return figure


def _numeric(ax: Axes, effect: FeatureEffect) -> None:
    assert effect.edges is not None
    inner = effect.edges if len(effect.edges) else np.zeros(1)
    values, std = effect.values[: len(inner) + 1], effect.std[: len(inner) + 1]
    if not len(effect.edges):  # one bin: a line from end to end
        values, std = values[[0, 0]], std[[0, 0]]
    beyond = 0.08 * float(np.ptp(inner)) or 0.5 * max(abs(float(inner[0])), 1.0)
    edges = np.array([inner[0] - beyond, *inner, inner[-1] + beyond])
    ax.stairs(values + 2 * std, edges, baseline=values - 2 * std, fill=True, color=_COLOUR, alpha=0.15, linewidth=0)
    ax.stairs(values, edges, baseline=None, color=_COLOUR, linewidth=1.4)
    if effect.missing:
        place = edges[-1] + beyond
        ax.errorbar(place, effect.values[-1], 2 * effect.std[-1], color=_COLOUR, fmt="o", markersize=3.5, linewidth=1)
        ax.annotate("missing", (place, effect.values[-1]), (-5, 0), textcoords="offset points", ha="right", va="center")


def _categorical(ax: Axes, effect: FeatureEffect) -> None:
    assert effect.categories is not None
    shown = np.sort(np.argsort(-effect.weights, kind="stable")[:_MOST_CATEGORIES])
    places = np.arange(len(shown))
    ax.errorbar(
        places, effect.values[shown], 2 * effect.std[shown], color=_COLOUR, fmt="o", markersize=3.5, linewidth=1
    )
    names = [layout.shown(effect.categories[place], 16) for place in shown]
    ax.set_xticks(places, names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(shown) - 0.4)


_MOST_GROUPS = 30


def group_shares(overall: DataFrame, names: Sequence[str], share: float, title: str) -> Figure:
    """Draw estimate, interval and (in grey) bounds of the groups with most rows.

    `overall`: the part of `estimate` for one class in all bags. `names`: columns of the groups. `share`: share of the
    class among all rows, drawn as a vertical line.
    """
    shown = overall.nlargest(_MOST_GROUPS, "rows").sort_index()
    groups = shown[[*names]].map(str).agg(", ".join, axis=1)
    figure, ax = layout.named_lines([layout.shown(name, 40) for name in groups])
    for place, (middle, lower, upper) in enumerate(_share_lines(ax, shown)):
        text = f"{middle:.1f} [{lower:.1f}, {upper:.1f}]"
        ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(100 * share, color="0.3", linewidth=0.8, zorder=2)
    cut = f", the {_MOST_GROUPS} largest of {len(overall)} groups" if len(overall) > _MOST_GROUPS else ""
    layout.add_caption(figure, f"% of the rows of a group; line: all rows; grey: possible without a model{cut}")
    figure.suptitle(layout.shown(title, 100), x=0.01, ha="left")
    return figure


def _share_lines(ax: Axes, lines: DataFrame) -> list[tuple[float, float, float]]:
    """Draw estimate, interval and (in grey) bounds of shares, one below the other; return estimate and interval."""
    shares = 100 * lines[["share", "share_lower", "share_upper", "share_min", "share_max"]]
    for place, (middle, lower, upper, least, most) in enumerate(shares.itertuples(index=False)):
        ax.plot([least, most], [place, place], color=GREY, linewidth=5, alpha=0.5, solid_capstyle="butt", zorder=1)
        ax.plot([lower, upper], [place, place], color=_COLOUR, linewidth=1.6, zorder=3)
        ax.plot([middle], [place], "o", color=_COLOUR, markersize=5, zorder=4)
    return [*shares.iloc[:, :3].itertuples(index=False, name=None)]


def cell_shares(cells: DataFrame) -> Figure:
    """Draw estimate, interval and (in grey) bounds of each cell of a table of groups by outcomes.

    `cells`: `CrossTable.cells`. Groups are one below the other, outcomes side by side.
    """
    groups = [layout.shown(str(name), 24) for name in dict.fromkeys(cells["group"])]
    outcomes = cells["outcome"].nunique()
    grid = layout.panels(outcomes, height=0.8 + 0.22 * len(groups), below=0.3, share_y=True)
    for ax, (outcome, lines) in zip(grid.axes, cells.groupby("outcome", sort=False), strict=True):
        _share_lines(ax, lines)
        ax.set_title(layout.shown(str(outcome), 24), fontsize="medium")
        ax.set_xlim(-3, 103)
    grid.axes[0].set_yticks(range(len(groups)), groups)
    grid.axes[0].set_ylim(len(groups) - 0.4, -0.6)
    layout.add_caption(grid.figure, "% of a group, with 95 % interval; grey: possible without a model")
    return grid.figure
