"""Does another member make the union better? Test AUC of means of logits, for several sets of methods.

    python -m benchmarks.members --datasets suite:embedded --seeds 20,21 --out members.jsonl
    python -m benchmarks.members --datasets suite:embedded --seeds 20,21 --max-bags 20 --out members.jsonl

Every cell (dataset, bagging, number of bags, seed) is a line of --out, so that a run can be stopped and continued. The
tables show the gain over `bag-gp-gbdt` on every second dataset in alphabetical order, on which a choice may be made,
and on the others, which judge it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from llpbench.core.bags import FloatArray, Rows
from llpbench.core.metrics import test_metrics
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.data.loading import select_datasets
from llpbench.data.specs import built_in_facts
from llpbench.owndata.fitting import FitSettings
from llpbench.report.statistics import interval
from llpbench.training.cell_runs import make_task
from llpbench.training.memory import keep_freed
from llpbench.training.specification import make_cell

UNION = ("bag-gp", "em-gbdt", "count-gbdt")
CANDIDATES: dict[str, tuple[str, ...]] = {
    "union": UNION,
    "union and count-linear": (*UNION, "count-linear"),
    "union and ridge": (*UNION, "bag-mean-linear"),
    "union and both": (*UNION, "count-linear", "bag-mean-linear"),
    "union and bag-contrast": (*UNION, "bag-contrast"),
    "bag-gp, em-gbdt": UNION[:2],
    "bag-gp, em-gbdt, count-linear": (*UNION[:2], "count-linear"),
    "bag-gp, count-linear": ("bag-gp", "count-linear"),
    "bag-gp": ("bag-gp",),
    "em-gbdt": ("em-gbdt",),
    "count-linear": ("count-linear",),
    "ridge": ("bag-mean-linear",),
    "bag-contrast": ("bag-contrast",),
}
CERTAIN = 1e-3
"""smallest probability of a member that gives probabilities"""
NETWORK = FitSettings("bag-contrast", device="cpu", numbers="z")
"""of bag-contrast, which chooses its epoch by a tenth of the training bags, since `auto` has no labels"""


def measure(dataset: str, bagging: str, seed: int, most: int | None) -> dict[str, Any]:
    """One cell: test AUC x 100 of each candidate."""
    cell = make_cell("bag-gp-gbdt", dataset, bagging=bagging, bag_size=256, max_bags=most)
    task = make_task(cell, seed, "bags", None)
    rows: Rows = task.test.rows

    def fitted(name: str) -> Any:
        method = METHODS.get(name)
        return method(method.Params()).fit(task.train, task.schema, generator(seed, "training"))

    union = fitted("bag-gp-gbdt")
    members: dict[str, FloatArray] = {
        name: log_softmax(part(rows), axis=1)
        for name, part in zip(UNION, (union.process, union.refitted, union.counted), strict=True)
    }
    cardinalities = task.schema.cardinalities
    network = clone(NETWORK).set_params(random_state=seed)._predictor(task.train, cardinalities, 1)
    others = {name: fitted(name) for name in ("count-linear", "bag-mean-linear")} | {"bag-contrast": network}
    members |= {name: np.log(predict(rows).clip(CERTAIN)) for name, predict in others.items()}
    auc = {
        way: 100 * test_metrics(softmax(np.mean([members[name] for name in names], axis=0), axis=1), task.test)["auc"]
        for way, names in CANDIDATES.items()
    }
    bags = len(task.train.sizes)
    return {"dataset": dataset, "bagging": bagging, "seed": seed, "most": most, "bags": bags, "auc": auc}


def show(cells: list[dict[str, Any]]) -> None:
    """Gains over the union, with 95 % t intervals over datasets."""
    frame = pd.DataFrame([{**cell, **cell.pop("auc")} for cell in cells])
    gains = frame[[*CANDIDATES]].sub(frame["union"], axis="index").join(frame[["dataset", "bagging", "most"]])
    names = sorted(set(gains["dataset"]))
    for (bagging, most), part in gains.fillna({"most": 0}).groupby(["bagging", "most"]):
        click.echo(f"\n{bagging} bags of 256, {int(most) or 'all'} bags")
        means = part.groupby("dataset")[[*CANDIDATES]].mean()
        for way in CANDIDATES:
            texts = []
            for some in (names[::2], names[1::2]):
                values = means.loc[[name for name in some if name in means.index], way].to_numpy()
                low, high = interval(values)
                texts.append(f"{values.mean():+.2f} [{low:.2f}, {high:.2f}] {(values > 0).sum()}/{len(values)}")
            click.echo(f"  {way:32}" + "   ".join(texts))


@click.command(help=__doc__)
@click.option("--datasets", default="suite:embedded")
@click.option("--seeds", default="20,21")
@click.option("--max-bags", type=int)
@click.option("--out", type=click.Path(path_type=Path), default=Path("members.jsonl"))
def main(datasets: str, seeds: str, max_bags: int | None, out: Path) -> None:
    """Measure missing cells, and print the tables."""
    keep_freed()
    two = {name for name, facts in built_in_facts().items() if len(facts.classes) == 2}
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {(cell["dataset"], cell["bagging"], cell["seed"], cell["most"]) for cell in done}
    for seed in map(int, seeds.split(",")):
        for dataset in select_datasets(datasets):
            for bagging in ("ordered", "random"):
                if dataset in two and (dataset, bagging, seed, max_bags) not in known:
                    done.append(measure(dataset, bagging, seed, max_bags))
                    with out.open("a") as file:
                        file.write(json.dumps(done[-1]) + "\n")
    show(done)


if __name__ == "__main__":
    main()
