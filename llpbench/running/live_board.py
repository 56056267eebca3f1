"""The live board: means of finished runs, shown while a run goes on. Nothing is ranked.

It shows test AUC x 100 at the epochs that fine-grained validation selects. A method has a mean only if it has results
in every column, which is a dataset with a bagging and a bag size.
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

TITLE = "finished so far (preliminary): test AUC by fine-grained validation, mean over seeds and columns"

_GAP = "–"
_LINES_AROUND = 3
"""Lines besides rows: title, heading, and number of hidden rows."""


def draw(records: Collection[Record], searches: Collection[TuningRecord], height: int) -> RenderableType | None:
    """Return the board within a height; None if no run is finished or there is no room."""
    tuned = {choice["cell"] for search in searches if (choice := search["best"].get("auc"))}
    frame = tidy(records, tunings=[*searches], criteria={"auc"})
    frame = frame[~frame["chosen"] | frame["cell"].isin(tuned)]
    room = height - _LINES_AROUND
    if frame.empty or room < 1:
        return None
    columns = frame.groupby(["dataset", "bagging", "bag_size", "max_bags"], dropna=False).ngroup()
    cells = shown(frame, "auc").groupby([_rows(frame), columns])
    scores, seeds = cells.mean().unstack(), cells.count().unstack(fill_value=0)
    filled, number = scores.notna().sum(axis="columns"), len(scores.columns)
    order = scores.assign(filled=filled, mean=scores.mean(axis="columns")).sort_values(
        ["filled", "mean"], ascending=False, kind="stable"
    )
    table = Table("method", "AUC", "columns", "runs", box=None, padding=(0, 1))
    for row in order.index[:room]:
        mean = f"{order['mean'][row]:.1f}" if filled[row] == number else _GAP
        table.add_row(Text(row), mean, f"{filled[row]}/{number}", f"{seeds.loc[row].sum():,}")
    hidden = len(order) - room
    rest = [Text(f"and {plural(hidden, 'more method')}", style="dim")] if hidden > 0 else []
    return Group(Text(TITLE, style="bold", no_wrap=True, overflow="ellipsis"), table, *rest)


def _rows(frame: DataFrame) -> Series:
    """Return the name of each run's row: method, encoder, pretraining, settings, role."""
    settings = frame["configuration"].where(~frame["chosen"], "tuned")
    role = frame["role"].map(lambda role: f"({role})" if role else "")
    parts = (frame["encoder"].fillna(""), frame["pretraining"].replace("none", ""), settings, role)
    return frame["method"].str.cat(parts, sep=" ").str.split().str.join(" ")
