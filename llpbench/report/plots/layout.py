"""Look and layout of figures: settings of matplotlib, colours, names, panels, legends; and figures as values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llpbench.report import wording as words
from llpbench.report.boards import Board, entry_label

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
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": FONT_SIZE + 0.5,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so texts are measured alike everywhere
    "font.size": FONT_SIZE,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "path.simplify_threshold": 0.5,
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may contain dollar signs
    "xtick.color": "0.3",
    "xtick.labelcolor": "black",
    "xtick.major.width": 0.6,
    "ytick.color": "0.3",
    "ytick.labelcolor": "black",
    "ytick.major.width": 0.6,
}
"""Differences from matplotlib's defaults."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A drawn plot without a file."""

    kind: str
    name: str
    """name of its files, without suffix"""
    title: str
    """main message, as a sentence"""
    setting: str
    """runs that are shown"""
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Plot:
    """A written plot."""

    name: str
    """unique name; its anchor on the page is `plot-<name>`"""
    title: str
    caption: str
    svg: str


LONGEST = 40
"""Characters of a name in a plot."""

MOST_MARKS = 7
"""Entries in one panel."""

_CHARACTER = 0.067
"""Mean width of a character in inches."""

_SEVERAL_CLASSES = "; macro one-versus-rest where classes are more than two"

_TEXT = re.compile(r'[\w.]+="([^"]*)"')
"""Hyperparameter whose value is a text."""


def shown(name: str, longest: int = LONGEST) -> str:
    """Return a name on one line. The middle of a long one is dropped."""
    name, end = words.clean(name) or words.NOTHING, longest // 3
    name = name if len(name) <= longest else f"{name[: longest - end - 1].rstrip()}…{name[-end:].lstrip()}"
    return f" {name}" if name.startswith("_") else name  # legends skip names that begin with an underscore


def labels(board: Board, entries: Iterable[int] | None = None, longest: int = LONGEST) -> dict[int, str]:
    """Return distinct labels by entry, without encoders and names of hyperparameters where these are not needed."""
    places = [*board.entries.index] if entries is None else [*entries]
    named = board.entries.loc[places]
    short = [*map(entry_label, named["method"], [None] * len(named), named["pretraining"], named["configuration"])]
    needs_encoder = named["encoder"].nunique() > 1 or len(set(short)) < len(short)
    names = named["label"].tolist() if needs_encoder else short
    brief = [_TEXT.sub(r"\1", name) for name in names]
    is_distinct = len(set(brief)) == len(set(names))
    cut = [shown(name, longest) for name in (brief if is_distinct else names)]
    numbered = [f"{name} ({cut[:n].count(name) + 1})" if cut.count(name) > 1 else name for n, name in enumerate(cut)]
    return dict(zip(places, numbered, strict=True))


def prominent(board: Board, among: Iterable[int], most: int) -> list[int]:
    """Return the most interesting entries: the leader, the best network, a floor, then the next best.

    Entries are in the order of the board, without tuned ones. `among`: entries that can be drawn.
    """
    candidates = [n for n in among if not board.entries.at[n, "is_tuned"]]
    ranked = [n for n in board.ranked if n in candidates] or candidates
    floors = [n for n in candidates if board.entries.at[n, "role"] == "floor"]
    networks = [n for n in board.networks if n in candidates]
    return sorted([*dict.fromkeys([*ranked[:1], *networks[:1], *floors[:1], *ranked, *candidates])][:most])


class _Panels(NamedTuple):
    """Figure of equal panels in even rows."""

    figure: Figure
    axes: list[Axes]
    across: int
    """number of panels in a row"""

    def label(self, x: str, y: str) -> None:
        """Name the x axis below the lowest panels, and the y axis left of the first ones."""
        for ax in self.axes[-self.across :]:
            ax.set_xlabel(x)
        for ax in self.axes[:: self.across]:
            ax.set_ylabel(y)


def panels(number: int, *, height: float, below: float = 0.0, most_across: int = 2, share_y: bool = False) -> _Panels:
    """Return `number` panels in rows of at most `most_across`.

    A panel has `height` inches. The figure has `below` additional inches.
    """
    across = math.ceil(number / math.ceil(number / most_across))
    down = math.ceil(number / across)
    figure = Figure(figsize=(WIDTH, height * down + below))
    grid = figure.subplots(down, across, squeeze=False, sharey=share_y).ravel()
    for unused in grid[number:]:
        unused.set_visible(False)
    return _Panels(figure, list(grid[:number]), across)


def named_lines(names: Sequence[str]) -> tuple[Figure, Axes]:
    """Return a figure with a line for each name, from top to bottom."""
    figure = Figure(figsize=(WIDTH, 0.6 + 0.21 * len(names)))
    ax = figure.subplots()
    ax.set_yticks(range(len(names)), list(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    return figure, ax


def legend(figure: Figure) -> None:
    """Name the lines and marks of all panels once, below them."""
    marks = {str(mark.get_label()): mark for ax in figure.axes for mark in ax.lines}
    marks = {name: mark for name, mark in marks.items() if not name.startswith("_")}
    across = min(len(marks), int(WIDTH / (_CHARACTER * max(map(len, marks)) + 0.5)))
    figure.set_figheight(figure.get_figheight() + 0.2 * math.ceil(len(marks) / across))
    figure.legend([*marks.values()], [*marks], loc="outside lower center", ncols=across)


def metric_text(board: Board) -> str:
    """Return the metric for an axis: `test AUC × 100`."""
    return f"test {board.metric.title}{' × 100' if board.metric.percent else ''}"


def of_board(board: Board, name: str, kind: str, figure: Figure, **facts: Any) -> Drawing:
    """Return the plot of a board. `facts` are for its title and caption in `templates/captions.j2`."""
    epochs = f"epochs chosen by {board.criterion.title}, {words.protocol_text(board.protocol)}"
    setting = f"{words.bags_words(board.bagging)}; {epochs if board.protocol else 'methods without epochs'}"
    has_several = (board.tasks["classes"].fillna(2) > 2).any()
    title, caption = (words.caption(f"{part}_{kind.replace('-', '_')}", board, **facts) for part in ("title", "plot"))
    return Drawing(
        kind=kind,
        name=f"{kind}-{name}",
        title=title,
        setting=f"{setting}{_SEVERAL_CLASSES if has_several else ''}",
        caption=caption,
        figure=figure,
    )
