"""Shared parts of plots: labels, panels, important rows, legends, and the words of a plot of a board."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llpbench.report import wording as words
from llpbench.report.boards import Board
from llpbench.report.plots.plot import Drawing
from llpbench.report.plots.style import WIDTH

LONGEST = 40
"""characters of a shown name"""

MOST_MARKS = 7
"""of a panel"""

CHARACTER = 0.067
"""inches, the mean width of a character"""

SEVERAL_CLASSES = "; macro one-versus-rest where classes are more than two"

_TEXT = re.compile(r'[\w.]+="([^"]*)"')
"""a setting that is a text"""


def shown(name: str, longest: int = LONGEST) -> str:
    """A name from outside as a plot shows it: on one line, the middle of a long one left out."""
    name, end = words.clean(name) or words.NOTHING, longest // 3
    name = name if len(name) <= longest else f"{name[: longest - end - 1].rstrip()}…{name[-end:].lstrip()}"
    return f" {name}" if name.startswith("_") else name  # legends leave out what begins with an underscore


def labels(board: Board, rows: Iterable[int] | None = None, longest: int = LONGEST) -> dict[int, str]:
    """Distinct labels by row, short where possible: no encoder, and only the text of text settings."""
    places = [*range(len(board.rows))] if rows is None else [*rows]
    contenders = [board.rows[place].contender for place in places]
    short = {contender: contender._replace(encoder=None).label for contender in contenders}
    encoders = {contender.encoder for contender in contenders if contender.encoder}
    needed = len(encoders) > 1 or len(set(short.values())) < len(contenders)
    names = [contender.label if needed else short[contender] for contender in contenders]
    brief = [_TEXT.sub(r"\1", name) for name in names]
    apart = len(set(brief)) == len(set(names))
    cut = [shown(name, longest) for name in (brief if apart else names)]
    numbered = [f"{name} ({cut[:n].count(name) + 1})" if cut.count(name) > 1 else name for n, name in enumerate(cut)]
    return dict(zip(places, numbered, strict=True))


def prominent(board: Board, among: Iterable[int] | None = None, most: int = MOST_MARKS) -> list[int]:
    """Places of the rows that readers look for: the leader, a ceiling, a floor, the best network, then the next best.

    In the order of the board, without tuned rows. `among`: which ones can be drawn; default all.
    """
    able = [place for place, row in enumerate(board.rows) if not row.contender.tuned]
    able = able if among is None else [place for place in among if place in able]
    ranked = [place for place in board.ranked if place in able] or able
    marks = [[place for place in able if board.rows[place].mark == mark] for mark in ("ceiling", "floor")]
    networks = [place for place in ranked if board.rows[place].contender.kind == "neural"]
    networks = [place for place in networks if not board.rows[place].mark]
    first = (*ranked[:1], *marks[0][:1], *marks[1][:1], *networks[:1])
    return sorted([*dict.fromkeys([*first, *ranked, *able])][:most])


def balanced(number: int, most: int = 3) -> int:
    """How many of some panels stand in a row of at most `most`, so that the rows are as even as can be."""
    return math.ceil(number / math.ceil(number / most))


def panels(
    number: int, *, across: int, height: float, below: float = 0.0, share_y: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure of `number` equal panels in rows of at most `across`, each `height` inches, with `below` inches more."""
    across = min(across, number)
    down = math.ceil(number / across)
    figure = Figure(figsize=(WIDTH, height * down + below))
    grid = figure.subplots(down, across, squeeze=False, sharey=share_y).ravel()
    for empty in grid[number:]:
        empty.set_visible(False)
    return figure, list(grid[:number])


def label_below(axes: Sequence[Axes], across: int, label: str) -> None:
    """Name the x axis under the lowest panel of each column."""
    for ax in axes[-across:]:
        ax.set_xlabel(label)


def name_lines(ax: Axes, names: Sequence[str]) -> None:
    """Name the lines of a figure from top to bottom."""
    ax.set_yticks(range(len(names)), list(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def legend(figure: Figure) -> None:
    """Name the lines and marks of all panels once, below them."""
    marks = {str(mark.get_label()): mark for ax in figure.axes for mark in ax.lines}
    marks = {name: mark for name, mark in marks.items() if not name.startswith("_")}
    across = min(len(marks), int(WIDTH / (CHARACTER * max(map(len, marks)) + 0.5)))
    figure.set_figheight(figure.get_figheight() + 0.2 * math.ceil(len(marks) / across))
    figure.legend([*marks.values()], [*marks], loc="outside lower center", ncols=across)


def metric_text(board: Board) -> str:
    """`test AUC × 100`."""
    return f"test {board.metric.title}{' × 100' if board.metric.percent else ''}"


def of_board(board: Board, name: str, kind: str, figure: Figure, **facts: Any) -> Drawing:
    """Return a plot of a board; `facts` are for its title and its caption in `templates/captions.j2`."""
    epochs = f"epochs chosen by {board.criterion.title}, {words.protocol_text(board.protocol)}"
    setting = f"{words.bags_words(board.bagging)}; {epochs if board.protocol else 'methods without epochs'}"
    several = any((column.classes or 2) > 2 for column in board.columns)
    setting += SEVERAL_CLASSES if several else ""
    title, caption = (words.caption(f"{part}_{kind.replace('-', '_')}", board, **facts) for part in ("title", "plot"))
    return Drawing(
        kind=kind,
        name=f"{kind}-{name}",
        title=title,
        setting=setting,
        caption=caption,
        figure=figure,
        dataset=facts.get("dataset"),
        bag_size=facts.get("bag_size"),
    )
