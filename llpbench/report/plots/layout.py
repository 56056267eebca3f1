"""What several plots are made of: labels, legends, panels, the rows worth a line, and the words that recur."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import hypot
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board, Contender, Row
from llpbench.report.plots.style import FONT_SIZE, WIDTH, Style

LONGEST = 40
"""characters of a shown name"""

_WORD = re.compile(r"\b\w+")
_TEXT = re.compile(r'[\w.]+="([^"]*)"')
"""a setting that is a text"""

_CHARACTER = 0.067
"""inches, the mean width of a character of the smallest text"""

_LINE = 0.175
"""inches, a line of a legend"""


def shown(name: str, longest: int = LONGEST) -> str:
    """A name from outside as a plot shows it: on one line, the middle of a long one left out."""
    name = _cut(words.clean(name) or words.NOTHING, longest)
    return f" {name}" if name.startswith("_") else name  # legends leave out what begins with an underscore


def _cut(name: str, longest: int) -> str:
    end = longest // 3
    return name if len(name) <= longest else f"{name[: longest - end - 1].rstrip()}…{name[-end:].lstrip()}"


def shown_apart(names: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Names as `shown`; those that would look alike are cut where they differ, or are longer, or have a number."""
    whole = [words.clean(name) or words.NOTHING for name in names]
    whole = [f"{name} {n}" if whole.count(name) > 1 else name for n, name in enumerate(whole, start=1)]
    found = [shown(name, longest) for name in whole]
    for room in range(longest, max(map(len, whole), default=0) + 4, 4):
        alike = {label: [n for n, other in enumerate(found) if other == label] for label in found}
        for group in alike.values():
            if len(group) > 1:
                for n, label in zip(group, _cut_apart([whole[n] for n in group], room), strict=True):
                    found[n] = shown(label, room)
    return found


def _cut_apart(names: Sequence[str], longest: int) -> list[str]:
    """How they begin, and then from where they differ: from the beginning of that word, if it is near."""
    begin = longest // 3
    same = len([*itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))])
    near = [word.start() for word in _WORD.finditer(names[0]) if same - begin < word.start() <= same]
    same = near[-1] if near else same
    return [f"{name[:begin]}…{_cut(name[same:], longest - begin - 1)}" if same > begin + 1 else name for name in names]


def labels(rows: Iterable[Row], longest: int = LONGEST) -> dict[Contender, str]:
    """The label of each row, unlike all others, without the encoder where that tells no two rows apart, and of settings
    that are texts the text alone where that tells them apart."""
    contenders = [row.contender for row in rows]
    short = {contender: contender._replace(encoder=None).label for contender in contenders}
    encoders = {contender.encoder for contender in contenders if contender.encoder}
    needed = len(encoders) > 1 or len(set(short.values())) < len(contenders)
    names = [contender.label if needed else short[contender] for contender in contenders]
    brief = [_TEXT.sub(r"\1", name) for name in names]
    apart = len(set(brief)) == len(set(names))
    return dict(zip(contenders, shown_apart(brief if apart else names, longest), strict=True))


def plain_rows(board: Board) -> list[Row]:
    """Rows without pretraining, with the board's usual encoder or none, in board order."""
    usual = usual_encoder(board)
    return [row for row in board.rows if row.contender.pretraining == "none" and row.contender.encoder in (None, usual)]


def usual_encoder(board: Board) -> str | None:
    """`mlp` where there is one, else the board's first; None without encoders."""
    return "mlp" if "mlp" in board.encoders else next(iter(board.encoders), None)


def plain_note(board: Board) -> str:
    """What `plain_rows` leaves out, as a sentence; "" if nothing."""
    if len(plain_rows(board)) == len(board.rows):
        return ""
    usual = usual_encoder(board)
    return f"Without pretraining{f', with the encoder {usual}' if usual and len(board.encoders) > 1 else ''}."


def balanced(number: int, most: int) -> int:
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


def handles(styles: Mapping[Contender, Style], names: Mapping[Contender, str], *, lines: bool = True) -> list[Line2D]:
    """Legend entries of rows, in the order of `names`."""
    return [
        Line2D(
            [],
            [],
            label=name,
            **(styles[contender].curve() if lines else {**styles[contender].points(), "markersize": 6.5}),
        )
        for contender, name in names.items()
    ]


def key(style: Style, name: str) -> Line2D:
    """The legend entry of one line."""
    return Line2D([], [], label=name, **style.curve())


def legend_below(figure: Figure, entries: Sequence[Line2D], *, keys: float = 2.8) -> None:
    """A legend under the panels, in as many columns as fit; its keys are so many letters wide."""
    figure.legend(
        handles=list(entries),
        loc="outside lower center",
        ncols=_legend_columns(entries),
        handlelength=keys,
        columnspacing=1.4,
        labelspacing=0.35,
    )


def legend_height(entries: Sequence[Line2D]) -> float:
    """Inches that `legend_below` takes."""
    return 0.15 + _LINE * math.ceil(len(entries) / _legend_columns(entries))


def _legend_columns(entries: Sequence[Line2D]) -> int:
    longest = max((len(str(entry.get_label())) for entry in entries), default=0)
    fitting = max(1, min(len(entries), int(WIDTH / (0.62 + _CHARACTER * longest))))
    lines = math.ceil(len(entries) / fitting)
    return math.ceil(len(entries) / lines)  # as many as fit, but for a last line that is nearly empty


