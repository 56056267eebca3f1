"""What several plots are made of: labels, legends, panels, the rows worth a line, and the words that recur."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board, Contender, Row
from llpbench.report.plots.plot import About, Kind
from llpbench.report.plots.style import WIDTH, Style

LONGEST = 40
"""characters of a shown name"""

_TEXT = re.compile(r'[\w.]+="([^"]*)"')
"""a setting that is a text"""

_CHARACTER = 0.067
"""inches, the mean width of a character of the smallest text"""

_LINE = 0.175
"""inches, a line of a legend"""


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


def name_lines(ax: Axes, names: Sequence[str]) -> None:
    """Name the lines of a figure from top to bottom."""
    ax.set_yticks(range(len(names)), list(names))
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def metric_text(board: Board) -> str:
    """`test AUC × 100`."""
    return f"test {board.metric.title}{' × 100' if board.metric.percent else ''}"


def about(board: Board, kind: Kind, name: str, title: str, *caption: str, note: str = "") -> About:
    """The words of a plot of a board, whose setting ends its caption."""
    return About(
        kind=kind,
        name=f"{kind}-{name}",
        title=title,
        caption=sentences(*caption, setting(board)),
        bagging=board.bagging,
        criterion=board.criterion.name,
        protocol=words.protocol_text(board.protocol),
        note=note,
    )


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
