"""From drawings to files, each written as a whole or not at all."""

from __future__ import annotations

import io
import itertools
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D, Bbox

from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import forget_stale, replace_file
from llpbench.report.plots.dark import dark_rules
from llpbench.report.plots.plot import About, Plot
from llpbench.report.plots.style import FONT_SIZE, RC
from llpbench.report.wording import bags_words, clean

DPI = 150

_FORMATS = (".png", ".svg", ".pdf")
"""of a single plot"""

_CAPTION_LINE = 0.165
"""inches"""

_TAG = re.compile(r"<[^<>]+>")
_NUMBERED = re.compile(r' id="[\w.]+_\d+"')
_BETWEEN = re.compile(r">\s+<")
_DIGITS = re.compile(r"(\.\d\d)\d+")


@dataclass(frozen=True)
class Drawing:
    """A plot that has not been written."""

    about: About
    figure: Figure
    kept: frozenset[str] = frozenset()
    """colours that mean something, and so stay as they are on a dark ground"""


@dataclass(frozen=True)
class Rendered:
    """A plot as bytes."""

    about: About
    svg: bytes
    png: bytes


Part = Callable[[], Iterable[Drawing]]
"""draws some plots when it is called: none depends on another part's"""


def save_parts(parts: Sequence[Part], out: Path) -> list[Plot]:
    """Write the drawings of all parts, which are drawn side by side where there are processors for it.

    Raises `LLPBenchError` if `out` cannot be written.
    """
    plots: list[Plot] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _our_look():
            for each in _rendered(parts):
                about = replace(each.about, name=_untaken(each.about.name, [plot.name for plot in plots]))
                svg, png = (out / f"{about.name}{suffix}" for suffix in (".svg", ".png"))
                replace_file(png, each.png)
                replace_file(svg, each.svg)
                plots.append(Plot(**vars(about), svg=svg, png=png))
        forget_stale(out, [path.name for plot in plots for path in (plot.svg, plot.png)])
    except OSError as error:
        raise LLPBenchError(
            f"plots cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
    return plots


def _untaken(name: str, taken: Collection[str]) -> str:
    """The name itself, or with a number: baggings or datasets whose names differ in signs alone would share a file."""
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def _rendered(parts: Sequence[Part]) -> Iterator[Rendered]:
    workers = min(_processors(), len(parts))
    if workers < 2:
        for part in parts:
            yield from _render(part)
        return
    _FORKED[:] = parts  # a fork sees them: boards are too large to be sent
    try:
        with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
            for found in pool.map(_render_forked, range(len(parts))):
                yield from found
    finally:
        _FORKED.clear()


_FORKED: list[Part] = []


def _render_forked(place: int) -> list[Rendered]:
    return [*_render(_FORKED[place])]


def _processors() -> int:
    """That may draw: one where a process cannot be forked, or holds threads of a library that does not survive it."""
    if sys.platform != "linux" or {"torch", "ray"} & sys.modules.keys():
        return 1
    return len(os.sched_getaffinity(0))


def _render(part: Part) -> Iterator[Rendered]:
    taken: list[str] = []
    for drawing in part():
        about = replace(drawing.about, name=_untaken(drawing.about.name, taken))
        taken.append(about.name)
        _entitle(drawing.figure, about)
        png = _png(drawing.figure)
        drawing.figure.set_layout_engine("none")  # both files have the layout that the first has found
        yield Rendered(about, _svg(drawing.figure, about, drawing.kept), png)


def _entitle(figure: Figure, about: About) -> None:
    """What a picture must say that is passed on without its page: title, criterion, bagging, dataset and protocol."""
    facts = [
        _chosen_by(about),
        clean(bags_words(about.bagging)) if about.bagging else "",
        clean(about.dataset or ""),
        f"bags of {about.bag_size}" if about.bag_size and str(about.bag_size) not in about.title else "",
        about.protocol,
    ]
    lines = textwrap.wrap(" · ".join(fact for fact in facts if fact), 112, max_lines=2, placeholder=" …")
    lines += textwrap.wrap(clean(about.note), 112)
    figure.set_figheight(figure.get_figheight() + 0.16 * (1 + len(lines)))
    figure.suptitle("\n".join([about.title, *lines]), x=0.01, ha="left", fontsize=FONT_SIZE + 0.5)


def _chosen_by(about: About) -> str:
    """What the criterion was for: of searches it is what is measured."""
    if about.criterion is None:
        return ""
    title = CRITERIA[about.criterion].title
    return title if about.kind in ("search-history", "search-importance") else f"epochs chosen by {title}"


def captioned(figure: Figure, about: About) -> None:
    """Title, facts and caption as part of a picture that leaves its page. Its layout is final then."""
    _entitle(figure, about)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    lines = textwrap.wrap(clean(about.caption), 118, break_on_hyphens=False)
    height = figure.get_figheight() + _CAPTION_LINE * (len(lines) + 1)
    below = _CAPTION_LINE * (len(lines) + 0.5) / height
    raised = Affine2D().scale(1, figure.get_figheight() / height).translate(0, 1 - figure.get_figheight() / height)
    figure.set_figheight(height)
    for ax in figure.axes:
        ax.set_position(ax.get_position(original=True).transformed(raised))
    for legend in figure.legends:
        legend.set_bbox_to_anchor(Bbox.unit().transformed(raised), transform=figure.transFigure)
    for title in figure.texts:
        title.set_y(raised.transform(title.get_position())[1])
    figure.text(0.01, below, "\n".join(lines), va="top", color="0.35")


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
        warnings.filterwarnings(
            "ignore", message=r".*multi-threaded, use of fork"
        )  # of numpy's threads, which survive it
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield


# `savefig` draws every figure once more than it writes it, to find its layout, even where that is final


def _png(figure: Figure) -> bytes:
    """Its layout is found while it is drawn."""
    file = io.BytesIO()
    figure.set_dpi(DPI)
    FigureCanvasAgg(figure).print_png(file)
    return file.getvalue()


def _svg(figure: Figure, about: About, kept: Collection[str]) -> bytes:
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": about.name}):  # ids of two plots must not meet in one page
        metadata = {"Title": about.title, "Creator": "llpbench", "Date": None}
        FigureCanvasSVG(figure).print_svg(file, metadata=metadata)
    text = _TAG.sub(_compact, _BETWEEN.sub(">\n<", file.getvalue().decode("utf-8")))
    return text.replace("</style>", f"{dark_rules(text, kept)}</style>", 1).encode("utf-8")


def _compact(tag: re.Match[str]) -> str:
    """A tag with no more than hundredths of a point, which are enough for any eye, and no id that nothing refers to.

    Files are half as large, and several can stand in one page, where an id may occur once.
    """
    return _NUMBERED.sub("", _DIGITS.sub(r"\1", tag[0])).replace(" \nL ", "L")
