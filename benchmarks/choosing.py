"""How good is the advice of `choose`? Its regret in test AUC, which it never sees, against always taking the union.

    python -m benchmarks.choosing --data-dir DATA --out choosing.jsonl
    python -m benchmarks.choosing --data-dir DATA --out large.jsonl --size 256 --bags 128 --seeds 2
    python -m benchmarks.choosing --published leaderboards

A cell is a dataset, a bagging and a seed: 64 bags of 64 rows (or of their own sizes). `choose` compares the methods on
the training bags; then each is fitted to all of them, and its AUC is that of test rows. Every cell is a line of --out,
so that a run can be stopped and goes on where it was; the tables are made from that file alone. With --published, the
runs of a journal instead: the loss by taking, in every run, the method that fits the test bags best.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table as Grid
from sklearn.metrics import roc_auc_score

from llpbench import load_results
from llpbench.core.bags import IntArray
from llpbench.core.criteria import CRITERIA as ALL_CRITERIA
from llpbench.core.tables import Table
from llpbench.data.loading import load_table, select_datasets
from llpbench.data.splits import assign_bags
from llpbench.owndata.choosing import COMPARED, DECIDES, choose, compared
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.doubts import CONFOUNDED
from llpbench.owndata.fitting import AUTO, YARDSTICK

FOLDS = 4
CHEAPER: dict[str, dict[str, Any]] = {
    "bag-gp-gbdt": {"params": {"trees": 200, "rounds": 2}},
    "count-gbdt": {"params": {"trees": 200}},
    "dllp": {"epochs": 10, "bags_per_step": 8, "device": "cpu"},
}
"""than the defaults, so that all of it takes half an hour of a busy core"""
FEWEST = 5
"""methods of a run of a journal, below which there is no choice to make"""
DATASETS = ("adult", "bank_marketing", "california", "credit", "electricity")
BAGGINGS = ("ordered", "random", "kmeans")
NATURAL = (
    ("flights_2013", "column:by=date:most=64"),
    ("flights_2013", "column:by=carrier+dest:most=64"),
    ("adult", "column:by=native-country+education:most=64"),
)


def bags_of(table: Table, bagging: str, size: int, most: int, seed: int) -> tuple[IntArray, IntArray]:
    """Training bags [bags, longest] of row numbers, and test rows."""
    own = bagging.startswith("column")
    if bagging == "kmeans":
        bagging, own = f"kmeans:clusters={len(table) * 8 // 10 // size}", True
    found = assign_bags(table, bagging, None if own else size, seed)
    few = np.random.default_rng(seed).permutation(len(found.train))[: 2 * most if "+" in bagging else most]
    return found.train[few], found.split.test[:4000]


def frame_of(table: Table) -> pd.DataFrame:
    """The features of a table."""
    texts = {
        name: pd.Categorical.from_codes(table.categorical[:, place], categories)
        for place, (name, categories) in enumerate(zip(table.categorical_names, table.categories, strict=True))
    }
    return pd.DataFrame({**dict(zip(table.numeric_names, table.numeric.T, strict=True)), **texts})


def measure(dataset: str, bagging: str, seed: int, size: int, most: int, data_dir: str | None) -> dict[str, Any]:
    """A cell: what `choose` has seen, and the test AUC of each method fitted to all bags."""
    table = load_table(dataset, data_dir)
    frame, (bags, test) = frame_of(table), bags_of(table, bagging, size, most, seed)
    bag, place = np.nonzero(bags >= 0)
    rows = bags[bag, place]
    counts = pd.crosstab(bag, table.row_labels[rows])
    methods = {name: LLPClassifier(name, **CHEAPER.get(name, {})) for name in COMPARED}
    clock = time.perf_counter()
    splits: dict[str, Any] = {"folds": FOLDS, "repeats": 1, "random_state": seed}
    found = choose(frame.iloc[rows], bag, counts=counts, methods=methods, progress=False, **splits)
    seconds, auc = time.perf_counter() - clock, {}
    for name, method in methods.items():
        known = found.union if name == found.reference else method.fit(frame.iloc[rows], bag, counts=counts)
        assert known is not None
        proba = known.predict_proba(frame.iloc[test])
        auc[name] = 100 * roc_auc_score(table.row_labels[test], proba[:, 1])
    assert found.union is not None
    assert found.union.doubts_ is not None
    return {
        "dataset": dataset,
        "bagging": bagging,
        "seed": seed,
        "bags": len(bags),
        "rows": len(rows),
        "unexplained": found.union.doubts_.unexplained,
        "noise": found.union.doubts_.noise,
        "agreement": found.union.doubts_.agreement,
        "auc": auc,
        "folds": found.folds.to_dict("records"),
        "seconds": seconds,
    }


CRITERIA = ("likelihood", "kl", "l1", "mpiou")
RULES = ("highest mean", "interval above 0", "the same, unless confounded")


def named(cell: dict[str, Any], criterion: str, rule: str) -> str:
    """The method that a rule names by a criterion: one that leads the union, else the union."""
    folds = pd.DataFrame(cell["folds"])
    loss = -folds[criterion] if ALL_CRITERIA[criterion].maximise else folds[criterion]
    board = compared(folds.assign(**{DECIDES: loss}), AUTO, 1 / (FOLDS - 1))
    board = board[board["method"] != YARDSTICK].set_index("method")
    if rule == RULES[0]:
        return str(board.index[0])
    ahead = board[board["low"] > 0]["gain"]
    if ahead.empty or (rule == RULES[2] and cell["unexplained"] > CONFOUNDED):
        return AUTO
    return str(ahead.idxmax())


def show(cells: list[dict[str, Any]]) -> None:
    """Each cell, and each rule over all of them."""
    grid = Grid("dataset", "bagging", "unexplained", "best by labels", "auto", "named", f"best mean of {DECIDES}")
    for cell in cells:
        auc = cell["auc"]
        names = (max(auc, key=auc.get), AUTO, named(cell, DECIDES, RULES[2]), named(cell, DECIDES, RULES[0]))
        shown = [f"{name} {auc[name]:.1f}" for name in names]
        grid.add_row(cell["dataset"], cell["bagging"], f"{cell['unexplained']:.2f}", *shown)
    rules = Grid("criterion", "rule", "names the best", "names another than auto", "regret", "worst")
    rows = [("–", "always auto", [AUTO] * len(cells))]
    rows += [(c, rule, [named(cell, c, rule) for cell in cells]) for c in CRITERIA for rule in RULES]
    for criterion, rule, found in rows:
        lost = [max(cell["auc"].values()) - cell["auc"][name] for cell, name in zip(cells, found, strict=True)]
        numbers = (f"{sum(x == 0 for x in lost)} of {len(lost)}", str(sum(name != AUTO for name in found)))
        rules.add_row(criterion, rule, *numbers, f"{np.mean(lost):.2f}", f"{max(lost):.1f}")
    for each in (grid, rules):
        Console(width=140).print(each)


def of_published(journal: Path) -> None:
    """What taking the best on test bags costs, over the runs of a journal: default settings, bags of two classes."""
    found = load_results(journal).frame
    found = found[(found["criterion"] == "l1") & (found["role"] == "") & (found["changed"] == "")]
    found = found[(found["status"] == "ok") & (found["pretraining"] == "none") & found["max_bags"].isna()]
    found = found[found["test_auc"].notna() & (found["method"] != YARDSTICK)]
    lost = []
    for cell, runs in found.groupby(["dataset", "bagging", "bag_size", "seed"], dropna=False):
        auc, distance = (runs.groupby("method")[name].mean() for name in ("test_auc", "test_l1"))
        if AUTO in auc and len(auc) >= FEWEST:
            named = str(distance.idxmin())
            lost.append((*cell, len(auc), named, *(100 * (auc.max() - auc[each]) for each in (named, AUTO))))
    columns = ["dataset", "bagging", "size", "seed", "methods", "best L1", "its regret", "auto's"]
    cells = pd.DataFrame(lost, columns=columns)
    shown = cells.groupby(columns[:3]).agg({"seed": "count", "methods": "max", "its regret": "mean", "auto's": "mean"})
    print(shown.round(1).to_string(), f"{len(cells)} runs", sep="\n")
    print(cells[["its regret", "auto's"]].agg(["mean", "max"]).round(1))


@click.command(help=__doc__)
@click.option("--data-dir", default=None)
@click.option("--out", type=click.Path(path_type=Path), default=Path("choosing.jsonl"))
@click.option("--size", default=64, help="rows a bag")
@click.option("--bags", default=64, help="bags at most")
@click.option("--seeds", default=1)
@click.option("--datasets", help="instead of those that the rule was made on, such as suite:core; no natural bags")
@click.option("--published", type=click.Path(path_type=Path, exists=True), help="a journal, looked at instead")
def main(
    data_dir: str | None, out: Path, size: int, bags: int, seeds: int, datasets: str | None, published: Path | None
) -> None:
    """Measure missing cells, and print the tables."""
    if published:
        of_published(published)
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    names = DATASETS if datasets is None else select_datasets(datasets)
    cells = [(each, bagging, seed) for seed in range(seeds) for bagging in BAGGINGS for each in names]
    if datasets is None:
        cells += [(*natural, seed) for seed in range(seeds) for natural in NATURAL]
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    for dataset, bagging, seed in cells:
        if (dataset, bagging, seed) not in {(cell["dataset"], cell["bagging"], cell["seed"]) for cell in done}:
            done.append(measure(dataset, bagging, seed, size, bags, data_dir))
            with out.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
    for some in ([cell for cell in done if cell["bagging"] in BAGGINGS], done):
        show(some)


if __name__ == "__main__":
    main()
