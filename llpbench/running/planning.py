"""The plan of a run: which cells there are, what of them is done, failed or stale, is to run, or cannot be and why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from llpbench.core import studies
from llpbench.core.cell import GIVEN, Cell
from llpbench.core.declaration import faults
from llpbench.core.errors import LLPBenchError
from llpbench.core.ranges import read_params
from llpbench.core.record import Record, TuningRecord
from llpbench.core.registry import BAGGINGS, ENCODERS, METHODS, load_plugin
from llpbench.core.text import plural
from llpbench.core.tuning_spec import TOGETHER, Tuning
from llpbench.data.baggings import format_bagging, needed_options, parse_bagging
from llpbench.data.suites import select_datasets
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
    """what will run, or would without the obstacle: missing runs, and runs to repeat"""
    obstacle: Obstacle | None = None
    """why the wanted seeds cannot be run; None if they can"""

    @property
    def kept(self) -> set[int]:
        """Seeds whose records stay as they are."""
        return {*self.done, *self.failed, *self.stale}.difference(self.wanted)

    @property
    def state(self) -> State:
        return _state(self, failed=bool(self.failed))


@dataclass(frozen=True)
class PlannedTuning:
    """A search for hyperparameters and how it stands."""

    tuning: Tuning
    record: TuningRecord | None = None
    """what it has found, if it has been made"""
    stale: str = ""
    """why that was made by other code than today's"""
    wanted: bool = False
    """whether it will run, or would without the obstacle"""
    obstacle: Obstacle | None = None

    @property
    def state(self) -> State:
        return _state(self, failed=self.record is not None and self.record["status"] != "ok")

    @property
    def job(self) -> Job:
        instead = self.record["finished"] if self.record is not None and self.record["trials"] else ""
        return Job(self.tuning.cell, (self.tuning.seed,), tuning=self.tuning, instead=instead)


def _state(planned: Planned | PlannedTuning, *, failed: bool) -> State:
    if planned.wanted and planned.obstacle:
        return "impossible"
    if planned.stale:
        return "stale"
    if planned.wanted:
        return "to run"
    return "failed" if failed else "done"


@dataclass(frozen=True)
class Plan:
    """Every cell of a run, in the order in which the settings name them."""

    cells: tuple[Planned, ...]
    tunings: tuple[PlannedTuning, ...] = ()
    """the searches of a run; what they choose is among the cells once they have been made"""
    seeds: tuple[int, ...] = ()
    """that results are reported on; none where nothing follows a search"""

    @property
    def jobs(self) -> list[Job]:
        """Runs to do now; the cells that searches choose follow."""
        return [*self.searches, *(Job(one.cell, one.wanted) for one in self.cells if one.wanted and not one.obstacle)]

    @property
    def searches(self) -> list[Job]:
        """The searches to run."""
        return [each.job for each in self.tunings if each.wanted and not each.obstacle]

    @property
    def found(self) -> list[TuningRecord]:
        """Results of searches that are not repeated."""
        return [each.record for each in self.tunings if each.record is not None and not each.wanted]

    @property
    def expected(self) -> list[Job]:
        """Runs to do, with those that searches will probably choose: a configuration for each of their boards."""
        searches = self.searches if self.seeds else ()
        follow = [Job(job.cell, self.seeds) for job in searches if job.tuning for _ in job.tuning.boards]
        return [*self.jobs, *follow]

    @property
    def reasons(self) -> list[str]:
        """Why cells are impossible, each reason once."""
        every: list[Planned | PlannedTuning] = [*self.cells, *self.tunings]
        obstacles = (each.obstacle for each in every if each.state == "impossible")
        return list(dict.fromkeys(obstacle.reason for obstacle in obstacles if obstacle))

    @property
    def doubts(self) -> list[str]:
        """Errors in the declarations of the methods to run: `llpbench check` says more."""
        methods = dict.fromkeys(job.cell.method for job in self.jobs)
        return [f"method {name!r}: {fault}" for name in methods for fault in faults(METHODS.entry(name))]

    @property
    def changes(self) -> list[str]:
        """Why runs are stale: `mine: source of method changed (3 runs)`."""
        found = Counter(f"{planned.cell.method}: {why}" for planned in self.cells for why in planned.stale.values())
        searches = Counter(f"{each.tuning.cell.method}: {each.stale}" for each in self.tunings if each.stale)
        return [
            *(f"{why} ({plural(runs, 'run')})" for why, runs in found.items()),
            *(f"{why} ({plural(number, 'tuning')})" for why, number in searches.items()),
        ]

    def of(self, state: State) -> list[Planned]:
        """The cells in one state."""
        return [planned for planned in self.cells if planned.state == state]

    def with_obstacles(self, find: FindObstacle) -> Plan:
        """This plan with the obstacles of its cells; `find` is asked only about cells with wanted runs.

        Raises `LLPBenchError` with the first reason if not a single cell can be run or is done.
        """
        cells = (replace(each, obstacle=find(each.cell)) if each.wanted else each for each in self.cells)
        tunings = (replace(each, obstacle=find(each.tuning.cell)) if each.wanted else each for each in self.tunings)
        plan = replace(self, cells=tuple(cells), tunings=tuple(tunings))
        every: list[Planned | PlannedTuning] = [*plan.cells, *plan.tunings]
        if every and all(each.state == "impossible" for each in every):
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
    """Compare the cells with what a journal holds. `again`: which runs are repeated, of `done`, `failed`, `stale`."""
    planned = []
    for cell in cells:
        known = {seed: records[cell.run_id(seed)] for seed in seeds if cell.run_id(seed) in records}
        stale = {seed: why for seed, record in known.items() if (why := why_stale(record))}
        done = tuple(seed for seed, record in known.items() if seed not in stale and record["status"] == "ok")
        failed = tuple(seed for seed in known if seed not in stale and seed not in done)
        missing = tuple(seed for seed in seeds if seed not in known)
        repeated = {seed for seed, record in known.items() if _is_repeated(record, stale.get(seed, ""), again)}
        wanted = tuple(seed for seed in seeds if seed in missing or seed in repeated)
        planned.append(Planned(cell, done, failed, stale, missing, wanted))
    return Plan(tuple(planned))


