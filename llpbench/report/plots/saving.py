"""From drawings to files, each written as a whole or not at all."""

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
from llpbench.report.plots.style import FONT_SIZE, RC
from llpbench.report.plots.svg import compacted
from llpbench.report.wording import clean

DPI = 150

_FORMATS = (".png", ".svg", ".pdf")
"""of a single plot"""


def save(drawings: Iterable[Drawing], out: Path, *, png: bool = False) -> list[Plot]:
    """Write drawings as SVG, and with `png` as PNG, too. Raises `LLPBenchError` if `out` cannot be written."""
    plots: list[Plot] = []
    files: list[str] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _our_look():
            for drawing in drawings:
                name = _untaken(drawing.name, [plot.name for plot in plots])
                _entitle(drawing)
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


def _untaken(name: str, taken: Collection[str]) -> str:
    """The name itself, or with a number: baggings or datasets whose names differ in signs alone would share a file."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def _entitle(drawing: Drawing) -> None:
    """Write above a figure what it shows and which runs it is made from, since figures travel without their page."""
    figure = drawing.figure
    title = textwrap.wrap(clean(drawing.title), 88, max_lines=2, placeholder=" …")
    lines = textwrap.wrap(clean(drawing.setting), 112, max_lines=2, placeholder=" …")
    height = figure.get_figheight() + 0.16 * (len(title) + len(lines)) + 0.1
    figure.set_figheight(height)
    figure.suptitle("\n".join([*title, *[""] * len(lines)]), x=0.01, ha="left", fontsize=FONT_SIZE + 1, weight="bold")
    below = 1 - (0.08 + 0.16 * len(title)) / height
    figure.text(0.01, below, "\n".join(lines), color="0.35", va="top").set_in_layout(False)


def captioned(drawing: Drawing) -> Figure:
    """Return a figure with title, setting and caption, as a picture that leaves its page."""
    _entitle(drawing)
    lines = textwrap.wrap(clean(drawing.caption), 118, break_on_hyphens=False)
    drawing.figure.set_figheight(drawing.figure.get_figheight() + 0.165 * (len(lines) + 1))
    drawing.figure.supxlabel("\n".join(lines), x=0.01, ha="left", color="0.35", fontsize=FONT_SIZE)
    return drawing.figure


def check_suffix(path: Path) -> None:
    """Raises `LLPBenchError` if a single plot cannot be written in this format."""
    if path.suffix not in _FORMATS:
        raise LLPBenchError(f"the name of a plot must end in {' or '.join(_FORMATS)}, got {str(path)!r}.")


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Write a single figure that is no part of a report. Raises `LLPBenchError` if it cannot be."""
    check_suffix(path)
    file = io.BytesIO()
    with _our_look():
        draw().savefig(file, format=path.suffix[1:], dpi=DPI)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, file.getvalue())
    except OSError as error:
        raise LLPBenchError(
            f"plot {str(path)!r} cannot be written: {error.strerror or error}. Choose another --out."
        ) from error


@contextmanager
def _our_look() -> Iterator[None]:
    """Matplotlib's defaults and `RC`, whatever the user's own settings are; these are back afterwards."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        # a character that the font lacks is shown as a box, and in an SVG with one of the reader's fonts
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield


# `savefig` draws every figure once more than it writes it, to find its layout, which is found here while it is drawn


def _png(figure: Figure) -> bytes:
    """With the layout that the SVG has."""
    file = io.BytesIO()
    figure.set_dpi(DPI)
    FigureCanvasAgg(figure).print_png(file)
    return file.getvalue()


def _svg(drawing: Drawing, name: str) -> str:
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):  # without one, ids are others each time
        metadata = {"Title": drawing.title, "Creator": "llpbench", "Date": None}
        FigureCanvasSVG(drawing.figure).print_svg(file, metadata=metadata)
    drawing.figure.set_layout_engine("none")
    return compacted(file.getvalue().decode("utf-8"))
