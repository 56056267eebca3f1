"""HTML page of a report: a single file that needs no network.

All numbers, ranks and orders are made in Python and written as HTML, so they are readable without JavaScript. The
script sorts and filters tables, and opens the runs of an entry. A content security policy allows only this script and
this style, and every text of a journal is escaped.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup
from pandas import DataFrame, concat

from llpbench.report import wording as words
from llpbench.report.assembling import Report
from llpbench.report.board_tables import DETAILS, names_of, whole_table
from llpbench.report.boards import Board, Leaderboards
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.overview import Overview
from llpbench.report.page_data import compressed, page_data
from llpbench.report.plots.plot import Plot
from llpbench.report.report_table import ReportTable
from llpbench.report.robustness_ranking import ANCHOR

if TYPE_CHECKING:
    from jinja2 import Template

HIDDEN = "l1"
"""Criterion whose boards are not on the page: L1 chooses nearly the same epochs as mPIoU."""

TABS = {
    "summary": "Overview",
    "leaderboard": "All boards",
    "which": "Which method?",
    ANCHOR: "Robustness",
    "plots": "Figures",
    "reading": "How to read it",
    "origins": "Data",
}

FAMILIES = {"ceiling": "trained on all labels", "control": "trained on validation labels", "floor": "floors"}
"""Families of methods with a role, for the filter of the page."""

_NO_LINKS: Mapping[str, str] = MappingProxyType({})

_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)[a-z]*" height="([\d.]+)[a-z]*"')

_URI_SAFE = " !$'()*+,-./:;=?@[]^_`{|}~"
"""Characters that need no quoting in a data URI; this is shorter than base64."""


@dataclass(frozen=True)
class _PageBoard:
    """A board on the page."""

    board: Board
    name: str
    table: ReportTable
    """its last columns are the tasks of the board"""
    uncounted: frozenset[int]
    """tasks in which no run counts"""
    families: tuple[str, ...]
    """family of each entry's method"""
    incomplete: tuple[bool, ...]
    """whether an entry lacks a run that counts"""
    optional: frozenset[str]
    """headings of columns that are shown on request"""


@dataclass(frozen=True)
class _PageFigure:
    """A plot with its size in pixels, which a browser reserves before the plot is loaded."""

    plot: Plot
    width: int
    height: int


def to_html(
    report: Report,
    overview: Overview,
    *,
    plots: Sequence[Plot] = (),
    links: Mapping[str, str] = _NO_LINKS,
    beside: Mapping[str, str] = _NO_LINKS,
) -> str:
    """Return the page of a report. The first plot is on the first screen.

    `links`: paths of the files `journal`, `standings` and `method NAME`. `beside`: folders of other reports by title.
    """
    leaderboards = report.leaderboards
    shown = [*_page_boards(leaderboards)]
    boards = [board.board for board in shown]
    links = {"journal": "", "standings": "", **links}
    tasks = concat([board.tasks for board in boards]) if boards else DataFrame(columns=["dataset", "bag_size", "bags"])
    by_size = tasks.sort_values("bag_size", key=lambda sizes: sizes.map(lambda size: size or 0), kind="stable")["bags"]
    figures = [_PageFigure(plot, *_pixels(plot.svg)) for plot in plots]
    present = {"which": report.advice, ANCHOR: report.robustness, "plots": figures[1:]}
    return _rendered(
        words=words,
        title=report.title,
        overview=overview,
        beside=beside,
        data=compressed(page_data(boards, links) | {"plots": {plot.name: plot.svg for plot in plots[1:]}}),
        warnings=report.warnings,
        tabs={name: title for name, title in TABS.items() if present.get(name, True)},
        boards=shown,
        families=_distinct(family for board in shown for family in board.families),
        datasets=_distinct(tasks["dataset"]),
        sizes=_distinct(by_size),
        links=links,
        facts=_facts(leaderboards),
        columns=[column.explained(boards[0]) for column in COLUMNS.values()] if boards else [],
        advice=report.advice,
        unlabelled=report.unlabelled,
        figures=figures,
        robustness=report.robustness,
    )


def _rendered(**content: Any) -> str:
    """Return the page with its style and script."""
    folder = files("llpbench.report") / "page"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    style_hash, script_hash = (b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script))
    policy = (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _template().render(style=style, script=script, policy=policy, **content)
    return page.encode("utf-8", "replace").decode("utf-8")  # a journal can contain half a surrogate pair, no file can


@cache
def _template() -> Template:
    """Return the template of the page, which escapes every text and removes control characters."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    def cleaned(value: Any) -> Any:
        return words.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        loader=PackageLoader("llpbench.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=cleaned,
    )
    environment.filters["data_uri"] = lambda svg: f"data:image/svg+xml,{quote(svg, safe=_URI_SAFE)}"
    environment.filters["quoted"] = quote
    return environment.get_template("page.html")


def _pixels(svg: str) -> tuple[int, int]:
    """Return width and height of a picture; a default if it has none."""
    match = _SIZE.search(svg)
    return (round(float(match[1])), round(float(match[2]))) if match else (504, 300)


def _page_boards(leaderboards: Leaderboards) -> Iterator[_PageBoard]:
    """Yield the boards of the page, those without labels first."""
    named = [*zip(leaderboards.boards, names_of(leaderboards.boards), strict=True)]
    named.sort(key=lambda pair: pair[0].criterion.regime == "fine" and pair[0].protocol is not None)
    for board, name in named:
        if board.criterion.name == HIDDEN:
            continue
        table = whole_table(board, name)
        empty = {heading.text for heading, fields in table.columns() if all(field.is_empty for field in fields)}
        further = {column.heading(board.metric.title).text for column in COLUMNS.values() if not column.default}
        kinds = zip(board.entries["role"], board.entries["kind"], strict=True)
        yield _PageBoard(
            board=board,
            name=name,
            table=table,
            uncounted=frozenset({*board.tasks.index} - {*board.counting_tasks}),
            families=tuple(
                FAMILIES.get(role, "neural networks" if kind == "neural" else "without networks")
                for role, kind in kinds
            ),
            optional=frozenset({*DETAILS, *further, *empty}),
            incomplete=tuple(entry not in board.complete and bool(board.ranked) for entry in board.entries.index),
        )


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _facts(leaderboards: Leaderboards) -> dict[str, str]:
    """Return what the numbers of a report depend on."""
    origin = leaderboards.origin
    encoders = sorted({encoder for board in leaderboards.boards for encoder in board.encoders})
    return {
        "Encoder": ", ".join(encoders) or "none: methods without an encoder only",
        "Hardware": "; ".join(origin.hardware),
        "Training": "; ".join(_distinct(words.protocol_text(board.protocol) for board in leaderboards.boards)),
        "Runs": f"{origin.runs:,}" + (f", {origin.failed:,} of them failed" if origin.failed else ""),
        "Libraries": ", ".join(origin.libraries),
        "Code": f"llpbench {origin.code_text()}",
    }
