"""Learning from label proportions in one file, without llpbench: bags, three methods, two ways to choose the epoch.

Rows of Adult are put into ordered bags of 256. Methods see the features of rows and the counts of bags, never the label
of a row, and predict the class of test rows. The numbers agree with those of llpbench up to chance
(its `dllp`, `bag-mean-linear` and `count-linear`).

python examples/nano.py, in half a minute:

ridge on bag means       83.1
likelihood of counts     86.3
DLLP, no labels          88.0
DLLP, validation labels  87.9
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

ADULT = Path(__file__).parents[1] / "datasets" / "embedded" / "adult.parquet"
SIZE, EPOCHS, PATIENCE, BAGS_PER_STEP = 256, 100, 10, 2

Array = NDArray[np.float64]


class Part(NamedTuple):
    """Rows of one part of the split, sorted so that row i is in bag i // SIZE."""

    x: Tensor
    """features [rows, columns]"""
    y: Tensor
    """labels [rows], for criteria and scores only"""
    shares: Tensor
    """share of positives [bags]: all that a method may see of the labels"""


def make_parts(frame: pd.DataFrame, target: str, positive: str, rng: np.random.Generator) -> list[Part]:
    """Return train, validation and test: 8, 1 and 1 of 10 rows, each cut into ordered bags."""
    labels = (frame.pop(target).astype(str) == positive).to_numpy(float)
    numeric = frame.select_dtypes("number").columns
    categorical = [column for column in frame.columns if column not in numeric]
    frame[categorical] = frame[categorical].astype(str).fillna("~")  # missing values are a category, sorted last
    folds = np.array_split(rng.permutation(len(frame)), 10)
    rows_of = [np.concatenate(folds[2:]), folds[1], folds[0]]
    hot = pd.get_dummies(frame[categorical], dtype=float)
    columns = pd.concat([frame[numeric], hot.loc[:, hot.iloc[rows_of[0]].any()]], axis="columns")
    train = columns.iloc[rows_of[0]]
    x = ((columns - train.mean()) / train.std()).fillna(0).to_numpy(float)
    parts = []
    for rows in rows_of:
        used = rows[: len(rows) - len(rows) % SIZE]
        # neighbours in the raw features share a bag: categories first, then numbers
        used = used[np.lexsort([frame[column].iloc[used] for column in [*categorical, *numeric][::-1]])]
        y = torch.from_numpy(labels[used])
        parts.append(Part(torch.from_numpy(x[used]).float(), y, y.reshape(-1, SIZE).mean(dim=1).float()))
    return parts


def auc(score: Tensor, y: Tensor) -> float:
    """Return the probability that a positive row has a higher score than a negative one."""
    rank = pd.Series(score.detach().numpy()).rank().to_numpy()
    positive = y.numpy() == 1
    number = positive.sum()
    return float((rank[positive].sum() - number * (number + 1) / 2) / (number * (len(y) - number)))


def mpiou(score: Tensor, shares: Tensor) -> float:
    """Return how well mean predictions agree with the shares of bags: mean over bags and classes of min / max."""
    predicted = score.reshape(-1, SIZE).mean(dim=1)
    ratios = [torch.minimum(p, q) / torch.maximum(p, q) for p, q in ((predicted, shares), (1 - predicted, 1 - shares))]
    return float(torch.stack(ratios).nan_to_num(1.0).mean())


def ridge(train: Part, test: Part) -> dict[str, float]:
    """Regress the shares of bags on the mean features of bags, and apply the line to rows (Goodman 1953)."""
    means = train.x.reshape(len(train.shares), SIZE, -1).mean(dim=1).double()
    centre, level = means.mean(dim=0), train.shares.double().mean()
    gram = (means - centre).T @ (means - centre) + torch.eye(means.shape[1])
    slope = torch.linalg.solve(gram, (means - centre).T @ (train.shares.double() - level))  # AUC needs no constant
    return {"ridge on bag means": auc(test.x.double() @ slope, test.y)}


def count_loss(train: Part, test: Part, strength: float = 10.0) -> dict[str, float]:
    """Fit a logistic regression by the likelihood of counts, which are nearly normal in bags of this size."""
    weights = torch.zeros(train.x.shape[1] + 1, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")
    count = train.shares * SIZE
    for penalty in (100 * strength, 10 * strength, strength):  # the loss is not convex: from a smooth one to the last

        def loss(penalty: float = penalty) -> Tensor:
            optimiser.zero_grad()
            p = (train.x @ weights[1:] + weights[0]).sigmoid().reshape(-1, SIZE)
            variance = (p * (1 - p)).sum(dim=1) + 1 / 12  # rounding to whole counts
            misfit = (count - p.sum(dim=1)) ** 2 / variance + variance.log()
            total = misfit.sum() / 2 + penalty * weights[1:].square().sum() / 2
            total.backward()
            return total

        optimiser.step(loss)
    return {"likelihood of counts": auc(test.x @ weights[1:], test.y)}


def dllp(train: Part, validation: Part, test: Part, seed: int) -> dict[str, float]:
    """Match the mean prediction of each bag to its share with a network (Ardehaly & Culotta 2017).

    Every epoch is judged twice: by proportions of validation bags, and by labels of validation rows. Training ends when
    neither has improved for a while. The test score of each protocol is that of its own best epoch.
    """
    torch.manual_seed(seed)
    width = train.x.shape[1]
    layers = (nn.Linear(width, 128), nn.LayerNorm(128), nn.ReLU(), nn.Linear(128, 64), nn.LayerNorm(64), nn.ReLU())
    network = nn.Sequential(*layers, nn.Linear(64, 1))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)
    bags = train.x.reshape(len(train.shares), SIZE, width)
    best = {"DLLP, no labels": (-1.0, 0, 0.0), "DLLP, validation labels": (-1.0, 0, 0.0)}
    for epoch in range(EPOCHS):
        for step in torch.randperm(len(bags)).split(BAGS_PER_STEP):
            mean = network(bags[step]).sigmoid().mean(dim=(1, 2))
            loss = nn.functional.binary_cross_entropy(mean, train.shares[step])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            judged, tested = (network(part.x).sigmoid().squeeze(1) for part in (validation, test))
        for name, value in zip(best, (mpiou(judged, validation.shares), auc(judged, validation.y)), strict=True):
            if value > best[name][0]:
                best[name] = (value, epoch, auc(tested, test.y))
        if epoch - max(chosen for _, chosen, _ in best.values()) >= PATIENCE:
            break
    return {name: tested for name, (_, _, tested) in best.items()}


def main(seed: int = 0) -> dict[str, float]:
    """Return the test AUC of each method, by name."""
    frame = pd.read_parquet(ADULT)
    train, validation, test = make_parts(frame, "class", ">50K", np.random.default_rng(seed))
    return {**ridge(train, test), **count_loss(train, test), **dllp(train, validation, test, seed)}


if __name__ == "__main__":
    for method, score in main().items():
        print(f"{method:<24} {100 * score:.1f}")
