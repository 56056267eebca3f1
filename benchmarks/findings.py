"""The differences that docs/findings.md and docs/measurements.md quote, computed from the published journals.

    python -m benchmarks.findings

Each is a mean over datasets in AUC x 100, with its 95 % t interval over datasets: first on the suite core (two classes,
bags of 256, default settings), then on the paper's datasets (ordered bags of 256, three seeds).
"""

from __future__ import annotations

from itertools import product

import click
import pandas as pd

from llpbench.report.statistics import interval
from llpbench.results.frame import tidy
from llpbench.results.merging import journal_files, merge

BAGGINGS, CRITERIA = ("ordered", "random"), ("auc", "mpiou")
LEADER, DLLP, BDC, PRETRAINED = "bag-gp-gbdt", "dllp", "tabllp-bdc", "tabllp-bdc self+bag"
NETWORKS = ("bag-contrast", "debiased-square", BDC, "llpfc", DLLP, "rot", "bag-soft-label")
PAIRS = (
    *((LEADER, other) for other in ("em-gbdt", "count-linear", "bag-mean-linear", *NETWORKS, PRETRAINED)),
    *((one, DLLP) for one in ("debiased-square", "bag-contrast", "llp-vat", "llpfc", "rot", "bag-soft-label")),
    *((one, BDC) for one in ("bag-mean-linear", "bag-contrast", PRETRAINED)),
)
PAPER = {
    f"{LEADER} - {BDC} with SAINT": (LEADER, f'{BDC} saint precision="bfloat16"'),
    "optimal assignment - greedy": (PRETRAINED, f'{PRETRAINED} generator="greedy"'),
    "InfoNCE - cosine embedding": (PRETRAINED, f'{PRETRAINED} objective="cosine-embedding"'),
}
"""pairs of methods, with what differs from the defaults and from an MLP"""


def runs(journal: str) -> pd.DataFrame:
    """Return the successful runs of two-class datasets, one row a run and criterion."""
    frame = tidy(merge(journal_files(journal)).records.values(), criteria=CRITERIA)
    frame = frame[(frame["status"] == "ok") & (frame["classes"] == 2) & frame["max_bags"].isna()]
    for column, usual in (("encoder", "mlp"), ("pretraining", "none"), ("configuration", "")):
        frame["method"] += (" " + frame[column].fillna(usual)).where(frame[column].fillna(usual) != usual, "")
    return frame


def scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the AUC x 100 of each method [datasets x seeds, methods]."""
    return 100 * frame.pivot_table(index=["dataset", "seed"], columns="method", values="test_auc")


def show(what: str, first: pd.Series, second: pd.Series) -> None:
    """Print a difference with its interval and the number of datasets."""
    of_datasets = (first - second).dropna().groupby("dataset").mean()
    low, high = interval(of_datasets.tolist())
    click.echo(f"  {what}: {of_datasets.mean():+.1f} [{low:.1f}, {high:.1f}], {len(of_datasets)} datasets")


@click.command(help=__doc__)
def main() -> None:
    """Print the differences."""
    core = runs("leaderboards/core")
    by = {
        (bagging, criterion): scores(part)
        for (bagging, criterion), part in core[core["bag_size"] == 256].groupby(["bagging", "criterion"])
    }
    for bagging, criterion in product(BAGGINGS, CRITERIA):
        click.echo(f"core, {bagging} bags, epochs by {criterion}")
        for one, other in PAIRS:
            show(f"{one} - {other}", by[bagging, criterion][one], by[bagging, criterion][other])
    for bagging in BAGGINGS:
        click.echo(f"core, {bagging} bags, loss of epochs by mpiou")
        for name in NETWORKS:
            show(name, *(by[bagging, criterion][name] for criterion in CRITERIA))
        sizes = core[(core["bagging"] == bagging) & (core["criterion"] == "auc")]
        large, small = (scores(sizes[sizes["bag_size"] == size])[LEADER] for size in (1024, 64))
        show(f"{LEADER}, bags of 1,024 - of 64", large, small)
    paper = runs("leaderboards")
    paper = paper[(paper["bagging"] == "ordered") & (paper["bag_size"] == 256) & (paper["criterion"] == "auc")]
    paper = paper[paper["seed"] < 3]
    auc = scores(paper[paper.groupby(["dataset", "method"])["seed"].transform("nunique") == 3])
    click.echo("datasets of the paper, ordered bags")
    for what, (one, other) in PAPER.items():
        show(what, auc[one], auc[other])


if __name__ == "__main__":
    main()
