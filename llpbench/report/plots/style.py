"""Look of all plots: settings of matplotlib, and a colour and marker for each method.

Most colours are those of Okabe & Ito and of Tol's `muted`, which colour-blind readers can distinguish. An entry with
pretraining has hollow markers.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from llpbench.report.boards import Board

WIDTH = 7.0
"""Width of all figures in inches."""

FONT_SIZE = 8.0
"""Smallest font size in points."""

GREY = "0.72"
"""Colour of lines in the background."""

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

Marker = str | tuple[int, int, float]


@dataclass(frozen=True)
class Style:
    """Look of an entry."""

    colour: str
    marker: Marker
    dashed: bool = False
    hollow: bool = False

    def points(self) -> dict[str, Any]:
        """Return arguments of `Axes.plot` for markers without a line."""
        face = "white" if self.hollow else self.colour
        look = {"markerfacecolor": face, "markeredgecolor": self.colour, "markeredgewidth": 1.2}
        return {"color": self.colour, "marker": self.marker, "linestyle": "none", **look}

    def curve(self) -> dict[str, Any]:
        """Return arguments of `Axes.plot` for a line with markers."""
        return {**self.points(), "linestyle": "--" if self.dashed else "-"}


METHODS: Mapping[str, tuple[str, Marker]] = {
    "supervised": ("#6e6e6e", "*"),
    "supervised-gbdt": ("#a3a3a3", "d"),
    "validation-labels": ("#8a8a8a", "X"),
    "bag-soft-label": ("#000000", (4, 1, 0)),
    "dllp": ("#0072b2", "o"),
    "llp-gan": ("#d55e00", "s"),
    "llp-vat": ("#009e73", "^"),
    "selfclr-llp": ("#cc79a7", "D"),
    "tabllp-bdc": ("#e69f00", "P"),
    "tabllp-self": ("#56b4e9", "v"),
    "tabllp-dec": ("#882255", "X"),
    "tabllp-pse": ("#8c6239", "p"),
    "bag-soft-label-gbdt": ("#332288", "h"),
    "bag-soft-label-linear": ("#44aa99", "<"),
    "bag-mean-linear": ("#999933", ">"),
    "bag-gp-gbdt": ("#c1121f", "H"),
    "bag-gp": ("#6a0dad", (6, 1, 0)),
    "em-gbdt": ("#3d5a40", (4, 1, 45)),
    "count-gbdt": ("#7a8ba8", "8"),
    "bag-share": ("#bdb76b", "_"),
    "count-loss": ("#1b4965", (5, 1, 0)),
    "interpolated": ("#b56576", (3, 0, 90)),
    "count-linear": ("#2a6f97", (5, 1, 36)),
    "mean-map": ("#7f4f24", (3, 1, 0)),
    "laplacian-mean-map": ("#936639", (3, 1, 90)),
    "alternating-mean-map": ("#a68a64", (3, 1, 180)),
    "inv-cal": ("#5a189a", (4, 1, 0)),
    "prop-svm": ("#9d4edd", (4, 1, 22)),
    "cluster-shares": ("#588157", (6, 0, 0)),
    "count-bayes": ("#bc4749", (6, 0, 30)),
    "bag-soft-label-knn": ("#52796f", (5, 0, 36)),
    "bag-forest": ("#386641", (8, 1, 0)),
}
"""Colour and marker of the methods in this repository."""

_OTHER_COLOURS = ("#117733", "#cc3311", "#4477aa", "#aa4499", "#b8860b", "#225555")
_OTHER_MARKERS: tuple[Marker, ...] = ((4, 1, 45), (3, 1, 0), (6, 1, 0), (3, 1, 180), "8", "H")


def method_style(method: str, role: str = "") -> Style:
    """Return the style of a method. That of an unknown method depends on the hash of its name."""
    first, second, *_ = hashlib.sha256(method.encode("utf-8", "replace")).digest()
    others = _OTHER_COLOURS[first % len(_OTHER_COLOURS)], _OTHER_MARKERS[second % len(_OTHER_MARKERS)]
    return Style(*METHODS.get(method, others), dashed=bool(role))


def entry_styles(board: Board, entries: Iterable[int]) -> dict[int, Style]:
    """Return styles by entry. Further entries of the same method are paler."""
    styles: dict[int, Style] = {}
    number: Counter[tuple[str, bool]] = Counter()
    drawn = board.entries.loc[[*entries]].itertuples()
    for entry in sorted(drawn, key=lambda entry: (entry.configuration != "", entry.label)):
        style, pretrained = method_style(entry.method, entry.role), entry.pretraining != "none"
        share = 1 - 0.7 ** min(number[entry.method, pretrained], 3)
        red, green, blue = (part + share * (1 - part) for part in to_rgb(style.colour))
        styles[entry.Index] = replace(style, colour=to_hex((red, green, blue)), hollow=pretrained)
        number[entry.method, pretrained] += 1
    return styles
