"""The plan of a run: which cells there are, what of them is done, failed or stale, is to run, or cannot be and why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from llpbench.core import studies
from llpbench.core.cell import Cell
from llpbench.core.errors import LLPBenchError
from llpbench.core.ranges import read_params
from llpbench.core.record import Record
from llpbench.core.registry import BAGGINGS, DATASETS, ENCODERS, METHODS, load_plugin
from llpbench.core.text import plural
from llpbench.data.baggings import format_bagging, needed_options, parse_bagging
from llpbench.results.staleness import WhyStale
from llpbench.running.obstacles import FindObstacle, Obstacle
from llpbench.running.schedule import Job
from llpbench.running.settings import Settings
from llpbench.training.specification import make_cell

State = Literal["done", "failed", "stale", "to run", "impossible"]


@dataclass(frozen=True)
class Planned:
    """One cell and how its seeds stand: each is of one of the four kinds."""

    cell: Cell
    done: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    stale: Mapping[int, str] = field(default_factory=dict)
    """done or failed with other code than today's, and why that is known"""
    missing: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    """what is to run, or would be but for the obstacle: the missing, and of the others what is to be made again"""
    obstacle: Obstacle | None = None
    """why the wanted seeds cannot be run; None if they can"""

    @property
    def kept(self) -> set[int]:
        """Seeds whose records stay as they are."""
        return {*self.done, *self.failed, *self.stale}.difference(self.wanted)

    @property
    def state(self) -> State:
        if self.wanted and self.obstacle:
            return "impossible"
        if self.stale:
            return "stale"
        if self.wanted:
            return "to run"
        return "failed" if self.failed else "done"


@dataclass(frozen=True)
class Plan:
    """Every cell of a run, in the order in which the settings name them."""

    cells: tuple[Planned, ...]

    @property
    def jobs(self) -> list[Job]:
        """What is to run."""
        return [Job(each.cell, each.wanted) for each in self.cells if each.wanted and not each.obstacle]

    @property
    def reasons(self) -> list[str]:
        """Why cells are impossible, each reason once."""
        return list(dict.fromkeys(cell.obstacle.reason for cell in self.of("impossible") if cell.obstacle))

    @property
    def changes(self) -> list[str]:
        """Why runs are stale: `mine: source of method changed (3 runs)`."""
        found = Counter(f"{planned.cell.method}: {why}" for planned in self.cells for why in planned.stale.values())
        return [f"{why} ({plural(runs, 'run')})" for why, runs in found.items()]

    def of(self, state: State) -> list[Planned]:
        """The cells in one state."""
        return [planned for planned in self.cells if planned.state == state]

    def facing(self, find: FindObstacle) -> Plan:
        """This plan with the obstacles of its cells; `find` is asked only about cells of which something is wanted.

        Raises `LLPBenchError` with the first reason if not a single cell can be run or is done.
        """
        cells = (replace(each, obstacle=find(each.cell)) if each.wanted else each for each in self.cells)
        plan = Plan(tuple(cells))
        if plan.cells and len(plan.of("impossible")) == len(plan.cells):
            raise LLPBenchError(plan.reasons[0])
        return plan


def make_plan(
    cells: Iterable[Cell],
    seeds: tuple[int, ...],
    records: Mapping[str, Record],
    *,
    again: Collection[str] = ("stale",),
    why_stale: WhyStale = lambda _: "",
) -> Plan:
    """Compare the cells with what a journal holds. `again`: which runs are made again, of `done`, `failed`, `stale`."""
    planned = []
    for cell in cells:
        known = {seed: records[cell.run_id(seed)] for seed in seeds if cell.run_id(seed) in records}
        stale = {seed: why for seed, record in known.items() if (why := why_stale(record))}
        done = tuple(seed for seed, record in known.items() if seed not in stale and record["status"] == "ok")
        failed = tuple(seed for seed in known if seed not in stale and seed not in done)
        kinds = {"done": done, "failed": failed, "stale": stale}
        kept = {seed for kind, found in kinds.items() if kind not in again for seed in found}
        if "failed" in again:  # what is both failed and stale
            kept -= {seed for seed in stale if known[seed]["status"] != "ok"}
        planned.append(
            Planned(
                cell,
                done,
                failed,
                stale,
                missing=tuple(seed for seed in seeds if seed not in known),
                wanted=tuple(seed for seed in seeds if seed not in kept),
            )
        )
    return Plan(tuple(planned))


def expand(settings: Settings) -> list[Cell]:
    """Every cell that the settings name, each once. Methods without an encoder appear once.

    Loads the plugins. Raises `LLPBenchError` for unknown names and for hyperparameters that a method does not have.
    """
    for plugin in settings.plugin:
        load_plugin(plugin)
    cells = _all_cells(settings) if settings.study is None else study_cells(settings)
    precise = (cell if cell.protocol is None else replace(cell, precision=settings.precision) for cell in cells)
    return list({cell.id: cell for cell in precise}.values())


