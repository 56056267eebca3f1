"""The plan of a run: its cells and searches, which of them are done, failed or stale, and which will run."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from llpbench.core.cell import GIVEN, TOGETHER, Cell, Tuning, is_without_labels
from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS, cell_versions
from llpbench.core.ranges import read_params
from llpbench.core.record import Record, TuningRecord
from llpbench.core.registry import BAGGINGS, ENCODERS, METHODS, load_plugin
from llpbench.core.text import plural, verb
from llpbench.data.baggings import format_bagging, needed_options, parse_bagging
from llpbench.data.loading import select_datasets
from llpbench.results.journal import Contents
from llpbench.results.staleness import WhyStale, comparison
from llpbench.results.studies import Study, StudyRow
from llpbench.running.obstacles import FindObstacle, Obstacle, Resolved, resolver
from llpbench.running.schedule import Job
from llpbench.running.settings import Settings
from llpbench.training.declaration import faults
from llpbench.training.specification import make_cell


@dataclass(frozen=True)
class Planned:
    """A cell, or a search that starts from it, and the state of its seeds."""

    resolved: Resolved
    tuning: Tuning | None = None
    """The search; None for a cell."""
    records: Mapping[int, Record | TuningRecord] = field(default_factory=dict)
    """Existing results by seed."""
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
    def done(self) -> tuple[int, ...]:
        return tuple(
            seed for seed, record in self.records.items() if seed not in self.stale and record["status"] == "ok"
        )

    @property
    def failed(self) -> tuple[int, ...]:
        return tuple(seed for seed in self.records if seed not in self.stale and seed not in self.done)

    @property
    def retained(self) -> set[int]:
        """Seeds whose records are not replaced."""
        return {*self.records}.difference(self.wanted)

    @property
    def runs(self) -> bool:
        """Whether there is something to run, and no obstacle."""
        return bool(self.wanted) and self.obstacle is None

    @property
    def state(self) -> Literal["done", "failed", "stale", "to run", "impossible"]:
        if self.obstacle:
            return "impossible"
        if self.stale:
            return "stale"
        if self.wanted:
            return "to run"
        return "failed" if self.failed else "done"

    @property
    def job(self) -> Job:
        replaced = (record["finished"] for record in self.records.values() if record.get("trials"))
        return Job(self.cell, self.wanted, tuning=self.tuning, replaces=next(replaced, ""))


@dataclass(frozen=True)
class Plan:
    """All searches and cells of a run, in the order of the settings."""

    entries: tuple[Planned, ...]
    """Searches, then cells. When a search is done, the cells that it selects are added to the plan."""
    seeds: tuple[int, ...] = ()
    """Seeds to run for cells that searches select."""

    @classmethod
    def of(
        cls,
        entries: Iterable[Planned],
        seeds: Iterable[int],
        records: Mapping[str, Record | TuningRecord],
        *,
        repeat: Collection[str] = ("stale",),
        why_stale: WhyStale = lambda _: "",
    ) -> Plan:
        """Return the plan of cells with these seeds and of searches, given the records of a journal.

        `repeat`: which runs to repeat, any of `done`, `failed` and `stale`.
        """

        def is_repeated(record: Record | TuningRecord, is_stale: bool) -> bool:
            status = "done" if record["status"] == "ok" else "failed"  # it may be stale, too
            return ("stale" if is_stale else status) in repeat or (status == "failed" and "failed" in repeat)

        def planned(one: Planned) -> Planned:
            names = {one.tuning.seed: one.tuning.id} if one.tuning else {seed: one.cell.run_id(seed) for seed in seeds}
            existing = {seed: records[name] for seed, name in names.items() if name in records}
            stale = {seed: reason for seed, record in existing.items() if (reason := why_stale(record))}
            missing = tuple(seed for seed in names if seed not in existing)
            wanted = tuple(seed for seed in names if seed in missing or is_repeated(existing[seed], seed in stale))
            return replace(one, records=existing, stale=stale, missing=missing, wanted=wanted)

        return cls(tuple(map(planned, entries)))

    @classmethod
    def of_run(cls, settings: Settings, cells: list[Resolved], contents: Contents) -> Plan:
        """Return the plan of cells, their searches, and the cells that finished searches have selected."""
        why_stale = comparison([*contents.records.values(), *contents.tunings.values()])
        tunings = [Planned(one, tuning) for one, tuning in _tunings_of(settings, cells)]
        searches = cls.of(tunings, (), contents.tunings, repeat=settings.repeat, why_stale=why_stale)
        chosen = (
            one.resolved._replace(cell=cell)
            for name, one in searches.tunings.items()
            if not one.wanted and contents.tunings[name]["status"] == "ok"
            for cell in cls.chosen_cells(contents.tunings[name])
        )
        every = {one.cell.id: Planned(one) for one in (*cells, *chosen)}
        plan = cls.of(every.values(), settings.seeds, contents.records, repeat=settings.repeat, why_stale=why_stale)
        plan = cls((*searches.entries, *plan.entries), settings.seeds)
        _require_not_newer(plan.entries)
        return plan

    @staticmethod
    def chosen_cells(record: TuningRecord) -> list[Cell]:
        """Return the cells that a search has selected for its boards, without duplicates."""
        tuning = Tuning.of(record["spec"])
        choices = (record["best"].get(name) for name in tuning.boards)
        cells = (replace(tuning.cell, params=choice["params"]) for choice in choices if choice is not None)
        return list({cell.id: cell for cell in cells}.values())

    @property
    def cells(self) -> list[Planned]:
        return [one for one in self.entries if one.tuning is None]

    @property
    def tunings(self) -> dict[str, Planned]:
        """Searches by the id of the tuning."""
        return {one.tuning.id: one for one in self.entries if one.tuning is not None}

    @property
    def jobs(self) -> list[Job]:
        """Searches and runs to do, without runs that follow from searches."""
        return [one.job for one in self.entries if one.runs]

    @property
    def to_run(self) -> list[Resolved]:
        """Cells of the searches and runs to do."""
        return [one.resolved for one in self.entries if one.runs]

    @property
    def expected(self) -> list[Job]:
        """Searches and runs to do. Each search is expected to select one cell per board."""
        searches = [job for job in self.jobs if job.tuning and self.seeds]
        return [*self.jobs, *(Job(job.cell, self.seeds) for job in searches if job.tuning for _ in job.tuning.boards)]

    @property
    def reasons(self) -> list[str]:
        """Distinct reasons of impossible cells and searches."""
        return list(dict.fromkeys(one.obstacle.reason for one in self.entries if one.obstacle))

    @property
    def doubts(self) -> list[str]:
        """Faults in the declarations of the methods to run."""
        methods = {one.method.name: one.method for one in self.to_run}
        return [f"method {name!r}: {fault}" for name, method in methods.items() for fault in faults(method)]

    @property
    def changes(self) -> list[str]:
        """Why runs and searches are stale, and how many are, such as `mine: source of method changed (3 runs)`."""
        stale = Counter(
            (f"{one.cell.method}: {reason}", "search" if one.tuning else "run")
            for one in self.entries
            for reason in one.stale.values()
        )
        return [f"{reason} ({plural(number, noun)})" for (reason, noun), number in stale.items()]

    def __str__(self) -> str:
        """Return `12 runs to do in 4 cells, 2 of them stale, 3 done, 1 failed, 6 impossible`. Each run counts once."""
        jobs = [job for job in self.jobs if job.tuning is None]
        parts = [f"{plural(sum(len(job.seeds) for job in jobs), 'run')} to do in {plural(len(jobs), 'cell')}"]
        stale = sum(len({*cell.stale}.intersection(cell.wanted)) for cell in self.cells if not cell.obstacle)
        if stale:
            parts.append(f"{stale:,} of them stale")
        others = {
            "done": sum(len(cell.retained.intersection(cell.done)) for cell in self.cells),
            "failed": sum(len(cell.retained.intersection(cell.failed)) for cell in self.cells),
            "stale and kept": sum(len(cell.retained.intersection(cell.stale)) for cell in self.cells),
            "impossible": sum(len(cell.wanted) for cell in self.cells if cell.state == "impossible"),
        }
        text = ", ".join([*parts, *(f"{number:,} {state}" for state, number in others.items() if number)])
        return f"{self._searches}; {text}" if self.tunings else text

    @property
    def _searches(self) -> str:
        """Return `2 searches to do (their choices run afterwards), 1 done`."""
        searches = self.tunings.values()
        number, states = sum(one.runs for one in searches), Counter(one.state for one in searches)
        to_do = f"{plural(number, 'search')} to do{' (their choices run afterwards)' if number and self.seeds else ''}"
        others = (f"{states[state]:,} {state}" for state in ("done", "failed", "impossible") if states[state])
        return ", ".join([to_do, *others])

    def with_obstacles(self, find: FindObstacle) -> Plan:
        """Return this plan with the obstacles of cells and searches that are wanted.

        Raises `LLPBenchError` with the first reason if everything is impossible.
        """
        entries = (replace(one, obstacle=find(one.resolved)) if one.wanted else one for one in self.entries)
        plan = replace(self, entries=tuple(entries))
        if {one.state for one in plan.entries} == {"impossible"}:
            raise LLPBenchError(plan.reasons[0])
        return plan


def _require_not_newer(entries: Iterable[Planned]) -> None:
    """Raise `LLPBenchError` if newer code made a record that would be repeated: it would count again afterwards."""
    for one, seed in ((each, seed) for each in entries for seed in {*each.wanted}.intersection(each.stale)):
        cell, record = one.cell, one.records[seed]
        versions = cell_versions(cell.method, cell.dataset, cell.bagging, cell.encoder)
        if Contents.is_older({"numerics": NUMERICS, "versions": versions}, record):
            raise LLPBenchError(
                f"the journal has results of {cell.method} from newer code ({one.stale[seed]}). Install it, keep the "
                "results (--keep-stale), or choose another --out."
            )


def _tunings_of(settings: Settings, cells: Sequence[Resolved]) -> list[tuple[Resolved, Tuning]]:
    """Return the searches of the settings, one per cell and regime, with the cells where they start.

    Raises `LLPBenchError` if there is nothing to search.
    """
    if settings.tune is None:
        return []
    tunings = [(one, tuning) for one in cells for tuning in _tunings_of_cell(settings, settings.tune, one.cell)]
    if cells and not tunings:
        if "coarse" not in settings.tune_regimes and all(is_without_labels(one.cell.bagging) for one in cells):
            raise LLPBenchError("data without labels of rows cannot be tuned by labels. Leave --tune-regimes out.")
        methods = METHODS.select(settings.methods)
        raise LLPBenchError(
            f"{' and '.join(sorted(methods))} {verb(len(methods))} no hyperparameter to search"
            f"{' besides those in --set' if settings.set else ''}. "
            f"Leave --tune {settings.tune} out, or add a method that has one (llpbench list params METHOD)."
        )
    return tunings


def _tunings_of_cell(settings: Settings, trials: int, cell: Cell) -> Iterator[Tuning]:
    """Yield the searches of a cell, one per regime, in all hyperparameters that --set does not set."""
    from llpbench.tuning import space  # Optuna

    fixed = settings.set.get(cell.method, ())
    free = {name: values for name, values in space.search_space(cell.method).items() if name not in fixed}
    space.require_start(cell.method, free, cell.params)
    # trials proposed together share an architecture; if nothing else is free, they would be identical
    together = free.keys() - space.architecture(cell.method, free, dict.fromkeys(free))
    size = TOGETHER if together and cell.protocol is not None else 1
    regimes = [regime for regime in settings.tune_regimes if regime == "coarse" or not is_without_labels(cell.bagging)]
    for regime in regimes if free else ():
        yield Tuning(cell, regime, trials, free, settings.tune_sampler, settings.tune_seed, size)


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
    of_pretraining = _grid(settings.set.get("pretraining", {}))
    shared: dict[str, Any] = {"protocol": settings.protocol, "max_bags": settings.max_bags}
    for parts in _grid(choices):
        for of_method, pretraining_params in itertools.product(_grid(params.get(parts["method"], {})), of_pretraining):
            yield make_cell(**parts, **shared, params=of_method, pretraining_params=pretraining_params)


def _grid(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every combination of values. A hyperparameter may have a list of several values."""
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*lists)]