def _is_repeated(record: Record | TuningRecord, stale: str, again: Collection[str]) -> bool:
    """Whether a run or search is repeated; it may be both failed and stale."""
    status = "done" if record["status"] == "ok" else "failed"
    return ("stale" if stale else status) in again or (status == "failed" and "failed" in again)


def with_tunings(
    plan: Plan,
    tunings: Iterable[Tuning],
    found: Mapping[str, TuningRecord],
    *,
    again: Collection[str] = ("stale",),
    why_stale: Callable[[TuningRecord], str] = lambda _: "",
) -> Plan:
    """The plan with searches, as far as a journal has not `found` what they find. `again`: as for `make_plan`."""
    planned = []
    for tuning in tunings:
        record = found.get(tuning.id)
        stale = "" if record is None else why_stale(record)
        wanted = record is None or _is_repeated(record, stale, again)
        planned.append(PlannedTuning(tuning, record, stale, wanted))
    return replace(plan, tunings=tuple(planned))


def chosen_cells(record: TuningRecord) -> list[Cell]:
    """The cells whose configurations a search has chosen for its boards, each once."""
    start, tuning = Cell.of(record["spec"]["cell"]), Tuning.of(record["spec"])
    chosen = (record["best"].get(name) for name in tuning.boards)
    cells = (replace(start, params=choice["params"]) for choice in chosen if choice is not None)
    return list({cell.id: cell for cell in cells}.values())


def tunings_of(settings: Settings, cells: Sequence[Cell]) -> list[Tuning]:
    """The searches that the settings ask for, one for each cell and regime.

    Raises `LLPBenchError` for a range of a hyperparameter or method that is not in this run, and where
    nothing is left to search.
    """
    if settings.tune is None:
        if settings.space:
            raise LLPBenchError("a search space needs --tune N. Add it, or remove the search space.")
        return []
    from llpbench.tuning.space import architecture, fixed, require_start, search_space

    overrides = {METHODS.entry(name).name: own for name, own in settings.space.items()}
    given = {METHODS.entry(name).name: own.keys() for name, own in settings.set.items() if name != "pretraining"}
    whole = cells if settings.shard is None else expand(replace(settings, shard=None))
    searched = {cell.method for cell in whole}
    for name in overrides:
        if name not in searched:
            raise LLPBenchError(f"the search space names {name!r}, which is not in this run. Add it to --methods.")
        if twice := sorted(overrides[name].keys() & given.get(name, ())):
            raise LLPBenchError(f"{name}.{twice[0]} is in --set and in the search space. Remove one of them.")
    found = []
    for cell in cells:
        own = overrides.get(cell.method, {})
        space = search_space(cell.method, own)
        free = {name: each for name, each in space.items() if name not in given.get(cell.method, ())}
        start = replace(cell, params={**cell.params, **fixed(cell.method, own)})
        require_start(cell.method, free, start.params)
        # a round has one architecture: without numbers in which its trials may differ they would all be one
        numbers = free.keys() - architecture(cell.method, free, dict.fromkeys(free))
        found += [
            Tuning(
                start,
                regime,
                settings.tune,
                free,
                settings.tune_sampler,
                settings.tune_seed,
                TOGETHER if numbers and cell.protocol is not None else 1,
            )
            for regime in settings.tune_regimes
            if free
        ]
    if cells and not found and settings.shard is None:
        names = ", ".join(sorted(searched))
        raise LLPBenchError(
            f"--tune {settings.tune} needs a hyperparameter to search, and {names} has none that --set leaves free. "
            "Leave --tune out, or add a method that has one (llpbench list params METHOD)."
        )
    return list({tuning.id: tuning for tuning in found}.values())


