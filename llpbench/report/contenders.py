"""Who stands in which row of a board: configurations that somebody has set, and those that a search has chosen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llpbench.core.criteria import Criterion
from llpbench.core.record import Record, TuningRecord
from llpbench.report.boards import ColumnKey, Contender
from llpbench.report.wording import range_text, trials_text

_NAMED = {"method", "encoder", "pretraining", "dataset", "bagging", "bag_size", "max_bags", "protocol"}
"""what the rows, columns and headings of a board say; all else in a spec is a row's configuration"""


@dataclass
class CellRuns:
    """The runs of one benchmark cell, by seed."""

    id: str
    spec: Mapping[str, Any]
    runs: dict[int, Record] = field(default_factory=dict)
    search: str | None = None
    """id of the search for whose choice they stand; None: they stand for themselves"""

    @property
    def column(self) -> ColumnKey:
        return self.spec["dataset"], self.spec["bag_size"]

    @property
    def method(self) -> Mapping[str, Any]:
        return self.runs[max(self.runs)]["method"]

    @property
    def name(self) -> tuple[str, str | None, str]:
        return self.spec["method"], self.spec["encoder"], self.spec["pretraining"]


def contenders(cells: Iterable[CellRuns], chosen: Collection[str]) -> list[tuple[Contender, CellRuns]]:
    """Who runs in each cell, with the hyperparameters that differ from the defaults.

    `chosen`: ids of cells that are there because of searches, and are left out unless they are the defaults.
    """
    own = [cell for cell in cells if cell.id not in chosen or not cell.method["changed"]]
    configurations = _told_apart(
        [(cell.name, cell.column) for cell in own],
        [_items({**cell.method["changed"], **_engine(cell.spec)}) for cell in own],
        [_configuration(cell.spec) for cell in own],
    )
    declared = {cell.spec["method"]: cell.method for cell in own}
    return [
        (_contender(cell.name, sorted(items), declared[cell.spec["method"]]), cell)
        for cell, items in zip(own, configurations, strict=True)
    ]


def tuned(
    criterion: Criterion, cells: Iterable[CellRuns], tunings: Iterable[TuningRecord]
) -> list[tuple[Contender, CellRuns]]:
    """What searches have chosen by a criterion, as far as it has run on other seeds than the search.

    Searches that differ in more than where they were made stand in rows of their own.
    """
    by_id = {cell.id: cell for cell in cells}
    found = []
    for tuning in sorted(tunings, key=lambda tuning: (tuning["finished"], tuning["tuning"])):
        choice = tuning["best"].get(criterion.name)
        cell = by_id.get(choice["cell"]) if choice else None
        runs = {seed: run for seed, run in cell.runs.items() if seed != tuning["spec"]["seed"]} if cell else {}
        if cell and runs:
            found.append((tuning, CellRuns(cell.id, cell.spec, runs, tuning["tuning"])))
    names = [(cell.name, trials_text(tuning["spec"])) for tuning, cell in found]
    how = _differing(names, [_how(tuning["spec"]) for tuning, _ in found])
    starts = [tuning["spec"]["cell"] for tuning, _ in found]
    changed = [
        _items({**tuning["method"]["changed"], **_engine(start)})
        for (tuning, _), start in zip(found, starts, strict=True)
    ]
    configurations = _told_apart(
        [((name, frozenset(own)), cell.column) for name, own, (_, cell) in zip(names, how, found, strict=True)],
        changed,
        [_configuration(start) for start in starts],
    )
    return [
        (_contender(cell.name, [*sorted(items), f"tuned, {trials}", *sorted(own)], tuning["method"], tuned=True), cell)
        for (tuning, cell), (_, trials), items, own in zip(found, names, configurations, how, strict=True)
    ]


def _contender(
    name: tuple[str, str | None, str], configuration: Iterable[str], declared: Mapping[str, Any], tuned: bool = False
) -> Contender:
    return Contender(
        *name,
        configuration=", ".join(configuration),
        kind=declared["kind"],
        role=declared["role"],
        reference=declared["reference"] or "",
        tuned=tuned,
    )


def _told_apart(
    places: Sequence[tuple[Hashable, ColumnKey]], changed: Sequence[set[str]], whole: Sequence[set[str]]
) -> list[set[str]]:
    """What tells cells apart, given their names and columns: what is `changed` from the defaults.

    Where that does not tell two cells of a column apart (the defaults have changed since, or a part of the
    specification that reports know nothing of differs), what not all cells of that name share stands in its place.
    """
    differing = _differing([name for name, _ in places], whole)
    seen = Counter((*place, frozenset(items)) for place, items in zip(places, changed, strict=True))
    vague = {name for (name, _, _), number in seen.items() if number > 1}
    return [
        whole if name in vague else items for (name, _), items, whole in zip(places, changed, differing, strict=True)
    ]


def _differing(names: Iterable[Hashable], items: Sequence[set[str]]) -> list[set[str]]:
    """Of each set of items those that not all of the same name share."""
    names = [*names]
    shared: dict[Hashable, set[str]] = {}
    for name, own in zip(names, items, strict=True):
        shared[name] = shared.get(name, own) & own
    return [own - shared[name] for name, own in zip(names, items, strict=True)]


def _how(search: Mapping[str, Any]) -> set[str]:
    """What decides what a search finds, beside where it starts, its number of trials and its sampler."""
    spaces = {f"{name} {range_text(each)}" for name, each in search["space"].items()}
    return {*spaces, f"seed {search['seed']}", f"{search['together']} together", f"eta {search['eta']}"}


def _configuration(spec: Mapping[str, Any]) -> set[str]:
    """All of a specification that rows, columns and headings do not say."""
    return _items({key: value for key, value in spec.items() if key not in _NAMED})


def _engine(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Ensembles, another precision than float32 and other numbers than z-scores have rows of their own."""
    return {name: spec[name] for name in ("ensemble", "precision", "numbers") if name in spec}


def _items(configuration: Mapping[str, Any]) -> set[str]:
    """`{"params": {"weight": 0.1}}` as `{"weight=0.1"}`; what is not in `params` keeps its path."""
    items: set[str] = set()
    for key, value in configuration.items():
        if isinstance(value, Mapping):
            prefix = "" if key == "params" else f"{key}."
            items |= {prefix + item for item in _items(value)}
        else:
            items.add(f"{key}={json.dumps(value, sort_keys=True)}")
    return items
