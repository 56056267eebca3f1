"""What imperfect or additional counts are worth: AUC of new rows, a third of Adult, with counts given in several ways.

    python -m benchmarks.counts ranges --method bag-gp --size 32 --share 0.15 --ordered
    python -m benchmarks.counts groupings --method bag-gp --rows 6000 --seeds 5
    python -m benchmarks.counts noise --method count-gbdt --params '{"trees": 200}' --scales 0,2,5,10,20

`ranges`: counts from 1 to `below` - 1 are published as a range, as its midpoint, or without these bags. `groupings`:
counts by district, by groups of age and sex, and by both. `noise`: Laplace noise on every count; "modelled" gives its
scale (`noise=`), "not modelled" gives the counts as proportions. Bags are random, or ordered by features.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import Any

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from llpbench import LLPClassifier

Ways = Iterator[tuple[str, LLPClassifier, pd.DataFrame, NDArray[np.int64]]]
"""Name of a way, the fitted model, and new rows with their labels."""


@cache
def _adult() -> pd.DataFrame:
    adult = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "adult.parquet"))
    return adult.assign(label=(adult.pop("class") == ">50K").astype(int))


def _split(rows: pd.DataFrame, new: NDArray[np.bool_]) -> tuple[pd.DataFrame, pd.Series, pd.DataFrame, Any]:
    """Return training rows and labels, then new rows and labels."""
    features = rows.drop(columns="label")
    train = rows[~new].reset_index(drop=True)
    return train.drop(columns="label"), train["label"], features[new], rows["label"].to_numpy()[new]


def _in_order(order: Any, size: int) -> NDArray[np.int64]:
    """[rows] Return bags of `size` consecutive rows in an order."""
    bags = np.empty(len(order), dtype=np.int64)
    bags[np.asarray(order)] = np.arange(len(order)) // size
    return bags


def _ranges(make: Callable[..., LLPClassifier], options: dict[str, Any], seed: int) -> Ways:
    adult, rng, below, size = _adult(), np.random.default_rng(seed), options["below"], options["size"]
    rows, share = options["rows"], options["share"]
    positive, negative = (rng.permutation(np.flatnonzero(adult["label"] == label)) for label in (1, 0))
    chosen = rng.permutation([*positive[: round(share * rows)], *negative[: rows - round(share * rows)]])
    train, labels, new, truth = _split(adult.iloc[chosen].reset_index(drop=True), rng.random(rows) < 1 / 3)
    train, labels = train[: len(train) // size * size], labels[: len(train) // size * size]
    order: Any = rng.permutation(len(train))
    if options["ordered"]:
        order = train.sort_values(["education-num", "age"]).index
    bags = _in_order(order, size)
    counts = labels.groupby(bags).sum()
    small = (counts > 0) & (counts < below)
    published = {
        "exact": counts,
        "ranges": counts.astype(object).mask(small, f"1-{below - 1}"),
        "midpoints": counts.astype(float).mask(small, below // 2),
        "dropped": counts.astype(float).mask(small, np.nan),
    }
    for way, given in published.items():
        yield way, make(random_state=seed).fit(train, bags, counts=given), new, truth


def _groupings(make: Callable[..., LLPClassifier], options: dict[str, Any], seed: int) -> Ways:
    adult = _adult().sample(options["rows"], random_state=seed).reset_index(drop=True)
    rng = np.random.default_rng(seed)
    train, labels, new, truth = _split(adult, rng.random(len(adult)) < 1 / 3)
    ordered = train.sort_values("education-num", kind="stable").index
    order: Any = ordered if options["ordered"] else rng.permutation(len(train))
    district = pd.Series(_in_order(order, options["size"])).map("d{}".format)
    group = (train["age"] // 5 * 5).astype(int).astype(str) + "+" + train["sex"].astype(str)
    tables = [labels.groupby(of).sum() for of in (district, group)]
    for way, bags, counts in (
        ("districts", district, tables[0]),
        ("age groups", group, tables[1]),
        ("both", [district, group], tables),
    ):
        yield way, make(random_state=seed).fit(train, bags, counts=counts), new, truth


def _noise(make: Callable[..., LLPClassifier], options: dict[str, Any], seed: int) -> Ways:
    adult = _adult().sample(options["rows"], random_state=0).reset_index(drop=True)
    rng = np.random.default_rng(seed)
    ordered = adult.sort_values([*adult.columns.drop("label")]).index
    is_new = rng.random(len(adult)) < 1 / 3
    bags = _in_order(ordered, options["size"])[~is_new]
    if options["by_key"]:
        bags = adult[["native-country", "education"]].fillna("unknown").agg("+".join, axis=1).to_numpy()[~is_new]
    train, labels, new, truth = _split(adult, is_new)
    counts = pd.crosstab(bags, labels.to_numpy())
    sizes = counts.sum(axis=1)
    unit = rng.laplace(0, 1, counts.shape)
    for scale in map(float, options["scales"].split(",")):
        noisy = counts + scale * unit
        kept = noisy.clip(0, sizes, axis="index")
        share = (kept[1] / (kept[0] + kept[1])).fillna(labels.mean())
        yield (f"{scale:g} modelled", make().fit(train, bags, counts=noisy, noise=scale * 2**0.5), new, truth)
        yield f"{scale:g} not modelled", make().fit(train, bags, proportions=share), new, truth


_KINDS: dict[str, Callable[..., Ways]] = {"ranges": _ranges, "groupings": _groupings, "noise": _noise}


@click.command(help=__doc__)
@click.argument("kind", type=click.Choice([*_KINDS]))
@click.option("--method", default="bag-mean-linear")
@click.option("--params", default="{}", help="of the method, as JSON")
@click.option("--rows", default=9_000)
@click.option("--size", default=64, help="rows of a bag or district")
@click.option("--ordered", is_flag=True)
@click.option("--below", default=10, help="ranges: smallest count that is published")
@click.option("--share", default=0.1, help="ranges: share of positives")
@click.option("--by-key", is_flag=True, help="noise: bags by native country and education")
@click.option("--scales", default="0,2,5,10,20", help="noise: scales")
@click.option("--seeds", default=5)
def main(kind: str, method: str, params: str, seeds: int, **options: Any) -> None:
    """Measure and print means with standard errors, and differences of ways, paired by seed."""
    warnings.simplefilter("ignore")

    def make(**more: Any) -> LLPClassifier:
        return LLPClassifier(method, params=json.loads(params), **more)

    scores: dict[str, list[float]] = {}
    for seed in range(seeds):
        for way, model, new, truth in _KINDS[kind](make, options, seed):
            proba = model.predict_proba(new)[:, 1]
            scores.setdefault(way, []).append(100 * float(roc_auc_score(truth, proba)))
            scores.setdefault(f"{way}, log loss", []).append(100 * float(log_loss(truth, proba)))
    runs = pd.DataFrame(scores)
    ways = [way for way in runs if not way.endswith("log loss")]
    for one, other in combinations(ways, 2):
        runs[f"{other} - {one}"] = runs[other] - runs[one]
    print(f"{method}, {kind}, {options}\n{runs.agg(['mean', 'sem']).T.round(2).to_string()}", flush=True)


if __name__ == "__main__":
    main()
