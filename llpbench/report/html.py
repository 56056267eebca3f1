"""The leaderboards as one HTML page, which needs nothing but itself: no network, no second file.

All numbers, ranks and orders on it are those of the report's tables, made once in Python and written as HTML, so that
they are there without any script. The scripts in `page/` only show, sort and filter them, and open the runs behind a
score. Nothing in the page is code but those scripts: its policy names their hash, and everything from the journal is
escaped text.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from llpbench.report import wording as words
from llpbench.report.advice import ADVICE
from llpbench.report.bag_only import BAG_ONLY
from llpbench.report.board_tables import DETAILS, OVERALL, SHORT, names_of, summary, whole
from llpbench.report.boards import HEADLINE, Board, Leaderboards, Row
from llpbench.report.finding import finding
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.page_data import CRITERIA, compressed, packed, ranges, table_data, to_json
from llpbench.report.pages import Report
from llpbench.report.plots.plot import PagePlot
from llpbench.report.report_table import Field, Heading, ReportTable

if TYPE_CHECKING:
    from jinja2 import Template

STYLE = "page.css"
SCRIPTS = ("data.js", "table.js", "origin.js", "views.js", "page.js")
"""in the order in which they need one another"""

ALWAYS = ("rank", "method", "mean")
"""columns of a board that cannot be hidden, by key"""

MOST_SUMMARISED = 6
"""ranked rows on the first screen"""

FIRST_PLOTS = 2
"""figures that stand beside the summary"""

FILTERS = (
    "Filters hide rows and columns; they change no number. Ranks, means, bold scores and coverage are those of the "
    "whole board, whatever is hidden."
)

NOT_THE_PAPERS = (
    "No run here uses the SAINT encoder of the paper, whose protocol is another (at most 300 epochs, patience 20, 10 "
    "repeats): where its numbers stand beside ours, a difference is between protocols, too."
)

_SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)[a-z]*" height="([\d.]+)[a-z]*"')

_URI_SAFE = " !$'()*+,-./:;=?@[]^_`{|}~"
"""what stands in a data URI inside double quotes as it is; quoting less than base64 does makes it smaller"""


@dataclass(frozen=True)
class PageBoard:
    """A board, as the page shows it."""

    board: Board
    name: str
    """of its tables"""
    table: ReportTable
    """its last columns are those of the board"""
    caption: str
    apart: frozenset[int]
    """columns that no mean is made of, since none of their runs counts"""
    counted: tuple[tuple[int, ...], ...]
    """by column: the seeds that means are made of"""
    families: tuple[str, ...]
    """by row"""


@dataclass(frozen=True)
class PageFigure:
    """A plot, and its size in pixels, so that nothing moves when it is there."""

    plot: PagePlot
    width: int
    height: int


NO_LINKS: Mapping[str, Any] = MappingProxyType({})


def to_html(report: Report, *, plots: Sequence[PagePlot] = (), links: Mapping[str, Any] = NO_LINKS) -> str:
    """The page of a report. It depends on its arguments alone, so equal ones give equal pages.

    Of `plots` it shows those that it has room for, the smallest first, which are those of all datasets. `links`: where
    files lie beside the page, `journal`, and `methods` by name.
    """
    leaderboards = report.leaderboards
    style, script = read_part(STYLE), "\n".join(map(read_part, SCRIPTS))
    runs = leaderboards.records
    boards = _boards(report)
    facts = packed(runs, boards[0].board.metric.name if boards else HEADLINE)
    further = _further(report, boards)
    page = template("page.html").render(
        words=words,
        policy=content_policy(style, script),
        style=style,
        script=script,
        data=compressed(
            {
                **facts,
                "links": {"journal": "", "methods": {}, **links},
                "plots": {plot.name: plot.svg for plot in plots},
                "tables": [table_data(table) for tables in further.values() for table in tables],
            }
        ),
        places={run["run"]: place for place, run in enumerate(runs)},
        warnings=report.warnings,
        boards=boards,
        finding=finding(boards[0].board) if boards else "",
        summary=_summary(report) if boards else None,
        metrics={each["name"]: each["title"] for each in facts["metrics"]},
        columns=_columns(boards),
        aside=_aside(boards),
        columns_explained=" ".join(each.explained(boards[0].board) for each in COLUMNS.values()) if boards else "",
        links={"journal": "", **links},
        facts=_facts(leaderboards),
        facets=_facets(leaderboards),
        not_the_papers=_not_the_papers(leaderboards),
        filters=FILTERS,
        advice=next((table for page in report.pages if page.name == ADVICE for table in page.tables), None),
        tables=further,
        unlabelled=[table for page in report.pages if page.name == BAG_ONLY for table in page.tables],
        plots=[PageFigure(plot, *_pixels(plot.svg)) for plot in plots],
        first_plots=FIRST_PLOTS,
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

    def data_uri(svg: str) -> str:
        return f"data:image/svg+xml,{quote(svg, safe=_URI_SAFE)}"

    def values(field: Field, heading: Heading) -> str:
        return to_json([field.values.get(part) for part in heading.parts])

    def value(field: Field, heading: Heading) -> str:
        first = field.values.get(heading.parts[0])
        return "" if first is None else str(first)

    environment = Environment(
        loader=PackageLoader("llpbench.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=cleaned,
    )

    def place(run: str, places: Mapping[str, int]) -> int:
        return places[run]

    environment.filters |= {"data_uri": data_uri, "quoted": quote, "value": value, "values": values}
    environment.filters |= {"place": place, "ranges": ranges}
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


def _boards(report: Report) -> list[PageBoard]:
    """By each criterion of the page; of methods without epochs, whose scores no criterion changes, once."""
    boards = report.leaderboards.boards
    tables = {table.name: table for table in report.tables}
    known = {criterion.name for criterion in CRITERIA}
    found: list[PageBoard] = []
    for board, name in zip(boards, names_of(boards), strict=True):
        before = any(each.board.bagging == board.bagging and each.board.protocol is None for each in found)
        if board.criterion.name not in known or (board.protocol is None and before):
            continue
        counted = [tuple(seed for c, seed in board.counting if c == place) for place in range(len(board.columns))]
        few = words.datasets_text(len(board.datasets))
        texts = (
            words.setting(board),
            few,
            words.columns_text(board.columns),
            words.validation_text(board, board.columns),
        )
        found.append(
            PageBoard(
                board=board,
                name=name,
                table=whole(board, tables[name + OVERALL]),
                caption=" ".join(words.sentence(text) for text in texts if text),
                apart=frozenset(place for place, seeds in enumerate(counted) if not seeds),
                counted=tuple(counted),
                families=tuple(family(row) for row in board.rows),
            )
        )
    return found


def _summary(report: Report) -> ReportTable:
    """Of the first board."""
    board = report.leaderboards.boards[0]
    name = names_of(report.leaderboards.boards)[0]
    return summary(board, next(table for table in report.tables if table.name == name + OVERALL), MOST_SUMMARISED)


def _columns(boards: Sequence[PageBoard]) -> list[str]:
    """Columns that can be shown or not: all of places but those that are always there."""
    headings = [each for shown in boards for each in shown.table.headings[: -len(shown.board.columns) or None]]
    return list(dict.fromkeys(each.text for each in headings if (each.key or each.text) not in ALWAYS))


def _aside(boards: Sequence[PageBoard]) -> list[str]:
    """Columns that are shown on request: the label says the first three, too."""
    further = [column.heading(boards[0].board).text for column in COLUMNS.values() if boards and not column.default]
    return [*DETAILS, *further]


def family(row: Row) -> str:
    """What a row's method knows and is made of."""
    if row.contender.role:
        return {"ceiling": "trained on all labels", "floor": "floors"}[row.contender.role]
    return "neural networks" if row.contender.kind == "neural" else "without networks"


