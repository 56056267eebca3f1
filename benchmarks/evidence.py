"""Does the evidence of `bag-gp` choose its settings better than what held-out bags say?

    python -m benchmarks.evidence --datasets credit,adult --seeds 30,31,32 --data-dir DATA

Fifteen settings (length scales of single and of joint effects), scales of effects at their mode. Each criterion chooses
one of them: the evidence of the training bags, four criteria of validation bags, or labels of validation rows. Test
AUC, less that of the default setting, shows what choosing is worth.
"""

from __future__ import annotations

from itertools import product

import click
import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from scipy.special import softmax

from benchmarks.weights import shown_mean
from llpbench.blocks.bag_logits import fit_logits
from llpbench.blocks.bag_process import ProcessSettings, fit_wary
from llpbench.core.criteria import CRITERIA
from llpbench.core.metrics import holdout_criteria, test_metrics
from llpbench.core.seeding import generator
from llpbench.training.cell_runs import make_task
from llpbench.training.memory import keep_freed
from llpbench.training.specification import make_cell

SETTINGS = [
    ProcessSettings(lengthscale=one, joint_lengthscale=joint, draws=0)
    for one, joint in product((0.1, 0.2, 0.3, 0.5, 1.0), (0.35, 0.7, 1.4))
]
DEFAULT = SETTINGS.index(ProcessSettings(draws=0))
HELD_OUT = ("likelihood", "mpiou", "l1", "kl", "auc")
WAYS = ("default", "evidence", *HELD_OUT, "best by test labels")


def measure(dataset: str, bagging: str, seed: int, data_dir: str | None) -> list[float]:
    """Test AUC of what each way chooses."""
    task = make_task(make_cell("bag-gp", dataset, bagging=bagging, bag_size=256), seed, "bags", data_dir)
    train, evidence, held_out, tested = task.train.where_known(), [], [], []
    for settings in SETTINGS:
        process = fit_wary(train, settings, generator(seed, "training"))
        logits = fit_logits(process, train)
        evidence.append(-process.evidence(process.hyperparameters)[0])
        held_out.append(holdout_criteria(softmax(logits(task.validation.rows), axis=1), task.validation))
        tested.append(100 * test_metrics(softmax(logits(task.test.rows), axis=1), task.test)["auc"])
    signs = [1 if CRITERIA[name].maximise else -1 for name in HELD_OUT]
    criteria = [[sign * each[name] for each in held_out] for name, sign in zip(HELD_OUT, signs, strict=True)]
    chosen = [DEFAULT, *(int(np.argmax(values)) for values in (evidence, *criteria, tested))]
    return [tested[number] for number in chosen]


@click.command(help=__doc__)
@click.option("--datasets", default="adult")
@click.option("--baggings", default="ordered,random")
@click.option("--seeds", default="30,31,32")
@click.option("--data-dir", default=None)
def main(datasets: str, baggings: str, seeds: str, data_dir: str | None) -> None:
    """Measure and print."""
    keep_freed()
    grid, gains = Grid("dataset", "bagging", *WAYS), []
    for dataset, bagging in product(datasets.split(","), baggings.split(",")):
        found = np.array([measure(dataset, bagging, int(seed), data_dir) for seed in seeds.split(",")])
        click.echo(f"{dataset} {bagging}: {found.round(1).tolist()}")
        grid.add_row(dataset, bagging, *(f"{mean:.1f}" for mean in found.mean(axis=0)))
        gains.append((found - found[:, :1]).mean(axis=0))
    grid.add_row("less the default", "", *(shown_mean(each) for each in np.array(gains).T))
    Console().print(grid)


if __name__ == "__main__":
    main()