def _study_cells(settings: Settings) -> list[Cell]:
    """Return the cells of the studies in the settings.

    Factors that a study does not fix take their values from the settings: the datasets, and usually bagging, bag size
    and encoder. Of the values that a study fixes, flags and the configuration file can select a part. Raises
    `LLPBenchError` if no cell is selected.
    """
    chosen, choices = Study.select(settings.study or ""), _choices(settings)
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
        known = "; ".join(f"--{option} {','.join(names)}" for option, names in values.items() if names)
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


def _row_cells(row: StudyRow, dataset: str, choices: Mapping[str, list[Any]], settings: Settings) -> Iterator[Cell]:
    """Yield the cells of a row: what it fixes, without values that the user excluded; other parts as in `choices`."""
    fixed, levels = row.fixed, {}
    for option, part in _NARROWING.items():
        levels[part] = choices[part]
        if part in fixed:
            values = row.pretrainings if part == "pretraining" else [fixed[part]]
            allowed = choices[part] if option in settings.narrowed else values
            levels[part] = [value for value in values if value in allowed]
    rest: dict[str, Any] = {name: fixed.get(name) for name in ("params", "pretraining_params", "max_bags")}
    for parts in _grid(levels):
        # z-scores, also for encoders with another default: a table of a study has no other scaling
        yield make_cell(**parts, **rest, dataset=dataset, protocol=settings.protocol, numbers="z")


def _params(settings: Settings, methods: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the values of --set by method name. Those of pretraining are only checked."""
    params = {name: values for name, values in settings.set.items() if name != "pretraining"}
    if "pretraining" in settings.set:
        from llpbench.blocks.pretraining import PretrainingParams

        if set(settings.pretraining) == {"none"}:
            raise LLPBenchError("--set names pretraining, but there is none. Add --pretraining self, bag or self+bag.")
        for values in _grid(settings.set["pretraining"]):
            read_params(PretrainingParams, values, owner="pretraining")
    for name in params:
        if name not in methods:
            known = METHODS.entry(name).name  # unknown names have an error of their own
            raise LLPBenchError(f"--set names {known!r}, which is not in this run. Add it to --methods.")
    return params


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
