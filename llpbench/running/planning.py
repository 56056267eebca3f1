"""The plan of a run: its cells and searches, which of them are done, failed or stale, and which will run."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from llpbench.core import studies
from llpbench.core.cell import GIVEN, Cell
from llpbench.core.errors import LLPBenchError
from llpbench.core.ranges import read_params
from llpbench.core.record import Record, TuningRecord
from llpbench.core.registry import BAGGINGS, ENCODERS, METHODS, load_plugin
from llpbench.core.text import plural, verb
from llpbench.core.tuning_spec import TOGETHER, Tuning
from llpbench.data.baggings import format_bagging, needed_options, parse_bagging
from llpbench.data.suites import select_datasets
from llpbench.results.staleness import WhyStale
from llpbench.running.obstacles import FindObstacle, Obstacle, Resolved, resolver
from llpbench.running.schedule import Job
from llpbench.running.settings import Settings
from llpbench.training.declaration import faults
from llpbench.training.specification import make_cell

_State = Literal["done", "failed", "stale", "to run", "impossible"]


@dataclass(frozen=True)
class Planned:
    """A cell and the state of its seeds."""

    resolved: Resolved
    done: tuple[int, ...] = ()
    failed: tuple[int, ...] = ()
    stale: Mapping[int, str] = field(default_factory=dict)
    """Seeds that ran with other code than today's, and how it differs."""
    missing: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()
    """Seeds that will run if there is no obstacle: missing runs, and runs to repeat."""
    obstacle: Obstacle | None = None
    """Why the wanted seeds cannot run; None if they can."""

    @property
    def cell(self) -> Cell:
        return self.resolved.cell

    @property
    def retained(self) -> set[int]:
        """Seeds whose records are not replaced."""
        return {*self.done, *self.failed, *self.stale}.difference(self.wanted)

    @property
    def state(self) -> _State:
        return _state(self, failed=bool(self.failed))


@dataclass(frozen=True)
class _PlannedTuning:
    """A search for hyperparameters and its state."""

    resolved: Resolved
    """The cell where the search starts."""
    tuning: Tuning
    record: TuningRecord | None = None
    """Result of the search in the journal."""
    stale: str = ""
    """How today's code differs from that of the record."""
    wanted: bool = False
    """Whether the search will run if there is no obstacle."""
    obstacle: Obstacle | None = None

    @property
    def state(self) -> _State:
        return _state(self, failed=self.record is not None and self.record["status"] != "ok")

    @property
    def job(self) -> Job:
        replaced = self.record["finished"] if self.record is not None and self.record["trials"] else ""
        return Job(self.tuning.cell, (self.tuning.seed,), tuning=self.tuning, replaces=replaced)


def _state(planned: Planned | _PlannedTuning, *, failed: bool) -> _State:
    if planned.wanted and planned.obstacle:
        return "impossible"
    if planned.stale:
        return "stale"
    if planned.wanted:
        return "to run"
    return "failed" if failed else "done"


