"""How well do methods rank rare positives? Average precision on new rows, against training with labels.

    python -m benchmarks.rare --out rare.jsonl
    python -m benchmarks.rare --out rare.jsonl --seeds 2 --shares 0.01 --baggings ordered --print

Positives of a dataset are subsampled at random until they have the given share. The methods learn from bags of 80 % of
the rows; the other 20 % are judged. Calibration of rare positives (`llpbench/owndata/bag_effects.py`) keeps the order
of rows, so that methods run as they are. Every run is a line of --out: run the same command again to continue.

`spread` is the standard deviation of logits of new rows: about 0 means that a method predicts the base rate for all.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import torch
from scipy.special import logit
from sklearn.metrics import average_precision_score, roc_auc_score

from llpbench.core.bags import Rows
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.core.tables import Table
from llpbench.data.loading import load_table
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.owndata.fitting import AUTO

CEILING = "supervised-gbdt"
METHODS_COMPARED = ("bag-mean-linear", "count-linear", "bag-gp", "count-gbdt", AUTO)
KEYS = ("dataset", "share", "size", "bagging", "seed", "method")


def with_share(table: Table, share: float, seed: int) -> Table:
    """The rows of a table, with so few positives that these have a share; in random order."""
    rng = generator(seed, "rare positives", table.name, str(share))
    labels = table.row_labels
    negative, positive = np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)
    number = round(share / (1 - share) * len(negative))
    if number > len(positive):
        raise click.UsageError(f"--shares must be at most {len(positive) / len(labels):.3f} for {table.name}.")
    rows = rng.permutation(np.concatenate([negative, rng.choice(positive, number, replace=False)]))
    return replace(
        table,
        numeric=table.numeric[rows],
        categorical=table.categorical[rows],
        labels=labels[rows],
        keys={name: values[rows] for name, values in table.keys.items()},
    )


def measure(table: Table, size: int, bagging: str, method: str, seed: int) -> dict[str, Any]:
    """Results of a method on new rows."""
    declared: Any = METHODS.get(method)
    assignment = assign_bags(table, bagging, size, seed)
    task = build_task(table, assignment, supervision=declared.supervision)
    clock = time.process_time()
    predict = declared(declared.Params()).fit(task.train, task.schema, generator(seed, "training"))
    seconds = time.process_time() - clock
    parts = (task.validation, task.test)
    rows = Rows(*(np.concatenate(each) for each in zip(*(part.rows for part in parts), strict=True)))
    truth = np.concatenate([part.labels for part in parts if part.labels is not None])
    proba = predict(rows)[:, 1].clip(1e-9, 1 - 1e-9)
    return {
        "bags": len(task.bags.sizes),
        "positives": int(task.bags.counts[:, 1].sum()),
        "tested": int(truth.sum()),
        "base": float(truth.mean()),
        "ap": float(average_precision_score(truth, proba)),
        "auc": float(roc_auc_score(truth, proba)),
        "spread": float(logit(proba).std()),
        "mean": float(proba.mean()),
        "seconds": seconds,
    }


def show(runs: Sequence[dict[str, Any]]) -> None:
    """Mean average precision x 100 by cell and method, as Markdown, with standard deviations over seeds."""
    frame = pd.DataFrame(runs)
    for dataset, own in frame.groupby("dataset"):
        seeds = own[own["method"] == AUTO].groupby(list(KEYS[:4]))["seed"].nunique()
        print(f"\n{dataset}: {seeds.min()} to {seeds.max()} seeds\n")
        print("| bags | positives | rows a bag | labels |", " | ".join(METHODS_COMPARED), "|")
        print("| --- | ---: | ---: |" + " ---: |" * (1 + len(METHODS_COMPARED)))
        labels = own[own["method"] == CEILING].groupby("share")["ap"]
        for (bagging, share, size), cell in own[own["method"] != CEILING].groupby(["bagging", "share", "size"]):
            by_method = cell.groupby("method")["ap"]
            texts = [shown(by_method.get_group(name)) if name in by_method.groups else "–" for name in METHODS_COMPARED]
            ceiling = shown(labels.get_group(share)) if share in labels.groups else "–"
            print(f"| {bagging} | {100 * share:g} % | {size:,} | {ceiling} |", " | ".join(texts), "|")
    print("\nMedian over runs:\n")
    columns = ["ap", "auc", "spread", "mean", "seconds"]
    print(frame.groupby(["share", "bagging", "method"])[columns].median().round(3).to_string())


def shown(values: pd.Series) -> str:
    """Mean x 100 and standard deviation."""
    return f"{100 * values.mean():.1f}" + (f" ± {100 * values.std():.1f}" if len(values) > 1 else "")


@click.command(help=__doc__)
@click.option("--datasets", default="adult,bank_marketing")
@click.option("--shares", default="0.01,0.02,0.05", help="of positives")
@click.option("--sizes", default="64,256,1024", help="rows a bag")
@click.option("--baggings", default="random,ordered")
@click.option("--methods", default=",".join(METHODS_COMPARED))
@click.option("--seeds", default=5)
@click.option("--out", type=click.Path(path_type=Path), default=Path("rare.jsonl"))
@click.option("--print", "only_print", is_flag=True, help="print the tables of --out, and measure nothing")
def main(
    datasets: str, shares: str, sizes: str, baggings: str, methods: str, seeds: int, out: Path, only_print: bool
) -> None:
    """Measure missing cells, and print the tables."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    runs = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {tuple(run[key] for key in KEYS) for run in runs}
    cells = product(range(seeds), baggings.split(","), map(float, shares.split(",")), datasets.split(","))
    for seed, bagging, share, dataset in cells if not only_print else ():
        table = with_share(load_table(dataset), share, seed)
        # labels see all rows, whatever the bags
        asked = [(0, "labels", CEILING)]
        asked += [(int(size), bagging, method) for size in sizes.split(",") for method in methods.split(",")]
        for size, bags, method in asked:
            key = (dataset, share, size, bags, seed, method)
            if key in done:
                continue
            done.add(key)
            found = measure(table, size or 1, "random" if bags == "labels" else bags, method, seed)
            runs.append({**dict(zip(KEYS, key, strict=True)), **found})
            with out.open("a") as file:
                file.write(json.dumps(runs[-1]) + "\n")
    show(runs)


if __name__ == "__main__":
    main()
