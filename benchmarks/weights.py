"""Can bags alone tell how to weigh the members of the union? Likelihood of held-out bags against equal weights.

    python -m benchmarks.weights --cells credit:ordered,flights_2013:column:by=date --seeds 30,31,32 --data-dir DATA

Weights are those of the three logits, on a grid of sixths. Two ways see counts of bags alone: the weights at which the
validation bags have the largest likelihood, and those at which training bags have it when members are fitted to the
other bags (stacking, four folds). The best weights by labels of test rows are what could be won at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from scipy.special import log_softmax, softmax

from llpbench.core.bags import BaggedRows, FloatArray, Rows, Schema
from llpbench.core.metrics import holdout_criteria, test_metrics
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.owndata.scoring import coarse_criteria
from llpbench.report.statistics import interval
from llpbench.training.cell_runs import make_task
from llpbench.training.memory import keep_freed
from llpbench.training.specification import make_cell

STEPS, FOLDS = 6, 4
WEIGHTS = [np.array([i, j, STEPS - i - j]) / STEPS for i, j in product(range(STEPS + 1), repeat=2) if i + j <= STEPS]
EQUAL = np.full(3, 1 / 3)
MEMBERS = ("bag-gp", "em-gbdt", "count-gbdt")
WAYS = ("equal", "validation bags", "stacking", "best member by validation bags", "em-gbdt alone", "best by labels")


def joined(members: FloatArray, weights: FloatArray) -> FloatArray:
    """Probabilities [rows, classes] of log probabilities [3, rows, classes]."""
    return np.asarray(softmax(np.tensordot(weights, members, axes=1), axis=1))


def likeliest(candidates: Sequence[FloatArray], likelihood: Callable[[FloatArray], float]) -> FloatArray:
    """The weights at which held-out counts are likeliest."""
    return max(candidates, key=likelihood)


def members_of(train: BaggedRows, schema: Schema, seed: int) -> Callable[[Rows], FloatArray]:
    """Log probabilities of the three members, fitted to these bags."""
    union: Any = METHODS.get("bag-gp-gbdt")
    found = union(union.Params()).fit(train, schema, generator(seed, "training"))
    members = found.process, found.refitted, found.counted
    return lambda rows: np.stack([log_softmax(member(rows), axis=1) for member in members])


def stacked(train: BaggedRows, schema: Schema, seed: int) -> FloatArray:
    """The weights at which every training bag is likeliest under members that were fitted to the other folds."""
    fold = generator(seed, "folds of bags").permutation(np.arange(len(train.sizes)) % FOLDS)
    parts = []
    for held in range(FOLDS):
        bags = train.some(fold == held)
        parts.append((members_of(train.some(fold != held), schema, seed)(bags.rows), bags))

    def likelihood(weights: FloatArray) -> float:
        each = [coarse_criteria(joined(members, weights), bags)["likelihood"] for members, bags in parts]
        return float(np.average(each, weights=[len(bags.sizes) for _, bags in parts]))

    return likeliest(WEIGHTS, likelihood)


def measure(dataset: str, bagging: str, seed: int, data_dir: str | None) -> tuple[dict[str, float], dict[str, str]]:
    """Test AUC by way, and the weights that were chosen."""
    size = 256 if bagging in ("ordered", "random") else 0
    task = make_task(make_cell("bag-gp-gbdt", dataset, bagging=bagging, bag_size=size), seed, "bags", data_dir)
    members = members_of(task.train, task.schema, seed)
    tested, validated = members(task.test.rows), members(task.validation.rows)

    def validation(weights: FloatArray) -> float:
        return holdout_criteria(joined(validated, weights), task.validation)["likelihood"]

    def auc(weights: FloatArray) -> float:
        return 100 * test_metrics(joined(tested, weights), task.test)["auc"]

    ways = {
        "equal": EQUAL,
        "validation bags": likeliest(WEIGHTS, validation),
        "stacking": stacked(task.train.where_known(), task.schema, seed),
        "best member by validation bags": likeliest(list(np.eye(3)), validation),
        "em-gbdt alone": np.eye(3)[1],
        "best by labels": max(WEIGHTS, key=auc),
    }
    chosen = {name: "/".join(f"{STEPS * w:.0f}" for w in weights) for name, weights in ways.items()}
    return {name: auc(weights) for name, weights in ways.items()}, chosen


def shown_mean(values: FloatArray) -> str:
    """Mean and 95 % t interval of some cells' means."""
    low, high = interval(values)
    return f"{values.mean():+.2f} [{low:.2f}, {high:.2f}]"


@click.command(help=__doc__)
@click.option("--cells", default="adult:ordered")
@click.option("--seeds", default="30,31,32")
@click.option("--data-dir", default=None)
def main(cells: str, seeds: str, data_dir: str | None) -> None:
    """Measure and print."""
    keep_freed()
    grid, gains = Grid("dataset", "bagging", *WAYS), []
    for name in cells.split(","):
        dataset, _, bagging = name.partition(":")
        found = []
        for seed in map(int, seeds.split(",")):
            values, chosen = measure(dataset, bagging, seed, data_dir)
            found.append([values[way] for way in WAYS])
            shown = ", ".join(f"{way} {values[way]:.1f} ({chosen[way]})" for way in WAYS)
            click.echo(f"{dataset} {bagging} {seed}: {shown}")
        means = np.mean(found, axis=0)
        grid.add_row(dataset, bagging, *(f"{mean:.1f}" for mean in means))
        gains.append(means - means[0])
    grid.add_row("less equal weights", "", *(shown_mean(each) for each in np.array(gains).T))
    Console().print(grid)


if __name__ == "__main__":
    main()
