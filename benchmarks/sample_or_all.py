"""Trees of more rows than memory holds: from a sample of bags, or from all rows? Test AUC of both.

    python -m benchmarks.sample_or_all --out sample_or_all.jsonl

Rows are in bags of 64, at random or ordered. All fits are in memory, with the limits of `fit --out-of-core` lowered:
the process has hyperparameters from a sample of bags, and weights from all rows. Trees are from this sample, or from
all rows: each tree from the next of several parts.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pandas as pd

from llpbench.blocks import bag_process, trees
from llpbench.blocks.bag_logits import fit_logits
from llpbench.blocks.bag_process import ProcessSettings, fit_wary
from llpbench.blocks.count_trees import boost_counts, boost_posteriors
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.metrics import test_metrics
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.training.cell_runs import make_task
from llpbench.training.memory import keep_freed
from llpbench.training.specification import make_cell

IN_MEMORY = "auto, all rows"


def measure(dataset: str, bagging: str, bags: int, seed: int) -> dict[str, Any]:
    """Test AUC x 100 of each way with a sample of `bags`; with 0 of the fit of all rows."""
    task = make_task(make_cell("bag-gp-gbdt", dataset, bagging=bagging, bag_size=64), seed, "bags", None)
    method, clock = METHODS.get("bag-gp-gbdt"), time.perf_counter()

    def union(train: Any) -> Any:
        return method(method.Params()).fit(train, task.schema, generator(seed, "training"))

    if not bags:
        ways = {IN_MEMORY: union(task.train)}
    else:
        bag_process._MANY_ROWS, bag_process._FEWEST_BAGS, bag_process._MANY_BAGS = 0, bags, bags
        shares = fit_wary(task.train, ProcessSettings(), generator(seed, "training"))
        assert shares.sample is not None
        process, sample = fit_logits(shares, task.train), shares.sample[1]
        bag_process._MANY_ROWS, bag_process._FEWEST_BAGS, bag_process._MANY_BAGS = 600_000, 300, 1000
        some = union(sample)
        trees.ONE_PART, trees._PART_ROWS, trees._PART_BAGS = 0, 64 * bags, bags
        data, counts, rng = TreeRows(task.train.rows), BagCounts(task.train), generator(seed, "trees")
        refitted = boost_posteriors(data, counts, process(task.train.rows), TreeSettings(100), 4, rng)
        counted = boost_counts(data, counts, task.train.prior, TreeSettings(800), rng)
        trees.ONE_PART, trees._PART_ROWS, trees._PART_BAGS = 600_000, 200_000, 1000
        ways = {
            "auto, sample": some,
            "auto, process of all rows": replace(some, process=process),
            "auto, trees of parts, too": replace(some, process=process, refitted=refitted, counted=counted),
            "bag-gp, all rows": process.proba,
        }
    auc = {name: 100 * test_metrics(predict(task.test.rows), task.test)["auc"] for name, predict in ways.items()}
    told = {"rows": len(task.train.bag_of_row), "bags": len(task.train.sizes), "seconds": time.perf_counter() - clock}
    return {"dataset": dataset, "bagging": bagging, "sample": bags, "seed": seed, **told, "auc": auc}


@click.command(help=__doc__)
@click.option("--datasets", default="hotel_bookings,diabetes130,flights_2013")
@click.option("--samples", default="0,100,300,1000", help="bags in the sample; 0: all rows in memory")
@click.option("--seed", default=0)
@click.option("--out", type=click.Path(path_type=Path), default=Path("sample_or_all.jsonl"))
def main(datasets: str, samples: str, seed: int, out: Path) -> None:
    """Measure what is missing, and print the table."""
    keep_freed()
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {(cell["dataset"], cell["bagging"], cell["sample"], cell["seed"]) for cell in done}
    for dataset in datasets.split(","):
        for bagging in ("random", "ordered"):
            for bags in map(int, samples.split(",")):
                if (dataset, bagging, bags, seed) not in known:
                    done.append(measure(dataset, bagging, bags, seed))
                    with out.open("a") as file:
                        file.write(json.dumps(done[-1]) + "\n")
    table = pd.DataFrame([{**cell, **cell.pop("auc")} for cell in done]).drop(columns=["seed", "seconds", "auc"])
    click.echo(table.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
