"""The differences that README.md, docs/findings.md and docs/measurements.md quote, computed from published journals.

    python -m benchmarks.findings

Each is a mean over datasets in AUC x 100, with its 95 % t interval over datasets: first on the suite core (two classes,
bags of 256, three seeds), then on the paper's datasets (ordered bags of 256, three seeds). Differences from the default
leave out the datasets on which it was developed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import product

import click
import pandas as pd

from llpbench import load_results
from llpbench.report.leaderboard import DEVELOPED_ON
from llpbench.report.overview import Standings
from llpbench.report.statistics import compared, interval
from llpbench.results.frame import tidy
from llpbench.results.merging import journal_files, merge

BAGGINGS, CRITERIA, SIZES = ("ordered", "random"), ("auc", "mpiou"), (64, 256, 1024)
LEADER, DLLP, BDC, PRETRAINED = "bag-gp-gbdt", "dllp", "tabllp-bdc", "tabllp-bdc self+bag"
PAIRS = (("bag-mean-linear", BDC), (PRETRAINED, BDC))
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


def gaps(first: pd.Series, second: pd.Series) -> pd.Series:
    """Return the difference of two methods on each dataset, without those on which one of them was developed."""
    of = (first - second).dropna().groupby("dataset").mean()
    developed = {*DEVELOPED_ON.get(str(first.name), ()), *DEVELOPED_ON.get(str(second.name), ())}
    return of[~of.index.isin(developed)]


def show(what: str, of: pd.Series) -> None:
    """Print a difference with its interval, the number of datasets, and on how many it is positive."""
    low, high = interval(of.tolist())
    click.echo(f"  {what}: {of.mean():+.1f} [{low:.1f}, {high:.1f}], {(of > 0).sum()} of {len(of)} datasets")


def versus(auc: pd.DataFrame, other: str) -> None:
    """Print the difference of each method from another, corrected for all of them (*: significant)."""
    family = {str(name): gaps(auc[name], auc[other]) for name in auc.columns if name != other}
    for name, difference in compared({name: of.tolist() for name, of in family.items()}).items():
        star = " *" if difference.is_significant else ""
        show(f"{name} ({auc[name].groupby('dataset').mean().mean():.1f}) - {other}{star}", family[name])


def significantly_worse(datasets: Collection[str]) -> None:
    """Print how many methods are significantly worse than the first one, with all datasets and without any one."""
    results = load_results("core")
    for left_out in ("", *datasets):
        used = {*datasets} - {left_out}
        records = [record for record in results.records if record["spec"]["dataset"] in used]
        for board in map(Standings.of, replace(results, records=records).leaderboards.main_boards()):
            labels = "labels" if board.has_labels else "proportions"
            count = f"{len(board.worse)} of {len(board.compared)}, {board.facts['compared_over']}"
            click.echo(f"  {board.facts['bagging']}, by {labels}, without {left_out or 'none'}: {count}")


@click.command(help=__doc__)
def main() -> None:
    """Print the differences."""
    frame = runs("leaderboards/core")
    by = {key: scores(part) for key, part in frame.groupby(["bag_size", "bagging", "criterion"])}
    is_network = frame["encoder"].notna() & frame["role"].eq("") & ~frame["method"].str.contains(" ")
    networks = frame["method"][is_network].unique()
    for size, bagging, criterion in product(SIZES, BAGGINGS, CRITERIA):
        auc = by[size, bagging, criterion]
        auc = auc.loc[:, auc.notna().mean() > 0.9]
        click.echo(f"core, {bagging} bags of {size}, epochs by {criterion}")
        versus(auc, LEADER)
        if size == 256:
            versus(auc[auc.columns.intersection(networks)], DLLP)
            for one, other in PAIRS:
                show(f"{one} - {other}", gaps(auc[one], auc[other]))
            if criterion == "auc":
                click.echo(f"core, {bagging} bags, loss of epochs by mpiou")
                for name, of in (auc - by[size, bagging, "mpiou"]).dropna(axis="columns", how="all").items():
                    if of.any():  # methods without epochs have no loss
                        show(name, of.groupby("dataset").mean())
    for bagging, other in product(BAGGINGS, SIZES[:2]):
        large, small = (by[size, bagging, "auc"][LEADER] for size in (SIZES[-1], other))
        click.echo(f"{bagging} bags of 1,024 minus {other}")
        show(LEADER, (large - small).dropna().groupby("dataset").mean())
    click.echo("core, methods that are significantly worse than the first")
    significantly_worse(sorted(frame["dataset"].unique()))
    paper = runs("leaderboards")
    paper = paper[(paper["bagging"] == "ordered") & (paper["bag_size"] == 256) & (paper["criterion"] == "auc")]
    paper = paper[paper["seed"] < 3]
    auc = scores(paper[paper.groupby(["dataset", "method"])["seed"].transform("nunique") == 3])
    click.echo("datasets of the paper, ordered bags")
    for what, (one, other) in PAPER.items():
        show(what, (auc[one] - auc[other]).dropna().groupby("dataset").mean())


if __name__ == "__main__":
    main()