@dataclass(frozen=True)
class Plan:
    """All cells and searches of a run, in the order of the settings."""

    cells: tuple[Planned, ...]
    tunings: tuple[_PlannedTuning, ...] = ()
    """Searches. When a search is done, the cells that it selects are added to the plan."""
    seeds: tuple[int, ...] = ()
    """Seeds to run for cells that searches select; empty for `llpbench tune`."""

    @property
    def entries(self) -> list[Planned | _PlannedTuning]:
        """Cells and searches."""
        return [*self.cells, *self.tunings]

    @property
    def jobs(self) -> list[Job]:
        """Searches and runs to do, without runs that follow from searches."""
        return [*self.searches, *(Job(one.cell, one.wanted) for one in self.cells if one.wanted and not one.obstacle)]

    @property
    def to_run(self) -> list[Resolved]:
        """Cells of the searches and runs to do."""
        entries: list[Planned | _PlannedTuning] = [*self.tunings, *self.cells]
        return [one.resolved for one in entries if one.wanted and not one.obstacle]

    @property
    def searches(self) -> list[Job]:
        """Searches to do."""
        return [one.job for one in self.tunings if one.wanted and not one.obstacle]

    @property
    def expected(self) -> list[Job]:
        """Searches and runs to do. Each search is expected to select one cell per board."""
        searches = self.searches if self.seeds else ()
        following = [Job(job.cell, self.seeds) for job in searches if job.tuning for _ in job.tuning.boards]
        return [*self.jobs, *following]

    @property
    def reasons(self) -> list[str]:
        """Distinct reasons of impossible cells and searches."""
        obstacles = (one.obstacle for one in self.entries if one.state == "impossible")
        return list(dict.fromkeys(obstacle.reason for obstacle in obstacles if obstacle))

    @property
    def doubts(self) -> list[str]:
        """Faults in the declarations of the methods to run."""
        methods = {one.method.name: one.method for one in self.to_run}
        return [f"method {name!r}: {fault}" for name, method in methods.items() for fault in faults(method)]

    @property
    def changes(self) -> list[str]:
        """Why runs and searches are stale, and how many are, such as `mine: source of method changed (3 runs)`."""
        runs = Counter(f"{one.cell.method}: {reason}" for one in self.cells for reason in one.stale.values())
        searches = Counter(f"{one.tuning.cell.method}: {one.stale}" for one in self.tunings if one.stale)
        return [
            *(f"{reason} ({plural(number, 'run')})" for reason, number in runs.items()),
            *(f"{reason} ({plural(number, 'search')})" for reason, number in searches.items()),
        ]

    def of(self, state: _State) -> list[Planned]:
        """Return the cells in a state."""
        return [planned for planned in self.cells if planned.state == state]

    def with_obstacles(self, find: FindObstacle) -> Plan:
        """Return this plan with the obstacles of cells and searches that are wanted.

        Raises `LLPBenchError` with the first reason if everything is impossible.
        """
        cells = (replace(one, obstacle=find(one.resolved)) if one.wanted else one for one in self.cells)
        tunings = (replace(one, obstacle=find(one.resolved)) if one.wanted else one for one in self.tunings)
        plan = replace(self, cells=tuple(cells), tunings=tuple(tunings))
        if {one.state for one in plan.entries} == {"impossible"}:
            raise LLPBenchError(plan.reasons[0])
        return plan


def make_plan(
    cells: Iterable[Resolved],
    seeds: tuple[int, ...],
    records: Mapping[str, Record],
    *,
    repeat: Collection[str] = ("stale",),
    why_stale: WhyStale = lambda _: "",
) -> Plan:
    """Return the plan of some cells and seeds, given the records of a journal.

    `repeat`: which runs to repeat, any of `done`, `failed` and `stale`.
    """
    planned = []
    for one in cells:
        existing = {seed: record for seed in seeds if (record := records.get(one.cell.run_id(seed))) is not None}
        stale = {seed: reason for seed, record in existing.items() if (reason := why_stale(record))}
        done = tuple(seed for seed, record in existing.items() if seed not in stale and record["status"] == "ok")
        failed = tuple(seed for seed in existing if seed not in stale and seed not in done)
        missing = tuple(seed for seed in seeds if seed not in existing)
        repeated = {seed for seed, record in existing.items() if _is_repeated(record, stale.get(seed, ""), repeat)}
        wanted = tuple(seed for seed in seeds if seed in missing or seed in repeated)
        planned.append(Planned(one, done, failed, stale, missing, wanted))
    return Plan(tuple(planned))


def _is_repeated(record: Record | TuningRecord, stale: str, repeat: Collection[str]) -> bool:
    """Return whether a run or search is repeated. It may be both failed and stale."""
    status = "done" if record["status"] == "ok" else "failed"
    return ("stale" if stale else status) in repeat or (status == "failed" and "failed" in repeat)


def plan_tunings(
    tunings: Iterable[_PlannedTuning],
    records: Mapping[str, TuningRecord],
    *,
    repeat: Collection[str] = ("stale",),
    why_stale: Callable[[TuningRecord], str] = lambda _: "",
) -> Plan:
    """Return the plan of some searches, given the records of a journal. `repeat`: as for `make_plan`."""
    planned = []
    for one in tunings:
        record = records.get(one.tuning.id)
        stale = "" if record is None else why_stale(record)
        wanted = record is None or _is_repeated(record, stale, repeat)
        planned.append(replace(one, record=record, stale=stale, wanted=wanted))
    return Plan((), tuple(planned))


