"""What a second grouping of the same rows is worth: AUC with counts by district, by age group, and by both.

    python -m benchmarks.groupings
    python -m benchmarks.groupings --methods bag-gp --rows 6000 --seeds 5

Rows of Adult: 'districts' are random bags, or bags ordered by education; the other grouping is age in groups of five
years by sex. New rows, a third, are judged by their features, which include age and sex.
"""

from __future__ import annotations

import warnings
from importlib.resources import files
from typing import Any

import click
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier


def measure(method: str, rows: int, size: int, seed: int, ordered: bool) -> dict[str, Any]:
    """AUC of new rows."""
    adult = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "adult.parquet"))
    adult = adult.sample(rows, random_state=seed).reset_index(drop=True)
    truth = (adult.pop("class") == ">50K").to_numpy().astype(int)
    rng = np.random.default_rng(seed)
    new = rng.random(rows) < 1 / 3
    train, labels = adult[~new].reset_index(drop=True), pd.Series(truth[~new])
    order = train.sort_values("education-num", kind="stable").index if ordered else rng.permutation(len(train))
    number = np.empty(len(train), dtype=np.int64)
    number[np.asarray(order)] = np.arange(len(train)) // size
    district = pd.Series(number).map("d{}".format)
    group = (train["age"] // 5 * 5).astype(int).astype(str) + "+" + train["sex"].astype(str)
    tables = [labels.groupby(district).sum(), labels.groupby(group).sum()]
    found = {}
    for way, bags, counts in (
        ("districts", district, tables[0]),
        ("age groups", group, tables[1]),
        ("both", [district, group], tables),
    ):
        model = LLPClassifier(method, random_state=seed).fit(train, bags, counts=counts)
        found[way] = 100 * roc_auc_score(truth[new], model.predict_proba(adult[new])[:, 1])
    return found


@click.command(help=__doc__)
@click.option("--methods", default="bag-mean-linear,count-linear,bag-gp")
@click.option("--rows", default=9000)
@click.option("--size", default=256, help="rows a district")
@click.option("--ordered", is_flag=True)
@click.option("--seeds", default=5)
def main(methods: str, rows: int, size: int, ordered: bool, seeds: int) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    for method in methods.split(","):
        runs = pd.DataFrame([measure(method, rows, size, seed, ordered) for seed in range(seeds)])
        for way in ("districts", "age groups"):
            runs[f"gain on {way}"] = runs["both"] - runs[way]
        print(f"{method}, {'ordered' if ordered else 'random'} districts of {size}")
        print(runs.agg(["mean", "sem"]).T.round(2).to_string(), flush=True)


if __name__ == "__main__":
    main()
