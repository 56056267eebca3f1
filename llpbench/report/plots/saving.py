"""From drawings to files, each written as a whole or not at all."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import forget_stale, replace_file
from llpbench.report.plots.plot import About, Plot
from llpbench.report.plots.style import RC

DPI = 150

_FORMATS = (".png", ".svg", ".pdf")
"""of a single plot"""

_TAG = re.compile(r"<[^<>]+>")
_NUMBERED = re.compile(r' id="[\w.]+_\d+"')
_BETWEEN = re.compile(r">\s+<")
_DIGITS = re.compile(r"(\.\d\d)\d+")


@dataclass(frozen=True)
class Drawing:
    """A plot that has not been written."""

    about: About
    figure: Figure


def save_all(drawings: Iterable[Drawing], out: Path) -> list[Plot]:
    """Write each drawing as it comes, so that only one is held at a time.

    Raises `LLPBenchError` if `out` cannot be written.
    """
    plots = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _our_look():
            for drawing in drawings:
                about = drawing.about
                svg, png = (out / f"{about.name}{suffix}" for suffix in (".svg", ".png"))
                replace_file(png, _png(drawing.figure))
                drawing.figure.set_layout_engine("none")  # both files have the layout that the first has found
                replace_file(svg, _svg(drawing.figure, about))
                plots.append(Plot(**vars(about), svg=svg, png=png))
        forget_stale(out, [path.name for plot in plots for path in (plot.svg, plot.png)])
    except OSError as error:
        raise LLPBenchError(
            f"plots cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
    return plots


def check_suffix(path: Path) -> None:
    """Raises `LLPBenchError` if a single plot cannot be written in this format."""
    if path.suffix not in _FORMATS:
        raise LLPBenchError(f"{str(path)!r} is no plot's name. Let it end in {' or '.join(_FORMATS)}.")


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


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()


def _svg(figure: Figure, about: About) -> bytes:
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": about.name}):  # ids of two plots must not meet in one page
        figure.savefig(file, format="svg", metadata={"Title": about.title, "Creator": "llpbench", "Date": None})
    return _TAG.sub(_compact, _BETWEEN.sub(">\n<", file.getvalue().decode("utf-8"))).encode("utf-8")


def _compact(tag: re.Match[str]) -> str:
    """A tag with no more than hundredths of a point, which are enough for any eye, and no id that nothing refers to.

    Files are half as large, and several can stand in one page, where an id may occur once.
    """
    return _NUMBERED.sub("", _DIGITS.sub(r"\1", tag[0])).replace(" \nL ", "L")
