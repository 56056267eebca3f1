"""What counts known as ranges are worth: AUC with exact counts, ranges, midpoints of ranges, and without these bags.

    python -m benchmarks.ranges
    python -m benchmarks.ranges --methods bag-gp --size 32 --share 0.15 --ordered

Rows of Adult in random bags, or in bags ordered by education and age, with a given share of positives. Counts from 1 to
`below` - 1 are published as a range. New rows, a third, are judged. "Gain" is the difference of ranges and another way,
paired by seed.
"""

from __future__ import annotations

import warnings
from importlib.resources import files
from typing import Any

import click
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from llpbench import LLPClassifier

WAYS = ("exact", "ranges", "midpoints", "dropped")


def published(counts: pd.Series, below: int, way: str) -> pd.Series:
    """Counts of positives by bag, as `way` says of those from 1 to `below` - 1."""
    small = (counts > 0) & (counts < below)
    if way == "ranges":
        return counts.astype(object).mask(small, f"1-{below - 1}")
    return counts.astype(float).mask(small, {"midpoints": below // 2, "dropped": np.nan}.get(way, counts))


def measure(method: str, rows: int, size: int, below: int, share: float, seed: int, ordered: bool) -> dict[str, Any]:
    """AUC and log loss of new rows, each way."""
    adult = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "adult.parquet"))
    truth = (adult.pop("class") == ">50K").to_numpy().astype(int)
    rng = np.random.default_rng(seed)
    positive, negative = (rng.permutation(np.flatnonzero(truth == label)) for label in (1, 0))
    chosen = rng.permutation([*positive[: round(share * rows)], *negative[: rows - round(share * rows)]])
    frame, truth = adult.iloc[chosen].reset_index(drop=True), truth[chosen]
    new = rng.random(rows) < 1 / 3
    whole = np.flatnonzero(~new)[: (~new).sum() // size * size]
    train, labels = frame.iloc[whole].reset_index(drop=True), truth[whole]
    order = rng.permutation(len(train))
    if ordered:
        order = train.sort_values(["education-num", "age"]).index.to_numpy()
    bag = np.empty(len(train), dtype=np.int64)
    bag[order] = np.arange(len(train)) // size
    counts = pd.Series(labels).groupby(bag).sum()
    found: dict[str, Any] = {"ranged": float(((counts > 0) & (counts < below)).mean())}
    for way in WAYS:
        model = LLPClassifier(method, random_state=seed).fit(train, bag, counts=published(counts, below, way))
        proba = model.predict_proba(frame[new])[:, 1]
        found[way] = 100 * roc_auc_score(truth[new], proba)
        found[f"log loss {way}"] = 100 * log_loss(truth[new], proba)
    return found


@click.command(help=__doc__)
@click.option("--methods", default="bag-mean-linear,count-linear,bag-gp")
@click.option("--rows", default=12_000)
@click.option("--size", default=64, help="rows a bag")
@click.option("--below", default=10)
@click.option("--share", default=0.1, help="of positives")
@click.option("--ordered", is_flag=True)
@click.option("--seeds", default=10)
def main(methods: str, rows: int, size: int, below: int, share: float, ordered: bool, seeds: int) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    for method in methods.split(","):
        runs = pd.DataFrame([measure(method, rows, size, below, share, seed, ordered) for seed in range(seeds)])
        for way in ("exact", "midpoints", "dropped"):
            runs[f"gain on {way}"] = runs["ranges"] - runs[way]
        shown = runs.agg(["mean", "sem"]).T.round(2)
        print(f"{method}, bags of {size}, {share:.0%} positives, counts below {below} as ranges")
        print(shown.to_string(), flush=True)


if __name__ == "__main__":
    main()
