"""What knowing a row's bag is worth on tables with labels, and what becomes of rare positives; before and after.

    python -m benchmarks.natural --seeds 3 --rows 2000
    python -m benchmarks.natural --rare --methods bag-gp,bag-mean-linear

Natural bags: half of the rows are trained on, the other half are new rows of the same bags. `share` is the bag's own
share, half a row added to each class. `before`: effects from predictions of the training rows, full spread. `whole`:
the training rows, made to add up to their counts. Log loss, then AUC x 100.

Rare: random bags at 1.3 % positives. Log loss of the constant and of the method, as it is and calibrated; mean
probability over share; AUC; and the log evidence of held-out bags, below 2 nats told as "features show nothing".
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from llpbench import LLPClassifier
from llpbench.owndata.bag_effects import added_up, learn_known_bags

DATA = Path("../shared/data")
NATURAL: dict[str, tuple[list[str], str]] = {
    "adult": (["native-country", "education"], "class"),
    "hotel_bookings": (["country"], "is_canceled"),
    "nass_cds": (["psu"], "dead"),
    "covid_testing": (["clinic_name"], "result"),
    "kc_house": (["zipcode"], "price_above_median"),
}
"""keys of bags, and the target"""
RARE = {"mammography": "class", "adult": "class"}
RATE, RARE_ROWS = 0.013, 6144


def read(name: str, target: str, seed: int, data: Path) -> tuple[pd.DataFrame, Any]:
    """Rows in random order, and whether each is of the rarer class."""
    frame = pd.read_parquet(data / f"{name}.parquet")
    frame = frame.iloc[np.random.default_rng(seed).permutation(len(frame))].reset_index(drop=True)
    labels = frame[target].astype(str)
    texts = frame.select_dtypes(exclude="number").columns
    frame[texts] = frame[texts].astype(str)
    frame = frame.drop(columns=[target, *({"date", "arrival_date"} & {*frame.columns})])
    return frame, (labels == labels.value_counts().index[-1]).to_numpy().astype(int)


def log_loss(proba: Any, labels: Any) -> float:
    """Mean over rows; what is surer than 0.999 counts as that."""
    proba = np.clip(proba, 1e-3, 1 - 1e-3)
    return float(-np.log(np.where(labels == 1, proba, 1 - proba)).mean())


def scores(proba: Any, labels: Any) -> str:
    """Log loss and AUC."""
    return f"{log_loss(proba, labels):.4f} {100 * roc_auc_score(labels, proba):5.1f}"


def natural(name: str, seed: int, rows: int, method: str, data: Path) -> str:
    """One table, as a line."""
    keys, target = NATURAL[name]
    frame, labels = read(name, target, seed, data)
    frame, labels = frame.head(2 * rows), labels[: 2 * rows]
    bags = frame[keys].astype(object).apply(lambda keys: "+".join(map(str, keys)), axis=1).to_numpy()
    features = frame.drop(columns=keys)
    counts = pd.Series(labels[:rows]).groupby(bags[:rows]).sum()
    model = LLPClassifier(method, random_state=seed).fit(features.head(rows), bags[:rows], counts=counts)
    place = pd.Series(range(len(model.bags_)), index=model.bags_)
    new = np.flatnonzero(np.isin(bags[rows:], model.bags_)) + rows
    new_bags, old_bags = place[bags[new]].to_numpy(), place[bags[:rows]].to_numpy()
    plain, fitted = model.predict_proba(features.iloc[new]), model.predict_proba(features.head(rows))
    size = pd.Series(bags[:rows]).groupby(bags[:rows]).size()
    share = ((counts + 0.5) / (size + 1))[model.bags_].to_numpy()
    exact = (counts / size)[model.bags_].to_numpy()
    known, every = model._known, np.arange(rows)
    before = learn_known_bags(known, model._predicted(known.rows), None)
    learned = model._known_bags()
    new_labels, old_labels = labels[new], labels[:rows]
    whole = [added_up(fitted, known, every, spread)[:, 1] for spread in (1.0, learned.spread)]
    return (
        f"{name:15} {seed}  {len(place):4} bags  s {learned.spread:.2f} tau {learned.deviation:.2f}  known: "
        f"share {scores(share[new_bags], new_labels)}  before {scores(before(plain, new_bags)[:, 1], new_labels)}  "
        f"after {scores(learned(plain, new_bags)[:, 1], new_labels)}  whole: "
        f"share {scores(exact[old_bags], old_labels)}  before {scores(whole[0], old_labels)}  "
        f"after {scores(whole[1], old_labels)}"
    )


def rare(name: str, seed: int, size: int, method: str, data: Path) -> str:
    """One table with few positives in random bags, as a line."""
    frame, labels = read(name, RARE[name], seed, data)
    positives, negatives = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    few = round(RATE * RARE_ROWS)
    train = np.concatenate([positives[:few], negatives[: RARE_ROWS - few]])
    train = np.random.default_rng(seed).permutation(train)
    rest = negatives[RARE_ROWS - few :]
    new = np.concatenate([positives[few : few + max(round(RATE * len(rest)), 1)], rest])
    bags = np.arange(RARE_ROWS) // size
    model = LLPClassifier(method, random_state=seed)
    model.fit(frame.iloc[train], bags, counts=pd.Series(labels[train]).groupby(bags).sum())
    after, truth = model.predict_proba(frame.iloc[new])[:, 1], labels[new]
    calibrated, model._calibration = model._calibration, None
    before, share = model.predict_proba(frame.iloc[new])[:, 1], labels[train].mean()
    assert calibrated is not None
    return (
        f"{name:12} {size:5} {seed} {method:16} constant {log_loss(np.full(len(new), share), truth):.4f}  before "
        f"{log_loss(before, truth):.4f} mean/share {before.mean() / share:.2f}  after {log_loss(after, truth):.4f} "
        f"mean/share {after.mean() / share:.2f}  AUC {100 * roc_auc_score(truth, after):.1f}  evidence "
        f"{calibrated.evidence:.1f}"
    )


@click.command()
@click.option("--data", default=DATA, type=click.Path(path_type=Path))
@click.option("--methods", default="auto")
@click.option("--tables", default="")
@click.option("--seeds", default=3)
@click.option("--rows", default=2000, help="Of a half of a table.")
@click.option("--rare", "rare_positives", is_flag=True)
@click.option("--sizes", default="64,256,1024", help="Of bags of --rare.")
def main(data: Path, methods: str, tables: str, seeds: int, rows: int, rare_positives: bool, sizes: str) -> None:
    """Print a line a run."""
    warnings.simplefilter("ignore")
    known = RARE if rare_positives else NATURAL
    for seed in range(seeds):
        for name in tables.split(",") if tables else known:
            for method in methods.split(","):
                if not rare_positives:
                    click.echo(natural(name, seed, rows, method, data))
                    continue
                for size in map(int, sizes.split(",")):
                    click.echo(rare(name, seed, size, method, data))


if __name__ == "__main__":
    main()
