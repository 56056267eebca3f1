"""Overview of boards: headline, first entries, and which method for which data.

All of it is made from lines of `boards.csv` (`leaderboard.lines`), so that a page can show boards of other reports.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

from llpbench.core.criteria import METRICS
from llpbench.report import wording as words
from llpbench.report.boards import entry_label
from llpbench.report.leaderboard import COLUMNS
from llpbench.report.report_table import Field, Heading, ReportTable, columns_of, text
from llpbench.report.statistics import MARGIN, MeanDifference

WHICH = "Which method for my data?"
"""Title of the advice."""

MOST_ROWS = 8
"""Ranked entries of a board in an overview."""

BRIEF = ("mean", "interval", "first", "floor", "labels", "seconds")
"""Columns of the leaderboard in an overview."""

_BOARD = ("criterion", "bagging", "epochs", "patience", "bags_per_step")
"""Columns of `boards.csv` that name a board."""

_TEXTS = [*_BOARD[:2], "regime", "role", "method", "kind", "encoder", "pretraining", "configuration", "metric"]
_TEXTS += ["compared_over"]

_CASES = (
    ("ordered bags", "core", "ordered"),
    ("random bags", "core", "random"),
    ("natural bags, rows of known bags", "natural", "natural"),
    ("natural bags, rows of new bags", "natural", "natural:split=bags"),
    ("few bags (20)", "few-bags", "20 ordered"),
    ("rare classes", "rare", "ordered"),
)
"""Rows of "which method for which data": name, folder of the boards, and their bagging."""

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Standings:
    """Lines of `boards.csv` of one board, ranked entries best first."""

    entries: Sequence[Line]

    @property
    def ranked(self) -> list[Line]:
        """Ranked entries."""
        return [line for line in self.entries if line["rank"] is not None]

    @property
    def has_labels(self) -> bool:
        """Whether labels of validation rows choose epochs."""
        return self.entries[0]["regime"] == "fine" and self.entries[0]["epochs"] is not None

    @property
    def title(self) -> str:
        """Title of the board."""
        line = self.entries[0]
        return words.title_of(line["criterion"], line["bagging"], has_epochs=line["epochs"] is not None)

    @property
    def short_title(self) -> str:
        """Title of a board by a main criterion."""
        labels = "Validation labels" if self.has_labels else "No labels of rows"
        return f"{labels}: {words.bags_words(self.entries[0]['bagging'])}"

    @property
    def metric(self) -> str:
        """Title of the metric."""
        return METRICS[self.entries[0]["metric"]].title

    @property
    def worse(self) -> list[Line]:
        """Compared entries that are significantly worse than the first."""
        return [line for line in self.compared if self._lead(line).is_better]

    @property
    def similar(self) -> list[Line]:
        """Compared entries that are as good as the first."""
        return [line for line in self.compared if self._lead(line).is_similar]

    def _lead(self, line: Line) -> MeanDifference:
        """Return the lead of the first entry over another one (`leaderboard.comparisons`)."""
        sign = -1 if METRICS[line["metric"]].maximise else 1
        return MeanDifference(sign * line["first_points"], nan, nan, line["first_p"], line["first_p_similar"])

    @property
    def compared(self) -> list[Line]:
        """Entries that are compared with the first; none if there are too few datasets or seeds."""
        return [line for line in self.ranked if line["first_p"] is not None]

    def verdict(self) -> str:
        """Return how many methods are significantly worse than the first, and which are as good; "" if not tested."""
        if not self.compared:
            return ""
        return words.caption(
            "verdict",
            first=label(self.ranked[0]),
            worse=len(self.worse),
            of=len(self.compared),
            over=self.ranked[0]["compared_over"],
            left_out=int(self.ranked[0]["compared_over"].split()[0]) < self.ranked[0]["datasets"] > 1,
            similar=[label(line) for line in self.similar],
            margin=f"{MARGIN:g}",
        )

    def worth_of_labels(self) -> str:
        """Return what validation labels alone are worth, if the control is ahead of all ranked entries."""
        control = next((line for line in self.entries if line["role"] == "control" and line["mean"] is not None), None)
        if control is None or not self.ranked or control["mean"] <= max(line["mean"] for line in self.ranked):
            return ""
        return words.caption("labels_alone", control=control["method"], mean=f"{control['mean']:.1f}")

    def table(self, most: int = MOST_ROWS, keys: Iterable[str] = BRIEF) -> ReportTable:
        """Return the first entries, the best floor, the control and a ceiling. A gap between ranks is a row."""
        ranked = self.ranked
        floors = [line for line in ranked[most:] if line["role"] == "floor"]
        above = [*[line for line in self.entries if line["role"] == "control"], *_ceilings(self.entries)[:1]]
        shown: list[Line | str] = [*ranked[:most]]
        hidden = len(ranked) - most - len(floors[:1])
        if hidden > 0:
            shown.append(f"{hidden} more entries")
        shown += [*floors[:1], *above]
        columns = [COLUMNS[key] for key in keys]
        columns = [each for each in columns if any(not each.field(line).is_empty for line in ranked) or not ranked]
        nothing = Field(("",))
        headings = [Heading("rank"), Heading("method", numeric=False), *(each.heading(self.metric) for each in columns)]
        fields = [
            [text(""), text(f"… {line}"), *[nothing] * len(columns)]
            if isinstance(line, str)
            else [
                text(words.whole(line["rank"])),
                text(label(line, marked=True)),
                *(each.field(line) for each in columns),
            ]
            for line in shown
        ]
        return ReportTable("", self.title, "", tuple(headings), tuple(map(tuple, fields)))


def _ceilings(entries: Iterable[Line]) -> list[Line]:
    """Return the methods that know all labels, ceilings of an encoder first."""
    plain = [line for line in entries if line["role"] in ("ceiling", "supervised") and line["pretraining"] == "none"]
    return sorted(plain, key=lambda line: (line["role"] != "ceiling", bool(line["configuration"])))


def label(line: Line, *, marked: bool = False) -> str:
    """Return the name of an entry; with `marked`, also what it is if it is not a method."""
    name = entry_label(line["method"], line["encoder"] or None, line["pretraining"], line["configuration"] or "")
    marks = {"floor": "floor", "ceiling": "all labels", "supervised": "all labels"}
    mark = marks.get(line["role"], "") if marked else ""
    return words.clean(f"{name} ({mark})" if mark else name)


def standings_of(lines: Iterable[Line]) -> list[Standings]:
    """Return the boards of lines, in their order."""
    boards: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        boards.setdefault(tuple(line[name] for name in _BOARD), []).append(line)
    return [Standings(entries) for entries in boards.values()]


def headline(board: Standings) -> str:
    """Return the main finding in at most fifteen words with one number."""
    if not board.ranked:
        return words.caption("nothing_ranked")
    first = board.ranked[0]
    labels = "With validation labels" if board.has_labels else "Without labels of rows"
    best = f"{first['method']} has the highest mean {board.metric}, {first['mean']:.1f}"
    return words.clean(f"{labels}, {best}, in {words.bags_words(first['bagging'])}.")


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a `boards.csv`. Unknown values are None."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: value or None if name in _TEXTS or not value else float(value) for name, value in line.items()}
            for line in csv.DictReader(file)
        ]


def _which_method(reports: Mapping[str, Sequence[Standings]]) -> ReportTable | None:
    """Return which method to take for which data, from boards by folder; None if a folder is missing."""
    cases = {}
    for name, folder, bagging in _CASES:
        board = _largest(reports.get(folder, ()), bagging, has_labels=False)
        if board is None:
            return None
        cases[name] = board
    return advice_table("which", WHICH, cases)


def advice_table(
    name: str, title: str, cases: Mapping[str, Standings], further: Mapping[str, Sequence[str]] | None = None
) -> ReportTable:
    """Return a row for each case (kind of data): the best method, methods that are as good, and the second.

    `further`: more columns of texts after the first.
    """
    rows = [_case(case, board) for case, board in cases.items()]
    similar = any(board.similar for board in cases.values())
    headings = [heading for heading in rows[0] if similar or heading != "as good"]
    columns: dict[str, Sequence[str | Field]] = {heading: [row[heading] for row in rows] for heading in headings}
    columns = {"data": columns.pop("data"), **(further or {}), **columns}
    made = [
        (
            Heading(heading, numeric=heading in ("score", "datasets")),
            [text(v) if isinstance(v, str) else v for v in values],
        )
        for heading, values in columns.items()
    ]
    return columns_of(name, title, words.caption("which", margin=f"{MARGIN:g}", similar=similar), made)


def _case(name: str, board: Standings) -> dict[str, str | Field]:
    first, similar = board.ranked[0], board.similar
    second = next(iter(board.ranked[1:]), None)
    of = f"{len(board.worse)} of {len(board.compared)}" if board.compared else "too few datasets"
    return {
        "data": name,
        "take": label(first),
        "score": Field((f"{board.metric} {first['mean']:.1f}",)),
        "as good": Field(tuple(label(line) for line in similar) or (words.NOTHING,)),
        "second": words.NOTHING if second is None else f"{label(second)} {second['mean']:.1f}",
        "significantly worse": of,
        "datasets": f"{first['datasets']:.0f}",
    }


@dataclass(frozen=True)
class _Section:
    """A board in an overview."""

    table: ReportTable
    text: str
    folder: str = ""
    """folder of the report that has the whole board; "" if it is on the same page"""


@dataclass(frozen=True)
class Overview:
    """First screen of a page: headline, boards, and which method to take."""

    headline: str
    sections: Sequence[_Section]
    which: ReportTable | None = None
    """which method for which data, if reports below have all kinds of data"""


def make_overview(own: Sequence[Standings], below: Mapping[str, Sequence[Standings]]) -> Overview:
    """Return the overview of a report.

    `own`: main boards of the report. `below`: boards of reports in its folders, by folder. Boards of core
    and of natural bags come first, if there are such reports. Boards with validation labels come last.
    """
    front = [
        (folder, board)
        for folder, bagging in (("core", "ordered"), ("core", "random"), ("natural", "natural"))
        if (board := _largest(below.get(folder, ()), bagging, has_labels=False))
    ]
    labelled = [("core", _largest(below.get("core", ()), "ordered", has_labels=True))] if front else []
    mine = [("", board) for board in own if not (front and board.has_labels)][: 1 if front else None]
    chosen = [(folder, board) for folder, board in (*front, *mine, *labelled) if board is not None]
    sections = [
        _Section(replace(board.table(keys=_SHORT), title=board.short_title), _text(board), folder)
        for folder, board in chosen
        if board.ranked or not front
    ]
    return Overview(headline(chosen[0][1]) if chosen else "", sections, _which_method(below))


_SHORT = ("mean", "interval", "first")
"""Columns of the leaderboard on the first screen."""


def _text(board: Standings) -> str:
    """Return the number of datasets, the verdict, and what validation labels alone are worth."""
    datasets = board.entries[0]["datasets"]
    number = words.caption("number_of_datasets", datasets=f"{datasets:.0f}", one=datasets == 1)
    return " ".join(filter(None, (number, board.verdict(), board.worth_of_labels())))


def _largest(boards: Iterable[Standings], bagging: str, *, has_labels: bool) -> Standings | None:
    """Return the board of a bagging with most ranked entries; None if there is none."""
    found = [
        board
        for board in boards
        if board.ranked and board.entries[0]["bagging"] == bagging and board.has_labels == has_labels
    ]
    return max(found, key=lambda board: len(board.ranked), default=None)
