"""Look of figures, figures as values, and their files, each written completely or not at all."""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import explained_failure, forget_stale, obstacle, replace_file
from llpbench.report.report_table import Plot
from llpbench.report.wording import NOTHING, clean

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

_DPI = 150

_SUFFIXES = (".png", ".svg", ".pdf")
"""Suffixes of a single plot."""

_DARK = "@media (prefers-color-scheme:dark){svg{filter:invert(0.9) hue-rotate(180deg)}}"
"""Inverts brightness and keeps hues."""

_TAG = re.compile(r"<[^<>]+>")
_EXCESS = re.compile(r'(?<=\.\d\d)\d+| id="[\w.]+_\d+"| \n(?=L )')
"""Further decimals, ids that nothing refers to, and breaks of paths in a tag."""
_BETWEEN_TAGS = re.compile(r">\s+<")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A drawn plot, which a notebook shows by itself."""

    name: str
    """name of its files, without suffix"""
    title: str
    """main message, as a sentence"""
    setting: str
    """runs that are shown"""
    caption: str
    figure: Figure

    def __repr__(self) -> str:
        return f"<llpbench plot: {self.title}>"

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.figure.savefig(file, format="png", dpi=110)
        return file.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plot as PNG, SVG or PDF, by the suffix of `path`."""
        save_figure(lambda: self.figure, Path(path))

    @staticmethod
    def captioned(drawings: Iterator[Drawing]) -> Drawing | None:
        """Return the first drawing, with title, setting and caption in its figure; None if there is none."""
        with _default_look():
            if (drawing := next(drawings, None)) is not None:
                _add_title(drawing)
                add_caption(drawing.figure, drawing.caption)
            return drawing


LONGEST = 40
"""Characters of a name in a plot."""


def shown(name: str, longest: int = LONGEST) -> str:
    """Return a name on one line. The middle of a long one is dropped."""
    name, end = clean(name) or NOTHING, longest // 3
    name = name if len(name) <= longest else f"{name[: longest - end - 1].rstrip()}…{name[-end:].lstrip()}"
    return f" {name}" if name.startswith("_") else name  # legends skip names that begin with an underscore


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


def panels(number: int, *, height: float, below: float = 0.0, share_y: bool = False) -> _Panels:
    """Return `number` panels in rows of at most two.

    A panel has `height` inches. The figure has `below` additional inches.
    """
    across = math.ceil(number / math.ceil(number / 2))
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


def save(drawings: Iterable[Drawing], out: Path) -> list[Plot]:
    """Write drawings as SVG. Raises `LLPBenchError` if `out` cannot be written."""
    plots: list[Plot] = []
    with explained_failure(f"plots cannot be written into {str(out)!r}"):
        out.mkdir(parents=True, exist_ok=True)
        with _default_look():
            for drawing in drawings:
                _add_title(drawing)
                size = (round(72 * inches) for inches in drawing.figure.get_size_inches())
                plots.append(Plot(drawing.name, drawing.title, drawing.caption, _svg(drawing), *size))
                replace_file(out / f"{drawing.name}.svg", plots[-1].svg)
        forget_stale(out, [f"{plot.name}.svg" for plot in plots])
    return plots


def _add_title(drawing: Drawing) -> None:
    """Write title and setting above a figure, which may be used without its page."""
    figure = drawing.figure
    title = _wrapped(drawing.title, figure, 56)
    lines = _wrapped(drawing.setting, figure, 70)
    height = figure.get_figheight() + 0.16 * (len(title) + len(lines)) + 0.1
    figure.set_figheight(height)
    figure.suptitle("\n".join([*title, *[""] * len(lines)]), x=0.01, ha="left", fontsize=FONT_SIZE + 1, weight="bold")
    below = 1 - (0.08 + 0.16 * len(title)) / height
    figure.text(0.01, below, "\n".join(lines), color="0.35", va="top").set_in_layout(False)


def add_caption(figure: Figure, text: str) -> None:
    """Write a text below a figure, in as many lines as it needs."""
    lines = _wrapped(text, figure, 74, most=None)
    figure.set_figheight(figure.get_figheight() + 0.165 * (len(lines) + 1))
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", color="0.35", fontsize=FONT_SIZE)


def _wrapped(text: str, figure: Figure, characters: int, most: int | None = 3) -> list[str]:
    """Return the lines of a text above or below a figure. `characters`: those of a line in a figure of usual width."""
    width = int(characters * figure.get_figwidth() / WIDTH)
    return textwrap.wrap(clean(text), width, max_lines=most, placeholder=" …", break_on_hyphens=False)


def require_plot(path: Path, flag: str = "--out") -> None:
    """Raise `LLPBenchError` if a plot cannot be written to a path, before minutes of work."""
    if path.suffix not in _SUFFIXES:
        raise LLPBenchError(f"the name of a plot must end in {' or '.join(_SUFFIXES)}, got {str(path)!r}.")
    if why := "it is a folder" if path.is_dir() else obstacle(path):
        raise LLPBenchError(f"plot {str(path)!r} cannot be written: {why}. Choose another {flag}.")


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Write a single figure that is not part of a report. Raises `LLPBenchError` if this fails."""
    require_plot(path)
    file = io.BytesIO()
    with _default_look():
        draw().savefig(file, format=path.suffix[1:], dpi=_DPI)
    content = file.getvalue()
    if path.suffix == ".svg":
        content = compacted(content.decode("utf-8")).encode()
    with explained_failure(f"plot {str(path)!r} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)


@contextmanager
def _default_look() -> Iterator[None]:
    """Use matplotlib's defaults and `RC`, and restore the user's settings afterwards."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        # a character that the font lacks is a box in a PNG; an SVG uses a font of the reader
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield


def _svg(drawing: Drawing) -> str:
    """Return the figure as SVG. Unlike `savefig`, this draws it once instead of twice."""
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": drawing.name}):  # makes ids reproducible
        metadata = {"Title": drawing.title, "Creator": "llpbench", "Date": None}
        FigureCanvasSVG(drawing.figure).print_svg(file, metadata=metadata)
    drawing.figure.set_layout_engine("none")
    return compacted(file.getvalue().decode("utf-8"))


def compacted(svg: str) -> str:
    """Return the same picture for bright and dark pages, with two decimals and without unused ids."""
    text = _TAG.sub(lambda tag: _EXCESS.sub("", tag[0]), _BETWEEN_TAGS.sub(">\n<", svg))
    return text.replace("</style>", f"{_DARK}</style>", 1)