def _all_cells(settings: Settings) -> Iterator[Cell]:
    """Every combination."""
    methods = METHODS.select(settings.methods)
    params = _params(settings, methods)
    return (
        make_cell(
            method,
            dataset,
            bag_size=bag_size,
            bagging=bagging,
            encoder=encoder,
            protocol=settings.protocol,
            params=params.get(method),
            pretraining=pretraining,
            pretraining_params=settings.set.get("pretraining"),
        )
        for dataset in DATASETS.select(settings.datasets)
        for bagging in _baggings(settings.baggings)
        for bag_size in settings.bag_sizes
        for encoder in ENCODERS.select(settings.encoders)
        for pretraining in settings.pretraining
        for method in methods
    )


def study_cells(settings: Settings) -> list[Cell]:
    """Every cell of the studies that the settings name, each once.

    What a study leaves open (datasets, and mostly bagging, bag size and encoder) is as the settings say; of what it
    names, flags and the file choose a part. Raises `LLPBenchError` if that leaves nothing at all.
    """
    if settings.set:
        raise LLPBenchError("--set and --study do not go together: a study fixes its hyperparameters. Leave one out.")
    cells: dict[str, Cell] = {}
    emptied = []
    for study in studies.select(settings.study or ""):
        found = {
            cell.id: cell
            for dataset in DATASETS.select(settings.datasets)
            for line in study.lines
            for cell in _line_cells(line, dataset, settings)
        }
        if study.lines and not found:
            emptied.append(study)
        cells |= found
    if emptied and not cells:
        options = ", --".join(sorted(settings.narrowed & _NARROWING))
        raise LLPBenchError(
            f"nothing is left of study {emptied[0].name!r}: it names {_named(emptied[0])}. "
            f"Give other --{options}, or none."
        )
    return list(cells.values())


_NARROWING = {"methods", "pretraining", "baggings", "bag-sizes", "encoders"}


def _line_cells(line: studies.Line, dataset: str, settings: Settings) -> Iterator[Cell]:
    fixed = line.fixed

    def levels(option: str, part: str, wanted: Sequence[Any]) -> list[Any]:
        """What a line fixes, if the settings do not leave it out; else what they say."""
        if part not in fixed:
            return list(wanted)
        named = line.pretrainings if part == "pretraining" else [fixed[part]]
        return [value for value in named if option not in settings.narrowed or value in wanted]

    if fixed["method"] not in METHODS.select(settings.methods) and "methods" in settings.narrowed:
        return
    for bagging, bag_size, encoder, pretraining in itertools.product(
        levels("baggings", "bagging", _baggings(settings.baggings)),
        levels("bag-sizes", "bag_size", settings.bag_sizes),
        levels("encoders", "encoder", ENCODERS.select(settings.encoders)),
        levels("pretraining", "pretraining", settings.pretraining),
    ):
        yield make_cell(
            fixed["method"],
            dataset,
            bag_size=bag_size,
            bagging=bagging,
            encoder=encoder,
            protocol=settings.protocol,
            params=fixed.get("params"),
            pretraining=pretraining,
            pretraining_params=fixed.get("pretraining_params"),
        )


def _named(study: studies.Study) -> str:
    """What the lines of a study fix, for an error."""
    parts = {
        part: dict.fromkeys(str(line.fixed[part]) for line in study.lines if part in line.fixed)
        for part in ("method", "pretraining", "bagging", "bag_size", "encoder")
    }
    return "; ".join(f"{part.replace('_', ' ')} {', '.join(values)}" for part, values in parts.items() if values)


def _params(settings: Settings, methods: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """What --set says, by the methods' names; checked also where nothing is pretrained."""
    params = {METHODS.entry(name).name: values for name, values in settings.set.items() if name != "pretraining"}
    if "pretraining" in settings.set:
        from llpbench.blocks.pretraining import PretrainingParams

        read_params(PretrainingParams, settings.set["pretraining"], owner="pretraining")
    for name in params:
        if name not in methods:
            raise LLPBenchError(f"--set names method {name!r}, which is not part of this run. Add it to --methods.")
    return params


def _baggings(pattern: str) -> list[str]:
    """Names of baggings, options included, in their canonical form: they are part of a cell's specification.

    `all` and globs leave out those that need an option.
    """
    chosen: dict[str, None] = {}
    for part in filter(None, (part.strip() for part in pattern.split(","))):
        names = [part] if ":" in part or part in BAGGINGS.names() else BAGGINGS.select(part)
        ready = [name for name in names if len(names) == 1 or not needed_options(name)]
        chosen.update(dict.fromkeys(format_bagging(*parse_bagging(name)) for name in ready))
    return list(chosen) or BAGGINGS.select(pattern)