def in_shard(cell: Cell, shard: tuple[int, int] | None) -> bool:
    """Whether a cell belongs to a part of a plan: whatever else is planned, done or missing, it belongs to the same."""
    if shard is None:
        return True
    part, parts = shard
    return int(cell.id, 16) % parts == part - 1


def expand(settings: Settings) -> list[Cell]:
    """Every cell that the settings name, each once. Methods without an encoder appear once.

    Of a part of the plan (`--shard`) the cells of that. Loads the plugins. Raises `LLPBenchError` for unknown names and
    for hyperparameters that a method does not have.
    """
    for plugin in settings.plugin:
        load_plugin(plugin)
    cells = _all_cells(settings) if settings.study is None else study_cells(settings)
    neural = (
        cell if cell.protocol is None else replace(cell, precision=settings.precision, ensemble=settings.ensemble)
        for cell in cells
    )
    return list({cell.id: cell for cell in neural if in_shard(cell, settings.shard)}.values())


def _all_cells(settings: Settings) -> Iterator[Cell]:
    """Every combination."""
    methods = METHODS.select(settings.methods)
    params = _params(settings, methods)
    pretrained = grid(settings.set.get("pretraining", {}))
    return (
        make_cell(
            method,
            dataset,
            bag_size=bag_size,
            bagging=bagging,
            encoder=encoder,
            protocol=settings.protocol,
            params=own,
            pretraining=pretraining,
            pretraining_params=pretraining_params,
            max_bags=settings.max_bags,
            numbers=numbers,
        )
        for dataset in select_datasets(settings.datasets)
        for bagging in _baggings(settings.baggings)
        for bag_size in settings.bag_sizes
        for encoder in ENCODERS.select(settings.encoders)
        for numbers in settings.numbers or (None,)
        for pretraining in settings.pretraining
        for method in methods
        for own in grid(params.get(method, {}))
        for pretraining_params in pretrained
    )


def grid(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of values, where some hyperparameters have a list of several."""
    lists = [each if isinstance(each, list) else [each] for each in values.values()]
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*lists)]


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
            for dataset in select_datasets(settings.datasets)
            for line in study.lines
            for cell in _line_cells(line, dataset, settings)
        }
        if study.lines and not found:
            emptied.append(study)
        cells |= found
    if emptied and not cells:
        options = ", --".join(sorted(settings.narrowed & _NARROWING))
        raise LLPBenchError(
            f"no cell of study {emptied[0].name!r} is selected: the study has {_named(emptied[0])}. "
            f"Change --{options}, or leave it out."
        )
    return list(cells.values())


_NARROWING = {"methods", "pretraining", "baggings", "bag-sizes", "encoders"}


def _line_cells(line: studies.Line, dataset: str, settings: Settings) -> Iterator[Cell]:
    fixed = line.fixed

    def levels(option: str, part: str, wanted: Sequence[Any]) -> list[Any]:
        """Values that a line fixes unless the settings leave them out, otherwise those of the settings."""
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
            max_bags=fixed.get("max_bags"),
        )


def _named(study: studies.Study) -> str:
    """Values that the lines of a study fix, for an error."""
    parts = {
        part: dict.fromkeys(str(line.fixed[part]) for line in study.lines if part in line.fixed)
        for part in ("method", "pretraining", "bagging", "bag_size", "encoder")
    }
    return "; ".join(f"{part.replace('_', ' ')} {', '.join(values)}" for part, values in parts.items() if values)


def _params(settings: Settings, methods: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Values of --set by method name; also checked if nothing is pretrained."""
    params = {METHODS.entry(name).name: values for name, values in settings.set.items() if name != "pretraining"}
    if "pretraining" in settings.set:
        from llpbench.blocks.pretraining import PretrainingParams

        for values in grid(settings.set["pretraining"]):
            read_params(PretrainingParams, values, owner="pretraining")
    for name in params:
        if name not in methods:
            raise LLPBenchError(f"--set names {name!r}, which is not in this run. Add it to --methods.")
    return params


def _baggings(pattern: str) -> list[str]:
    """Names of baggings, options included, in their canonical form: they are part of a cell's specification.

    `all` and globs leave out those that need an option, or counts that only datasets without labels have.
    """
    chosen: dict[str, None] = {}
    for part in filter(None, (part.strip() for part in pattern.split(","))):
        names = [part] if ":" in part or part in BAGGINGS.names() else BAGGINGS.select(part)
        ready = [name for name in names if len(names) == 1 or not (needed_options(name) or name == GIVEN)]
        chosen.update(dict.fromkeys(format_bagging(*parse_bagging(name)) for name in ready))
    return list(chosen) or BAGGINGS.select(pattern)
