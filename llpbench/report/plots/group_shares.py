"""Shares of groups with intervals and bounds: the plot of `llpbench estimate`."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from pandas import DataFrame

from llpbench.report.plots import layout
from llpbench.report.plots.layout import GREY

_MOST_GROUPS = 30

_COLOUR = "#0072b2"


def group_shares(overall: DataFrame, names: Sequence[str], share: float, title: str) -> Figure:
    """Draw estimate, interval and (in grey) bounds of the groups with most rows.

    `overall`: the part of `estimate` for one class in all bags. `names`: columns of the groups. `share`: share of the
    class among all rows, drawn as a vertical line.
    """
    shown = overall.nlargest(_MOST_GROUPS, "rows").sort_index()
    groups = shown[[*names]].astype(str).agg(", ".join, axis=1)
    figure, ax = layout.named_lines([layout.shown(name, 40) for name in groups])
    lines = shown[["share", "share_lower", "share_upper", "share_min", "share_max"]] * 100
    for place, (middle, lower, upper, least, most) in enumerate(lines.itertuples(index=False)):
        ax.plot([least, most], [place, place], color=GREY, linewidth=5, alpha=0.5, solid_capstyle="butt", zorder=1)
        ax.plot([lower, upper], [place, place], color=_COLOUR, linewidth=1.6, zorder=3)
        ax.plot([middle], [place], "o", color=_COLOUR, markersize=5, zorder=4)
        text = f"{middle:.1f} [{lower:.1f}, {upper:.1f}]"
        ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(100 * share, color="0.3", linewidth=0.8, zorder=2)
    cut = f", the {_MOST_GROUPS} largest of {len(overall)} groups" if len(overall) > _MOST_GROUPS else ""
    ax.set_xlabel(f"% of the rows of a group; line: all rows; grey: possible without a model{cut}")
    figure.suptitle(layout.shown(title, 100), x=0.01, ha="left")
    return figure


def cell_shares(cells: DataFrame) -> Figure:
    """Draw estimate, interval and (in grey) bounds of each cell of a table of groups by outcomes.

    `cells`: `CrossTable.cells`. Groups are one below the other, outcomes side by side.
    """
    groups = [layout.shown(str(name), 24) for name in dict.fromkeys(cells["group"])]
    outcomes = cells["outcome"].nunique()
    grid = layout.panels(outcomes, height=0.8 + 0.22 * len(groups), below=0.3, share_y=True)
    for ax, (outcome, lines) in zip(grid.axes, cells.groupby("outcome", sort=False), strict=True):
        shares = 100 * lines[["share", "share_lower", "share_upper", "share_min", "share_max"]]
        for place, (middle, lower, upper, least, most) in enumerate(shares.itertuples(index=False)):
            ax.plot([least, most], [place, place], color=GREY, linewidth=5, alpha=0.5, solid_capstyle="butt", zorder=1)
            ax.plot([lower, upper], [place, place], color=_COLOUR, linewidth=1.6, zorder=3)
            ax.plot([middle], [place], "o", color=_COLOUR, markersize=5, zorder=4)
        ax.set_title(layout.shown(str(outcome), 24), fontsize="medium")
        ax.set_xlim(-3, 103)
    grid.axes[0].set_yticks(range(len(groups)), groups)
    grid.axes[0].set_ylim(len(groups) - 0.4, -0.6)
    grid.figure.supxlabel("% of a group, with 95 % interval; grey: possible without a model", fontsize="small")
    return grid.figure
