"""Does a network add anything to the union of direct methods? DLLP on the logit of `bag-gp-gbdt` as an offset.

    python -m benchmarks.offset --datasets adult,credit --seeds 20,21,22 --data-dir DATA

The network's last layer starts at zero, so it starts from the union itself and learns what the bags still say. Both are
judged on the same test rows; epochs are chosen as for any neural method, by labels of validation rows (the best case)
and by their bags alone.
"""

from __future__ import annotations

from dataclasses import replace

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table as Grid
from torch import Tensor, nn

from llpbench.blocks.losses import proportion_loss
from llpbench.core.bags import Bags, FloatArray, Rows, Schema, Task
from llpbench.core.cell import Protocol
from llpbench.core.method import Method, Now, Predictor, Reports
from llpbench.core.metrics import test_metrics
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.training.cell_runs import make_task
from llpbench.training.device import Machine
from llpbench.training.judging import judge
from llpbench.training.members import Trainee, encoder_factory
from llpbench.training.population import Population
from llpbench.training.specification import make_cell

CRITERIA = ("auc", "mpiou", "l1", "likelihood")


class OffsetDLLP(Method, Reports):
    """DLLP; the last number of each row is the logit that it adds to."""

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """The usual network, whose head starts at zero."""
        network = super().build(encoder, schema)
        last = [module for module in network.head.modules() if isinstance(module, nn.Linear)][-1]
        for parameter in last.parameters():
            nn.init.zeros_(parameter)
        return network

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """[bags, size, classes] with the offset."""
        logit = bags.rows.numeric[..., -1]
        offset = torch.stack([torch.zeros_like(logit), logit], dim=-1)
        return (model.log_proba(without_logit(bags)) + offset).log_softmax(dim=-1)

    def represent(self, model: Model, bags: Bags) -> Tensor:
        """The network's row vectors."""
        return model.encode(without_logit(bags)).z

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """DLLP's."""
        del now
        return proportion_loss(self.log_proba(model, bags), bags)


def without_logit(bags: Bags) -> Bags:
    """The same bags with the features that the network is made for."""
    numeric, categorical, missing = bags.rows
    return bags._replace(rows=Rows(numeric[..., :-1], categorical, missing[..., :-1]))


def with_logit(task: Task, predict: Predictor) -> Task:
    """The same task, whose rows have one more number: the logit of a predictor."""

    def more(rows: Rows) -> Rows:
        p = predict(rows).clip(1e-6, 1 - 1e-6)
        logit = np.log(p[:, 1:] / p[:, :1]).astype(np.float32)
        return Rows(np.hstack([rows.numeric, logit]), rows.categorical, np.pad(rows.missing, ((0, 0), (0, 1))))

    parts = {name: getattr(task, name) for name in ("train", "validation", "test", "bags")}
    return replace(task, **{name: replace(part, rows=more(part.rows)) for name, part in parts.items()})


def compare(dataset: str, bagging: str, size: int, seeds: list[int], encoder: str, data_dir: str | None) -> FloatArray:
    """Test AUC [seeds, 1 + criteria]: the union's, and with the network by what each criterion chooses."""
    protocol = Protocol(epochs=50, patience=10)
    cell = make_cell("dllp", dataset, bagging=bagging, bag_size=size, encoder=encoder, protocol=protocol)
    union = METHODS.get("bag-gp-gbdt")
    tasks, alone = [], []
    for seed in seeds:
        task = make_task(cell, seed, "bags", data_dir)
        predict = union(union.Params()).fit(task.train, task.schema, generator(seed, "training"))
        alone.append(test_metrics(predict(task.test.rows), task.test)["auc"])
        tasks.append(with_logit(task, predict))
    method = OffsetDLLP(METHODS.get("dllp").Params(**cell.params))
    members = [Trainee(seed, method, task) for seed, task in zip(seeds, tasks, strict=True)]
    population = Population(members, encoder_factory(cell, method.params.dropout), protocol, Machine())
    population.train()
    found = [judge(population, [number]) for number in range(len(seeds))]
    return np.array(
        [[a, *(each[name]["test"]["auc"] for name in CRITERIA)] for a, each in zip(alone, found, strict=True)]
    )


@click.command(help=__doc__)
@click.option("--datasets", default="adult")
@click.option("--baggings", default="ordered,random")
@click.option("--bag-size", default=256)
@click.option("--seeds", default="20,21,22")
@click.option("--encoder", default="mlp")
@click.option("--data-dir", default=None)
def main(datasets: str, baggings: str, bag_size: int, seeds: str, encoder: str, data_dir: str | None) -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    grid = Grid("dataset", "bagging", "union", *(f"with {encoder}, by {name}" for name in CRITERIA))
    numbers, gains = [int(seed) for seed in seeds.split(",")], []
    for dataset in datasets.split(","):
        for bagging in baggings.split(","):
            found = 100 * compare(dataset, bagging, bag_size, numbers, encoder, data_dir)
            grid.add_row(
                dataset,
                bagging,
                *(f"{m:.1f} ± {s:.1f}" for m, s in zip(found.mean(0), found.std(0, ddof=1), strict=True)),
            )
            gains.append((found[:, 1:] - found[:, :1]).mean(axis=0))
            Console().print(f"{dataset} {bagging}: {found.round(1).tolist()}")
    grid.add_row("gain over the union", "", "", *(f"{gain:+.2f}" for gain in np.mean(gains, axis=0)))
    Console().print(grid)


if __name__ == "__main__":
    main()
