"""HTML page of a report: a single file that needs no network.

All numbers, ranks and orders are made in Python and written as HTML, so they are readable without JavaScript. The
script sorts and filters tables, and opens the runs of an entry. A content security policy allows only this script and
this style, and every text of a journal is escaped.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shlex
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup
from pandas import DataFrame, concat

from llpbench.core.cell import Protocol
from llpbench.core.criteria import METRICS
from llpbench.core.record import Record
from llpbench.report import wording as words
from llpbench.report.board_tables import ANCHOR, DETAILS, Report
from llpbench.report.boards import Board
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.overview import Overview
from llpbench.report.report_table import Plot
from llpbench.report.tabulate import Leaderboards
from llpbench.results.frame import metric_column, shown

if TYPE_CHECKING:
    from jinja2 import Template

_HIDDEN = "l1"
"""Criterion whose boards are not on the page: L1 chooses nearly the same epochs as mPIoU."""

TABS = {
    "summary": "Overview",
    "leaderboard": "All boards",
    ANCHOR: "Robustness",
    "plots": "Figures",
    "reading": "How to read it",
    "origins": "Data",
}

_FAMILIES = {"ceiling": "trained on all labels", "control": "trained on validation labels", "floor": "floors"}
"""Families of methods with a role, for the filter of the page."""

_URI_SAFE = " !$'()*+,-./:;=?@[]^_`{|}~"
"""Characters that need no quoting in a data URI; this is shorter than base64."""

_FACTS = (
    *("entry", "task", "epoch", "validation", "cell", "seed", "status", "reason", "seconds_train", "seconds_warm_up"),
    *("seconds_pretraining", "memory_mb", "finished", "version", "machine"),
)
"""Columns of runs that the script shows, besides metrics."""


def to_html(
    report: Report, overview: Overview, *, plots: Sequence[Plot], links: Mapping[str, str], beside: Mapping[str, str]
) -> str:
    """Return the page of a report. The first plot is on the first screen.

    `links`: paths of the files `journal`, `standings` and `method NAME`. `beside`: folders of other reports by title.
    """
    leaderboards = report.leaderboards
    shown = [*_page_boards(report)]
    boards = [board["board"] for board in shown]
    links = {"journal": "", "standings": "", **links}
    tasks = concat([board.tasks for board in boards]) if boards else DataFrame(columns=["dataset", "bag_size", "bags"])
    by_size = tasks.sort_values("bag_size", key=lambda sizes: sizes.map(lambda size: size or 0), kind="stable")["bags"]
    present = {ANCHOR: report.robustness, "plots": plots[1:]}
    data = _page_data(boards, links) | {"plots": {plot.name: plot.svg for plot in plots[1:]}}
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    tabs = TABS | ({"leaderboard": "The paper’s datasets"} if overview.which else {})
    return _rendered(
        words=words,
        title=report.title,
        overview=overview,
        beside=beside,
        data=b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode(),  # without meaning in HTML
        warnings=report.warnings,
        tabs={name: title for name, title in tabs.items() if present.get(name, True)},
        boards=shown,
        families=[*dict.fromkeys(family for board in shown for family in board["families"])],
        datasets=[*dict.fromkeys(tasks["dataset"])],
        sizes=[*dict.fromkeys(by_size)],
        links=links,
        facts=_facts(leaderboards),
        columns=[column.explained(boards[0]) for column in COLUMNS.values()] if boards else [],
        unlabelled=report.unlabelled,
        figures=plots,
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


def _page_boards(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the boards of the page, those without labels first, and the main ones first among these.

    `group`: heading in the list of boards; headings are sorted. `table`: its last columns are the tasks of the board.
    `families`: family of each entry's method. `incomplete`: whether an entry lacks a run that counts. `optional`:
    headings of columns that are shown on request.
    """
    main = report.leaderboards.main_boards()

    def has_labels(board: Board) -> bool:
        return board.criterion.regime == "fine" and board.protocol is not None

    for board in sorted(report.leaderboards.boards, key=lambda board: (has_labels(board), board not in main)):
        if board.criterion.name == _HIDDEN:
            continue
        table = report.table(board)
        empty = {heading.text for heading, fields in table.columns if all(field.is_empty for field in fields)}
        further = {column.heading(board.metric.title).text for column in COLUMNS.values() if not column.default}
        kinds = (board.entries["kind"] == "neural").map({True: "neural networks", False: "without networks"})
        group = "Validation labels" if has_labels(board) else "No labels of rows"
        yield {
            "board": board,
            "name": table.name,
            "group": group if board.protocol else f"{group}: methods without epochs",
            "table": table,
            "families": board.entries["role"].map(_FAMILIES).fillna(kinds).tolist(),
            "optional": {*DETAILS, *further, *empty},
            "incomplete": [entry not in board.complete and bool(board.ranked) for entry in board.entries.index],
        }


