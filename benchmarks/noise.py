"""AUC against the noise on counts, modelled and not: Adult in ordered bags, or by native country and education.

    python -m benchmarks.noise --bags ordered-64 --method count-gbdt --seeds 3
    python -m benchmarks.noise --bags key --kind laplace --scales 0,2,5,10,20

Noise of each scale is added to every count. "Modelled": its scale is given (`noise=`). "Not modelled": the same counts,
clipped to the possible range, as proportions. New rows, a third, are judged by their features.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import click
import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier

KEYS = ["native-country", "education"]


def bags_of(frame: pd.DataFrame, kind: str) -> Any:
    """[rows] the bag of each: rows in the order of their features, or by key."""
    if kind == "key":
        return frame[KEYS].fillna("unknown").agg("+".join, axis=1).to_numpy()
    order = frame.sort_values(list(frame.columns)).index.to_numpy()
    bags = np.empty(len(frame), dtype=np.int64)
    bags[order] = np.arange(len(frame)) // int(kind.removeprefix("ordered-"))
    return bags


def measure(frame: pd.DataFrame, truth: Any, bags: Any, scale: float, told: Any, seed: int, model: Any) -> float:
    """AUC of new rows; `told`: the kind of noise, or None where nobody tells."""
    rng = np.random.default_rng(seed)
    new = rng.random(len(frame)) < 1 / 3
    counts = pd.crosstab(bags[~new], truth[~new])
    size = counts.sum(axis=1)
    drawn = rng.laplace(0, scale, counts.shape) if told != "gaussian" else rng.normal(0, scale, counts.shape)
    noisy = counts + drawn
    if told is None:
        share = noisy[1].clip(0, size) / (noisy[1].clip(0, size) + noisy[0].clip(0, size))
        given: dict[str, Any] = {"proportions": share.fillna(truth[~new].mean())}
    else:
        given = {"counts": noisy, "noise": scale, "noise_kind": told}
    model.fit(frame[~new].reset_index(drop=True), bags[~new], **given)
    return float(roc_auc_score(truth[new], model.predict_proba(frame[new])[:, 1]))


@click.command(help=__doc__)
@click.option("--bags", default="ordered-64", help="ordered-N or key")
@click.option("--method", default="count-gbdt")
@click.option("--params", default="{}", help="of the method, as JSON")
@click.option("--scales", default="0,2,5,10,20")
@click.option("--seeds", default=3)
@click.option("--rows", default=0, help="a random part of the data; 0: all")
def main(bags: str, method: str, params: str, scales: str, seeds: int, rows: int) -> None:
    """Measure and print."""
    adult = pd.read_parquet(str(files("llpbench.datasets") / "embedded" / "adult.parquet"))
    if rows:
        adult = adult.sample(rows, random_state=0)
    adult = adult.reset_index(drop=True)
    truth = (adult.pop("class") == ">50K").to_numpy().astype(int)
    of_row = bags_of(adult, bags)
    grid = Table("b of the noise", "modelled", "not modelled", "difference")
    for scale in map(float, scales.split(",")):
        found = np.array(
            [
                [
                    100
                    * measure(adult, truth, of_row, scale, told, seed, LLPClassifier(method, params=json.loads(params)))
                    for told in ("laplace", None)
                ]
                for seed in range(seeds)
            ]
        )
        columns = [*found.T, found[:, 0] - found[:, 1]]
        spread = [f"{each.mean():.1f} ± {each.std(ddof=1) if seeds > 1 else np.nan:.1f}" for each in columns]
        grid.add_row(f"{scale:g}", *spread)
        Console().print(scale, *spread)
    Console().print(grid)


if __name__ == "__main__":
    main()
