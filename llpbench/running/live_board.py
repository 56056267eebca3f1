"""The live board: means of finished runs, shown while a run goes on. Nothing is ranked.

It shows test AUC x 100 at the epochs that fine-grained validation selects. A method has a mean only if it has results
in every column, which is a dataset with a bagging and a bag size.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from statistics import fmean
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from llpbench.core.record import Record, TuningRecord
from llpbench.core.text import plural
from llpbench.results.choices import chosen_by_searches
from llpbench.results.frame import configuration, value_of

TITLE = "finished so far (preliminary): test AUC by fine-grained validation, mean over seeds and columns"

_LINES_AROUND = 3
"""Lines besides methods: title, heading, and number of hidden methods."""


def draw(records: Collection[Record], searches: Collection[TuningRecord], height: int) -> RenderableType | None:
    """Return the board within a height; None if no run is finished or there is no room."""
    chosen = chosen_by_searches([*searches])
    tuned = {choice["cell"] for search in searches if (choice := search["best"].get("auc"))}
    scores: defaultdict[str, defaultdict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    columns = set()
    for record in {record["run"]: record for record in records}.values():
        is_chosen = record["cell"] in chosen and bool(record["method"]["changed"])
        if is_chosen and record["cell"] not in tuned:
            continue
        column = tuple(record["spec"].get(part) for part in ("dataset", "bagging", "bag_size", "max_bags"))
        columns.add(column)
        of_method, value = scores[_name(record, is_chosen)], value_of(record, "auc", "auc")
        if value is not None and math.isfinite(value):
            of_method[column].append(value)
    room = height - _LINES_AROUND
    if not scores or room < 1:
        return None
    means = {name: fmean(map(fmean, cells.values())) if cells else 0.0 for name, cells in scores.items()}
    names = sorted(scores, key=lambda name: (-len(scores[name]), -means[name], name))
    table = Table("method", "AUC", "columns", "runs", box=None, padding=(0, 1))
    for name in names[:room]:
        cells = scores[name]
        mean = f"{means[name]:.1f}" if len(cells) == len(columns) else "–"
        table.add_row(Text(name), mean, f"{len(cells)}/{len(columns)}", f"{sum(map(len, cells.values())):,}")
    hidden = len(names) - room
    rest = [Text(f"and {plural(hidden, 'more method')}", style="dim")] if hidden > 0 else []
    return Group(Text(TITLE, style="bold", no_wrap=True, overflow="ellipsis"), table, *rest)


def _name(record: Record, is_chosen: bool) -> str:
    """Return everything in which methods of a board differ: encoder, pretraining, settings, role."""
    spec, method = record["spec"], record["method"]
    pretraining = "" if spec["pretraining"] == "none" else spec["pretraining"]
    settings = "tuned" if is_chosen else configuration(method["changed"], spec)
    role = f"({method['role']})" if method["role"] else ""
    return " ".join(filter(None, (spec["method"], spec["encoder"], pretraining, settings, role)))
