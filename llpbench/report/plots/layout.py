"""What several plots are made of: labels, legends, panels, the rows worth a line, and the words that recur."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from llpbench.report import wording as words
from llpbench.report.boards import Board, Contender, Row
from llpbench.report.plots.style import WIDTH, Style

LONGEST = 32
"""characters of a shown name"""

_WORD = re.compile(r"\b\w+")

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
    """The label of each row, unlike all others, without the encoder where that tells no two rows apart."""
    contenders = [row.contender for row in rows]
    short = {contender: contender._replace(encoder=None).label for contender in contenders}
    encoders = {contender.encoder for contender in contenders if contender.encoder}
    needed = len(encoders) > 1 or len(set(short.values())) < len(contenders)
    names = [contender.label if needed else short[contender] for contender in contenders]
    return dict(zip(contenders, shown_apart(names, longest), strict=True))


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


def label_points(ax: Axes, points: Sequence[tuple[float, float, str]], inches: tuple[float, float]) -> None:
    """Name points beside them: where nothing stands yet, and with a line to those whose names stand further off.

    `points`: x, y and name; limits of the axes must be final. `inches`: about how large the axes are.
    """
    size = [72 * side for side in inches]
    to_axes = ax.transData + ax.transAxes.inverted()
    at = [tuple(part * side for part, side in zip(to_axes.transform(point[:2]), size, strict=True)) for point in points]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    for (x, y), (*value, name) in sorted(zip(at, points, strict=True), key=lambda pair: (-pair[0][1], pair[0][0])):
        width = 72 * _CHARACTER * len(name)
        boxes = [_box(x, y, dx, dy, width) for dy in _ASIDE for dx in (7.0, -7.0 - width, -width / 2)]
        inside = [box for box in boxes if box[0] >= 0 and box[2] <= size[0] and box[1] >= 0 and box[3] <= size[1]]
        box = next((box for box in inside if not any(map(partial(_meet, box), taken))), (inside or boxes)[0])
        taken.append(box)
        far = abs((box[1] + box[3]) / 2 - y) > 12
        ax.annotate(
            name,
            value,  # type: ignore[arg-type]
            (box[0] - x, (box[1] + box[3]) / 2 - y),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6},
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.5, "shrinkB": 3} if far else None,
        )


_ASIDE = tuple(sign * step for step in (0.0, 9.0, 16.0, 24.0, 34.0, 46.0, 60.0) for sign in (1, -1))
"""points above or below a point that its name may stand"""

Box = tuple[float, float, float, float]


def _box(x: float, y: float, dx: float, dy: float, width: float) -> Box:
    return x + dx, y + dy - 5, x + dx + width, y + dy + 5


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def setting(board: Board) -> str:
    """Board and protocol as a sentence, for captions, and how the sizes of unequal bags are shown."""
    where = f"{words.title(board)}; {words.protocol_text(board.protocol)}."
    return sentences(where, words.bags_note(board))


def sentences(*parts: str) -> str:
    """A caption from sentences, the empty ones left out."""
    return " ".join(part for part in parts if part)
