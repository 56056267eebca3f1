"""The plan of a run: which cells there are, what of them is done, has failed, is to run, or cannot be run and why."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from llpbench.core import studies
from llpbench.core.cell import Cell
from llpbench.core.errors import LLPBenchError
from llpbench.core.ranges import read_params
from llpbench.core.record import Record
from llpbench.core.registry import DATASETS, ENCODERS, METHODS, load_plugin
from llpbench.running.schedule import Job
from llpbench.running.settings import Settings
from llpbench.training.specification import make_cell

State = Literal["done", "failed", "to run", "impossible"]


class Obstacle(NamedTuple):
    """Why a cell cannot be run."""

    reason: str
    """with what to do about it"""
    lasting: bool
    """it lies in the cell itself; otherwise in data that could not be had this time"""


FindObstacle = Callable[[Cell], Obstacle | None]


@dataclass(frozen=True)
class Planned:
    """One cell and how its seeds stand."""

    cell: Cell
    done: tuple[int, ...]
    failed: tuple[int, ...]
    missing: tuple[int, ...]
    """seeds that are to run, or would be but for the obstacle"""
    obstacle: Obstacle | None = None
    """why the missing seeds cannot be run; None if they can"""

    @property
    def state(self) -> State:
        if self.missing:
            return "impossible" if self.obstacle else "to run"
        return "failed" if self.failed else "done"


@dataclass(frozen=True)
class Plan:
    """Every cell of a run, in the order in which the settings name them."""

    cells: tuple[Planned, ...]

    @property
    def jobs(self) -> list[Job]:
        """What is to run."""
        return [Job(planned.cell, planned.missing) for planned in self.of("to run")]

    @property
    def reasons(self) -> list[str]:
        """Why cells are impossible, each reason once."""
        return list(dict.fromkeys(cell.obstacle.reason for cell in self.of("impossible") if cell.obstacle))

    def of(self, state: State) -> list[Planned]:
        """The cells in one state."""
        return [planned for planned in self.cells if planned.state == state]

    def require_possible(self) -> Plan:
        """This plan; raises `LLPBenchError` with the first reason if not a single cell can be run or is done."""
        if self.cells and len(self.of("impossible")) == len(self.cells):
            raise LLPBenchError(self.reasons[0])
        return self


def make_plan(
    cells: Iterable[Cell],
    seeds: tuple[int, ...],
    records: Mapping[str, Record],
    *,
    retry_failed: bool = False,
    find_obstacle: FindObstacle = lambda _: None,
) -> Plan:
    """Compare the cells with what a journal holds. `find_obstacle` is asked only about cells with missing seeds."""
    planned = []
    for cell in cells:
        known = {seed: records[cell.run_id(seed)] for seed in seeds if cell.run_id(seed) in records}
        done = tuple(seed for seed, record in known.items() if record["status"] == "ok")
        failed = tuple(seed for seed in known if seed not in done and not retry_failed)
        missing = tuple(seed for seed in seeds if seed not in done and seed not in failed)
        planned.append(Planned(cell, done, failed, missing, find_obstacle(cell) if missing else None))
    return Plan(tuple(planned))


def expand(settings: Settings) -> list[Cell]:
    """Every cell that the settings name, each once. Methods without an encoder appear once.

    Loads the plugins. Raises `LLPBenchError` for unknown names and for hyperparameters that a method does not have.
    """
    for plugin in settings.plugin:
        load_plugin(plugin)
    if settings.study is not None:
        return study_cells(settings)
    methods = METHODS.select(settings.methods)
    params = _params(settings, methods)
    cells = (
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
    return list({cell.id: cell for cell in cells}.values())


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


def obstacles(data_dir: str | None, *, load: bool) -> FindObstacle:
    """What stands in the way of cells: data that cannot be had, bags larger than the split, too many classes.

    With `load`, datasets are made local and checked; without, their declarations are believed.
    """
    from llpbench.data.splits import largest_bag_size

    @cache
    def size(dataset: str) -> _Size | Obstacle:
        try:
            return _size(dataset, data_dir, load=load)
        except LLPBenchError as error:
            return Obstacle(str(error), lasting=False)

    def find(cell: Cell) -> Obstacle | None:
        found = size(cell.dataset)
        if isinstance(found, Obstacle):
            return found
        largest = largest_bag_size(found.rows)
        if cell.bag_size > largest:
            reason = (
                f"bag size {cell.bag_size} is larger than the {largest:,} validation rows of {cell.dataset!r}. "
                f"Choose --bag-sizes up to {largest}, or a larger dataset (llpbench list datasets)."
            )
            return Obstacle(reason, lasting=True)
        if (found.classes or 2) > 2 and METHODS.entry(cell.method).facts.get("classes") == "binary":
            reason = f"{cell.method!r} is for two classes, however: {cell.dataset!r} has {found.classes}. Leave it out."
            return Obstacle(reason, lasting=True)
        return None

    return find


class _Size(NamedTuple):
    rows: int
    classes: int | None
    """None if a declaration does not say"""


def _size(dataset: str, data_dir: str | None, *, load: bool) -> _Size:
    from llpbench.data.catalogue import catalogue
    from llpbench.data.loading import load_table

    entry = next(entry for entry in catalogue(data_dir) if entry.name == dataset)
    if entry.rows is not None and entry.found != "missing" and not load:
        return _Size(entry.rows, entry.classes)
    table = load_table(dataset, data_dir, download=load)
    return _Size(len(table), len(table.classes))


def _baggings(pattern: str) -> list[str]:
    """Names of baggings, options included, in their canonical form: they are part of a cell's specification."""
    from llpbench.core.registry import BAGGINGS
    from llpbench.data.baggings import format_bagging, parse_bagging

    chosen: dict[str, None] = {}
    for part in (part for part in pattern.split(",") if part.strip()):
        names = [part] if ":" in part else BAGGINGS.select(part)
        chosen.update(dict.fromkeys(format_bagging(*parse_bagging(name)) for name in names))
    return list(chosen) or BAGGINGS.select(pattern)
