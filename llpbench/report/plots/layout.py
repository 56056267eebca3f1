"""Shared parts of plots: labels, panels, important rows, and names next to marks."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from llpbench.report import wording as words
from llpbench.report.boards import Board, Contender, Row
from llpbench.report.plots.plot import About, Kind
from llpbench.report.plots.style import WIDTH

LONGEST = 40
"""characters of a shown name"""

MOST_MARKS = 7
"""of a panel"""

CHARACTER = 0.067
"""inches, the mean width of a character"""

LINE = 0.14
"""inches, the height of a line"""

_TEXT = re.compile(r'[\w.]+="([^"]*)"')
"""a setting that is a text"""


def shown(name: str, longest: int = LONGEST) -> str:
    """A name from outside as a plot shows it: on one line, the middle of a long one left out."""
    name, end = words.clean(name) or words.NOTHING, longest // 3
    name = name if len(name) <= longest else f"{name[: longest - end - 1].rstrip()}…{name[-end:].lstrip()}"
    return f" {name}" if name.startswith("_") else name  # legends leave out what begins with an underscore


def labels(rows: Iterable[Row], longest: int = LONGEST) -> dict[Contender, str]:
    """Distinct labels of rows, short where possible: no encoder, and only the text of text settings."""
    contenders = [row.contender for row in rows]
    short = {contender: contender._replace(encoder=None).label for contender in contenders}
    encoders = {contender.encoder for contender in contenders if contender.encoder}
    needed = len(encoders) > 1 or len(set(short.values())) < len(contenders)
    names = [contender.label if needed else short[contender] for contender in contenders]
    brief = [_TEXT.sub(r"\1", name) for name in names]
    apart = len(set(brief)) == len(set(names))
    cut = [shown(name, longest) for name in (brief if apart else names)]
    numbered = [f"{name} ({cut[:n].count(name) + 1})" if cut.count(name) > 1 else name for n, name in enumerate(cut)]
    return dict(zip(contenders, numbered, strict=True))


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


def name_ends(ax: Axes, ends: Sequence[tuple[float, str, str]], height: float, *, room: bool = True) -> None:
    """Names beside the right ends of lines, each (y, name, colour), as far apart as `height` inches of axis ask for.

    `room`: whether room is made for them; else there is some.
    """
    low, high = ax.get_ylim()
    gap = LINE / height * (high - low)
    groups: list[list[tuple[float, str, str]]] = []
    for end in sorted(ends):
        group = [end]
        while groups and _middle(groups[-1]) + gap * (len(groups[-1]) + len(group)) / 2 > _middle(group):
            group = [*groups.pop(), *group]
        groups.append(group)
    for group in groups:
        for place, (_, name, colour) in enumerate(group):
            y = _middle(group) + gap * (place - (len(group) - 1) / 2)
            text = ax.text(1.02, y, name, color=colour, va="center", transform=ax.get_yaxis_transform())
            text.set_in_layout(room)


def _middle(group: Sequence[tuple[float, str, str]]) -> float:
    return math.fsum(y for y, *_ in group) / len(group)


Point = tuple[float, float]


def name_points(
    ax: Axes, points: Sequence[Point], texts: Sequence[tuple[str, str]], size: Point, line: Sequence[Point] = ()
) -> None:
    """Names, each (name, colour), beside points, where they meet neither one another nor a line.

    `size`: of the axes in inches; `line`: corners of level and upright strokes. The x axis is logarithmic.
    """
    (left, right), (low, high) = ((math.log10(x) for x in ax.get_xlim()), ax.get_ylim())

    def place(point: Point) -> Point:
        x, y = point
        return (math.log10(x) - left) / (right - left) * size[0], (y - low) / (high - low) * size[1]

    inches, corners = [place(point) for point in points], [place(point) for point in line]
    taken: list[tuple[float, ...]] = [(x - 0.06, y - 0.06, x + 0.06, y + 0.06) for x, y in inches]
    taken += [(*map(min, a, b), *map(max, a, b)) for a, b in itertools.pairwise(corners)]
    for point, (x, y), (name, colour) in zip(points, inches, texts, strict=True):
        wide = CHARACTER * len(name)
        choices: list[tuple[int, int, str, float, tuple[float, ...]]] = []
        for lift in (0.0, -LINE, LINE, -2 * LINE, 2 * LINE):
            for side, start in (("left", x + 0.1), ("right", x - 0.1 - wide)):
                box = (start, y + lift - LINE / 2, start + wide, y + lift + LINE / 2)
                meets = sum(_meet(box, other) for other in taken) + 2 * (box[0] < 0 or box[2] > size[0] + 0.2)
                choices.append((meets, len(choices), side, lift, box))
        _, _, side, lift, free = min(choices)
        taken.append(free)
        look: dict[str, Any] = {"textcoords": "offset points", "ha": side, "va": "center", "color": colour}
        ax.annotate(name, point, (7 if side == "left" else -7, 72 * lift), **look)


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def metric_text(board: Board) -> str:
    """`test AUC × 100`."""
    return f"test {board.metric.title}{' × 100' if board.metric.percent else ''}"


def about(board: Board, kind: Kind, name: str, title: str, caption: str, **facts: Any) -> About:
    """The words of a plot of a board."""
    epochs = f"epochs chosen by {board.criterion.title}, {words.protocol_text(board.protocol)}"
    setting = f"{words.bags_words(board.bagging)}; {epochs if board.protocol else 'methods without epochs'}"
    several = any((column.classes or 2) > 2 for column in board.columns)
    setting += "; macro one-versus-rest where classes are more than two" if several else ""
    return About(kind=kind, name=f"{kind}-{name}", title=title, setting=setting, caption=caption, **facts)
