"""The one tidy table: a row a run and criterion. Boards, tables, plots, page, CSV and notebooks are made of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.record import CriterionResult, Record, TuningRecord
from llpbench.results.choices import chosen_by_searches

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NO_STALE_RUNS: Mapping[str, str] = MappingProxyType({})
"""Reasons of stale runs where nobody has compared them with the code."""

NO_PROTOCOL = "null"
"""Protocol of methods without epochs, as JSON."""

_ENGINE = ("ensemble", "precision", "numbers")
"""Parts of a specification that have rows of their own on a board, and that few runs have."""
_NAMED = {"method", "encoder", "pretraining", "dataset", "bagging", "bag_size", "max_bags", "protocol"}
"""Parts of a specification that rows, columns and headings of a board name; all others are settings."""
_MACHINE = ("name", "device", "threads", "precision", "compiled")
"""Facts of the hardware that decide how long a run takes."""


_json = json.JSONEncoder(sort_keys=True).encode


class Variable(NamedTuple):
    """A column of the table that a run has, whatever the criterion."""

    meaning: str
    read: Callable[[Record], Any]
    kind: str = "object"
    """dtype; `object` of texts"""


class Measure(NamedTuple):
    """A column of the table that each criterion of a run has."""

    meaning: str
    read: Callable[[CriterionResult], Any]


def items(configuration: Mapping[str, Any]) -> set[str]:
    """`{"params": {"weight": 0.1}}` as `{"weight=0.1"}`; what is not in `params` keeps its path."""
    found: set[str] = set()
    for key, value in configuration.items():
        if isinstance(value, Mapping):
            prefix = "" if key == "params" else f"{key}."
            found |= {prefix + item for item in items(value)}
        else:
            found.add(f"{key}={_json(value)}")
    return found


def configuration(changed: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Return what sets a cell apart from the defaults of its method and of the engine, as text."""
    return ", ".join(sorted(items({**changed, **{name: spec[name] for name in _ENGINE if name in spec}})))


def settings(spec: Mapping[str, Any]) -> str:
    """Return all of a specification that no other column says, as JSON."""
    return _json({key: value for key, value in spec.items() if key not in _NAMED})


def training_seconds(run: Record) -> float | None:
    """Return the seconds of steps, warm-up and pretraining of a run; None where it does not say, or took no time."""
    times, pretrained = run["times"], run["spec"]["pretraining"] != "none"
    if times.get("train") is None or (pretrained and times.get("pretraining") is None):
        return None
    return fsum((times["train"], times.get("warm-up") or 0.0, times["pretraining"] if pretrained else 0.0)) or None


def _spec(name: str, meaning: str, default: Any = None, kind: str = "object") -> dict[str, Variable]:
    return {name: Variable(meaning, lambda run: run["spec"].get(name, default), kind)}


def _part(field: str, name: str | int, run: Record) -> Any:
    return run[field].get(name)  # type: ignore[literal-required]


def _protocol(name: str, run: Record) -> Any:
    return (run["spec"]["protocol"] or {}).get(name)


def _size(place: int, run: Record) -> Any:
    return run["bags"]["sizes"][place] if "sizes" in run["bags"] else None


def _changed(run: Record) -> str:
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(run["method"]["changed"].items()))


VARIABLES: dict[str, Variable] = {
    "run": Variable("name of the run: cell and seed", lambda run: run["run"]),
    "cell": Variable("hash of the specification, equal for all seeds of a cell", lambda run: run["cell"]),
    "seed": Variable("seed of split, bags and training", lambda run: run["seed"], "int64"),
    **_spec("method", "name of the method"),
    "kind": Variable("`neural` or `direct`", lambda run: run["method"]["kind"]),
    "role": Variable("`floor`, `ceiling` or empty", lambda run: run["method"]["role"]),
    "reference": Variable("paper of the method; empty if it has none", lambda run: run["method"]["reference"] or ""),
    **_spec("dataset", "name of the dataset"),
    **_spec("bagging", "how rows became bags, with its options"),
    **_spec("bag_size", "rows of a bag; 0: bags of their own sizes", kind="int64"),
    **_spec("max_bags", "most training bags; missing: all that there are", kind="float64"),
    **_spec("encoder", "encoder of neural methods; missing for others"),
    **_spec("pretraining", "what the encoder started from"),
    **_spec("ensemble", "networks trained for the seed and averaged", 1, "int64"),
    **_spec("precision", "precision of the networks", "float32"),
    **_spec("numbers", "scale of numbers: `z`, `scores` or `robust`", "z"),
    "changed": Variable(
        'hyperparameters that differ from their defaults, by name, values as in JSON: `hidden=64, objective="cosine"`; '
        "empty where none does",
        _changed,
    ),
    "configuration": Variable(
        "the same with ensemble, precision and numbers where these are not the default, as a board names it",
        lambda run: configuration(run["method"]["changed"], run["spec"]),
    ),
    "settings": Variable(
        "JSON of everything in the specification that no other column says", lambda run: settings(run["spec"])
    ),
    "protocol": Variable("JSON of epochs, patience and bags a step", lambda run: _json(run["spec"]["protocol"])),
    "max_epochs": Variable("most epochs of a stage; missing without epochs", partial(_protocol, "epochs"), "float64"),
    "patience": Variable(
        "epochs without improvement after which training stops", partial(_protocol, "patience"), "float64"
    ),
    "bags_per_step": Variable(
        "bags in one gradient step; missing without epochs", partial(_protocol, "bags_per_step"), "float64"
    ),
    "status": Variable("`ok`, `failed`, `out-of-memory` or `timed-out`", lambda run: run["status"]),
    "reason": Variable("why it failed; empty if it did not", lambda run: run["reason"]),
    "classes": Variable("number of classes; missing if unknown", partial(_part, "dataset", "classes"), "float64"),
    "bags": Variable("number of training bags", partial(_part, "bags", "number"), "float64"),
    "validation_bags": Variable("number of validation bags", partial(_part, "bags", "validation"), "float64"),
    "least_rows": Variable("rows of the smallest training bag", partial(_size, 0), "float64"),
    "median_rows": Variable("median of the rows of training bags", partial(_size, 1), "float64"),
    "most_rows": Variable("rows of the largest training bag", partial(_size, 2), "float64"),
    "epochs": Variable("epochs trained, over all stages", lambda run: run["epochs"], "int64"),
    "parameters": Variable("trainable parameters of one network", lambda run: run["parameters"], "int64"),
    "seconds": Variable(
        "seconds of the whole run; its share where seeds trained together", partial(_part, "times", "total"), "float64"
    ),
    "seconds_train": Variable("seconds of training or fitting alone", partial(_part, "times", "train"), "float64"),
    "seconds_warm_up": Variable("first steps, compilation included", partial(_part, "times", "warm-up"), "float64"),
    "seconds_pretraining": Variable(
        "pretraining when it was computed, for whichever run", partial(_part, "times", "pretraining"), "float64"
    ),
    "seconds_predict": Variable("one prediction of the test rows", partial(_part, "times", "predict"), "float64"),
    "seconds_training": Variable(
        "training with warm-up and pretraining, as boards show it", training_seconds, "float64"
    ),
    "memory_mb": Variable("peak memory in megabytes", lambda run: run["memory_mb"], "float64"),
    "device": Variable("what it ran on", partial(_part, "hardware", "name")),
    "machine": Variable(
        "JSON of everything in the hardware that decides how long a run takes",
        lambda run: _json([run["hardware"].get(name) for name in _MACHINE]),
    ),
    "version": Variable("version of llpbench that made it", lambda run: run["code"]["version"]),
    "finished": Variable("UTC, ISO 8601", lambda run: run["finished"]),
}
"""Columns of a run by name."""


