"""A journal's runs as a table for analysis: one row a run and criterion."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.record import CriterionResult, Record

if TYPE_CHECKING:
    from pandas import DataFrame


class Variable(NamedTuple):
    """A column of the table."""

    meaning: str
    read: Callable[[Record, CriterionResult | None], Any]
    """of a run and what one criterion chose; None for a run that has failed"""


def _of_spec(name: str, meaning: str, usual: Any = None) -> dict[str, Variable]:
    return {name: Variable(meaning, lambda run, _: run["spec"].get(name, usual))}


def _of_protocol(name: str) -> Callable[[Record, CriterionResult | None], Any]:
    return lambda run, _: (run["spec"]["protocol"] or {}).get(name)


def _of_bags(name: str) -> Callable[[Record, CriterionResult | None], Any]:
    return lambda run, _: run["bags"].get(name)


def _of_size(place: int) -> Callable[[Record, CriterionResult | None], Any]:
    return lambda run, _: run["bags"]["sizes"][place] if run["bags"] else None


def _seconds(name: str) -> Callable[[Record, CriterionResult | None], Any]:
    return lambda run, _: run["times"].get(name)


def _test(name: str) -> Variable:
    metric = METRICS[name]
    better = "higher" if metric.maximise else "lower"
    return Variable(f"{metric.title} of the test rows; {better} is better", lambda _, of: of and of["test"].get(name))


VARIABLES: dict[str, Variable] = {
    "run": Variable("name of the run: cell and seed", lambda run, _: run["run"]),
    "cell": Variable("hash of the specification, equal for all seeds of a cell", lambda run, _: run["cell"]),
    "seed": Variable("of split, bags and training", lambda run, _: run["seed"]),
    **_of_spec("method", "name of the method"),
    "kind": Variable("`neural` or `direct`", lambda run, _: run["method"]["kind"]),
    "role": Variable("`floor`, `ceiling` or empty", lambda run, _: run["method"]["role"]),
    **_of_spec("dataset", "name of the dataset"),
    **_of_spec("bagging", "how rows became bags, with its options"),
    **_of_spec("bag_size", "rows of a bag; 0: bags of their own sizes"),
    **_of_spec("max_bags", "most training bags; missing: all that there are"),
    **_of_spec("encoder", "of neural methods; missing where there is none"),
    **_of_spec("pretraining", "what the encoder started from"),
    **_of_spec("ensemble", "networks trained for the seed and averaged", 1),
    **_of_spec("precision", "of the networks", "float32"),
    **_of_spec("numbers", "scale of numbers: `z`, `scores` or `robust`", "z"),
    "changed": Variable(
        'hyperparameters that differ from their defaults, by name, values as in JSON: `hidden=64, objective="cosine"`; '
        "empty where none does",
        lambda run, _: ", ".join(
            f"{name}={json.dumps(value)}" for name, value in sorted(run["method"]["changed"].items())
        ),
    ),
    "max_epochs": Variable("most epochs of a stage; missing without epochs", _of_protocol("epochs")),
    "patience": Variable("epochs without improvement that settle a criterion", _of_protocol("patience")),
    "bags_per_step": Variable("bags in one gradient step; missing without epochs", _of_protocol("bags_per_step")),
    "status": Variable("`ok`, `failed`, `out-of-memory` or `timed-out`", lambda run, _: run["status"]),
    "reason": Variable("why it failed; empty if it did not", lambda run, _: run["reason"]),
    "epoch": Variable(
        "zero-based epoch that the criterion chose; missing without epochs", lambda _, of: of and of["epoch"]
    ),
    "validation": Variable(
        "the criterion's value there, on the validation rows", lambda _, of: of and of["validation"]
    ),
    **{f"test_{name.replace('-', '_')}": _test(name) for name in METRICS},
    "bags": Variable("number of training bags", _of_bags("number")),
    "validation_bags": Variable("number of validation bags", _of_bags("validation")),
    "least_rows": Variable("rows of the smallest training bag", _of_size(0)),
    "most_rows": Variable("rows of the largest training bag", _of_size(2)),
    "epochs": Variable("epochs trained, over all stages", lambda run, _: run["epochs"]),
    "parameters": Variable("trainable numbers of one network", lambda run, _: run["parameters"]),
    "seconds": Variable("of the whole run, its share where seeds trained together", _seconds("total")),
    "seconds_train": Variable("of training or fitting alone", _seconds("train")),
    "memory_mb": Variable("peak memory in megabytes", lambda run, _: run["memory_mb"]),
    "device": Variable("what it ran on", lambda run, _: run["hardware"].get("name")),
    "version": Variable("of llpbench that made it", lambda run, _: run["code"]["version"]),
    "finished": Variable("UTC, ISO 8601", lambda run, _: run["finished"]),
}
"""what each run tells; beside them are `criterion`, `regime` and `stale` (`COLUMNS`)"""

COLUMNS: dict[str, str] = {
    **{name: variable.meaning for name, variable in VARIABLES.items()},
    "criterion": "what chose the epoch (`auc`, `mpiou`, `l1`, ...); missing where the run failed",
    "regime": "`fine`: the criterion needs labels of validation rows; `coarse`: proportions of validation bags alone",
    "stale": "what has changed in the code since the run was made; empty if nothing has",
}
"""meaning of every column, by name; metrics are as the journal has them: between 0 and 1, not times 100"""

_AFTER = "reason"
"""criterion and regime stand behind this column"""


def tidy(records: Iterable[Record], stale: Mapping[str, str]) -> DataFrame:
    """One row a run and criterion, with the columns `COLUMNS`; a failed run is one row without a criterion.

    `stale`: by run id, as `results.staleness.stale_runs` has it.
    """
    from pandas import DataFrame

    names = list(VARIABLES)
    place = names.index(_AFTER) + 1
    order = [*names[:place], "criterion", "regime", *names[place:], "stale"]
    frame = DataFrame(list(_rows(records, stale)), columns=order)
    numbers = [name for name in order if name.startswith("test_")] + ["validation", "epoch", "seconds", "seconds_train"]
    return frame.astype(dict.fromkeys(numbers, float))  # a column without values holds NaN like any other


def _rows(records: Iterable[Record], stale: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for run in records:
        chosen: list[tuple[str | None, CriterionResult | None]] = [*run["results"].items()] or [(None, None)]
        for criterion, result in chosen:
            regime = CRITERIA[criterion].regime if criterion in CRITERIA else None
            told = {name: variable.read(run, result) for name, variable in VARIABLES.items()}
            yield {**told, "criterion": criterion, "regime": regime, "stale": stale.get(run["run"], "")}
