"""LLPFC: bags as noisy labels, with the forward correction of label noise.

Zhang, Wang & Scott 2022: as many bags as there are classes, drawn at random, make a group, and the rows of its bag j
get the noisy label j. With the proportions Gamma of the group's bags and a prior alpha of noisy labels,
T_jc = Gamma_jc alpha_j / (Gamma' alpha)_c is P(noisy j | c), and a row of bag j has the loss -log sum_c T_jc P_c(x).
Groups are redrawn every few epochs. Differences from the published code, and why:

- `prior=fit` solves Gamma' alpha = pi on the simplex. The published `approx` solves Gamma alpha = pi: its matrix is
  transposed twice.
- Where bags of a group are unequal, or alpha is not uniform, rows weigh alpha_j / (share of bag j's rows). A factor of
  T would change the loss by a constant alone, so rows of the heavier bags are left out at random instead, in
  proportion; published code normalises weights in each minibatch.
- A step has as many rows as one of bags has, instead of 128. Bags left over by the last group wait for the next draw.
- Groups are redrawn every 5 epochs instead of 20: trainings that stop early would hardly see a second draw.

Two bags of random bagging have nearly equal rows of T, and give tiny gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.optimize import nnls
from torch import Tensor

from llpbench.blocks.losses import masked_mean
from llpbench.core.bags import BaggedRows, Bags, FloatArray
from llpbench.core.method import Member, Method, MethodParams, Now, Stage
from llpbench.core.model import Model
from llpbench.core.ranges import Choice
from llpbench.core.registry import register_method

ON_SIMPLEX = 1e4
"""weight of the equation that shares add up to 1"""


@dataclass(frozen=True)
class LLPFCParams(MethodParams):
    """Hyperparameters of the groups."""

    prior: Annotated[str, Choice("uniform", "fit")] = "uniform"
    """of noisy labels: uniform, or such that classes have their prior"""
    refresh: Annotated[int, Choice(5, 20)] = 5
    """epochs after which groups are drawn again"""


@register_method("llpfc", reference="Zhang, Wang & Scott 2022", extra=True)
class LLPFC(Method):
    """Learn which bag of a group a row is of, corrected for what each bag holds."""

    Params = LLPFCParams
    params: LLPFCParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        self.stages = (Stage(unit="rows", refresh=self.params.refresh),)

    def prepare(self, member: Member, now: Now) -> FloatArray:
        """[rows, classes] P(noisy label | class) of each row; 1 in all classes of a row that takes no part."""
        del now
        return forward_targets(member.train, self.params.prior, member.rng)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """-mean log sum_c t_c P_c of rows with targets t."""
        del now
        noisy = (model.log_proba(bags).squeeze(-2) + bags.proportions.log()).logsumexp(dim=-1)
        return masked_mean(-noisy, bags.known)


def forward_targets(train: BaggedRows, prior: str, rng: np.random.Generator) -> FloatArray:
    """[rows, classes] rows of the groups' matrices T, 1 for rows that are in none or are left out."""
    classes = train.counts.shape[1]
    targets = np.ones((len(train.bag_of_row), classes))
    order = rng.permutation(np.flatnonzero(train.known))
    rows_of = np.split(train.bag_by_bag, np.cumsum(train.sizes)[:-1])
    for group in order[: len(order) // classes * classes].reshape(-1, classes):
        gamma = train.proportions[group]
        alpha = np.full(classes, 1 / classes) if prior == "uniform" else noisy_prior(gamma, train.prior)
        weights = alpha / train.sizes[group]
        for bag, row, keep in zip(group, transition(gamma, alpha), weights / weights.max(), strict=True):
            chosen = rows_of[bag]
            targets[chosen[rng.random(len(chosen)) < keep]] = row
    return targets


def transition(gamma: FloatArray, alpha: FloatArray) -> FloatArray:
    """T_jc = P(noisy j | c) from the proportions `gamma` [bags, classes] of a group; alpha_j for a class in no bag."""
    total = alpha @ gamma
    joint = gamma * alpha[:, None]
    return np.asarray(np.where(total > 0, joint / np.where(total > 0, total, 1.0), alpha[:, None]))


def noisy_prior(gamma: FloatArray, prior: FloatArray) -> FloatArray:
    """The alpha on the simplex with the least squared distance of gamma' alpha from `prior` [classes]."""
    equations = np.vstack([gamma.T, np.full(len(gamma), ON_SIMPLEX)])
    alpha, _ = nnls(equations, np.append(prior, ON_SIMPLEX))
    return np.asarray(alpha / alpha.sum())
