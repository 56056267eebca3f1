"""The leaderboards as one HTML page, which needs nothing but itself: no network, no second file.

All numbers, ranks and orders on it are those of the report's tables, made once in Python and written as HTML, so that
they are there without any script. The script only shows, sorts and filters them, and opens the runs behind a row.
Nothing in the page is code but that script: its policy names its hash, and everything from the journal is escaped text.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from llpbench.report import wording as words
from llpbench.report.assembling import Report
from llpbench.report.board_tables import DETAILS, SUMMARY, excerpt, first_rows, names_of, overall, whole
from llpbench.report.boards import Board, Leaderboards, Row
from llpbench.report.digest import NO_LINKS
from llpbench.report.finding import finding
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.page_data import compressed, page_data
from llpbench.report.plots.plot import Plot
from llpbench.report.report_table import ReportTable

if TYPE_CHECKING:
    from jinja2 import Template

STYLE, SCRIPT = "page.css", "page.js"

LEFT_OUT = ("l1",)
"""criteria whose boards the page leaves out: L1 chooses nearly the epochs that mPIoU chooses"""

MOST_SUMMARISED = 8
"""ranked rows on the first screen"""

SHOWN_FIRST = tuple(key for key in SUMMARY if key not in ("tie", "floor"))

_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)[a-z]*" height="([\d.]+)[a-z]*"')

_URI_SAFE = " !$'()*+,-./:;=?@[]^_`{|}~"
"""what stands in a data URI inside double quotes as it is; quoting less than base64 does makes it smaller"""


@dataclass(frozen=True)
class PageBoard:
    """A board, as the page shows it."""

    board: Board
    name: str
    table: ReportTable
    """its last columns are those of the board"""
    caption: str
    apart: frozenset[int]
    """columns that no mean is made of, since none of their runs counts"""
    families: tuple[str, ...]
    """by row"""
    lacking: tuple[bool, ...]
    """by row, whether it lacks a run that counts"""
    aside: frozenset[str]
    """headings of columns that are shown on request"""


@dataclass(frozen=True)
class PageFigure:
    """A plot, and its size in pixels, so that nothing moves when it is there."""

    plot: Plot
    width: int
    height: int


def to_html(
    report: Report,
    *,
    plots: Sequence[Plot] = (),
    links: Mapping[str, str] = NO_LINKS,
    beside: Mapping[str, str] = NO_LINKS,
) -> str:
    """The page of a report. It depends on its arguments alone, so equal ones give equal pages.

    `links`: files beside the page by what they are: `journal`, `standings`, `method NAME`. `beside`: folders of other
    reports by title.
    """
    leaderboards = report.leaderboards
    style, script = read_part(STYLE), read_part(SCRIPT)
    shown = [*_boards(leaderboards)]
    boards = [each.board for each in shown]
    places = {"journal": "", "standings": "", **links}
    tabs = {"summary": "Overview", "leaderboard": "All boards", "which": "Which method?", "plots": "Figures"}
    tabs |= {"reading": "How to read it", "origins": "Data"}
    absent = {"which": report.advice is None, "plots": len(plots) < 2}
    page = template("page.html").render(
        words=words,
        title=report.title,
        beside=beside,
        policy=content_policy(style, script),
        style=style,
        script=script,
        data=compressed(page_data(boards, places) | {"plots": {plot.name: plot.svg for plot in plots[1:]}}),
        warnings=report.warnings,
        tabs={name: title for name, title in tabs.items() if not absent.get(name)},
        boards=shown,
        finding=finding(boards[0]) if boards else "",
        summary=_summary(boards[0]) if boards else None,
        legend=_legend(boards[0]) if boards else "",
        columns=[each.explained(board) for each in COLUMNS.values() for board in boards[:1]],
        families=_distinct(name for each in shown for name in each.families),
        datasets=_distinct(column.dataset for board in boards for column in board.columns),
        sizes=_distinct(c.bags for board in boards for c in sorted(board.columns, key=lambda c: c.bag_size)),
        links=places,
        facts=_facts(leaderboards),
        advice=report.advice,
        unlabelled=report.unlabelled,
        plots=[PageFigure(plot, *_pixels(plot.svg)) for plot in plots],
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # a journal can hold half a surrogate pair, no file can


def read_part(name: str) -> str:
    """A file that pages are made of."""
    return (files("llpbench.report") / "page" / name).read_text(encoding="utf-8")


@cache
def template(name: str) -> Template:
    """A page to be filled in. Everything that is put into it is escaped and, but for what is `safe`, on one line of
    printable characters."""
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
    return environment.get_template(name)


def content_policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, images inside the page, and nothing else."""
    style_hash, script_hash = (b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script))
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _pixels(svg: str) -> tuple[int, int]:
    """Width and height of a picture; those of a page's column where it does not say them."""
    found = _SIZE.search(svg)
    return (round(float(found[1])), round(float(found[2]))) if found else (504, 300)


def _boards(leaderboards: Leaderboards) -> Iterable[PageBoard]:
    """Boards of the page; methods without epochs have one for each bagging, since no criterion changes their scores."""
    seen: set[str] = set()
    for board, name in zip(leaderboards.boards, names_of(leaderboards.boards), strict=True):
        if board.criterion.name in LEFT_OUT or (board.protocol is None and board.bagging in seen):
            continue
        seen |= {board.bagging} if board.protocol is None else set()
        texts = (words.setting(board), words.datasets_text(len(board.datasets)), words.columns_text(board.columns))
        table = whole(board, overall(board, name))
        empty = {heading.text for heading, fields in table.columns() if all(not field.values for field in fields)}
        further = {each.heading(board).text for each in COLUMNS.values() if not each.default}
        yield PageBoard(
            board=board,
            name=name,
            table=table,
            caption=" ".join(words.sentence(text) for text in texts if text),
            apart=frozenset({*range(len(board.columns))} - {*board.counting_columns}),
            families=tuple(map(family, board.rows)),
            aside=frozenset({*DETAILS, *further, *empty}),
            lacking=tuple(place not in board.complete and bool(board.ranked) for place in range(len(board.rows))),
        )


def _summary(board: Board) -> ReportTable:
    return excerpt(board, overall(board, ""), SHOWN_FIRST, first_rows(board, MOST_SUMMARISED))


def _legend(board: Board) -> str:
    texts = (f"{words.title(board)}.", words.caption("legend", board), words.datasets_text(len(board.datasets)))
    return " ".join(texts)


def family(row: Row) -> str:
    """Family of a row's method for the filters of the page."""
    if row.contender.role:
        return {"ceiling": "trained on all labels", "floor": "floors"}[row.contender.role]
    return "neural networks" if row.contender.kind == "neural" else "without networks"


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _facts(leaderboards: Leaderboards) -> dict[str, str]:
    """Setting of the numbers: encoders and hardware first, since they decide whether numbers are comparable."""
    origin = leaderboards.origin
    encoders = sorted({encoder for board in leaderboards.boards for encoder in board.encoders})
    return {
        "Encoder": ", ".join(encoders) or "none: methods without an encoder only",
        "Hardware": "; ".join(origin.hardware),
        "Training": "; ".join(_distinct(words.protocol_text(board.protocol) for board in leaderboards.boards)),
        "Runs": f"{origin.runs:,}" + (f", {origin.failed:,} of them failed" if origin.failed else ""),
        "Libraries": ", ".join(origin.libraries),
        "Code": f"llpbench {words.code_text(origin.code)}",
    }
