"""The differences that docs/findings.md quotes, computed from the published journal.

    python -m benchmarks.findings

Each is a mean over datasets, of the mean over the named bag sizes, in AUC x 100, with its 95 % t interval over
datasets; the first three seeds of all methods (random bags of DLLP and what it is held against: all of theirs, which
are the same), MLP encoder where there is one unless SAINT is named.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import click
import pandas as pd

import llpbench
from llpbench.report.statistics import interval

SIZES, SMALL, MIDDLE = (64, 128, 256, 512, 1024), (64, 128, 256), (256,)
RANDOM_SIZES = (64, 256, 1024)
SEEDS, ALL, EPOCHS = 3, 10, 100
LEADER, FLOOR, BDC = "bag-gp-gbdt", "bag-soft-label", "tabllp-bdc"
NETWORKS = (BDC, "dllp", "llp-vat", "llp-gan", "selfclr-llp", "tabllp-self", "tabllp-pse", "tabllp-dec")
ARMS = {
    "13 bags, of 1024 - of 64": ((13, 1024), (13, 64)),
    "of 256, 52 - 13 bags": ((52, 256), (13, 256)),
    "13,312 rows, 13 of 1024 - 208 of 64": ((13, 1024), (208, 64)),
}
"""of the study bag-number: number and size of bags at both ends"""
PRETRAINED = ("none", "self+bag")
SAINT = ("california", "credit", "electricity")
"""datasets with three published seeds of every method with SAINT"""
COUNTED = (LEADER, "em-gbdt", "bag-gp", "count-gbdt", BDC, "tabllp-self", "tabllp-pse", "dllp", "llp-vat", "llp-gan")
GREEDY, COSINE, APART = 'generator="greedy"', 'objective="cosine-embedding"', 'pretraining.view="separated"'
ATTENTION, PROJECTION = 'pretraining.aggregator="attention"', "pretraining.projection=true"
AGGREGATORS = {
    "attention": ATTENTION,
    "weighted sum, projection": PROJECTION,
    "attention, projection": f"{ATTENTION}, {PROJECTION}",
}


class Runs:
    """The published runs, one row a run and criterion."""

    def __init__(self) -> None:
        found = llpbench.load_results("published").frame
        epochs = found["max_epochs"].isna() | (found["max_epochs"] == EPOCHS)
        self.frame = found[(found["status"] == "ok") & (found["ensemble"] == 1) & epochs]

    def mean(self, method: str, sizes: tuple[int, ...], encoder: str = "mlp", **other: Any) -> pd.Series:
        """Over seeds, by dataset and size; `other`: criterion, pretraining, bagging, changed, metric, bags, seeds."""
        metric, bags, seeds = other.pop("metric", "test_auc"), other.pop("bags", None), other.pop("seeds", SEEDS)
        usual = {"criterion": "auc", "pretraining": "none", "bagging": "ordered", "changed": ""}
        wanted = {**usual, "method": method, **other}
        found = self.frame[self.frame["bag_size"].isin(sizes) & (self.frame["seed"] < seeds)]
        found = found[found["max_bags"].isna() if bags is None else found["max_bags"] == bags]
        found = found[found["encoder"].isna() | (found["encoder"] == encoder)]
        for column, value in wanted.items():
            found = found[found[column] == value]
        return 100 * found.groupby(["dataset", "bag_size"])[metric].mean()


def tell(what: str, first: pd.Series, second: pd.Series) -> None:
    """Print a difference with its interval, and the datasets it is over."""
    each = (first - second).dropna().groupby("dataset").mean()
    low, high = interval(each.tolist())
    by_dataset = ", ".join(f"{dataset} {value:.1f}" for dataset, value in each.items())
    click.echo(f"{what}: {each.mean():.1f} [{low:.1f}, {high:.1f}] ({by_dataset})")


@click.command(help=__doc__)
def main() -> None:
    """Print them, by number of finding."""
    mean = Runs().mean
    tell(f"1 {LEADER} - {BDC}", mean(LEADER, SIZES), mean(BDC, SIZES))
    tell("1 with bags of 256", mean(LEADER, MIDDLE), mean(BDC, MIDDLE))
    tell("1 pretrained", mean(LEADER, SIZES), mean(BDC, SIZES, pretraining="self+bag"))
    tell("1 pretrained, with bags of 256", mean(LEADER, MIDDLE), mean(BDC, MIDDLE, pretraining="self+bag"))
    for name, pretraining in ((FLOOR, "none"), *((name, "none") for name in NETWORKS), (BDC, "self+bag")):
        what = f"{name}, {pretraining}"
        fine, coarse = (mean(name, SMALL, pretraining=pretraining, criterion=by) for by in ("auc", "mpiou"))
        tell(f"2 coarse, {LEADER} - {what}", mean(LEADER, SMALL, criterion="mpiou"), coarse)
        tell(f"3 {what} - floor", mean(name, SIZES, pretraining=pretraining), mean(FLOOR, SIZES))
        tell(f"4 fine - coarse, {what}", fine, coarse)
        tell(f"4 fine - coarse by L1, {what}", fine, mean(name, SMALL, pretraining=pretraining, criterion="l1"))
    for criterion in ("auc", "mpiou"):
        sizes = SIZES if criterion == "auc" else SMALL
        whole = mean(BDC, sizes, pretraining="self+bag", criterion=criterion)
        tell(f"5 self+bag - none, {BDC}, by {criterion}, all sizes", whole, mean(BDC, sizes, criterion=criterion))
    for name in (FLOOR, *NETWORKS):
        if name != "llp-gan":
            tell(f"5 self+bag - none, {name}", mean(name, MIDDLE, pretraining="self+bag"), mean(name, MIDDLE))
    for pretraining in ("self", "bag"):
        for name in ("dllp", BDC, "selfclr-llp", "tabllp-self"):
            tell(f"5 {pretraining} - none, {name}", mean(name, MIDDLE, pretraining=pretraining), mean(name, MIDDLE))
    for name, pretraining in (("dllp", "none"), (BDC, "none"), (BDC, "self+bag"), (LEADER, "none")):
        for ends in (*pairwise(SIZES), (SIZES[0], SIZES[-1])):
            first, last = (mean(name, (size,), pretraining=pretraining).droplevel("bag_size") for size in ends)
            tell(f"6 {ends[0]} - {ends[1]}, {name}, {pretraining}", first, last)
    for what, ends_of in ARMS.items():
        for name in COUNTED:
            last, first = (mean(name, (size,), bags=bags).droplevel("bag_size") for bags, size in ends_of)
            tell(f"6 {what}, {name}", last, first)
    tell("7 em-gbdt - count-gbdt", mean("em-gbdt", SIZES), mean("count-gbdt", SIZES))
    tell("8 bag-gp - ridge", mean("bag-gp", SIZES), mean("bag-mean-linear", SIZES))
    for metric in ("test_ece", "test_brier"):
        shared = mean(BDC, MIDDLE, metric=metric).index
        for name in (BDC, "dllp", "llp-vat", "llp-gan", "bag-gp", LEADER, "bag-mean-linear", FLOOR, "supervised"):
            found = mean(name, MIDDLE, metric=metric)[shared].mean()
            click.echo(f"10 {metric}, {name}: {found:.1f}")
    for size in RANDOM_SIZES:
        for name in (LEADER, "bag-mean-linear"):
            first, second = (mean(each, (size,), bagging="random", seeds=ALL) for each in (name, "dllp"))
            tell(f"13 random {size}, {name} - dllp", first, second)
    for name, pretraining in (("dllp", "none"), (BDC, "self+bag"), (LEADER, "none")):
        given = {"pretraining": pretraining}
        tell(f"13 ordered - random, {name}", mean(name, MIDDLE, **given), mean(name, MIDDLE, bagging="random", **given))
    whole = mean(BDC, MIDDLE, pretraining="self+bag")
    for what, changed in (("assignment - greedy", GREEDY), ("InfoNCE - cosine", COSINE)):
        tell(f"14 {what}", whole, mean(BDC, MIDDLE, pretraining="self+bag", changed=changed))
    for what, aggregator in AGGREGATORS.items():
        tell(f"14 {what} - weighted sum", mean(BDC, MIDDLE, pretraining="self+bag", changed=aggregator), whole)
    for name in ("dllp", BDC):
        mixed, apart = (mean(name, MIDDLE, pretraining="self", changed=each) for each in ("", APART))
        tell(f"14 feature mixup - separated, {name}", mixed, apart)
    saint = {
        (name, pretraining): mean(name, MIDDLE, "saint", pretraining=pretraining)
        for name in (FLOOR, "supervised", *NETWORKS)
        for pretraining in PRETRAINED
        if name != "llp-gan"  # whose networks are its own
    }
    saint = {key: means[means.index.isin(SAINT, "dataset")] for key, means in saint.items() if not means.empty}
    for (name, pretraining), own in saint.items():
        tell(f"16 SAINT - MLP, {name}, {pretraining}", own, mean(name, MIDDLE, pretraining=pretraining))
        tell(f"16 {LEADER} - SAINT, {name}, {pretraining}", mean(LEADER, MIDDLE), own)
        tell(f"16 SAINT, {name}, {pretraining} - floor", own, saint[FLOOR, "none"])
    tell("16 saint-row - SAINT, dllp", mean("dllp", MIDDLE, "saint-row"), saint["dllp", "none"])
    for name in ("dllp", BDC):
        tell(f"16 SAINT, self+bag - none, {name}", saint[name, "self+bag"], saint[name, "none"])


if __name__ == "__main__":
    main()
