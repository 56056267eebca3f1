"""The tidy table of results, one row per run and criterion.

Boards, tables, plots, page, CSV and notebooks are made from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from llpbench.core.cell import Cell
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.record import CPU_TRAIN, CriterionResult, Record, TuningRecord

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NO_STALE_RUNS: Mapping[str, str] = MappingProxyType({})
"""Reasons of stale runs if runs have not been compared with the code."""

NO_PROTOCOL = "null"
"""Protocol of methods without epochs, as JSON."""

_ENGINE = ("ensemble", "precision", "numbers", "average")
"""Parts of a specification that distinguish rows of a board, and that few runs set."""
_NAMED = {"method", "encoder", "pretraining", "dataset", "bagging", "bag_size", "max_bags", "protocol"}
"""Parts of a specification named by rows, columns and headings of a board; all others are settings."""
MACHINE = ("name", "device", "threads", "precision", "compiled")
"""Facts of the hardware that affect the time of a run."""


_json = json.JSONEncoder(sort_keys=True).encode


class _Column(NamedTuple):
    """A column of the table."""

    meaning: str
    read: Callable[[Any], Any]
    """Function of a record, or of its result by a criterion."""
    kind: str = "object"
    """dtype; `object` for texts"""


def items(configuration: Mapping[str, Any]) -> set[str]:
    """Return `{"params": {"weight": 0.1}}` as `{"weight=0.1"}`. Outside `params`, keys keep their path."""
    found: set[str] = set()
    for key, value in configuration.items():
        if isinstance(value, Mapping):
            prefix = "" if key == "params" else f"{key}."
            found |= {prefix + item for item in items(value)}
        else:
            found.add(f"{key}={_json(value)}")
    return found


def configuration(changed: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Return a cell's differences from the defaults of its method and of the engine, as text."""
    return ", ".join(sorted(items({**changed, **{name: spec[name] for name in _ENGINE if name in spec}})))


def settings(spec: Mapping[str, Any]) -> str:
    """Return the parts of a specification without a separate column, as JSON."""
    return _json({key: value for key, value in spec.items() if key not in _NAMED})


def _training_seconds(run: Record) -> float | None:
    """Return the seconds of steps, warm-up and pretraining of a run; None if they are unknown or 0."""
    times, pretrained = run["times"], run["spec"]["pretraining"] != "none"
    if times.get("train") is None or (pretrained and times.get("pretraining") is None):
        return None
    return fsum((times["train"], times.get("warm-up") or 0.0, times["pretraining"] if pretrained else 0.0)) or None


def _at(path: str, meaning: str, kind: str = "object", default: Any = None) -> _Column:
    """Return a column that reads a value at a path such as `bags.sizes.0`; `default` if there is none."""
    names = path.split(".")

    def read(value: Any) -> Any:
        for name in names:
            value = value[int(name)] if isinstance(value, list) else (value or {}).get(name)
        return default if value is None else value

    return _Column(meaning, read, kind)


def _changed(run: Record) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(run["method"]["changed"].items()))


