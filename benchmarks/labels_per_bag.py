"""How many labelled rows the bags of each method are worth.

    python -m benchmarks.labels_per_bag curves leaderboards/core/label-curves.csv
    python -m benchmarks.labels_per_bag table leaderboards/core

`curves` fits three fixed learners to n labelled training rows, drawn at random, and writes their AUC on the test rows
of the benchmark's own splits: a random forest (the reference), boosting and logistic regression. `table` inverts these
curves at the AUC of each method with default settings (`llpbench.report.leaderboard`), for each kind and size
of bags, and draws docs/images/labels-per-bag.svg.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import click
import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from llpbench.core.bags import FloatArray, Rows
from llpbench.core.seeding import generator
from llpbench.data.loading import load_table, suite_datasets
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.report.leaderboard import LEARNERS, SIZES, label_worth
from llpbench.report.plots.layout import RC, WIDTH, compacted
from llpbench.results.frame import tidy
from llpbench.results.merging import journal_files, merge

CURVES = Path(__file__).parents[1] / "leaderboards" / "core" / "label-curves.csv"
SEEDS = 3
DRAWS = 3
"""draws of at most `FEW` rows, whose AUC is averaged"""
FEW = 128
LINES = {
    "bag-gp-gbdt": "auc",
    "bag-gp": "auc",
    "count-linear": "auc",
    "bag-mean-linear": "auc",
    "bag-contrast": "mpiou",
    "debiased-square": "mpiou",
    "tabllp-bdc": "mpiou",
    "dllp": "mpiou",
}
"""methods of the table, and what chooses their epochs: nothing (methods without epochs) or proportions"""

DRAWN = ("bag-gp-gbdt", "count-linear", "bag-mean-linear", "bag-contrast", "dllp")
"""methods of the figure"""


def learner(name: str, seed: int) -> RandomForestClassifier | HistGradientBoostingClassifier | LogisticRegression:
    """Return a reference learner with its fixed setting."""
    if name == "forest":
        return RandomForestClassifier(100, min_samples_leaf=2, random_state=seed)
    if name == "boosting":
        return HistGradientBoostingClassifier(
            max_iter=100, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=5, early_stopping=False
        )
    return LogisticRegression(max_iter=200)


def _columns(rows: Rows, cardinalities: tuple[int, ...], *, one_hot: bool) -> FloatArray:
    codes = [rows.categorical]
    if one_hot:
        codes = [np.eye(size)[rows.categorical[:, column]] for column, size in enumerate(cardinalities)]
    return np.column_stack([rows.numeric, *codes])


def curves(dataset: str, seed: int, data_dir: Path | None) -> Iterator[dict[str, object]]:
    """Yield the test AUC by number of labelled rows, for each learner."""
    table = load_table(dataset, data_dir, download=False)
    task = build_task(table, assign_bags(table, "random", 64, seed), supervision="instances")
    labels = task.train_labels
    assert labels is not None
    assert task.test.labels is not None
    rng = generator(seed, "labelled rows", dataset)
    drawn = {n: [rng.permutation(len(labels))[:n] for _ in range(DRAWS if n <= FEW else 1)] for n in SIZES}
    for name in LEARNERS:
        train, test = (
            _columns(rows, task.schema.cardinalities, one_hot=name == "logistic")
            for rows in (task.train.rows, task.test.rows)
        )

        def auc(rows: np.ndarray, name: str = name, train: FloatArray = train, test: FloatArray = test) -> float:
            if len({*labels[rows]}) < 2:
                return 0.5
            model = learner(name, seed).fit(train[rows], labels[rows])
            return float(roc_auc_score(task.test.labels, model.predict_proba(test)[:, 1]))

        values = {str(n): round(float(np.mean([auc(rows) for rows in draws])), 4) for n, draws in drawn.items()}
        yield {"dataset": dataset, "learner": name, "seed": seed, **values}


@click.group()
def main() -> None:
    """Number of labelled rows from which a learner reaches the AUC of a method trained on bags."""


@main.command("curves")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--data-dir", type=click.Path(exists=True, path_type=Path))
def write_curves(out: Path, data_dir: Path | None) -> None:
    """Write the curves of all two-class datasets of the suite embedded."""
    rows: list[dict[str, object]] = []
    for dataset in suite_datasets("embedded"):
        if len(load_table(dataset, data_dir, download=False).classes) == 2:
            rows += [row for seed in range(SEEDS) for row in curves(dataset, seed, data_dir)]
            pd.DataFrame(rows).to_csv(out, index=False)
            click.echo(dataset)


@main.command()
@click.argument("journal", type=click.Path(exists=True, path_type=Path))
@click.option("--figure", type=click.Path(dir_okay=False, path_type=Path))
def table(journal: Path, figure: Path | None) -> None:
    """Print labels per bag by kind and size of bags, and draw those by the reference learner."""
    frame = tidy(merge(journal_files(str(journal))).records.values(), criteria={"auc", "mpiou"})
    frame = frame[(frame["status"] == "ok") & (frame["configuration"] == "") & (frame["pretraining"] == "none")]
    frame = frame[frame["criterion"] == frame["method"].map(LINES)]
    frame = frame[frame["dataset"].isin(pd.read_csv(CURVES)["dataset"]) & (frame["seed"] < SEEDS)]
    rows = []
    for (bagging, size), runs in frame.groupby(["bagging", "bag_size"]):
        auc = 100 * runs.pivot_table(index=["dataset", "seed"], columns="method", values="test_auc")
        auc = auc.loc[:, auc.notna().mean() > 0.5].dropna()  # datasets with all methods, methods on most datasets
        bags = runs.groupby("dataset")["bags"].median()
        for name in LEARNERS:
            worth = label_worth(auc, bags, name).assign(bagging=bagging, size=int(size), learner=name)
            rows.append(worth.assign(auc=auc.mean(), datasets=auc.index.unique(0).size).reset_index(names="method"))
    worth = pd.concat(rows)
    click.echo(worth.round(2).to_string(index=False))
    if figure:
        with mpl.rc_context(RC):
            draw(worth[worth["learner"] == LEARNERS[0]], figure)


def draw(worth: pd.DataFrame, path: Path) -> None:
    """Draw labels per bag over the size of bags, a panel for each kind of bags."""
    drawing = Figure(figsize=(WIDTH, 2.8))
    panels = drawing.subplots(1, 2, sharey=True)
    for ax, (bagging, part) in zip(panels, worth.groupby("bagging"), strict=True):
        for place, name in enumerate(DRAWN):
            line = part[part["method"] == name].sort_values("size")
            reach = np.abs(line[["low", "high"]].to_numpy().T - line["per_bag"].to_numpy())
            shifted = line["size"] * 1.07 ** (place - 2)
            ax.errorbar(shifted, line["per_bag"], reach, label=name, marker="o", lw=1, elinewidth=0.7)
        ax.axhline(1, color="0.6", lw=0.8, zorder=0)
        ax.set(xscale="log", yscale="log", title=f"{bagging} bags", xlabel="rows of a bag")
        ax.set_xticks([64, 256, 1024], ["64", "256", "1,024"])
        ax.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        ax.minorticks_off()
    panels[0].set_ylabel("labels per bag")
    drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    file = io.StringIO()
    drawing.savefig(file, format="svg", metadata={"Date": None})
    path.write_text(compacted(file.getvalue()), encoding="utf-8")


if __name__ == "__main__":
    main()
