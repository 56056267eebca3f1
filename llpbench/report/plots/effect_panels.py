"""The strongest effects of features, as small multiples: what practitioners look at first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llpbench.core.effects import FeatureEffect, strongest
from llpbench.report.plots import layout
from llpbench.report.plots.style import FONT_SIZE

MOST_PANELS = 9

MOST_CATEGORIES = 10
"""that have room under a panel, the most frequent ones"""

_COLOUR = "#0072b2"


def effect_panels(effects: Sequence[FeatureEffect], title: str) -> Figure:
    """A panel for each of the strongest effects, with two posterior standard deviations on either side.

    A number is drawn in steps, as the model sees it; its outermost bins, which have no end, a little way. Categories
    are points. Axes follow the values, and may cut off a band. In grey the share of the prior's variance that is left:
    1 where the bags told nothing of a feature.
    """
    drawn = strongest(effects, MOST_PANELS)
    across = min(3, len(drawn))
    figure, axes = layout.panels(len(drawn), across=across, height=1.9, below=0.45, share_y=True)
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
    told = "± 2 posterior standard deviations; in grey how much of the prior's variance is left (1: bags told nothing)"
    figure.supxlabel(told, color="0.5", fontsize=FONT_SIZE)
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
        ax.annotate("missing", (place, effect.values[-1]), (0, 4), textcoords="offset points", ha="center")


def _categorical(ax: Axes, effect: FeatureEffect) -> None:
    assert effect.categories is not None
    kept = np.sort(np.argsort(-effect.weights, kind="stable")[:MOST_CATEGORIES])
    places = np.arange(len(kept))
    ax.errorbar(places, effect.values[kept], 2 * effect.std[kept], color=_COLOUR, fmt="o", markersize=3.5, linewidth=1)
    names = [layout.shown(effect.categories[place], 16) for place in kept]
    ax.set_xticks(places, names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(kept) - 0.4)
