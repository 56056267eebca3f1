"""How every plot looks: one colour, marker and line style for each method, wherever and beside whom it is drawn.

The colours are those of Okabe & Ito and of seaborn's `colorblind`, and a few of Tol's `muted`: they are distinct for
the colour-blind, and in grey by marker and line style. Filled markers: not pretrained; hollow ones: pretrained.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.colors import to_hex, to_rgb

from llpbench.report.boards import Contender, Row

WIDTH = 7.0
"""inches, of every figure: the text width of a page"""

FONT_SIZE = 8.0
"""points: the smallest text of every figure"""

GREY = "0.72"
"""of what stands in the background"""

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
    "hatch.color": "0.75",
    "hatch.linewidth": 0.5,
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
"""on top of matplotlib's own defaults"""

LineStyle = str | tuple[float, tuple[float, ...]]
Marker = str | tuple[int, int, float]

_LONG: LineStyle = (0, (7, 1.5))
_DASH_DOT: LineStyle = (0, (5, 1.2, 1, 1.2))
_DASH_DOT_DOT: LineStyle = (0, (5, 1.2, 1, 1.2, 1, 1.2))
_DOTTED: LineStyle = (0, (2.5, 1, 1, 1))
_CEILING: LineStyle = (0, (3.5, 2))
_FLOOR: LineStyle = (0, (1, 1.2))


@dataclass(frozen=True)
class Style:
    """How a row is drawn."""

    colour: str
    marker: Marker
    line: LineStyle
    hollow: bool = False

    def points(self) -> dict[str, Any]:
        """Keyword arguments of `Axes.plot` for markers alone."""
        face = "white" if self.hollow else self.colour
        return {
            "color": self.colour,
            "marker": self.marker,
            "linestyle": "none",
            "markerfacecolor": face,
            "markeredgecolor": self.colour,
            "markeredgewidth": 1.2,
        }

    def curve(self) -> dict[str, Any]:
        """Keyword arguments of `Axes.plot` for a line with markers."""
        return {**self.points(), "linestyle": self.line}


METHODS: Mapping[str, Style] = {
    "supervised": Style("#6e6e6e", "*", _CEILING),
    "supervised-gbdt": Style("#a3a3a3", "d", _CEILING),
    "bag-soft-label": Style("#000000", (4, 1, 0), _FLOOR),
    "dllp": Style("#0072b2", "o", "-"),
    "llp-gan": Style("#d55e00", "s", "-"),
    "llp-vat": Style("#009e73", "^", "-"),
    "selfclr-llp": Style("#cc79a7", "D", "-"),
    "tabllp-bdc": Style("#e69f00", "P", _LONG),
    "tabllp-self": Style("#56b4e9", "v", _LONG),
    "tabllp-dec": Style("#882255", "X", _DASH_DOT),
    "tabllp-pse": Style("#8c6239", "p", _DASH_DOT),
    "bag-soft-label-gbdt": Style("#332288", "h", _DASH_DOT_DOT),
    "bag-soft-label-linear": Style("#44aa99", "<", _DASH_DOT_DOT),
    "bag-mean-linear": Style("#999933", ">", _DASH_DOT_DOT),
    "bag-gp-gbdt": Style("#c1121f", "H", "-"),
    "bag-gp": Style("#6a0dad", (6, 1, 0), _DOTTED),
    "em-gbdt": Style("#3d5a40", (4, 1, 45), _DOTTED),
    "count-gbdt": Style("#7a8ba8", "8", _DOTTED),
    "bag-share": Style("#bdb76b", "_", _FLOOR),
    "count-loss": Style("#1b4965", (5, 1, 0), "-"),
    "interpolated": Style("#b56576", (3, 0, 90), "-"),
    "count-linear": Style("#2a6f97", (5, 1, 36), _LONG),
    "mean-map": Style("#7f4f24", (3, 1, 0), _DASH_DOT),
    "laplacian-mean-map": Style("#936639", (3, 1, 90), _DASH_DOT),
    "alternating-mean-map": Style("#a68a64", (3, 1, 180), _DASH_DOT),
    "inv-cal": Style("#5a189a", (4, 1, 0), _DASH_DOT_DOT),
    "prop-svm": Style("#9d4edd", (4, 1, 22), _DASH_DOT_DOT),
    "cluster-shares": Style("#588157", (6, 0, 0), _DOTTED),
    "count-bayes": Style("#bc4749", (6, 0, 30), _DOTTED),
    "bag-soft-label-knn": Style("#52796f", (5, 0, 36), _DASH_DOT_DOT),
    "bag-forest": Style("#386641", (8, 1, 0), _DOTTED),
}
"""the methods that come with llpbench"""

_OTHER_COLOURS = ("#117733", "#cc3311", "#4477aa", "#aa4499", "#b8860b", "#225555")
_OTHER_MARKERS: tuple[Marker, ...] = ((4, 1, 45), (3, 1, 0), (6, 1, 0), (3, 1, 180), "8", "H")
_OTHER_LINES: tuple[LineStyle, ...] = ("-", _LONG, _DASH_DOT)
_ROLES: Mapping[str, Mapping[str, Any]] = {
    "ceiling": {"colour": "#8a8a8a", "line": _CEILING},
    "floor": {"colour": "#000000", "line": _FLOOR},
}


def method_style(method: str, role: str = "") -> Style:
    """The style of a method, by its name alone: contributed methods get what their name's hash picks."""
    if method in METHODS:
        return METHODS[method]
    first, second, third = hashlib.sha256(method.encode("utf-8", "replace")).digest()[:3]
    style = Style(
        _OTHER_COLOURS[first % len(_OTHER_COLOURS)],
        _OTHER_MARKERS[second % len(_OTHER_MARKERS)],
        _OTHER_LINES[third % len(_OTHER_LINES)],
    )
    return replace(style, **_ROLES[role]) if role in _ROLES else style


def row_styles(rows: Iterable[Row]) -> dict[Contender, Style]:
    """Of rows that are drawn together: the method's own; where several would look alike, the later ones are paler."""
    alike: dict[tuple[str, bool], list[Contender]] = defaultdict(list)
    for contender in sorted(
        (row.contender for row in rows), key=lambda contender: (contender.configuration != "", contender.label)
    ):
        alike[contender.method, contender.pretraining != "none"].append(contender)
    found = {}
    for (method, pretrained), contenders in alike.items():
        for paleness, contender in enumerate(contenders):
            style = method_style(method, contender.role)
            found[contender] = replace(style, colour=_pale(style.colour, paleness), hollow=pretrained)
    return found


def _pale(colour: str, steps: int) -> str:
    """Mixed with white; no paler than what can still be seen."""
    share = 1 - 0.7 ** min(steps, 3)
    red, green, blue = to_rgb(colour)
    return to_hex((red + share * (1 - red), green + share * (1 - green), blue + share * (1 - blue)))
