"""Rules that choose the epoch of a network without labels of rows, against epochs chosen by labels.

    python -m benchmarks.epochs --datasets adult,bank_marketing,california,credit,electricity

Networks train for 60 epochs on bags of 256. Each rule then chooses an epoch afterwards:

- `mpiou` and `labels`: as in a run, with a patience of 10 epochs.
- `kl`, `dsq`: the best of all epochs by this criterion of validation bags, without patience.
- `tournament`: the epoch that wins most comparisons of squared errors of validation bags. The median of the means of
  five groups of bags decides a comparison (Lugosi & Mendelson 2019).
- `label-wave`: the first local minimum of the share of training rows whose predicted class changes in an epoch, as a
  moving average of three epochs (Yuan, Feng & Liu 2024). It needs no validation bags.
- `half:30`: the mean prediction of epochs 16 to 30, as with `--average half`.
"""

from __future__ import annotations

import click
import numpy as np
import pandas as pd
import torch

from llpbench.core.bags import FloatArray, Holdout, IntArray
from llpbench.core.cell import Protocol
from llpbench.core.metrics import macro_auc
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS
from llpbench.training.cell_runs import make_task
from llpbench.training.cohort import Trainee, encoder_factory
from llpbench.training.device import Machine
from llpbench.training.population import Population
from llpbench.training.selection import Selection
from llpbench.training.specification import make_cell
from llpbench.training.stage import StageRun

EPOCHS, PATIENCE, GROUPS, WINDOW = 60, 10, 5, 3
HALF = slice(15, 30)


def auc(proba: FloatArray, labels: IntArray | None) -> float:
    """Return AUC x 100 of predictions [rows, classes]."""
    return 100 * float(macro_auc(torch.from_numpy(proba)[None], torch.as_tensor(labels)[None])[0])


def squared_errors(proba: FloatArray, validation: Holdout) -> FloatArray:
    """Return the squared distance between predicted and true proportions of each validation bag."""
    shares = np.stack([proba[bag[bag >= 0]].mean(axis=0) for bag in validation.index])
    return np.asarray(((shares - validation.proportions) ** 2).sum(axis=1))


def tournament(errors: FloatArray) -> int:
    """Return the epoch that wins most comparisons of errors [epochs, bags]."""
    groups = np.array_split(np.arange(errors.shape[1]), min(GROUPS, errors.shape[1]))
    means = np.stack([errors[:, group].mean(axis=1) for group in groups])
    wins = (np.median(means[:, None] - means[:, :, None], axis=0) >= 0).sum(axis=1)
    return int(wins.argmax())


def label_wave(changes: FloatArray) -> int:
    """Return the epoch at the first local minimum of the moving average of changes [epochs - 1]."""
    smooth = np.convolve(changes, np.full(WINDOW, 1 / WINDOW), "valid")
    falls, rises = smooth[1:-1] <= smooth[:-2], smooth[1:-1] < smooth[2:]
    return WINDOW + int(np.argmax(falls & rises)) + 1 if (falls & rises).any() else len(changes)


def by_rule(dataset: str, bagging: str, method: str, seeds: int) -> list[dict[str, float]]:
    """Return the test AUC by rule of each seed."""
    protocol = Protocol(EPOCHS, EPOCHS)
    cell = make_cell(method, dataset, bag_size=256, bagging=bagging, encoder="mlp", protocol=protocol)
    declared = METHODS.get(method)
    made = declared(read_params(declared.Params, cell.params, owner=method))
    members = [Trainee(seed, made, make_task(cell, seed, "bags", None)) for seed in range(seeds)]
    population = Population(members, encoder_factory(cell, made.params.dropout), protocol, Machine())
    (stage,) = made.stages
    run = StageRun(population, stage, population.state)
    patient, weights = Selection(seeds, PATIENCE, run.theta), []
    for epoch in range(EPOCHS):
        if epoch == 0 or (stage.refresh is not None and epoch % stage.refresh == 0):
            run.prepare(epoch)
        run.run_epoch(epoch)
        criteria = population.validation.criteria(population.judging, run.weights, run.slots)
        for selection in (run.selection, patient):
            selection.observe(epoch, criteria, run.theta)
        weights.append(run.theta.detach().clone())
    found = []
    for number, member in enumerate(members):
        task, own = member.task, torch.stack([each[number] for each in weights])
        test = population.predict(number, own, task.test.rows)
        classes = population.predict(number, own, task.train.rows).argmax(axis=-1)
        validation = population.predict(number, own, task.validation.rows)
        best, early = (
            dict(zip(each.criteria, each.epoch[:, number], strict=True)) for each in (run.selection, patient)
        )
        chosen = {
            "labels": early["auc"],
            "mpiou": early["mpiou"],
            "kl": best["kl"],
            "dsq": best["dsq"],
            "tournament": tournament(np.stack([squared_errors(each, task.validation) for each in validation])),
            "label-wave": label_wave((classes[1:] != classes[:-1]).mean(axis=1)),
        }
        aucs = {rule: auc(test[epoch], task.test.labels) for rule, epoch in chosen.items()}
        found.append(aucs | {"half:30": auc(test[HALF].mean(axis=0), task.test.labels)})
    return found


@click.command(help=__doc__)
@click.option("--datasets", default="adult,bank_marketing,california,credit,electricity", show_default=True)
@click.option("--methods", default="dllp,debiased-square", show_default=True)
@click.option("--baggings", default="ordered,random", show_default=True)
@click.option("--seeds", default=3, show_default=True)
def main(datasets: str, methods: str, baggings: str, seeds: int) -> None:
    """Print a line for each cell, then means of the differences from labels."""
    lines = []
    for dataset in datasets.split(","):
        for bagging in baggings.split(","):
            for method in methods.split(","):
                mean = pd.DataFrame(by_rule(dataset, bagging, method, seeds)).mean()
                lines.append({"bagging": bagging} | mean.sub(mean["labels"]).to_dict())
                click.echo(f"{dataset} {bagging} {method} " + ", ".join(f"{k} {v:.1f}" for k, v in mean.items()))
    click.echo(pd.DataFrame(lines).groupby("bagging").mean().round(1).to_string())


if __name__ == "__main__":
    main()
