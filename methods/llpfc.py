"""LLPFC: predict which bag a row comes from, with a correction for the proportions of the bags.

    L = −meanᵢ log Σ_c Tⱼc f(xᵢ)_c,  Tⱼc = P(bag j | class c)
    groups of as many random bags as classes;  j: the row's bag within its group

Zhang, Wang & Scott 2022. Groups consist of randomly drawn bags, as many as there are classes. Rows of bag j in a group
get the noisy label j. Gamma are the proportions of the group's bags, and alpha is a prior of noisy labels. Then
T_jc = Gamma_jc alpha_j / (Gamma' alpha)_c is P(noisy j | c), and a row of bag j has the loss -log sum_c T_jc P_c(x).
Groups are redrawn every few epochs. Differences from the published code:

- `prior=fit` solves Gamma' alpha = pi on the simplex. The published `approx` solves Gamma alpha = pi, since its matrix
  is transposed twice.
- If the bags of a group have unequal sizes, or alpha is not uniform, rows need the weights alpha_j / (fraction of rows
  in bag j). A factor on T would change the loss only by a constant. Instead, rows are dropped at random and kept with
  probabilities proportional to these weights. The published code normalises weights in each minibatch.
- A step has as many rows as a step of bags, instead of 128. Bags that fill no group wait for the next draw.
- Groups are redrawn every 5 epochs instead of 20, because runs that stop early would hardly see a second draw.

In random bags, the rows of T are nearly equal, and gradients are tiny.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from torch import Tensor

from llpbench import BaggedRows, Bags, FloatArray, Member, Method, MethodParams, Now, Stage, losses, register_method
from llpbench.core.errors import LLPBenchError
from llpbench.core.model import Model
from llpbench.core.ranges import Choice

ON_SIMPLEX = 1e4
"""weight of the equation that the elements of alpha add up to 1"""


@dataclass(frozen=True)
class _LLPFCParams(MethodParams):
    """Hyperparameters of the groups."""

    prior: Annotated[str, Choice("uniform", "fit")] = "uniform"
    """prior of noisy labels: uniform, or fitted to the class proportions of all rows"""
    refresh: Annotated[int, Choice(5, 20)] = 5
    """epochs between two draws of groups"""


@register_method("llpfc", version=1, reference="Zhang, Wang & Scott 2022", extra=True)
class LLPFC(Method):
    """Predict the bag of a row in its group, corrected for the proportions of the bags."""

    Params = _LLPFCParams
    params: _LLPFCParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        self.stages = (Stage(unit="rows", refresh=self.params.refresh),)

    def prepare(self, member: Member, now: Now) -> FloatArray:
        """Return P(noisy label | class) [rows, classes] of each row; 1 for all classes if a row is not used."""
        return _forward_targets(member.train, self.params.prior, member.rng)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return -mean log sum_c t_c P_c of rows with targets t."""
        noisy = (model.log_proba(bags).squeeze(-2) + bags.proportions.log()).logsumexp(dim=-1)
        return losses.masked_mean(-noisy, bags.known)


def _forward_targets(train: BaggedRows, prior: str, rng: np.random.Generator) -> FloatArray:
    """Return the row of T [rows, classes] for each training row; 1 for rows without a group and dropped rows."""
    classes = train.counts.shape[1]
    targets = np.ones((len(train.bag_of_row), classes))
    order = rng.permutation(np.flatnonzero(train.known))
    if len(order) < classes:
        raise LLPBenchError(f"llpfc needs as many bags as classes ({classes}), got {len(order)}. Make smaller bags.")
    rows_of = np.split(train.bag_by_bag, np.cumsum(train.sizes)[:-1])
    for group in order[: len(order) // classes * classes].reshape(-1, classes):
        gamma = train.proportions[group]
        alpha = np.full(classes, 1 / classes) if prior == "uniform" else _noisy_prior(gamma, train.prior)
        weights = alpha / train.sizes[group]
        for bag, row, keep in zip(group, _transition(gamma, alpha), weights / weights.max(), strict=True):
            chosen = rows_of[bag]
            targets[chosen[rng.random(len(chosen)) < keep]] = row
    return targets


def _transition(gamma: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return T_jc = P(noisy j | c), from a group's proportions `gamma` [bags, classes]; alpha_j for absent classes."""
    total = alpha @ gamma
    joint = gamma * alpha[:, None]
    return np.asarray(np.where(total > 0, joint / np.where(total > 0, total, 1.0), alpha[:, None]))


def _noisy_prior(gamma: FloatArray, prior: FloatArray) -> FloatArray:
    """Return the alpha on the simplex with the least squared distance of gamma' alpha from `prior` [classes]."""
    from scipy.optimize import nnls  # takes long to import, and `llpbench plan` does not need it

    equations = np.vstack([gamma.T, np.full(len(gamma), ON_SIMPLEX)])
    alpha, _ = nnls(equations, np.append(prior, ON_SIMPLEX))
    return np.asarray(alpha / alpha.sum())
