"""Which properties of a dataset and its bags go with the lead of one method over another.

    python -m benchmarks.decides leaderboards/core --bag-size 256

A lead is the difference of the mean test AUC x 100 of two methods on one dataset, over the seeds that both have run.
Labels choose the epochs, or with `--criterion mpiou` proportions.

Each pair of a lead and a property gives Spearman's rank correlation over two-class datasets. A star marks those whose
p value holds at 5 % after Holm's correction over all pairs of a table.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import click
import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from llpbench.core.bags import BaggedRows
from llpbench.data.loading import load_table
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.report.statistics import holm, interval
from llpbench.results.frame import tidy
from llpbench.results.merging import journal_files, merge

LEADS = (
    ("bag-gp-gbdt", "bag-mean-linear"),
    ("bag-gp-gbdt", "count-linear"),
    ("bag-gp-gbdt", "em-gbdt"),
    ("bag-gp-gbdt", "bag-soft-label-gbdt"),
    ("bag-gp-gbdt", "dllp"),
    ("bag-gp-gbdt", "bag-contrast"),
    ("bag-gp-gbdt", "debiased-square"),
    ("bag-gp-gbdt", "tabllp-bdc"),
    ("bag-contrast", "dllp"),
    ("debiased-square", "dllp"),
    ("llp-vat", "dllp"),
    ("tabllp-bdc", "dllp"),
    ("tabllp-bdc self+bag", "tabllp-bdc"),
)
LABELLED = "supervised-gbdt"
JUDGES = Path("leaderboards/judges.toml")
FEWEST = 12
"""datasets of a lead, below which no correlation is shown"""


def heaviness(numeric: np.ndarray) -> float:
    """Mean over columns of the share of values further than five interquartile ranges from the median."""
    low, middle, high = np.nanquantile(numeric, (0.25, 0.5, 0.75), axis=0)
    between = np.where(high > low, high - low, np.inf)
    return float(np.nanmean(np.abs(numeric - middle) > 5 * between)) if numeric.size else 0.0


def spread(bags: BaggedRows) -> float:
    """Return the variance of bag proportions relative to random bags of the same sizes: 1 if bags carry no information.

    With B bags of m_b rows, N rows in all, and the class proportions pi_c, this is sum_b m_b sum_c (p_bc - pi_c)^2
    divided by its expectation for randomly assigned rows, sum_c pi_c (1 - pi_c) N (B - 1) / (N - 1).
    """
    sizes, prior = bags.sizes, bags.prior
    rows = sizes.sum()
    expected = (prior * (1 - prior)).sum() * rows * (len(sizes) - 1) / (rows - 1)
    return float((sizes[:, None] * (bags.proportions - prior) ** 2).sum() / expected)


def properties(frame: pd.DataFrame, bagging: str, bag_size: int, data_dir: Path | None) -> pd.DataFrame:
    """Of each dataset in its bags, by dataset."""
    found = {}
    for name, runs in frame.groupby("dataset"):
        table = load_table(str(name), data_dir, download=False)
        columns = table.numeric.shape[1] + table.categorical.shape[1]
        share = table.row_labels.mean()
        bags = [build_task(table, assign_bags(table, bagging, bag_size, seed)).bags for seed in runs["seed"].unique()]
        supervised = runs.loc[runs["method"] == LABELLED, "test_auc"].mean()
        found[name] = {
            "training bags": runs["bags"].median(),
            "columns": columns,
            "training bags a column": runs["bags"].median() / columns,
            "share of numeric columns": table.numeric.shape[1] / columns,
            "far values": heaviness(table.numeric),
            "share of the rarer class": min(share, 1 - share),
            "variance of proportions over that of random bags": np.mean([*map(spread, bags)]),
            "AUC of boosting on labels": supervised,
        }
    return pd.DataFrame(found).T


def correlations(leads: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation and p value of each pair of a property and a lead."""
    rows = []
    for lead, values in leads.items():
        both = known.join(values.rename("lead")).dropna()
        if len(both) >= FEWEST:
            rows += [(lead, name, *spearmanr(both[name], both["lead"])) for name in known if both[name].nunique() > 1]
    return pd.DataFrame(rows, columns=["lead", "property", "correlation", "p"])


@click.command()
@click.argument("journal", type=click.Path(exists=True, path_type=Path))
@click.option("--bag-size", default=256, show_default=True)
@click.option("--criterion", default="auc", show_default=True, help="What chooses the epochs of networks.")
@click.option("--judges", is_flag=True, help="Use only the datasets of leaderboards/judges.toml.")
@click.option("--data-dir", type=click.Path(exists=True, path_type=Path))
def main(journal: Path, bag_size: int, criterion: str, judges: bool, data_dir: Path | None) -> None:
    """Print the leads and what goes with them, for ordered and for random bags."""
    frame = tidy([*merge(journal_files(str(journal))).records.values()], criteria={criterion})
    frame = frame[(frame["status"] == "ok") & (frame["classes"] == 2) & (frame["bag_size"] == bag_size)]
    frame = frame[frame["configuration"] == ""]
    if judges:
        frame = frame[frame["dataset"].isin(tomllib.loads(JUDGES.read_text())["judges"])]
    frame["method"] += (" " + frame["pretraining"]).where(frame["pretraining"].fillna("none") != "none", "")
    for bagging, runs in frame.groupby("bagging"):
        auc = 100 * runs.pivot_table(index=["dataset", "seed"], columns="method", values="test_auc")
        leads = pd.DataFrame(
            {
                f"{one} - {other}": (auc[one] - auc[other]).dropna().groupby("dataset").mean()
                for one, other in LEADS
                if {one, other} <= {*auc.columns}
            }
        )
        table = correlations(leads, properties(runs, str(bagging), bag_size, data_dir))
        table["star"] = np.where(holm(table["p"].to_numpy()) < 0.05, "*", "")
        click.echo(f"\n{bagging} bags of {bag_size}")
        for lead, values in leads.items():
            differences = values.dropna().to_numpy()
            low, high = interval(differences)
            click.echo(f"  {lead}: {differences.mean():+.1f} [{low:.1f}, {high:.1f}], {len(differences)} datasets")
        shown = table.assign(text=table["correlation"].map("{:+.2f}".format) + table["star"])
        wide = shown.pivot_table(index="property", columns="lead", values="text", aggfunc="first")
        click.echo(wide.fillna("").to_string())


if __name__ == "__main__":
    main()