class NamedPoint(NamedTuple):
    """A point that bears a name."""

    x: float
    y: float
    name: str
    colour: Any


def label_points(ax: Axes, points: Sequence[NamedPoint], inches: tuple[float, float]) -> None:
    """Name points beside them, and with a line to those whose names stand further off.

    A name stands where it covers neither another one nor a point, and where lines cross nothing, as near as can be.
    Limits of the axes must be final. `inches`: about how large the axes are.
    """
    size = [72 * side for side in inches]
    to_axes = ax.transData + ax.transAxes.inverted()
    at = [tuple(part * side for part, side in zip(to_axes.transform(point[:2]), size, strict=True)) for point in points]
    places: list[NamePlace | None] = [None] * len(points)
    order = sorted(range(len(points)), key=lambda number: (-at[number][1], at[number][0]))
    for number in order * _ROUNDS:  # the first are placed again once it is known where the others stand
        others = [place for other, place in enumerate(places) if place is not None and other != number]
        width = text_width(points[number].name)
        found = [
            NamePlace(at[number], (x, at[number][1] + dy - 5, x + width, at[number][1] + dy + 5))
            for dy in _ABOVE
            for x in (at[number][0] + dx for dx in (7.0, -7.0 - width, -width / 2, 22.0, -22.0 - width))
        ]
        inside = [each for each in found if each.box[0] >= 0 and each.box[2] <= size[0]]
        inside = [each for each in inside if each.box[1] >= 0 and each.box[3] <= size[1]]
        places[number] = _best(inside or found, others, at)
    for point, place in zip(points, places, strict=True):
        assert place is not None
        ax.annotate(
            point.name,
            point[:2],
            (place.box[0] - place.at[0], (place.box[1] + place.box[3]) / 2 - place.at[1]),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
            arrowprops={"arrowstyle": "-", "color": point.colour, "linewidth": 0.7, "shrinkB": 3}
            if place.far
            else None,
        )


def text_width(text: str) -> float:
    """Of a line in the size of labels, in points."""
    return float(TextPath((0, 0), text, size=FONT_SIZE).get_extents().width) + 2 if text.strip() else 0.0


_ROUNDS = 3
_ABOVE = tuple(sign * step for step in (0.0, 9.0, 16.0, 24.0, 34.0, 46.0, 60.0, 76.0) for sign in (1, -1))
"""points above or below a point that its name may stand"""

Box = tuple[float, float, float, float]
_MARKER = 5.0
"""half the side of what a point covers, in points"""


class NamePlace(NamedTuple):
    """Where a name stands, in points from the corner of the axes."""

    at: tuple[float, ...]
    """the named point"""
    box: Box

    @property
    def end(self) -> tuple[float, float]:
        """Where a line from the point meets the name."""
        (left, low, right, high), (x, y) = self.box, self.at
        return min(max(x, left), right), min(max(y, low), high)

    @property
    def length(self) -> float:
        """From the point to its name."""
        return hypot(self.end[0] - self.at[0], self.end[1] - self.at[1])

    @property
    def far(self) -> bool:
        """Whether a line is needed to see what is named."""
        return self.length > 10


def _best(places: Sequence[NamePlace], others: Sequence[NamePlace], points: Sequence[tuple[float, ...]]) -> NamePlace:
    """The nearest that covers nothing and whose line crosses nothing; else that covers nothing; else the nearest."""
    markers = [(x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER) for x, y in points]
    nearest = sorted(places, key=lambda place: place.length)
    free = [place for place in nearest if not any(map(partial(_meet, place.box), (*(o.box for o in others), *markers)))]
    return next((place for place in free if not _crosses(place, others, markers)), (free or nearest)[0])


def _crosses(place: NamePlace, others: Sequence[NamePlace], markers: Sequence[Box]) -> bool:
    """Whether the line of a name meets other names, points and lines, or the name stands on a line."""
    lines = [other for other in others if other.far]
    if any(_cuts(other, place.box) or (place.far and _cross(place, other)) for other in lines):
        return True
    boxes = (*(other.box for other in others), *(box for box in markers if not _holds(box, place.at)))
    return place.far and any(_cuts(place, box) for box in boxes)


def _cuts(place: NamePlace, box: Box) -> bool:
    """Whether the line of a name goes through a box."""
    (x, y), (there, above) = place.at, place.end
    return any(_holds(box, (x + (there - x) * step / 16, y + (above - y) * step / 16)) for step in range(17))


def _cross(one: NamePlace, other: NamePlace) -> bool:
    """Whether the lines of two names cross."""

    def side(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> bool:
        return (c[1] - a[1]) * (b[0] - a[0]) > (b[1] - a[1]) * (c[0] - a[0])

    a, b, c, d = one.at, one.end, other.at, other.end
    return side(a, c, d) != side(b, c, d) and side(a, b, c) != side(a, b, d)


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _holds(box: Box, point: Sequence[float]) -> bool:
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def setting(board: Board) -> str:
    """Board and protocol as a sentence, for captions, and how the sizes of unequal bags are shown."""
    where = f"{words.title(board)}; {words.protocol_text(board.protocol)}."
    return sentences(where, words.bags_note(board))


def left_out(number: int, what: str) -> str:
    """How many of something have no room, as a sentence; "" if all have."""
    return f"{plural(number, what)} left out." if number else ""


def sentences(*parts: str) -> str:
    """A caption from sentences, the empty ones left out."""
    return " ".join(part for part in parts if part)