_VARIABLES: dict[str, _Column] = {
    "run": _at("run", "name of the run: cell and seed"),
    "cell": _at("cell", "hash of the cell's specification, the same for all seeds"),
    "seed": _at("seed", "seed of the split, the bags and training", "int64"),
    "method": _at("spec.method", "name of the method"),
    "kind": _at("method.kind", "kind of method: `neural` or `direct`"),
    "role": _at(
        "method.role", "role of the method: `floor`, `control`, `ceiling` or empty; boards also have `supervised`"
    ),
    "reference": _at("method.reference", "paper of the method; empty if it has none", default=""),
    "dataset": _at("spec.dataset", "name of the dataset"),
    "dataset_code": _at(
        "dataset.code", "short name of the dataset in the paper (older runs: also of others)", default=""
    ),
    "bagging": _at("spec.bagging", "name of the bagging, with its options"),
    "bag_size": _Column(
        "rows per bag; missing if bag sizes vary", lambda run: run["spec"]["bag_size"] or None, "float64"
    ),
    "max_bags": _at("spec.max_bags", "number of training bags drawn at random; missing if all are used", "float64"),
    "encoder": _at("spec.encoder", "name of the encoder; missing for methods without one"),
    "pretraining": _at("spec.pretraining", "name of the pretraining; `none` without one"),
    "ensemble": _at("spec.ensemble", "number of networks trained per seed and averaged", "int64", 1),
    "precision": _at("spec.precision", "floating-point precision of the networks", default="float32"),
    "numbers": _at(
        "spec.numbers",
        "scale of numbers: `z` (z-scores), `scores` (normal scores) or `robust` (by the interquartile range)",
        default="z",
    ),
    "average": _at(
        "spec.average",
        "rule that averages late epochs instead of choosing one, such as `half:30` (the second half of 30); "
        "empty if an epoch is chosen",
        default="",
    ),
    "changed": _Column(
        'hyperparameters that differ from their defaults, with JSON values: `hidden=64, objective="cosine"`; '
        "empty if none do",
        _changed,
    ),
    "configuration": _Column(
        "`changed` plus ensemble, precision, numbers and average (those not default); used on boards",
        lambda run: configuration(run["method"]["changed"], run["spec"]),
    ),
    "settings": _Column(
        "JSON of all parts of the specification without a separate column", lambda run: settings(run["spec"])
    ),
    "protocol": _Column("JSON of epochs, patience and bags per step", lambda run: _json(run["spec"]["protocol"])),
    "max_epochs": _at("spec.protocol.epochs", "limit on epochs of a stage; missing without epochs", "float64"),
    "patience": _at(
        "spec.protocol.patience",
        "epochs without improvement after which a criterion stops; missing without epochs",
        "float64",
    ),
    "bags_per_step": _at("spec.protocol.bags_per_step", "bags per gradient step; missing without epochs", "float64"),
    "status": _at("status", "status of the run: `ok`, `failed`, `out-of-memory` or `timed-out`"),
    "reason": _at("reason", "cause of a failure; empty if the run succeeded"),
    "classes": _at("dataset.classes", "number of classes of the dataset; missing if unknown", "float64"),
    "bags": _at("bags.number", "number of training bags", "float64"),
    "least_rows": _at("bags.sizes.0", "number of rows of the smallest training bag", "float64"),
    "median_rows": _at("bags.sizes.1", "median number of rows of training bags", "float64"),
    "most_rows": _at("bags.sizes.2", "number of rows of the largest training bag", "float64"),
    "epochs": _at("epochs", "number of epochs trained, over all stages", "int64"),
    "parameters": _at("parameters", "number of trainable parameters of one network", "int64"),
    "seconds": _at(
        "times.total", "seconds of the run; if seeds were trained together, the run's share of the time", "float64"
    ),
    "seconds_train": _at("times.train", "seconds of training or fitting, without warm-up and pretraining", "float64"),
    "seconds_warm_up": _at("times.warm-up", "seconds of first steps, including compilation", "float64"),
    "seconds_evaluate": _at("times.evaluate", "seconds of the evaluation after every epoch", "float64"),
    "seconds_pretraining": _at(
        "times.pretraining", "seconds of the pretraining, even if another run computed it", "float64"
    ),
    "seconds_training": _Column(
        "sum of `seconds_train`, warm-up and pretraining, as on boards", _training_seconds, "float64"
    ),
    "members": _at("members", "number of seeds trained together", "int64"),
    "cpu_seconds_training": _Column(
        "CPU seconds of training with warm-up; missing with pretraining, on a GPU and if unknown",
        lambda run: run["times"].get(CPU_TRAIN) or None if run["spec"]["pretraining"] == "none" else None,
        "float64",
    ),
    "memory_mb": _at("memory_mb", "peak memory in megabytes", "float64"),
    "device": _at("hardware.name", "name of the processor or GPU"),
    "machine": _Column(
        "JSON of the hardware facts that affect the time of a run",
        lambda run: _json([run["hardware"].get(name) for name in MACHINE]),
    ),
    "version": _at("code.version", "version of llpbench that produced the run"),
    "finished": _at("finished", "end of the run in UTC, ISO 8601"),
}
"""Columns of a run by name."""


def metric_column(metric: str) -> str:
    """Return the column of a test metric, for example `test_average_precision` for `average-precision`."""
    return f"test_{metric.replace('-', '_')}"