def chosen_cells(record: TuningRecord) -> list[Cell]:
    """Return the cells that a search has selected for its boards, without duplicates."""
    start, tuning = Cell.of(record["spec"]["cell"]), Tuning.of(record["spec"])
    choices = (record["best"].get(name) for name in tuning.boards)
    cells = (replace(start, params=choice["params"]) for choice in choices if choice is not None)
    return list({cell.id: cell for cell in cells}.values())


def tunings_of(settings: Settings, cells: Sequence[Resolved]) -> list[_PlannedTuning]:
    """Return the searches of the settings, one per cell and regime.

    Raises `LLPBenchError` if a search range names a hyperparameter that is set, or a method that is not in the run, or
    if there is nothing to search.
    """
    if settings.tune is None:
        if settings.space:
            raise LLPBenchError("a search space needs --tune N. Add it, or remove the search space.")
        return []
    methods = METHODS.select(settings.methods)
    for name, ranges in settings.space.items():
        _require_in_run("the search space", name, methods)
        if twice := sorted(ranges.keys() & settings.set.get(name, {}).keys()):
            raise LLPBenchError(f"{name}.{twice[0]} is in --set and in the search space. Remove one of them.")
    tunings = [
        tuning
        for one in cells
        for tuning in _tunings_of_cell(
            settings, one, settings.space.get(one.method.name, {}), settings.set.get(one.method.name, ())
        )
    ]
    if cells and not tunings:
        raise LLPBenchError(
            f"{' and '.join(sorted(methods))} {verb(len(methods))} no hyperparameter to search"
            f"{' besides those in --set' if settings.set else ''}. "
            f"{'Name' if settings.tune_only else f'Leave --tune {settings.tune} out, or add'} a method that has one "
            "(llpbench list params METHOD)."
        )
    return list({one.tuning.id: one for one in tunings}.values())


def _tunings_of_cell(
    settings: Settings, resolved: Resolved, ranges: Mapping[str, Any], fixed: Collection[str]
) -> Iterator[_PlannedTuning]:
    """Yield the searches of a cell, one per regime. `ranges`: given by the user; `fixed`: names that --set sets."""
    from llpbench.tuning import space  # Optuna

    cell = resolved.cell
    free = {name: values for name, values in space.search_space(cell.method, ranges).items() if name not in fixed}
    start = replace(cell, params={**cell.params, **space.fixed(cell.method, ranges)})
    space.require_start(cell.method, free, start.params)
    # trials proposed together share an architecture; if nothing else is free, they would be identical
    together = free.keys() - space.architecture(cell.method, free, dict.fromkeys(free))
    size = TOGETHER if together and cell.protocol is not None else 1
    assert settings.tune is not None
    for regime in settings.tune_regimes if free else ():
        tuning = Tuning(start, regime, settings.tune, free, settings.tune_sampler, settings.tune_seed, size)
        yield _PlannedTuning(resolved._replace(cell=start), tuning)


def expand(settings: Settings) -> list[Resolved]:
    """Load the plugins and return the cells of the settings, without duplicates.

    Names are looked up here, once. Methods without an encoder appear once. Raises `LLPBenchError` for unknown names and
    unknown hyperparameters.
    """
    for plugin in settings.plugin:
        load_plugin(plugin)
    resolve = resolver()
    cells = (
        _with_engine_options(resolve(cell), settings)
        for cell in (_all_cells(settings) if settings.study is None else _study_cells(settings))
    )
    return list({one.cell.id: one for one in cells}.values())


def _with_engine_options(one: Resolved, settings: Settings) -> Resolved:
    """Return a network's cell with the engine's options. Ceilings always choose an epoch: averages need no labels."""
    if one.cell.protocol is None:
        return one
    average = settings.average if one.method.load().supervision == "bags" else ""
    cell = replace(one.cell, precision=settings.precision, ensemble=settings.ensemble, average=average)
    return one._replace(cell=cell)


def _choices(settings: Settings) -> dict[str, list[Any]]:
    """Return the values of the settings by parts of a cell, with all names looked up."""
    return {
        "dataset": select_datasets(settings.datasets),
        "bagging": _baggings(settings.baggings),
        "bag_size": [*settings.bag_sizes],
        "encoder": ENCODERS.select(settings.encoders),
        "numbers": [*(settings.numbers or (None,))],
        "pretraining": [*settings.pretraining],
        "method": METHODS.select(settings.methods),
    }


