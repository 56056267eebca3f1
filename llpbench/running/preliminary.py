"""What is finished so far, as a small board: shown while a run goes on, and no leaderboard.

Mean test AUC x 100, at the epochs that fine-grained validation selects, by method and column. Nothing is ranked:
methods that have every column come first, by their mean over all of them; where one is missing there is a gap, no mean.
What a search has chosen by that validation stands there as tuned; what another criterion has chosen does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from llpbench.core.cell import bagging_text
from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural
from llpbench.results.choices import chosen_by_searches
from llpbench.results.frame import value_of

TITLE = "finished so far (preliminary): test AUC by fine-grained validation, mean over seeds"

_GAP = "–"
_LINES_AROUND = 3  # title, heading, and the line that says what is left out
_CHARACTERS = {"name": 34, "column": 22, "seeds": 8}
"""how wide parts of a line may become"""

_ColumnKey = tuple[str, str, int]
"""dataset, bagging and bag size"""


def score(record: Record) -> float | None:
    """Test AUC x 100 of a run by fine-grained validation; None if it failed, or has no labels of validation rows."""
    return value_of(record, "auc", "auc")


def figure(records: Iterable[Record]) -> str:
    """`AUC 88.1 ± 0.2` of the seeds of a cell that have one, "" if none has; a single one has no spread."""
    values = [value for record in records if (value := score(record)) is not None]
    if not values:
        return ""
    return f"AUC {fmean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


class _Known(NamedTuple):
    """What is finished."""

    records: Mapping[str, Record]
    """by run id"""
    searches: Mapping[str, TuningRecord]
    """by id"""


class Preliminary:
    """The scores of finished runs."""

    def __init__(self) -> None:
        self._known = _Known({}, {})
        self._drawn: tuple[Any, RenderableType | None] = None, None

    def add(self, records: Iterable[Record]) -> None:
        """Take finished runs into account; one made again replaces what it was."""
        # a new mapping: the display's thread may be drawing the old one
        new = {**self._known.records, **{record["run"]: record for record in records}}
        self._known = self._known._replace(records=new)

    def add_searches(self, searches: Iterable[TuningRecord]) -> None:
        """Take finished searches into account, which say what runs are of."""
        new = {**self._known.searches, **{search["tuning"]: search for search in searches}}
        self._known = self._known._replace(searches=new)

    def draw(self, height: int, width: int) -> RenderableType | None:
        """The board, in at most so many lines and characters; None if nothing is finished or there is no room."""
        wanted = self._known, height, width  # asked for several times a second
        drawn = self._drawn[0]
        if drawn is None or drawn[0] is not wanted[0] or drawn[1:] != wanted[1:]:
            self._drawn = wanted, _drawn(_named(wanted[0]), height, width)
        return self._drawn[1]


@dataclass(frozen=True)
class _Row:
    """One method, in all columns of the board."""

    name: str
    columns: Sequence[_ColumnKey]
    cells: Mapping[_ColumnKey, Sequence[Record]]

    @cached_property
    def means(self) -> list[float | None]:
        """Over the seeds of each column; None where no seed has a score."""
        return [fmean(values) if (values := self._scores(column)) else None for column in self.columns]

    @property
    def known(self) -> list[float]:
        """The means that there are."""
        return [mean for mean in self.means if mean is not None]

    @property
    def mean(self) -> float | None:
        """Over all columns; None if one is missing: methods with unequal columns are not to be compared."""
        return fmean(self.known) if len(self.known) == len(self.columns) else None

    @property
    def place(self) -> tuple[int, float, str]:
        """Where it stands among others: the most columns first, then the best."""
        return -len(self.known), -fmean(self.known or [0.0]), self.name

    @property
    def seeds(self) -> str:
        """Number of seeds in a column: `3`, or `2–3` where columns differ."""
        numbers = {len(scores) for column in self.columns if (scores := self._scores(column))}
        return _GAP.join(str(number) for number in sorted({min(numbers), max(numbers)})) if numbers else "0"

    def shown(self, number: int) -> str:
        """Its mean in a column; what failed there, or a gap."""
        mean = self.means[number]
        if mean is not None:
            return f"{mean:.1f}"
        records = self.cells.get(self.columns[number], ())
        return next((record["status"] for record in records if record["status"] != "ok"), _GAP)

    def _scores(self, column: _ColumnKey) -> list[float]:
        return [value for record in self.cells.get(column, ()) if (value := score(record)) is not None]


def _named(known: _Known) -> Iterator[tuple[str, Record]]:
    """The runs with the names of their rows: of what they are of, of what a search has chosen, or of both."""
    chosen = chosen_by_searches(known.searches.values())
    tuned: defaultdict[str, list[str]] = defaultdict(list)
    for search in known.searches.values():
        if choice := search["best"].get("auc"):
            tuned[choice["cell"]].append(f"{_name(search['spec']['cell'], search['method'])} tuned")
    for record in known.records.values():
        if record["cell"] not in chosen or not record["method"]["changed"]:
            yield _name(record["spec"], record["method"]), record
        for name in tuned[record["cell"]]:
            yield name, record


def _drawn(records: Iterable[tuple[str, Record]], height: int, width: int) -> RenderableType | None:
    """`records`: with the names of their rows."""
    found: defaultdict[str, defaultdict[_ColumnKey, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for name, record in records:
        spec = record["spec"]
        bagging = bagging_text(spec["bagging"], spec.get("max_bags"))
        found[name][spec["dataset"], bagging, spec["bag_size"]].append(record)
    columns = sorted({column for cells in found.values() for column in cells})
    rows = sorted((_Row(name, columns, cells) for name, cells in found.items()), key=lambda row: row.place)
    room = height - _LINES_AROUND
    if not rows or room < 1:
        return None
    every = _CHARACTERS["name"] + _CHARACTERS["column"] * len(columns) + _CHARACTERS["seeds"] <= width
    title = Text(TITLE, style="bold", no_wrap=True, overflow="ellipsis")
    table = _table(rows[:room], columns if every else [], len(columns))
    left_out = len(rows) - len(rows[:room])
    return Group(title, table, *([Text(f"and {plural(left_out, 'more method')}", style="dim")] if left_out else []))


def _table(rows: Sequence[_Row], columns: Sequence[_ColumnKey], number: int) -> Table:
    """`columns`: those that have room, all or none; `number`: how many there are."""
    several = number > 1
    table = Table(box=None, padding=(0, 1))
    table.add_column("method", no_wrap=True, overflow="ellipsis", max_width=_CHARACTERS["name"])
    for dataset, bagging, size in columns:
        name = f"{dataset} {size or bagging}" if bagging == "ordered" or not size else f"{dataset} {bagging} {size}"
        table.add_column(
            Text(name), justify="right", no_wrap=True, overflow="ellipsis", max_width=_CHARACTERS["column"]
        )
    if several or not columns:
        table.add_column(f"mean of {plural(number, 'column')}", justify="right", no_wrap=True)
    if not columns:
        table.add_column("columns", justify="right")
    table.add_column("seeds", justify="right")
    for row in rows:
        cells = [row.shown(place) for place in range(len(columns))]
        if several or not columns:
            cells.append(_GAP if row.mean is None else f"{row.mean:.1f}")
        if not columns:
            cells.append(f"{len(row.known)}/{number}")
        table.add_row(Text(row.name), *map(Text, [*cells, row.seeds]))
    return table


def _name(spec: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """What names a row: the method, what its encoder starts from, and what differs from the defaults."""
    changed = [f"{name}={value}" for name, value in facts.get("changed", {}).items()]
    details = [spec["encoder"], spec["pretraining"] if spec["pretraining"] != "none" else None, *changed]
    details.append(f"x {spec['ensemble']}" if "ensemble" in spec else None)
    details.append(spec.get("precision"))
    details.append(f"numbers={spec['numbers']}" if "numbers" in spec else None)
    role = f" ({facts['role']})" if facts.get("role") else ""
    return " ".join([spec["method"], *(detail for detail in details if detail)]) + role