MEASURES: dict[str, _Column] = {
    "epoch": _at("epoch", "epoch selected by the criterion, zero-based; missing without epochs", "float64"),
    "validation": _at("validation", "value of the criterion at that epoch", "float64"),
    **{
        metric_column(name): _at(
            f"test.{name}", f"metric: {each.title}; {'higher' if each.maximise else 'lower'} is better", "float64"
        )
        for name, each in METRICS.items()
    },
    "cas": _at(
        "diagnostics.cas",
        "class awareness score: how well row vectors of a network separate the classes; 0.5 if not at all",
        "float64",
    ),
    "pair_accuracy": _at(
        "diagnostics.pair-accuracy", "share of the pseudo-pairs of TabLLP-BDC that are of one class", "float64"
    ),
}
"""Columns of a run and criterion by name; missing if the run failed."""

COLUMNS: dict[str, str] = {
    **{name: column.meaning for name, column in _VARIABLES.items()},
    "criterion": "criterion that selected the epoch (`auc`, `mpiou`, `l1`, ...); missing if the run failed",
    "regime": "data that the criterion needs: `fine` for labels of validation rows, `coarse` for proportions of "
    "validation bags",
    **{name: column.meaning for name, column in MEASURES.items()},
    "chosen": "whether a hyperparameter search, current or earlier, selected this configuration; False for defaults",
    "stale": "changes in the code since the run; empty if there are none",
}
"""Meaning of every column by name. Metrics are as in the journal: between 0 and 1, not times 100."""


def tidy(
    records: Iterable[Record],
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    criteria: Container[str] | None = None,
) -> DataFrame:
    """Return one row per run and criterion with the columns `COLUMNS`; a run without criteria has one row.

    Of several records of a run the last one counts. `stale`: reasons by run id, from `results.staleness.stale_reasons`.
    `criteria`: names to include; default all.
    """
    from pandas import DataFrame, Series

    runs = [*{record["run"]: record for record in records}.values()]
    chosen = _chosen_by_searches(tunings)
    columns = ((name, each, map(each.read, runs)) for name, each in _VARIABLES.items())
    of_runs = DataFrame(
        {
            name: Series(map(_whole, values) if each.kind == "object" else values, dtype=each.kind)
            for name, each, values in columns
        }
    )
    of_runs["chosen"] = [bool(run["cell"] in chosen and run["method"]["changed"]) for run in runs]
    of_runs["stale"] = Series([stale.get(run["run"], "") for run in runs], dtype=object)
    pairs: list[tuple[int, str | None, CriterionResult | None]] = [
        (place, criterion, result) for place, run in enumerate(runs) for criterion, result in _results(run, criteria)
    ]
    frame = of_runs.take([place for place, _, _ in pairs]).reset_index(drop=True)
    frame["criterion"] = Series([criterion for _, criterion, _ in pairs], dtype=object)
    regimes = [CRITERIA[criterion].regime if criterion in CRITERIA else None for _, criterion, _ in pairs]
    frame["regime"] = Series(regimes, dtype=object)
    measured = {
        name: Series([each.read(result) if result else None for _, _, result in pairs], dtype=each.kind)
        for name, each in MEASURES.items()
    }
    return DataFrame({**frame, **measured})[[*COLUMNS]]


def _chosen_by_searches(tunings: Sequence[TuningRecord]) -> set[str]:
    """Return ids of cells that searches have selected, now or earlier (`TuningRecord.former`).

    A record does not say why it was run. The initial cell of a search does not count, since a user has set it.
    """
    chosen = {cell for tuning in tunings for cell in tuning.get("former", ())}
    chosen |= {choice["cell"] for tuning in tunings for choice in tuning["best"].values()}
    return chosen - {Cell.of(tuning["spec"]["cell"]).id for tuning in tunings}


def _whole(value: Any) -> Any:
    """Replace lone surrogates in a text by `?`: neither files nor indexes of pandas can hold them."""
    return value if not isinstance(value, str) or value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _results(run: Record, criteria: Container[str] | None) -> Sequence[tuple[str, CriterionResult] | tuple[None, None]]:
    results = run["results"].items() if run["status"] == "ok" else ()
    return [each for each in results if criteria is None or each[0] in criteria] or [(None, None)]


def shown(frame: DataFrame, metric: str) -> Series:
    """Return a test metric as reports show it: times 100, missing if it is not finite."""
    from numpy import isfinite

    values = frame[metric_column(metric)]
    return 100.0 * values.where(isfinite(values))
