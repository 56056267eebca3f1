"""Overview of boards: headline, first entries, and which method for which data.

All of it is made from lines of `boards.csv` (`leaderboard.standings`), so that a page can show boards of other reports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pandas import DataFrame, concat, isna, notna, read_csv

from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board, entry_label, once
from llpbench.report.leaderboard import COLUMNS, comparisons
from llpbench.report.report_table import Field, Heading, ReportTable
from llpbench.report.statistics import CONFIDENCE, MARGIN

MOST_ROWS = 8
"""Ranked entries of a board in an overview."""

BRIEF = ("mean", "interval", "first", "floor", "labels", "seconds")
"""Columns of the leaderboard in a file."""

_SHORT = BRIEF[:3]
"""Columns of the leaderboard on the first screen of a page."""

_BOARD = ["criterion", "bagging", "epochs", "patience", "bags_per_step"]
"""Columns of `boards.csv` that name a board."""

_NAME = ["method", "encoder", "pretraining", "configuration"]

_TEXTS = [*_BOARD[:2], *_NAME, "regime", "role", "kind", "metric", "compared_over"]

_CASES = (
    ("ordered bags", "core", "ordered"),
    ("random bags", "core", "random"),
    ("natural bags, rows of known bags", "natural", "natural"),
    ("natural bags, rows of new bags", "natural", "natural:split=bags"),
    ("few bags (20), ordered", "few-bags", "20 ordered"),
    ("rare classes, ordered bags", "rare", "ordered"),
)
"""Rows of "which method for which data": name, folder of the boards, and their bagging."""


@dataclass(frozen=True, eq=False)
class Standings:
    """Lines of `boards.csv` of one board, ranked entries best first."""

    lines: DataFrame

    @classmethod
    def of(cls, board: Board) -> Standings:
        """Return the standings of a board. Lines are by entry."""
        return cls(_lines(board))

    @classmethod
    def read(cls, path: Path) -> list[Standings]:
        """Return the boards of a `boards.csv`, in their order."""
        lines = read_csv(path, dtype=dict.fromkeys(_TEXTS, str), keep_default_na=False, na_values=[""])
        return [cls(of_board) for _, of_board in lines.groupby(_BOARD, sort=False, dropna=False)]

    @property
    def facts(self) -> Any:
        """What all lines share: the names of the board, and the number of datasets."""
        return self.lines.iloc[0]

    @property
    def ranked(self) -> DataFrame:
        """Ranked entries."""
        return self.lines[self.lines["rank"].notna()]

    @property
    def has_labels(self) -> bool:
        """Whether labels of validation rows choose epochs."""
        return bool(self.facts["regime"] == "fine" and notna(self.facts["epochs"]))

    @property
    def title(self) -> str:
        """Title of the board: who may use which labels, the bags, and what chooses epochs."""
        bags, chosen_by = words.bags_words(self.facts["bagging"]), CRITERIA[self.facts["criterion"]]
        if isna(self.facts["epochs"]):
            return f"No labels: {bags}, methods without epochs"
        labels = "Validation labels (fine-grained)" if self.has_labels else "No labels (coarse-grained)"
        return f"{labels}: {bags}, epochs by {chosen_by.title}"

    @property
    def short_title(self) -> str:
        """Title of a board by a main criterion."""
        protocol = "Validation labels" if self.has_labels else "No labels of rows"
        return f"{protocol}: {words.bags_words(self.facts['bagging'])}"

    @property
    def metric(self) -> str:
        """Title of the metric."""
        return METRICS[self.facts["metric"]].title

    @property
    def compared(self) -> DataFrame:
        """Entries that are compared with the first; none if there are too few datasets or seeds."""
        return self.ranked[self.ranked["first_p"].notna()]

    @property
    def worse(self) -> DataFrame:
        """Compared entries that are significantly worse than the first."""
        sign = 1 if METRICS[self.facts["metric"]].maximise else -1
        compared = self.compared
        return compared[(compared["first_p"] < 1 - CONFIDENCE) & (sign * compared["first_points"] < 0)]

    @property
    def similar(self) -> DataFrame:
        """Compared entries that are as good as the first (`statistics.MARGIN`)."""
        return self.compared[self.compared["first_p_similar"] < 1 - CONFIDENCE]

    @property
    def headline(self) -> str:
        """Main finding in at most fifteen words with one number."""
        if self.ranked.empty:
            return words.caption("nothing_ranked")
        first = self.ranked.iloc[0]
        given = "With validation labels" if self.has_labels else "Without labels of rows"
        best = f"{first['method']} has the highest mean {self.metric}, {first['mean']:.1f}"
        return words.clean(f"{given}, {best}, in {words.bags_words(first['bagging'])}.")

    def verdict(self) -> str:
        """Return how many methods are significantly worse than the first, and which are as good."""
        over, datasets = self.facts["compared_over"], self.facts["datasets"]
        if self.compared.empty:
            is_board = len(self.ranked) > 1 and datasets > 1
            return words.caption("untested", over=over, differs=over != f"{datasets} datasets") if is_board else ""
        return words.caption(
            "verdict",
            first=_labels(self.ranked[:1])[0],
            worse=len(self.worse),
            of=len(self.compared),
            over=over,
            left_out=int(over.split()[0]) < datasets > 1,
            similar=_labels(self.similar),
            margin=f"{MARGIN:g}",
        )

    def worth_of_labels(self) -> str:
        """Return what validation labels alone are worth, if the control is ahead of all ranked entries."""
        control = self.lines[(self.lines["role"] == "control") & self.lines["mean"].notna()][:1]
        if control.empty or self.ranked.empty or control["mean"].max() <= self.ranked["mean"].max():
            return ""
        return words.caption("labels_alone", control=control["method"].iat[0], mean=f"{control['mean'].iat[0]:.1f}")

    def table(self, keys: Iterable[str] = BRIEF) -> ReportTable:
        """Return the first entries, the best floor, the control and a ceiling. A gap between ranks is a row."""
        ranked, roles = self.ranked, self.lines["role"]
        floor = ranked[MOST_ROWS:][ranked["role"][MOST_ROWS:] == "floor"][:1]
        shown = concat([ranked[:MOST_ROWS], floor, self.lines[roles == "control"], _ceilings(self.lines)[:1]])
        place = ranked.index.get_loc(floor.index[0]) if len(floor) else len(ranked)
        gaps = {MOST_ROWS + len(floor): len(ranked) - place - 1, MOST_ROWS: place - MOST_ROWS}
        columns = {
            Heading("rank"): [Field.number(rank, 0) for rank in shown["rank"]],
            Heading("method", numeric=False): [*map(Field.text, _labels(shown, marked=True))],
        }
        for column in map(COLUMNS.__getitem__, keys):
            fields = column.fields(shown)
            if ranked.empty or not all(field.is_empty for field in fields[: len(ranked)]):
                columns[column.heading(self.metric)] = fields
        for row, hidden in gaps.items():
            for number, fields in enumerate(columns.values() if hidden > 0 else ()):
                fields.insert(row, Field.text(f"… {hidden} more" if number == 1 else ""))
        return ReportTable("", self.title, "", [*columns.items()])


@once
def _lines(board: Board) -> DataFrame:
    """Return the lines of `boards.csv` of a board, by entry: its names and all columns."""
    of_board = {
        "regime": board.criterion.regime,
        "criterion": board.criterion.name,
        "bagging": board.bagging,
        **{name: (board.protocol or {}).get(name) for name in ("epochs", "patience", "bags_per_step")},
        "metric": board.metric.name,
        "datasets": len(board.datasets),
        "compared_over": comparisons(board).over,
    }
    names = ["rank", "mark", "method", "kind", "encoder", "pretraining", "configuration"]
    lines = DataFrame({**of_board, **board.entries[names].rename(columns={"mark": "role"})}).astype({"rank": "Int64"})
    for column in COLUMNS.values():
        values = column.computed(board)
        for part, name in zip(column.parts, column.names, strict=True):
            found = values[part]
            is_whole = found.dtype.kind in "iu"
            lines[name] = found.astype("Int64") if is_whole else found.astype(float).map(lambda value: round(value, 6))
    return lines


def _ceilings(lines: DataFrame) -> DataFrame:
    """Return the methods that know all labels, ceilings of an encoder first."""
    plain = lines[lines["role"].isin(["ceiling", "supervised"]) & (lines["pretraining"] == "none")]
    order = DataFrame(
        {"mark": plain["role"] != "ceiling", "changed": plain["configuration"].notna() & (plain["configuration"] != "")}
    )
    return plain.loc[order.sort_values([*order], kind="stable").index]


def _labels(lines: DataFrame, *, marked: bool = False) -> list[str]:
    """Return the names of entries; with `marked`, also what they are if they are not methods."""
    marks = {"floor": " (floor)", "ceiling": " (all labels)", "supervised": " (all labels)"}
    of_roles = [marks.get(role, "") if marked else "" for role in lines["role"]]
    names = map(entry_label, *(lines[name].astype(object).fillna("") for name in _NAME))
    return [words.clean(f"{name}{mark}") for name, mark in zip(names, of_roles, strict=True)]


def _which_method(reports: Mapping[str, Sequence[Standings]]) -> ReportTable | None:
    """Return which method to take for which data, from boards by folder; None if a folder is missing."""
    boards = {case: _largest(reports.get(folder, ()), bagging) for case, folder, bagging in _CASES}
    cases = [(case, board) for case, board in boards.items() if board is not None]
    if len(cases) < len(_CASES):
        return None
    similar = any(len(board.similar) for _, board in cases)
    columns = defaultdict[Heading, list[Field]](list)
    for case, board in cases:
        for heading, field in _case(case, board, similar=similar).items():
            columns[heading].append(field)
    terms = ("data", "score", *["similar"] * similar, "unrelated", "better")
    notes = {"Columns": [words.caption(f"which_{term}", margin=f"{MARGIN:g}") for term in terms]}
    return ReportTable("which", "Which method for my data?", words.caption("which"), [*columns.items()], notes)


def _case(case: str, board: Standings, *, similar: bool) -> dict[Heading, Field]:
    """Return the best method, with `similar` those that are as good, and the best method unrelated to it."""
    ranked = board.ranked
    other = ranked[ranked["first_points"].notna()][:1]
    unrelated = f"{_labels(other)[0]} {other['mean'].iat[0]:.1f}" if len(other) else words.NOTHING
    as_good = {Heading("as good", numeric=False): Field(tuple(_labels(board.similar)) or (words.NOTHING,))}
    worse = f"{len(board.worse)} of {len(board.compared)}" if len(board.compared) else "too few datasets"
    return {
        Heading("data", numeric=False): Field.text(case),
        Heading("highest mean", numeric=False): Field.text(_labels(ranked[:1])[0]),
        Heading("score"): Field.text(f"{board.metric} {ranked['mean'].iat[0]:.1f}"),
        **(as_good if similar else {}),
        Heading("next outside its family", numeric=False): Field.text(unrelated),
        Heading("significantly better than", numeric=False): Field.text(worse),
        Heading("datasets"): Field.text(f"{board.facts['datasets']:.0f}"),
        Heading("in tests"): Field.text(str(board.facts["compared_over"]).partition(" ")[0]),
    }


@dataclass(frozen=True)
class _Section:
    """A board in an overview."""

    table: ReportTable
    text: str
    folder: str = ""
    """folder of the report that has the whole board; "" if it is on the same page"""

    @property
    def name(self) -> str:
        """Name of that report."""
        return self.folder.capitalize() or "The paper’s datasets"


@dataclass(frozen=True)
class Overview:
    """First screen of a page: headline, boards, and which method to take."""

    headline: str
    sections: Sequence[_Section]
    which: ReportTable | None = None
    """which method for which data, if reports below have all kinds of data"""

    @classmethod
    def of(cls, own: Sequence[Board], below: Mapping[str, Sequence[Standings]]) -> Overview:
        """Return the overview of a report.

        `own`: main boards of the report. `below`: boards of reports in its folders, by folder. Boards of core
        and of natural bags come first, if there are such reports. Boards with validation labels come last.
        """
        front = [
            (folder, board)
            for folder, bagging in (("core", "ordered"), ("core", "random"), ("natural", "natural"))
            if (board := _largest(below.get(folder, ()), bagging))
        ]
        labelled = [("core", _largest(below.get("core", ()), "ordered", has_labels=True))] if front else []
        mine = [("", board) for board in map(Standings.of, own) if not (front and board.has_labels)]
        chosen = [
            (folder, board) for folder, board in (*front, *mine[: 1 if front else None], *labelled) if board is not None
        ]
        sections = [
            _Section(replace(board.table(_SHORT), title=board.short_title), _text(board), folder)
            for folder, board in chosen
            if len(board.ranked) or not front
        ]
        return cls(chosen[0][1].headline if chosen else "", sections, _which_method(below))


def _text(board: Standings) -> str:
    """Return the number of datasets, the verdict, and what validation labels alone are worth."""
    number = words.sentence(plural(int(board.facts["datasets"]), "dataset"))
    return " ".join(filter(None, (number, board.verdict(), board.worth_of_labels())))


def _largest(boards: Iterable[Standings], bagging: str, *, has_labels: bool = False) -> Standings | None:
    """Return the board of a bagging with most ranked entries; None if there is none."""
    found = [
        board
        for board in boards
        if len(board.ranked) and board.facts["bagging"] == bagging and board.has_labels == has_labels
    ]
    return max(found, key=lambda board: len(board.ranked), default=None)
