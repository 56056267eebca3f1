"""The tidy table of results, one row per run and criterion.

Boards, tables, plots, page, CSV and notebooks are made from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from llpbench.core.cell import Cell
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.record import CPU_TOTAL, CPU_TRAIN, CriterionResult, Record, TuningRecord

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


class _Variable(NamedTuple):
    """A column of the table that depends on the run, not on the criterion."""

    meaning: str
    read: Callable[[Record], Any]
    kind: str = "object"
    """dtype; `object` for texts"""


class _Measure(NamedTuple):
    """A column of the table that depends on run and criterion."""

    meaning: str
    read: Callable[[CriterionResult], Any]


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
    """Return the parts of a specification without a column of their own, as JSON."""
    return _json({key: value for key, value in spec.items() if key not in _NAMED})


def _training_seconds(run: Record) -> float | None:
    """Return the seconds of steps, warm-up and pretraining of a run; None if they are unknown or 0."""
    times, pretrained = run["times"], run["spec"]["pretraining"] != "none"
    if times.get("train") is None or (pretrained and times.get("pretraining") is None):
        return None
    return fsum((times["train"], times.get("warm-up") or 0.0, times["pretraining"] if pretrained else 0.0)) or None


def _cpu_training_seconds(run: Record) -> float | None:
    """Return the CPU seconds of training of a run; None if they are unknown, as for pretraining, or 0."""
    return run["times"].get(CPU_TRAIN) or None if run["spec"]["pretraining"] == "none" else None


def _spec(name: str, meaning: str, default: Any = None, kind: str = "object") -> dict[str, _Variable]:
    return {name: _Variable(meaning, lambda run: run["spec"].get(name, default), kind)}


def _part(field: str, name: str | int, run: Record) -> Any:
    return run[field].get(name)  # type: ignore[literal-required]


def _protocol(name: str, run: Record) -> Any:
    return (run["spec"]["protocol"] or {}).get(name)


def _size(place: int, run: Record) -> Any:
    return run["bags"]["sizes"][place] if "sizes" in run["bags"] else None


def _changed(run: Record) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(run["method"]["changed"].items()))


_VARIABLES: dict[str, _Variable] = {
    "run": _Variable("name of the run: cell and seed", lambda run: run["run"]),
    "cell": _Variable("hash of the cell's specification, the same for all seeds", lambda run: run["cell"]),
    "seed": _Variable("seed of the split, the bags and training", lambda run: run["seed"], "int64"),
    **_spec("method", "name of the method"),
    "kind": _Variable("kind of method: `neural` or `direct`", lambda run: run["method"]["kind"]),
    "role": _Variable(
        "role of the method: `floor`, `control`, `ceiling` or empty; boards also have `supervised`",
        lambda run: run["method"]["role"],
    ),
    "reference": _Variable("paper of the method; empty if it has none", lambda run: run["method"]["reference"] or ""),
    **_spec("dataset", "name of the dataset"),
    "dataset_code": _Variable(
        "short name of the dataset, for example in the paper; empty if it has none",
        lambda run: run["dataset"].get("code") or "",
    ),
    **_spec("bagging", "name of the bagging, with its options"),
    "bag_size": _Variable(
        "rows per bag; missing if bag sizes vary", lambda run: run["spec"]["bag_size"] or None, "float64"
    ),
    **_spec("max_bags", "number of training bags drawn at random; missing if all are used", kind="float64"),
    **_spec("encoder", "name of the encoder; missing for methods without one"),
    **_spec("pretraining", "name of the pretraining; `none` without one"),
    **_spec("ensemble", "number of networks trained per seed and averaged", 1, "int64"),
    **_spec("precision", "floating-point precision of the networks", "float32"),
    **_spec(
        "numbers",
        "scale of numbers: `z` (z-scores), `scores` (normal scores) or `robust` (by the interquartile range)",
        "z",
    ),
    **_spec(
        "average",
        "rule that averages late epochs instead of choosing one, such as `half:30` (the second half of 30); "
        "empty if an epoch is chosen",
        "",
    ),
    "changed": _Variable(
        'hyperparameters that differ from their defaults, with JSON values: `hidden=64, objective="cosine"`; '
        "empty if none do",
        _changed,
    ),
    "configuration": _Variable(
        "`changed` plus ensemble, precision, numbers and average (those not default); used on boards",
        lambda run: configuration(run["method"]["changed"], run["spec"]),
    ),
    "settings": _Variable(
        "JSON of all parts of the specification without a column of their own", lambda run: settings(run["spec"])
    ),
    "protocol": _Variable("JSON of epochs, patience and bags per step", lambda run: _json(run["spec"]["protocol"])),
    "max_epochs": _Variable(
        "limit on epochs of a stage; missing without epochs", partial(_protocol, "epochs"), "float64"
    ),
    "patience": _Variable(
        "epochs without improvement after which a criterion stops; missing without epochs",
        partial(_protocol, "patience"),
        "float64",
    ),
    "bags_per_step": _Variable(
        "bags per gradient step; missing without epochs", partial(_protocol, "bags_per_step"), "float64"
    ),
    "status": _Variable("status of the run: `ok`, `failed`, `out-of-memory` or `timed-out`", lambda run: run["status"]),
    "reason": _Variable("cause of a failure; empty if the run succeeded", lambda run: run["reason"]),
    "classes": _Variable(
        "number of classes of the dataset; missing if unknown", partial(_part, "dataset", "classes"), "float64"
    ),
    "bags": _Variable("number of training bags", partial(_part, "bags", "number"), "float64"),
    "validation_bags": _Variable("number of validation bags", partial(_part, "bags", "validation"), "float64"),
    "least_rows": _Variable("number of rows of the smallest training bag", partial(_size, 0), "float64"),
    "median_rows": _Variable("median number of rows of training bags", partial(_size, 1), "float64"),
    "most_rows": _Variable("number of rows of the largest training bag", partial(_size, 2), "float64"),
    "epochs": _Variable("number of epochs trained, over all stages", lambda run: run["epochs"], "int64"),
    "parameters": _Variable("number of trainable parameters of one network", lambda run: run["parameters"], "int64"),
    "seconds": _Variable(
        "seconds of the run; if seeds were trained together, the run's share of the time",
        partial(_part, "times", "total"),
        "float64",
    ),
    "seconds_train": _Variable(
        "seconds of training or fitting, without warm-up and pretraining", partial(_part, "times", "train"), "float64"
    ),
    "seconds_warm_up": _Variable(
        "seconds of first steps, including compilation", partial(_part, "times", "warm-up"), "float64"
    ),
    "seconds_evaluate": _Variable(
        "seconds of the evaluation after every epoch", partial(_part, "times", "evaluate"), "float64"
    ),
    "seconds_pretraining": _Variable(
        "seconds of the pretraining, even if another run computed it", partial(_part, "times", "pretraining"), "float64"
    ),
    "seconds_predict": _Variable(
        "seconds of one prediction of the test rows", partial(_part, "times", "predict"), "float64"
    ),
    "seconds_training": _Variable(
        "sum of `seconds_train`, warm-up and pretraining, as on boards", _training_seconds, "float64"
    ),
    "members": _Variable("number of seeds trained together", lambda run: run["members"], "int64"),
    "cpu_seconds": _Variable(
        "CPU seconds of the run, otherwise as `seconds`; missing on a GPU and if unknown",
        partial(_part, "times", CPU_TOTAL),
        "float64",
    ),
    "cpu_seconds_training": _Variable(
        "CPU seconds of training with warm-up; missing with pretraining, on a GPU and if unknown",
        _cpu_training_seconds,
        "float64",
    ),
    "memory_mb": _Variable("peak memory in megabytes", lambda run: run["memory_mb"], "float64"),
    "device": _Variable("name of the processor or GPU", partial(_part, "hardware", "name")),
    "machine": _Variable(
        "JSON of the hardware facts that affect the time of a run",
        lambda run: _json([run["hardware"].get(name) for name in MACHINE]),
    ),
    "version": _Variable("version of llpbench that produced the run", lambda run: run["code"]["version"]),
    "finished": _Variable("end of the run in UTC, ISO 8601", lambda run: run["finished"]),
}
"""Columns of a run by name."""


def metric_column(metric: str) -> str:
    """Return the column of a test metric, for example `test_average_precision` for `average-precision`."""
    return f"test_{metric.replace('-', '_')}"


def _diagnostic(name: str, meaning: str) -> _Measure:
    return _Measure(meaning, lambda result: result["diagnostics"].get(name))


def _metric(name: str) -> _Measure:
    better = "higher" if METRICS[name].maximise else "lower"
    return _Measure(f"metric: {METRICS[name].title}; {better} is better", lambda result: result["test"].get(name))


MEASURES: dict[str, _Measure] = {
    "epoch": _Measure(
        "epoch selected by the criterion, zero-based; missing without epochs", lambda result: result["epoch"]
    ),
    "validation": _Measure("value of the criterion at that epoch", lambda result: result["validation"]),
    **{metric_column(name): _metric(name) for name in METRICS},
    "cas": _diagnostic(
        "cas", "class awareness score: how well row vectors of a network separate the classes; 0.5 if not at all"
    ),
    "pair_accuracy": _diagnostic("pair-accuracy", "share of the pseudo-pairs of TabLLP-BDC that are of one class"),
}
"""Columns of a run and criterion by name; missing if the run failed."""

COLUMNS: dict[str, str] = {
    **{name: variable.meaning for name, variable in _VARIABLES.items()},
    "criterion": "criterion that selected the epoch (`auc`, `mpiou`, `l1`, ...); missing if the run failed",
    "regime": "data that the criterion needs: `fine` for labels of validation rows, `coarse` for proportions of "
    "validation bags",
    **{name: measure.meaning for name, measure in MEASURES.items()},
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
        name: Series([result and each.read(result) for _, _, result in pairs], dtype=float)
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
    """Return a test metric as reports show it: percentages times 100, missing if it is not finite."""
    from numpy import isfinite

    values = frame[metric_column(metric)]
    values = values.where(isfinite(values))
    return 100.0 * values if METRICS[metric].percent else values


def value_of(run: Record, criterion: str, metric: str) -> float | None:
    """Return a test metric of a single run as reports show it; None if it is unknown."""
    result = run["results"].get(criterion) if run["status"] == "ok" else None
    value = None if result is None else result["test"].get(metric)
    return value if value is None or not METRICS[metric].percent else 100.0 * value