def _further(report: Report, boards: Sequence[PageBoard]) -> dict[str, list[ReportTable]]:
    """Tables that are built when they are chosen, by the title of their page: what no board, and not the advice, says.

    Of boards that are not on the page they are left out: they nearly repeat those of a board that is.
    """
    shown = {shown.name for shown in boards}
    absent = [f"{name}-" for name in names_of(report.leaderboards.boards) if name not in shown]
    found: dict[str, list[ReportTable]] = {}
    for page in report.pages:
        if page.name != ADVICE and page.name not in SHORT.values():
            tables = [table for table in page.tables if not any(f"-{name}" in f"-{table.name}-" for name in absent)]
            found |= {page.title: tables} if tables else {}
    return found


def _facts(leaderboards: Leaderboards) -> dict[str, str]:
    """What the numbers were made with: encoders and hardware first, since they decide what may be compared."""
    origin = leaderboards.origin
    protocols = dict.fromkeys(words.protocol_text(board.protocol) for board in leaderboards.boards)
    return {
        "Encoder": ", ".join(_encoders(leaderboards)) or "none: methods without an encoder only",
        "Hardware": "; ".join(origin.hardware),
        "Training": "; ".join(protocols),
        "Runs": f"{origin.runs:,}" + (f", of which {origin.failed:,} failed" if origin.failed else ""),
        "Code": f"llpbench {words.code_text(origin.code)}",
        "Libraries": ", ".join(origin.libraries),
    }


def _encoders(leaderboards: Leaderboards) -> list[str]:
    return sorted({encoder for board in leaderboards.boards for encoder in board.encoders})


def _not_the_papers(leaderboards: Leaderboards) -> str:
    encoders = _encoders(leaderboards)
    return NOT_THE_PAPERS if encoders and "saint" not in encoders else ""


def _facets(leaderboards: Leaderboards) -> dict[str, list[str]]:
    """What can be chosen among, by what the page calls it."""
    boards = leaderboards.boards
    columns = [column for board in boards for column in board.columns]
    contenders = [row.contender for board in boards for row in board.rows]

    def distinct(values: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(values))

    return {
        "family": distinct(family(row) for board in boards for row in board.rows),
        "bagging": distinct(board.bagging for board in boards),
        "protocol": distinct(words.protocol_text(board.protocol) for board in boards),
        "configuration": distinct(row.origin for b in boards for row in b.rows),
        "dataset": distinct(column.dataset for column in columns),
        "size": distinct(column.bags for column in sorted(columns, key=lambda column: column.bag_size)),
        "encoder": sorted({contender.encoder or "" for contender in contenders}),
        "pretraining": distinct(contender.pretraining for contender in contenders),
    }
