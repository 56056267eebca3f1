"""Names, directions and regimes of validation criteria and test metrics. `metrics.py` computes them.

Fine-grained criteria need the label of every validation row; coarse-grained ones need only the proportions of
validation bags. One run is enough for all (`training/selection.py`). Reports use this module: no numpy, no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Regime = Literal["fine", "coarse"]

_MANY = 1e6
"""bound of a sum over classes: 2 for two classes, but up to the number of classes if scores do not add up to 1"""
_OF_ROWS = (-1e18, 1e18)
"""bounds of a sum over the rows of a bag: its log likelihood is -6 rows² if predictions are certain and wrong"""


@dataclass(frozen=True)
class Criterion:
    """A number that selects the best epoch of a training run."""

    name: str
    regime: Regime
    maximise: bool
    title: str
    """heading on a leaderboard"""
    bounds: tuple[float, float] = (0.0, 1.0)
    """smallest and largest possible value, except for rounding"""
    prolongs: bool = True
    """whether training goes on until the criterion has settled; otherwise it chooses among the epochs of the others"""


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        Criterion("auc", "fine", True, "AUC of validation rows"),
        Criterion("accuracy", "fine", True, "accuracy on validation rows"),
        Criterion("mpiou", "coarse", True, "mPIoU of validation bags"),
        Criterion("mpiou-hard", "coarse", True, "mPIoU of validation bags, hard predictions"),
        Criterion("l1", "coarse", False, "L1 distance of validation bags", (0.0, _MANY)),
        Criterion("l1-hard", "coarse", False, "L1 distance of validation bags, hard predictions", (0.0, _MANY)),
        Criterion("kl", "coarse", False, "KL divergence of validation bags", (-_MANY, _MANY)),
        Criterion("likelihood", "coarse", True, "log likelihood of validation bags", _OF_ROWS),
        Criterion("dsq", "coarse", False, "debiased square risk of validation bags", _OF_ROWS, prolongs=False),
        Criterion("easyllp", "coarse", False, "EasyLLP risk of validation bags", _OF_ROWS, prolongs=False),
    )
}


GUIDES: dict[Regime, str] = {"fine": "auc", "coarse": "kl"}
"""The criterion of each regime that is used if only one criterion can be used.

It selects the weights from which the next stage starts; this stage is trained once per regime. It also guides a search
for hyperparameters. So coarse-grained results never use labels of rows, and fine-grained ones always do.
"""


BOARD_CRITERIA = ("auc", "mpiou", "l1")
"""criteria of the leaderboards; both coarse-grained ones, not only the better one"""


@dataclass(frozen=True)
class Metric:
    """A number that evaluates predictions on the test rows. Boards show it times 100."""

    name: str
    maximise: bool
    title: str
    bounds: tuple[float, float] = (0.0, 1.0)
    """smallest and largest possible value, except for rounding"""


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("auc", True, "AUC"),
        Metric("accuracy", True, "accuracy"),
        Metric("average-precision", True, "average precision"),
        Metric("macro-f1", True, "macro F1"),
        Metric("balanced-accuracy", True, "balanced accuracy"),
        Metric("log-loss", False, "log loss", (0.0, _MANY)),
        Metric("brier", False, "Brier score", (0.0, _MANY)),
        Metric("ece", False, "expected calibration error"),
        Metric("auc-known-bags", True, "AUC of test rows in known bags"),
        Metric("log-loss-known-bags", False, "log loss of test rows in known bags", (0.0, _MANY)),
        Metric("brier-known-bags", False, "Brier score of test rows in known bags", (0.0, _MANY)),
        Metric("auc-whole-bags", True, "AUC of training rows, predictions adjusted to the counts of their bags"),
        Metric(
            "accuracy-whole-bags", True, "accuracy of training rows, labels assigned to match the counts of their bags"
        ),
        Metric(
            "brier-whole-bags",
            False,
            "Brier score of training rows, predictions adjusted to the counts of their bags",
            (0.0, _MANY),
        ),
        Metric("mpiou", True, "mPIoU of test bags"),
        Metric("l1", False, "L1 distance of test bags", (0.0, _MANY)),
    )
}