def _all_cells(settings: Settings) -> Iterator[Cell]:
    """Yield every combination of the settings."""
    choices = _choices(settings)
    params = _params(settings, choices["method"])
    of_pretraining = grid(settings.set.get("pretraining", {}))
    for parts in grid(choices):
        for of_method, pretraining_params in itertools.product(grid(params.get(parts["method"], {})), of_pretraining):
            yield make_cell(
                **parts,
                protocol=settings.protocol,
                params=of_method,
                pretraining_params=pretraining_params,
                max_bags=settings.max_bags,
            )


def grid(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of values. A hyperparameter may have a list of several values."""
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*lists)]


def _study_cells(settings: Settings) -> list[Cell]:
    """Return the cells of the studies in the settings.

    Factors that a study does not fix take their values from the settings: the datasets, and usually bagging, bag size
    and encoder. Of the values that a study fixes, flags and the configuration file can select a part. Raises
    `LLPBenchError` if no cell is selected.
    """
    chosen, choices = studies.select(settings.study or ""), _choices(settings)
    cells = [
        cell
        for study in chosen
        for dataset in choices["dataset"]
        for row in study.rows
        for cell in _row_cells(row, dataset, choices, settings)
    ]
    if not cells:
        rows = [row for study in chosen for row in study.rows]
        values = {
            option: dict.fromkeys(str(row.fixed[part]) for row in rows if part in row.fixed)
            for option, part in _NARROWING.items()
            if option in settings.narrowed
        }
        known = "; ".join(f"--{option} {','.join(names)}" for option, names in values.items())
        raise LLPBenchError(f"--study {settings.study} has no cell with these values. It has: {known}.")
    return cells


_NARROWING = {
    "methods": "method",
    "baggings": "bagging",
    "bag-sizes": "bag_size",
    "encoders": "encoder",
    "pretraining": "pretraining",
}
"""Options that select a part of a study, and the part of a cell that each is about."""


def _row_cells(
    row: studies.StudyRow, dataset: str, choices: Mapping[str, list[Any]], settings: Settings
) -> Iterator[Cell]:
    """Yield the cells of a row: what it fixes, without values that the user excluded; other parts as in `choices`."""
    fixed, levels = row.fixed, {}
    for option, part in _NARROWING.items():
        levels[part] = choices[part]
        if part in fixed:
            values = row.pretrainings if part == "pretraining" else [fixed[part]]
            allowed = choices[part] if option in settings.narrowed else values
            levels[part] = [value for value in values if value in allowed]
    rest: dict[str, Any] = {name: fixed.get(name) for name in ("params", "pretraining_params", "max_bags")}
    for parts in grid(levels):
        yield make_cell(**parts, **rest, dataset=dataset, protocol=settings.protocol)


def _params(settings: Settings, methods: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the values of --set by method name. Those of pretraining are only checked."""
    params = {name: values for name, values in settings.set.items() if name != "pretraining"}
    if "pretraining" in settings.set:
        from llpbench.blocks.pretraining import PretrainingParams

        for values in grid(settings.set["pretraining"]):
            read_params(PretrainingParams, values, owner="pretraining")
    for name in params:
        _require_in_run("--set", name, methods)
    return params


def _require_in_run(what: str, name: str, methods: Collection[str]) -> None:
    if name not in methods:
        known = METHODS.entry(name).name  # unknown names have an error of their own
        raise LLPBenchError(f"{what} names {known!r}, which is not in this run. Add it to --methods.")


def _baggings(pattern: str) -> list[str]:
    """Return baggings with their options, in canonical form since they are part of a cell's specification.

    `all` and globs skip baggings that need an option, and the one for datasets without labels.
    """
    baggings: dict[str, None] = {}
    for part in filter(None, (part.strip() for part in pattern.split(","))):
        names = [part] if ":" in part or part in BAGGINGS.names() else BAGGINGS.select(part)
        usable = [name for name in names if len(names) == 1 or not (needed_options(name) or name == GIVEN)]
        baggings.update(dict.fromkeys(format_bagging(*parse_bagging(name)) for name in usable))
    return list(baggings) or BAGGINGS.select(pattern)
