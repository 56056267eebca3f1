"""Overview of boards: headline and first entries, made from their lines of `boards.csv`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandas import DataFrame, concat, isna, notna

from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import Board, entry_label, once
from llpbench.report.leaderboard import COLUMNS, comparisons
from llpbench.report.report_table import Field, Heading, Plot, ReportTable
from llpbench.report.statistics import CONFIDENCE, MARGIN

MOST_ROWS = 8
"""Ranked entries of a board in an overview."""

BRIEF = ("mean", "interval", "first", "floor", "labels", "seconds")
"""Columns of the leaderboard in a file."""

_SHORT = BRIEF[:3]
"""Columns of the leaderboard on the first screen of a page."""

_NAME = ["method", "encoder", "pretraining", "configuration"]


@dataclass(frozen=True, eq=False)
class Standings:
    """Lines of `boards.csv` of one board, ranked entries best first."""

    lines: DataFrame

    @classmethod
    def of(cls, board: Board) -> Standings:
        """Return the standings of a board. Lines are by entry."""
        return cls(_lines(board))

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
    def metric(self) -> str:
        """Title of the metric."""
        return METRICS[self.facts["metric"]].title

    @property
    def compared(self) -> DataFrame:
        """Entries that are compared with the first; none if there are too few datasets or seeds."""
        return self.ranked[self.ranked["first_p"].notna()]

    @property
    def _sign(self) -> int:
        """1 if larger values are better, otherwise -1."""
        return 1 if METRICS[self.facts["metric"]].maximise else -1

    @property
    def worse(self) -> DataFrame:
        """Compared entries that are significantly worse than the first."""
        compared = self.compared
        return compared[(compared["first_p"] < 1 - CONFIDENCE) & (self._sign * compared["first_points"] < 0)]

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
        extreme = "highest" if self._sign > 0 else "lowest"
        leads = "shares" if (self.ranked["rank"] == first["rank"]).sum() > 1 else "has"
        best = f"{first['method']} {leads} the {extreme} mean {self.metric}, {first['mean']:.1f}"
        return words.clean(f"{given}, {best}, in {words.bags_words(first['bagging'])}.")

    def verdict(self) -> str:
        """Return how many methods are significantly worse than the first, and which are as good."""
        over, datasets = self.facts["compared_over"], self.facts["datasets"]
        if self.compared.empty:
            is_board = len(self.ranked) > 1 and datasets > 1
            return words.caption("untested", over=over, differs=over != f"{datasets} datasets") if is_board else ""
        return words.caption(
            "verdict",
            first=self.labels(self.ranked[:1])[0],
            worse=len(self.worse),
            of=len(self.compared),
            over=over,
            left_out=int(over.split()[0]) < datasets > 1,
            similar=self.labels(self.similar),
            margin=f"{MARGIN:g}",
        )

    def worth_of_labels(self) -> str:
        """Return what validation labels alone are worth, if the control is ahead of all ranked entries."""
        control = self.lines[(self.lines["role"] == "control") & self.lines["mean"].notna()][:1]
        means = [each["mean"].iat[0] for each in (control, self.ranked) if not each.empty]
        if len(means) < 2 or self._sign * (means[0] - means[1]) <= 0:
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
            Heading("method", numeric=False): [*map(Field.text, self.labels(shown, marked=True))],
        }
        for column in map(COLUMNS.__getitem__, keys):
            fields = column.fields(shown)
            if ranked.empty or not all(field.is_empty for field in fields[: len(ranked)]):
                columns[column.heading(self.metric)] = fields
        for row, hidden in gaps.items():
            for number, fields in enumerate(columns.values() if hidden > 0 else ()):
                fields.insert(row, Field.text(f"… {hidden} more" if number == 1 else ""))
        return ReportTable("", self.title, "", [*columns.items()])

    def section(self, folder: str = "", name: str = "") -> _Section:
        """Return the first entries, with the numbers of datasets and failed runs, the verdict and the worth of labels.

        `folder`, `name`: of the report that has the board, on a page with boards of several.
        """
        number = words.caption("datasets", number=self.facts["datasets"], names=())
        failed = self.lines["coverage_failed"].sum()
        failures = (
            f"{plural(failed, 'run')} failed; the reasons are below the board with all entries." if failed else ""
        )
        text = " ".join(filter(None, (number, self.verdict(), failures, self.worth_of_labels())))
        labels = "Validation labels" if self.has_labels else "No labels of rows"
        title = f"{labels}: {words.bags_words(self.facts['bagging'])}"
        return _Section(replace(self.table(_SHORT), title=title), text, folder, name)

    @staticmethod
    def labels(lines: DataFrame, *, marked: bool = False) -> list[str]:
        """Return the names of entries; with `marked`, also what they are if they are not methods, and stale runs."""
        marks = {"floor": " (floor)", "ceiling": " (all labels)", "supervised": " (all labels)"}
        runs = zip(*(lines[f"coverage_{kind}"] for kind in ("stale", "done")), strict=True)
        stale = [f" ({old} of {done} runs stale)" if marked and old else "" for old, done in runs]
        of_roles = [marks.get(role, "") if marked else "" for role in lines["role"]]
        names = map(entry_label, *(lines[name].astype(object).fillna("") for name in _NAME))
        return [words.clean("".join(parts)) for parts in zip(names, of_roles, stale, strict=True)]


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
    """Return the methods that know all labels: those with a mean first, then ceilings of an encoder."""
    plain = lines[lines["role"].isin(["ceiling", "supervised"]) & (lines["pretraining"] == "none")]
    is_changed = plain["configuration"].notna() & (plain["configuration"] != "")
    order = DataFrame({"lacks": plain["mean"].isna(), "mark": plain["role"] != "ceiling", "changed": is_changed})
    return plain.loc[order.sort_values([*order], kind="stable").index]


@dataclass(frozen=True)
class _Section:
    """A board in an overview."""

    table: ReportTable
    text: str
    folder: str
    """folder of the report that has the whole board; "" if it is on the same page"""
    name: str
    """name of that report on a page with boards of several"""


@dataclass(frozen=True)
class Overview:
    """First screen of a page: headline, boards, and which method to take."""

    headline: str
    sections: Sequence[_Section]
    tables: Sequence[ReportTable] = ()
    """boards of the README if not the main ones of the report"""
    which: ReportTable | None = None
    """which method for which data, on a page with boards of several reports"""
    figure: Plot | None = None
    """first figure, if not that of the report"""

    @classmethod
    def of(cls, boards: Iterable[Board]) -> Overview:
        """Return the overview of the main boards of a report."""
        standings = [*map(Standings.of, boards)]
        return cls(standings[0].headline if standings else "", [board.section() for board in standings])
