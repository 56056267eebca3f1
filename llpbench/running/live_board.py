"""The live board: means of finished runs, shown while a run goes on. Nothing is ranked.

It shows test AUC x 100 at the epochs that fine-grained validation selects. Methods with all columns come first, sorted
by their mean. Other methods have gaps and no mean.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural
from llpbench.results.frame import shown, tidy

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TITLE = "finished so far (preliminary): test AUC by fine-grained validation, mean over seeds"

_GAP = "–"
_LINES_AROUND = 3
"""Lines besides rows: title, heading, and number of hidden rows."""
_NAME_WIDTH, _COLUMN_WIDTH, _SEEDS_WIDTH = 34, 22, 8


def draw(
    records: Collection[Record], searches: Collection[TuningRecord], height: int, width: int
) -> RenderableType | None:
    """Return the board within a height and width; None if no run is finished or there is no room."""
    tuned = {choice["cell"] for search in searches if (choice := search["best"].get("auc"))}
    frame = tidy(records, tunings=[*searches], criteria={"auc"})
    frame = frame[~frame["chosen"] | frame["cell"].isin(tuned)]
    room = height - _LINES_AROUND
    if frame.empty or room < 1:
        return None
    frame = frame.assign(row=_rows(frame), column=_columns(frame), score=shown(frame, "auc"))
    cells = frame.groupby(["row", "column"])["score"]
    names = frame.sort_values(["dataset", "bagging", "bag_size"])["column"].unique()
    scores, seeds = cells.mean().unstack()[names], cells.count().unstack()
    means = scores.mean(axis="columns", skipna=False)
    filled = scores.notna().sum(axis="columns")
    order = scores.assign(filled=filled, mean=scores.mean(axis="columns")).sort_values(
        ["filled", "mean"], ascending=False, kind="stable"
    )
    number = len(scores.columns)
    columns = [*scores.columns] if _NAME_WIDTH + _COLUMN_WIDTH * number + _SEEDS_WIDTH <= width else []
    table = Table(box=None, padding=(0, 1))
    table.add_column("method", no_wrap=True, overflow="ellipsis", max_width=_NAME_WIDTH)
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True, overflow="ellipsis", max_width=_COLUMN_WIDTH)
    more = [f"mean of {plural(number, 'column')}"] if number > 1 or not columns else []
    for heading in [*more, *([] if columns else ["columns"]), "seeds"]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in order.index[:room]:
        parts = [_number(scores.loc[row, column]) for column in columns]
        parts += [_number(means[row]) for _ in more] + ([] if columns else [f"{filled[row]}/{number}"])
        counts = seeds.loc[row][seeds.loc[row] > 0]
        least, most = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
        parts.append(f"{least}" if least == most else f"{least}{_GAP}{most}")
        table.add_row(Text(row), *map(Text, parts))
    hidden = len(order) - room
    rest = [Text(f"and {plural(hidden, 'more method')}", style="dim")] if hidden > 0 else []
    return Group(Text(TITLE, style="bold", no_wrap=True, overflow="ellipsis"), table, *rest)


def _number(value: float) -> str:
    return _GAP if value != value else f"{value:.1f}"


def _rows(frame: DataFrame) -> Series:
    """Return the name of each run's row: method, encoder, pretraining, settings, role."""
    settings = frame["configuration"].where(~frame["chosen"], "tuned")
    role = frame["role"].map(lambda role: f"({role})" if role else "")
    parts = (frame["method"], frame["encoder"].fillna(""), frame["pretraining"].replace("none", ""), settings, role)
    return _joined(*parts)


def _columns(frame: DataFrame) -> Series:
    """Return the name of each run's column: dataset, bagging unless it is `ordered`, and bag size."""
    sizes = frame["bag_size"].map(lambda size: f"{size}" if size else "")
    bagging = frame["bagging"].where((frame["bagging"] != "ordered") | (frame["bag_size"] == 0), "")
    most = frame["max_bags"].map(lambda number: f"{int(number)} bags" if number == number else "")
    return _joined(frame["dataset"], bagging, sizes, most)


def _joined(first: Series, *others: Series) -> Series:
    return first.str.cat(others, sep=" ").str.split().str.join(" ")