def _facts(leaderboards: Leaderboards) -> dict[str, str]:
    """Return what the numbers of a report depend on."""
    encoders = sorted({encoder for board in leaderboards.boards for encoder in board.encoders})
    return {
        **leaderboards.origin,
        "Encoder": ", ".join(encoders) or "none: methods without an encoder only",
        "Training": "; ".join(dict.fromkeys(board.training for board in leaderboards.boards)),
    }


def _page_data(boards: Sequence[Board], links: Mapping[str, str]) -> dict[str, Any]:
    """Return links, commands by cell, titles of metrics, and for each board its runs as columns."""
    metrics = [name for name in METRICS if any(board.runs[metric_column(name)].notna().any() for board in boards)]
    records = {board.records[run]["cell"]: board.records[run] for board in boards for run in board.runs["run"]}
    return {
        "links": dict(links),
        "metrics": {name: f"{METRICS[name].title} × 100" for name in metrics},
        "commands": {cell: repeat_command(record, {}) for cell, record in records.items()},
        "boards": [{"tasks": board.titles, "runs": _runs(board, metrics)} for board in boards],
    }


def _runs(board: Board, metrics: Iterable[str]) -> dict[str, list[Any]]:
    """Return the columns of runs that the script shows, rounded, with None for unknown values."""
    tests = {name: shown(board.runs, name).round(2) for name in metrics}
    runs = board.runs[[*_FACTS]].round(3).round({"memory_mb": 0}).assign(**tests).astype(object)
    return {str(name): values for name, values in runs.where(runs.notna(), None).to_dict("list").items()}


def repeat_command(record: Record, instead: Mapping[str, object]) -> str | None:
    """Return the command that repeats a cell, but with the options `instead`; None if no command can express it."""
    spec, protocol = record["spec"], record["spec"]["protocol"]
    flags = {"methods": spec["method"], "datasets": spec["dataset"], "baggings": spec["bagging"]}
    flags |= {"bag-sizes": spec["bag_size"]} if spec["bag_size"] else {}
    flags |= {"max-bags": spec["max_bags"]} if "max_bags" in spec else {}
    if spec["encoder"] is not None:
        flags |= {"encoders": spec["encoder"], "pretraining": spec["pretraining"]}
        flags |= {"numbers": spec.get("numbers", "z")}  # some encoders have another default
    if protocol is not None:
        flags |= {"epochs": protocol["epochs"], "patience": protocol["patience"]}
        if protocol["bags_per_step"] != Protocol().bags_per_step:
            flags |= {"bags-per-step": protocol["bags_per_step"]}
    flags |= {name: spec[name] for name in ("ensemble", "precision", "average") if name in spec}
    changed = record["method"]["changed"]
    names = [name if name.startswith("pretraining.") else f"{spec['method']}.{name}" for name in changed]
    texts = ["none" if of is None else str(of).lower() if isinstance(of, bool) else str(of) for of in changed.values()]
    settings = [*zip(names, texts, strict=True)]
    if any(name.count(".") != 1 or set(value) & set(",=") for name, value in settings):
        return None
    words = [f"--{name} {shlex.quote(str(value))}" for name, value in {**flags, **instead}.items() if value]
    words += [f"--set {shlex.quote(f'{name}={value}')}" for name, value in settings]
    return " ".join(["llpbench run", *words])
