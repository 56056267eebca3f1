"""Class shares of bags: predictions of held-out bags, and shares by size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from llpbench.core.bags import FloatArray, IntArray
from llpbench.report.plots import layout
from llpbench.report.plots.style import GREY

MOST_METHODS = 8
MOST_CLASSES = 6

_COLOUR = "#0072b2"


@dataclass(frozen=True, eq=False)
class BagShares:
    """Sizes and known class shares of bags."""

    rows: IntArray
    """[bags]"""
    known: FloatArray
    """[bags, classes]"""
    classes: Sequence[str]
    """names; of two classes the positive one is last"""

    @property
    def shown(self) -> list[int]:
        """Positions of the classes that are drawn; of two only the last."""
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))[:MOST_CLASSES]


def held_out_shares(bags: BagShares, predicted: Mapping[str, FloatArray]) -> Figure:
    """Draw predicted [bags, classes] against known shares, a panel for each method.

    Points of bags with more rows are larger. On the grey line both shares are equal.
    """
    drawn = list(predicted)[:MOST_METHODS]
    panels = layout.panels(len(drawn), height=1.8, below=0.3)
    known = bags.known[:, bags.shown]
    low, high = _limits([known, *(predicted[name][:, bags.shown] for name in drawn)])
    for ax, name in zip(panels.axes, drawn, strict=True):
        shares = predicted[name][:, bags.shown]
        ax.plot([low, high], [low, high], color=GREY, linewidth=1)
        size = np.repeat(_areas(bags.rows), known.shape[1])
        ax.scatter(known.ravel(), shares.ravel(), s=size, color=_COLOUR, alpha=0.5, linewidth=0)
        ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        ax.set_title(layout.shown(name, 22))
    panels.label("known share", "predicted")
    return panels.figure


def sizes_and_shares(bags: BagShares) -> Figure:
    """Draw the share of each bag against its rows, a panel for each class (of two only the positive one).

    95 % of bags with randomly assigned rows would be in the grey area.
    """
    panels = layout.panels(len(bags.shown), height=2.4, below=0.3)
    for ax, place in zip(panels.axes, bags.shown, strict=True):
        _by_size(ax, bags, place)
        ax.set_title(layout.shown(bags.classes[place], 30))
    panels.label("rows of the bag", "share of the class")
    return panels.figure


def _by_size(ax: Axes, bags: BagShares, place: int) -> None:
    mean = float(np.average(bags.known[:, place], weights=bags.rows))
    least, most = bags.rows.min() / 1.15, bags.rows.max() * 1.15
    sizes = np.geomspace(least, most, 100)
    half = 1.96 * np.sqrt(mean * (1 - mean) / sizes)
    ax.fill_between(sizes, np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1), color="0.9", linewidth=0)
    ax.axhline(mean, color=GREY, linewidth=1)
    ax.scatter(bags.rows, bags.known[:, place], s=10, color=_COLOUR, alpha=0.6, linewidth=0)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda rows, _: f"{rows:,.0f}"))
    ax.set_xlim(least, most)
    low, high = _limits([bags.known[:, place]])
    ax.set_ylim(low, high)


def _areas(rows: IntArray) -> FloatArray:
    """Return areas of points [bags], in square points."""
    return np.asarray(6 + 24 * np.sqrt(rows / rows.max()))


def _limits(shares: Sequence[FloatArray]) -> tuple[float, float]:
    low, high = min(float(part.min()) for part in shares), max(float(part.max()) for part in shares)
    margin = 0.06 * (high - low) or 0.05
    return low - margin, high + margin
