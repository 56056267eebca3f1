"""What knowing a row's bag is worth on tables with labels, and what becomes of rare positives; before and after.

    python -m benchmarks.natural --seeds 5 --rows 2000
    python -m benchmarks.natural --rare --methods bag-gp,bag-mean-linear --seeds 5
    python -m benchmarks.natural --rare --rates 0.02,0.05,0.06,0.08,0.12 --tables adult,hotel_bookings,flights_2013

Natural bags: half of the rows are trained on, the other half are new rows of the same bags. `share` is the bag's own
share, half a row added to each class for new rows. `before`: effects from predictions of the training rows, full
spread. `whole`: the training rows, made to add up to their counts.

Rare: bags at random and by natural keys, at some rates of positives; the method as it is (`before`) and calibrated. A
warning says that held-out bags do not show that features help. A fit is useful if its log loss, as it is or calibrated,
is below that of the constant.

A line a run, then means over seeds, ± standard errors of differences, as Markdown.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.groups import CHOSEN_ON, DATA
from llpbench import LLPClassifier
from llpbench.owndata.bag_effects import SUPPORTED, KnownBags, added_up

NATURAL = (
    *("hotel_bookings", "covid_testing", "kc_house", "oulad"),
    *("adult", "nass_cds", "mpls_stops", "flights_2013"),
)
"""tables of `benchmarks.groups`, in its bags; the spread of logits was tuned on the first four"""
DATES = {"hotel_bookings": ["arrival_date"], "kc_house": ["date"], "mpls_stops": ["date"]}
RARE = ("adult", "nass_cds")
RARE_ROWS = 6144


def read(name: str, seed: int, data: Path) -> tuple[pd.DataFrame, Any, Any]:
    """Rows in random order, their bags, and whether each is of the rarer class."""
    keys, target = [*CHOSEN_ON[name].keys], CHOSEN_ON[name].target
    frame = pd.read_parquet(data / f"{name}.parquet")
    frame = frame.iloc[np.random.default_rng(seed).permutation(len(frame))[:60_000]].reset_index(drop=True)
    labels = frame[target].astype(str)
    texts = frame.select_dtypes(exclude="number").columns
    frame[texts] = frame[texts].astype(str)
    bags = frame[keys].astype(object).apply(lambda row: "+".join(map(str, row)), axis=1).to_numpy()
    return frame.drop(columns=[target, *DATES.get(name, [])]), bags, (labels == labels.value_counts().index[-1]) * 1


def log_loss(proba: Any, labels: Any) -> float:
    """Return the mean over rows, with probabilities clipped to 0.001 to 0.999."""
    proba = np.clip(proba, 1e-3, 1 - 1e-3)
    return float(-np.log(np.where(labels == 1, proba, 1 - proba)).mean())


def natural(name: str, seed: int, rows: int, method: str, data: Path) -> dict[str, Any]:
    """Return log loss and AUC x 100 of one table, by kind of rows and of prediction."""
    frame, bags, labels = read(name, seed, data)
    rows = min(rows, len(frame) // 2)
    frame, bags, labels = frame.head(2 * rows), bags[: 2 * rows], labels.to_numpy()[: 2 * rows]
    features = frame.drop(columns=[*CHOSEN_ON[name].keys])
    counts = pd.Series(labels[:rows]).groupby(bags[:rows]).sum()
    model = LLPClassifier(method, random_state=seed).fit(features.head(rows), bags[:rows], counts=counts)
    place = pd.Series(range(len(model.bags_)), index=model.bags_)
    new = np.flatnonzero(np.isin(bags[rows:], model.bags_)) + rows
    new_bags, old_bags = place[bags[new]].to_numpy(), place[bags[:rows]].to_numpy()
    plain, fitted = model.predict_proba(features.iloc[new]), model.predict_proba(features.head(rows))
    size = pd.Series(bags[:rows]).groupby(bags[:rows]).size()
    known, every = model._known, np.arange(rows)
    before, learned = KnownBags.learn(known, model._predicted(known.rows), None), model._known_bags()
    predictions = {
        "new": {
            "share": ((counts + 0.5) / (size + 1))[model.bags_].to_numpy()[new_bags],
            "before": before(plain, new_bags)[:, 1],
            "after": learned(plain, new_bags)[:, 1],
        },
        "whole": {
            "share": (counts / size)[model.bags_].to_numpy()[old_bags],
            "before": added_up(fitted, known, every, 1.0)[:, 1],
            "after": added_up(fitted, known, every, learned.spread)[:, 1],
        },
    }
    truth = {"new": labels[new], "whole": labels[:rows]}
    found = {"table": name, "method": method, "seed": seed, "bags": len(place), "spread": learned.spread}
    for rows_of, ways in predictions.items():
        for way, proba in ways.items():
            found[f"{rows_of} {way} loss"] = log_loss(proba, truth[rows_of])
            found[f"{rows_of} {way} AUC"] = 100 * roc_auc_score(truth[rows_of], proba)
    return found


def rare(name: str, seed: int, size: int | None, rate: float, method: str, data: Path) -> dict[str, Any]:
    """One table with a rate of positives in random bags of a size, or in natural ones (None)."""
    frame, keys, every = read(name, seed, data)
    positives, negatives = np.flatnonzero(every == 1), np.flatnonzero(every == 0)
    few, labels = round(rate * RARE_ROWS), every.to_numpy()
    train = np.random.default_rng(seed).permutation([*positives[:few], *negatives[: RARE_ROWS - few]])
    rest = negatives[RARE_ROWS - few :]
    new = np.concatenate([positives[few : few + max(round(rate * len(rest)), 1)], rest])
    bags = keys[train] if size is None else np.arange(RARE_ROWS) // size
    features = frame.drop(columns=[*CHOSEN_ON[name].keys]) if size is None else frame
    model = LLPClassifier(method, random_state=seed)
    model.fit(features.iloc[train], bags, counts=pd.Series(labels[train]).groupby(bags).sum())
    after, truth = model.predict_proba(features.iloc[new])[:, 1], labels[new]
    calibrated, model._model = model._model.calibration, replace(model._model, calibration=None)
    before, share = model.predict_proba(features.iloc[new])[:, 1], labels[train].mean()
    return {
        "rate": rate,
        "table": name,
        "bags of": "natural" if size is None else f"{size:,}",
        "method": method,
        "seed": seed,
        "AUC": 100 * roc_auc_score(truth, after),
        "average precision": 100 * average_precision_score(truth, after),
        "mean / share, before": before.mean() / share,
        "mean / share, after": after.mean() / share,
        "constant loss": log_loss(np.full(len(new), share), truth),
        "before loss": log_loss(before, truth),
        "after loss": log_loss(after, truth),
        "evidence": np.nan if calibrated is None else calibrated.evidence,
        "warned": calibrated is not None and calibrated.evidence < SUPPORTED,
    }


def natural_tables(found: pd.DataFrame) -> str:
    """Means over seeds, of new rows and of whole bags."""
    lines = []
    for rows_of, what in (("new", "New rows of known bags"), ("whole", "Whole bags")):
        lines += [f"\n{what}\n", "| table | bags | spread | share | before | after | after - share | AUC |"]
        lines += ["|---|---:|---:|---:|---:|---:|---:|---|"]
        for (table, _), each in found.groupby(["table", "method"], sort=False):
            loss = {way: each[f"{rows_of} {way} loss"] for way in ("share", "before", "after")}
            more = loss["after"] - loss["share"]
            auc = " → ".join(f"{each[f'{rows_of} {way} AUC'].mean():.1f}" for way in ("share", "before", "after"))
            lines.append(
                f"| {table} | {each['bags'].mean():.0f} | {each['spread'].mean():.2f} | "
                + " | ".join(f"{one.mean():.4f}" for one in loss.values())
                + f" | {more.mean():+.4f} ± {more.std() / len(more) ** 0.5:.4f} | {auc} |"
            )
    return "\n".join(lines)


def rare_tables(found: pd.DataFrame) -> str:
    """Means over seeds, and how often a warning was right."""
    lines = ["| rate | table | method | bags of | AUC | average precision | mean / share | constant | before | after |"]
    lines += ["|---:|---|---|---:|---:|---:|---|---:|---:|---:|"]
    for (rate, table, method, size), each in found.groupby(["rate", "table", "method", "bags of"], sort=False):
        mean = each.mean(numeric_only=True)
        lines.append(
            f"| {rate} | {table} | {method} | {size} | {mean['AUC']:.1f} | {mean['average precision']:.1f} | "
            f"{mean['mean / share, before']:.2f} → {mean['mean / share, after']:.2f} | {mean['constant loss']:.4f} | "
            f"{mean['before loss']:.4f} | {mean['after loss']:.4f} |"
        )
    warned = found["warned"].map({True: "warned", False: "silent"})
    for way in ("before", "after"):
        useful = (found[f"{way} loss"] < found["constant loss"]).map({True: "better", False: "worse"})
        lines += [f"\nAgainst the constant, {way}\n", f"{pd.crosstab([found['rate'], warned], useful)}"]
    return "\n".join(lines)


def table_of(runs: Sequence[dict[str, Any]], rare_positives: bool) -> str:
    """Runs, as Markdown."""
    return (rare_tables if rare_positives else natural_tables)(pd.DataFrame(runs))


@click.command()
@click.option("--data", default=DATA, type=click.Path(path_type=Path))
@click.option("--methods", default="auto")
@click.option("--tables", default="")
@click.option("--seeds", default=5)
@click.option("--rows", default=2000, help="Of a half of a table.")
@click.option("--rare", "rare_positives", is_flag=True)
@click.option("--sizes", default="64,256,1024,natural", help="Of bags of --rare.")
@click.option("--rates", default="0.013", help="Shares of positives of --rare.")
def main(
    data: Path, methods: str, tables: str, seeds: int, rows: int, rare_positives: bool, sizes: str, rates: str
) -> None:
    """Print a line a run, then tables."""
    warnings.simplefilter("ignore")
    runs: list[dict[str, Any]] = []
    settings = [
        (None if size == "natural" else int(size), float(rate))
        for rate in rates.split(",")
        for size in sizes.split(",")
    ]
    for seed in range(seeds):
        for name in tables.split(",") if tables else RARE if rare_positives else NATURAL:
            for method in methods.split(","):
                made = (
                    (rare(name, seed, size, rate, method, data) for size, rate in settings)
                    if rare_positives
                    else (natural(name, seed, rows, method, data) for _ in range(1))
                )
                for run in made:
                    runs.append(run)
                    click.echo(f"{run}")
    click.echo(table_of(runs, rare_positives))


if __name__ == "__main__":
    main()
