"""Shares of groups with intervals and bounds: the plot of `llpbench estimate`."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from pandas import DataFrame

from llpbench.report.plots import layout
from llpbench.report.plots.style import GREY

MOST_GROUPS = 30

_COLOUR = "#0072b2"


def group_shares(overall: DataFrame, names: Sequence[str], share: float, title: str) -> Figure:
    """Draw estimate, interval and (in grey) bounds of the groups with most rows.

    `overall`: the part of `estimate` for one class in all bags. `names`: columns of the groups. `share`: share of the
    class among all rows, drawn as a vertical line.
    """
    shown = overall.nlargest(MOST_GROUPS, "rows").sort_index()
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
    cut = f", the {MOST_GROUPS} largest of {len(overall)} groups" if len(overall) > MOST_GROUPS else ""
    ax.set_xlabel(f"% of the rows of a group; line: all rows; grey: possible without a model{cut}")
    figure.suptitle(layout.shown(title, 100), x=0.01, ha="left")
    return figure