def metric_column(metric: str) -> str:
    """Return the column of a test metric: `test_average_precision` of `average-precision`."""
    return f"test_{metric.replace('-', '_')}"


def _metric(name: str) -> Measure:
    title, better = METRICS[name].title, "higher" if METRICS[name].maximise else "lower"
    where = "" if " of t" in title else " of test rows"  # some titles say what they are of
    return Measure(f"{title}{where}; {better} is better", lambda result: result["test"].get(name))


MEASURES: dict[str, Measure] = {
    "epoch": Measure(
        "zero-based epoch that the criterion chose; missing without epochs", lambda result: result["epoch"]
    ),
    "validation": Measure("the criterion's value there, on the validation rows", lambda result: result["validation"]),
    **{metric_column(name): _metric(name) for name in METRICS},
}
"""Columns of a run and criterion by name; missing where the run failed."""

COLUMNS: dict[str, str] = {
    **{name: variable.meaning for name, variable in VARIABLES.items()},
    "criterion": "what chose the epoch (`auc`, `mpiou`, `l1`, ...); missing where the run failed",
    "regime": "`fine`: the criterion needs labels of validation rows; `coarse`: proportions of validation bags alone",
    **{name: measure.meaning for name, measure in MEASURES.items()},
    "chosen": "whether only a search for hyperparameters has chosen this configuration, now or formerly",
    "stale": "what has changed in the code since the run was made; empty if nothing has",
}
"""Meaning of every column by name; metrics are as the journal has them: between 0 and 1, not times 100."""


def tidy(
    records: Iterable[Record],
    stale: Mapping[str, str] = NO_STALE_RUNS,
    tunings: Sequence[TuningRecord] = (),
    criteria: Container[str] | None = None,
) -> DataFrame:
    """Return one row a run and criterion with the columns `COLUMNS`; what has no criterion is one row without any.

    Of two records of a run the last one counts. `stale`: reasons by run id, as `results.staleness.stale_runs` has them.
    `criteria`: which ones; default all.
    """
    from pandas import DataFrame, Series

    runs = [*{record["run"]: record for record in records}.values()]
    chosen = chosen_by_searches(tunings)
    columns = ((name, each, map(each.read, runs)) for name, each in VARIABLES.items())
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


def _whole(value: Any) -> Any:
    """A text with `?` for half a character, which no file and no index of pandas can hold."""
    return value if not isinstance(value, str) or value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _results(run: Record, criteria: Container[str] | None) -> Sequence[tuple[str, CriterionResult] | tuple[None, None]]:
    results = run["results"].items() if run["status"] == "ok" else ()
    return [each for each in results if criteria is None or each[0] in criteria] or [(None, None)]


def shown(frame: DataFrame, metric: str) -> Series:
    """Return a test metric as reports show it: percentages times 100, missing where it is not finite."""
    from numpy import isfinite

    values = frame[metric_column(metric)]
    values = values.where(isfinite(values))
    return 100.0 * values if METRICS[metric].percent else values


def value_of(run: Record, criterion: str, metric: str) -> float | None:
    """The same of a single run; None if it is unknown."""
    result = run["results"].get(criterion) if run["status"] == "ok" else None
    value = None if result is None else result["test"].get(metric)
    return value if value is None or not METRICS[metric].percent else 100.0 * value
