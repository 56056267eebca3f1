"""Look of all plots: settings of matplotlib, colours and markers."""

from __future__ import annotations

from typing import Any

WIDTH = 4.4
"""Width of all figures in inches: texts are readable on a phone."""

FONT_SIZE = 8.0
"""Smallest font size in points."""

GREY = "0.72"
"""Colour of lines in the background."""

CLEAR, OPEN = "#1c5490", "0.45"
"""Colours of differences that are significant after correction, and of others."""

LOOKS = (
    ("#0072b2", "o"),
    ("#d55e00", "s"),
    ("#009e73", "^"),
    ("#cc79a7", "D"),
    ("#e69f00", "P"),
    ("#56b4e9", "v"),
    ("#000000", "X"),
)
"""Colours (Okabe & Ito, distinct for colour-blind readers) and markers, in the order in which a figure needs them."""

RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "0.3",
    "axes.grid": False,
    "axes.labelsize": FONT_SIZE,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": FONT_SIZE + 0.5,
    "axes.unicode_minus": True,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so texts are measured alike everywhere
    "font.size": FONT_SIZE,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.fontsize": FONT_SIZE,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "path.simplify_threshold": 0.5,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may contain dollar signs
    "xtick.color": "0.3",
    "xtick.labelcolor": "black",
    "xtick.labelsize": FONT_SIZE,
    "xtick.major.width": 0.6,
    "ytick.color": "0.3",
    "ytick.labelcolor": "black",
    "ytick.labelsize": FONT_SIZE,
    "ytick.major.width": 0.6,
}
"""Differences from matplotlib's defaults."""
