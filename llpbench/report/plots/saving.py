"""Files of plots. Each is written completely or not at all."""

from __future__ import annotations

import io
import itertools
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import forget_stale, replace_file
from llpbench.report.plots.plot import Drawing, Plot
from llpbench.report.plots.style import FONT_SIZE, RC, WIDTH
from llpbench.report.plots.svg import compacted
from llpbench.report.wording import clean

_DPI = 150

_SUFFIXES = (".png", ".svg", ".pdf")
"""Suffixes of a single plot."""


def save(drawings: Iterable[Drawing], out: Path, *, png: bool = False) -> list[Plot]:
    """Write drawings as SVG and, with `png`, also as PNG. Raises `LLPBenchError` if `out` cannot be written."""
    plots: list[Plot] = []
    files: list[str] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with default_look():
            for drawing in drawings:
                name = _unique(drawing.name, [plot.name for plot in plots])
                _add_title(drawing)
                plots.append(Plot(name, drawing.title, drawing.caption, _svg(drawing, name)))
                replace_file(out / f"{name}.svg", plots[-1].svg)
                files.append(f"{name}.svg")
                if png:
                    replace_file(out / f"{name}.png", _png(drawing.figure))
                    files.append(f"{name}.png")
        forget_stale(out, files)
    except OSError as error:
        raise LLPBenchError(
            f"plots cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
    return plots


def _unique(name: str, taken: Collection[str]) -> str:
    """Return a name, with a number if it is taken: names that differ only in punctuation have the same file name."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


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


def _wrapped(text: str, figure: Figure, characters: int, most: int | None = 3) -> list[str]:
    """Return the lines of a text above or below a figure. `characters`: those of a line in a figure of usual width."""
    width = int(characters * figure.get_figwidth() / WIDTH)
    return textwrap.wrap(clean(text), width, max_lines=most, placeholder=" …", break_on_hyphens=False)


def captioned(drawing: Drawing) -> Figure:
    """Return the figure with title, setting and caption."""
    _add_title(drawing)
    lines = _wrapped(drawing.caption, drawing.figure, 74, most=None)
    drawing.figure.set_figheight(drawing.figure.get_figheight() + 0.165 * (len(lines) + 1))
    drawing.figure.supxlabel("\n".join(lines), x=0.01, ha="left", color="0.35", fontsize=FONT_SIZE)
    return drawing.figure


def check_suffix(path: Path) -> None:
    """Raise `LLPBenchError` if a plot cannot be written in this format."""
    if path.suffix not in _SUFFIXES:
        raise LLPBenchError(f"the name of a plot must end in {' or '.join(_SUFFIXES)}, got {str(path)!r}.")


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Write a single figure that is not part of a report. Raises `LLPBenchError` if this fails."""
    check_suffix(path)
    file = io.BytesIO()
    with default_look():
        draw().savefig(file, format=path.suffix[1:], dpi=_DPI)
    content = file.getvalue()
    if path.suffix == ".svg":
        content = compacted(content.decode("utf-8")).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise LLPBenchError(
            f"plot {str(path)!r} cannot be written: {error.strerror or error}. Choose another --out."
        ) from error


@contextmanager
def default_look() -> Iterator[None]:
    """Use matplotlib's defaults and `RC`, and restore the user's settings afterwards."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        # a character that the font lacks is a box in a PNG; an SVG uses a font of the reader
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield


def _png(figure: Figure) -> bytes:
    """Return the figure as PNG, in the layout of its SVG."""
    file = io.BytesIO()
    figure.set_dpi(_DPI)
    FigureCanvasAgg(figure).print_png(file)
    return file.getvalue()


def _svg(drawing: Drawing, name: str) -> str:
    """Return the figure as SVG. Unlike `savefig`, this draws it once instead of twice."""
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):  # makes ids reproducible
        metadata = {"Title": drawing.title, "Creator": "llpbench", "Date": None}
        FigureCanvasSVG(drawing.figure).print_svg(file, metadata=metadata)
    drawing.figure.set_layout_engine("none")
    return compacted(file.getvalue().decode("utf-8"))
