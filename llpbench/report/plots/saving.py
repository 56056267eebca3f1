"""Files of plots, each written completely or not at all."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from llpbench.core.errors import LLPBenchError
from llpbench.core.files import forget_stale, replace_file
from llpbench.report.plots.layout import FONT_SIZE, RC, WIDTH, Drawing, Plot
from llpbench.report.wording import clean

_DPI = 150

_SUFFIXES = (".png", ".svg", ".pdf")
"""Suffixes of a single plot."""

_DARK = "@media (prefers-color-scheme:dark){svg{filter:invert(0.9) hue-rotate(180deg)}}"
"""Inverts brightness and keeps hues."""

_TAG = re.compile(r"<[^<>]+>")
_NUMBERED_ID = re.compile(r' id="[\w.]+_\d+"')
_BETWEEN_TAGS = re.compile(r">\s+<")
_DECIMALS = re.compile(r"(\.\d\d)\d+")
_NO_ROTATION = re.compile(r' transform="rotate\(-?0 [^"]*"')
_ID = re.compile(r"""( id="|"#|url\(#)([\w.]+)""")
_STYLE = re.compile(r' style="([^"]*)"')


def save(drawings: Iterable[Drawing], out: Path) -> list[Plot]:
    """Write drawings as SVG. Raises `LLPBenchError` if `out` cannot be written."""
    plots: list[Plot] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        with default_look():
            for drawing in drawings:
                _add_title(drawing)
                plots.append(Plot(drawing.name, drawing.title, drawing.caption, _svg(drawing)))
                replace_file(out / f"{drawing.name}.svg", plots[-1].svg)
        forget_stale(out, [f"{plot.name}.svg" for plot in plots])
    except OSError as error:
        raise LLPBenchError(
            f"plots cannot be written into {str(out)!r}: {error.strerror or error}. Choose another --out."
        ) from error
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


def _svg(drawing: Drawing) -> str:
    """Return the figure as SVG. Unlike `savefig`, this draws it once instead of twice."""
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": drawing.name}):  # makes ids reproducible
        metadata = {"Title": drawing.title, "Creator": "llpbench", "Date": None}
        FigureCanvasSVG(drawing.figure).print_svg(file, metadata=metadata)
    drawing.figure.set_layout_engine("none")
    return compacted(file.getvalue().decode("utf-8"))


def compacted(svg: str) -> str:
    """Return the same picture with short ids, classes instead of repeated styles, and two decimals."""
    text = _TAG.sub(_shortened, _BETWEEN_TAGS.sub(">\n<", svg)).replace("<g/>\n", "")
    classes: dict[str, str] = {}
    ids: dict[str, str] = {}

    def as_class(style: re.Match[str]) -> str:
        return f' class="{classes.setdefault(style[1], f"c{len(classes)}")}"'

    def renamed(tag: re.Match[str]) -> str:
        text = _ID.sub(lambda match: f"{match[1]}{ids.setdefault(match[2], f'i{len(ids)}')}", tag[0])
        return _STYLE.sub(as_class, text)

    text = _TAG.sub(renamed, _without_empty_groups(text))
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    return text.replace("</style>", f"{rules}{_DARK}</style>", 1)


def _shortened(tag: re.Match[str]) -> str:
    """Return a tag with two decimals and without ids that nothing refers to."""
    return _NO_ROTATION.sub("", _NUMBERED_ID.sub("", _DECIMALS.sub(r"\1", tag[0]))).replace(" \nL ", "L")


def _without_empty_groups(svg: str) -> str:
    """Return the picture without groups that have no attribute."""
    lines: list[str] = []
    has_attributes: list[bool] = []
    for line in svg.split("\n"):
        if line.startswith("<g") and not line.endswith("/>"):
            has_attributes.append(line != "<g>")
            lines += [line] * has_attributes[-1]
        elif line == "</g>":
            lines += [line] * has_attributes.pop()
        else:
            lines.append(line)
    return "\n".join(lines)
